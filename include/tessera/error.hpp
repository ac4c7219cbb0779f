/// @file
/// The errors that tessera raises. Each text contains the call with its line, the facts with numbers, and a
/// remedy.
///
/// A UserError is decided from facts that every rank knows (shapes, dtypes, specs, meshes), so it is raised
/// on every rank with the same text. A SystemError has external causes (MPI, files, memory, a singular
/// matrix); the ranks agree on it before it is raised. An InternalError is a bug in tessera.
#pragma once
#include <tessera/detail/standard.hpp>

#include <stdexcept>
#include <string>

namespace tessera {

/// Exit statuses of a job of tessera::run.
enum ExitStatus : int {
  status_done = 0,
  status_usage = 2,          ///< the program cannot be started like this
  status_failed = 70,        ///< an error without a status of its own
  status_memory = 71,        ///< out of memory
  status_io = 74,            ///< files
  status_disagreement = 76,  ///< the ranks tried to do different things, or one did not arrive in time
};

/// The base class of all errors of tessera.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// The name of the type: what tessera::run prints before the text.
  virtual const char* kind() const noexcept { return "Error"; }
  /// The status with which tessera::run ends when the error leaves the program's body.
  virtual int exit_status() const noexcept { return status_failed; }
};

/// The program requests something impossible. Raised on every rank alike.
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
/// A collective names an axis that is not bound at that point.
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
/// A call from another thread than the one that uses tessera (see tessera::Runtime). Raised on that thread,
/// before any state changes.
struct ThreadError : UserError {
  using UserError::UserError;
  const char* kind() const noexcept override { return "ThreadError"; }
};

/// An external failure, on which the ranks agree before it is raised.
struct SystemError : Error {
  using Error::Error;
  const char* kind() const noexcept override { return "SystemError"; }
};
/// MPI failed, or the ranks disagree.
struct CommError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "CommError"; }
};
/// The ranks tried to do different things. Raised on every rank involved, before anything is done.
struct DisagreementError : CommError {
  using CommError::CommError;
  const char* kind() const noexcept override { return "DisagreementError"; }
  int exit_status() const noexcept override { return status_disagreement; }
};
/// This rank has failed alone before (its first error says how), while the others continued without it, and
/// now tries to communicate with them. Raised on this rank; let it end the program, which ends the job.
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
/// A result, or the memory for computing it, does not fit.
struct MemoryError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "MemoryError"; }
  int exit_status() const noexcept override { return status_memory; }
};
/// A matrix without a solution: singular, not positive definite, no convergence.
struct LinAlgError : SystemError {
  using SystemError::SystemError;
  const char* kind() const noexcept override { return "LinAlgError"; }
};
/// The first NaN found while debug::set_nan_check is on.
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
