// The errors that tessera raises.
//
// A UserError is decided from facts that every rank knows (shapes, dtypes, specs, meshes), so it is raised
// on every rank with the same text. A SystemError comes from the world outside (MPI, files, memory, a
// singular matrix); it is agreed before it is raised. An InternalError is a bug in tessera.
#pragma once
#include <stdexcept>
#include <string>

namespace tessera {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct UserError : Error {
  using Error::Error;
};
struct ShapeError : UserError {
  using UserError::UserError;
};
struct DtypeError : UserError {
  using UserError::UserError;
};
struct ShardingError : UserError {
  using UserError::UserError;
};
struct AxisNameError : UserError {
  using UserError::UserError;
};
struct IndexError : UserError {
  using UserError::UserError;
};
struct ArgumentError : UserError {
  using UserError::UserError;
};

struct SystemError : Error {
  using Error::Error;
};
struct CommError : SystemError {
  using SystemError::SystemError;
};
struct IoError : SystemError {
  using SystemError::SystemError;
};
struct MemoryError : SystemError {
  using SystemError::SystemError;
};
struct LinAlgError : SystemError {
  using SystemError::SystemError;
};
struct NanError : SystemError {
  using SystemError::SystemError;
};  // debug::set_nan_check

struct InternalError : Error {
  using Error::Error;
};

}  // namespace tessera
