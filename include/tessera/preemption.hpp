/// @file
/// Jobs that are asked to stop: by a cluster that needs their nodes or whose time limit expires (SIGTERM,
/// SIGUSR1), or by Ctrl-C at a terminal (SIGINT). The signal may reach one rank only; all ranks agree on it
/// before anything is done.
#pragma once
#include <tessera/detail/standard.hpp>

#include <functional>
#include <memory>
#include <source_location>

#include <tessera/error.hpp>

namespace tessera {

/// The exit status of a job that was asked to stop and has saved its state: start it again.
inline constexpr int status_preempted = 85;

/// Ends a job that was asked to stop. Raised on every rank alike, by on_preemption or by the program:
/// `if (preempted()) { save(); throw Preempted("saved step 40"); }`
struct Preempted : Error {
  using Error::Error;
  const char* kind() const noexcept override { return "Preempted"; }
  int exit_status() const noexcept override { return status_preempted; }
};

/// Whether some rank was asked to stop: the same answer on all. Collective over all ranks: one small
/// all-reduce. From the first call on the signals SIGTERM, SIGUSR1 and SIGINT no longer end the process (a
/// second SIGINT does); signals that the program handles or ignores itself are left alone.
[[nodiscard]] bool preempted(std::source_location where = std::source_location::current());

/// During its lifetime a function is called when the job is asked to stop.
class OnPreemption {
 public:
  /// Unregisters the function.
  ~OnPreemption();
  OnPreemption(OnPreemption&&) noexcept;  ///< the moved-from object becomes empty
  OnPreemption& operator=(OnPreemption&&) = delete;

 private:
  explicit OnPreemption(std::shared_ptr<std::function<void()>> save);
  std::shared_ptr<std::function<void()>> save_;
  friend OnPreemption on_preemption(std::function<void()> save, std::source_location where);
};

/// Calls `save` once on all ranks when some rank was asked to stop, and ends the job with Preempted. This
/// happens at the next evaluation in which all ranks take part (or the next preempted()), before any of it is
/// computed; `save` sees what earlier statements have assigned: assign step and state together. Never inside
/// a running save or load. Collective over all ranks; the function registered last is called. Signals as for
/// preempted().
[[nodiscard]] OnPreemption on_preemption(std::function<void()> save,
                                         std::source_location where = std::source_location::current());

}  // namespace tessera
