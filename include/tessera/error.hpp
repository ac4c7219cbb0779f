/// @file
/// The errors that tessera raises. Each says which call, the facts with numbers, the line of the call and
/// how to mend it.
///
/// A UserError is decided from facts that every rank knows (shapes, dtypes, specs, meshes), so it is raised
/// on every rank with the same text. A SystemError comes from the world outside (MPI, files, memory, a
/// singular matrix); it is agreed before it is raised. An InternalError is a bug in tessera.
#pragma once
#include <tessera/detail/standard.hpp>

#include <stdexcept>
#include <string>

namespace tessera {

/// Statuses that a job of tessera::run ends with.
enum ExitStatus : int {
  status_done = 0,
  status_usage = 2,          ///< a start that cannot work
  status_failed = 70,        ///< an error that has no status of its own
  status_memory = 71,        ///< out of memory
  status_io = 74,            ///< files
  status_disagreement = 76,  ///< the ranks were asked to do different things, or one did not come in time
};

/// The base class of all errors of tessera.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// The name of the type: what tessera::run prints before the text.
  virtual const char* kind() const noexcept { return "Error"; }
  /// The status with which tessera::run ends when the error leaves the program's body.
  virtual int exit_status() const noexcept { return status_failed; }
};

/// The program asks for something that cannot be. Raised on every rank alike.
struct UserError : Error {
  using Error::Error;
  const char* kind() const noexcept override { return "UserError"; }
};
/// Shapes that do not fit each other or the call.
struct ShapeError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "ShapeError"; }
};
/// A dtype that the call does not take.
struct DtypeError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "DtypeError"; }
};
/// Meshes, specs and devices that do not fit each other or the array.
struct ShardingError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "ShardingError"; }
};
/// A collective names an axis that is not bound where it stands.
struct AxisNameError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "AxisNameError"; }
};
/// An index outside of its dimension.
struct IndexError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "IndexError"; }
};
/// Any other argument that the call does not take.
struct ArgumentError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "ArgumentError"; }
};
/// A call from another thread than the one that tessera is used from (see tessera::Runtime). Raised on that
/// thread, before anything is touched.
struct ThreadError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "ThreadError"; }
};

/// The world outside refuses. Agreed before it is raised.
struct SystemError : Error {
  using Error::Error;
  const char* kind() const noexcept override { return "SystemError"; }
};
/// MPI failed, or the ranks disagree.
struct CommError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "CommError"; }
};
/// The ranks were asked to do different things, before any of it was done. Raised on every rank that was
/// asked.
struct DisagreementError : CommError {
  using CommError::CommError;
  const char* kind() const noexcept override { return "DisagreementError"; }
  int exit_status() const noexcept override { return status_disagreement; }
};
/// This rank has failed alone before (its first error says how), while the others went on without it, and is
/// asked to talk to them. Raised on this rank; let it end the program, which ends the job.
struct FailedJobError : CommError {
  /// `status`: that of the first error.
  FailedJobError(const std::string& text, int status) : CommError(text), status_(status) {}
  const char* kind() const noexcept override { return "FailedJobError"; }
  int exit_status() const noexcept override { return status_; }

 private:
  int status_;
};
/// A file cannot be read or written, or does not hold what it should.
struct IoError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "IoError"; }
  int exit_status() const noexcept override { return status_io; }
};
/// A result, or what computing it needs, does not fit.
struct MemoryError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "MemoryError"; }
  int exit_status() const noexcept override { return status_memory; }
};
/// A matrix that has no answer: singular, not positive definite, no convergence.
struct LinAlgError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "LinAlgError"; }
};
/// The first NaN, where debug::set_nan_check looks for them.
struct NanError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "NanError"; }
};

/// A bug in tessera.
struct InternalError : Error {
  using Error::Error;
  const char* kind() const noexcept override { return "InternalError (a bug in tessera)"; }
};

}  // namespace tessera
