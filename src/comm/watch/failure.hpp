// A rank that fails alone while others continue: they are inside collectives that it will not join, and its
// next calls would match theirs by mistake. So it no longer communicates, frees no memory that MPI may still
// write to, and ends the job when its program ends (leave()).
#pragma once
#include <tessera/error.hpp>

#include <functional>
#include <string>

namespace tessera::comm {

struct Failure {
  bool happened = false;
  int status = status_failed;
  std::string words;  // "" while only the failed call is known
};
const Failure& failure();

// To be called in a catch block: the exception being handled is this rank's failure. The first failure is
// kept.
void mark_failed_by_exception(const std::string& where) noexcept;
// Called when an exception passes through an open call or open requests.
void mark_cut_off() noexcept;
// During its lifetime a function of the program runs on this rank alone: collective calls inside it would
// find the other ranks elsewhere. `where`: "a function given to debug::callback".
class RunsAlone {
 public:
  explicit RunsAlone(const char* where);
  ~RunsAlone();
  RunsAlone(const RunsAlone&) = delete;
  RunsAlone& operator=(const RunsAlone&) = delete;

 private:
  const char* before_;
};
// FailedJobError after a failure. ArgumentError if the rank runs alone (RunsAlone) in a job of several ranks.
void check_not_failed();

// Registers the end of background work (such as a running save): leave() calls these functions first, on
// every rank independently, so that their errors reach the exit status. They throw the error, if any.
void before_leaving(std::function<void()> end);
void end_what_goes_on() noexcept;
// To be called in a catch block: an error that no later call can raise, because its owner is destroyed. The
// program ends with it, unless it fails by itself. The first one is kept.
void owe_failure_by_exception() noexcept;
const Failure& unreported_failure();

// Lets leave() communicate once more, for all ranks.
void speak_in_spite_of_failure();

}  // namespace tessera::comm
