// A rank that fails alone while others go on: they are inside of collectives that it will not join, and what
// it called next would match one of theirs. So it talks to nobody any more, gives back no memory that MPI may
// still write into, and ends the job when its program ends (leave()).
#pragma once
#include <tessera/error.hpp>

#include <functional>
#include <string>

namespace tessera::comm {

struct Failure {
  bool happened = false;
  int status = status_failed;
  std::string words;  // "" while only the place is known
};
const Failure& failure();

// From a catch block: what is being handled is this rank's failure. The first one stays.
void mark_failed_by_exception(const std::string& where) noexcept;
// An exception passes through an open call or open requests.
void mark_cut_off() noexcept;
// While it lives, a function of the program runs on this rank alone: whatever it asked of the others would
// find them elsewhere. `where`: "a function given to debug::callback".
class RunsAlone {
 public:
  explicit RunsAlone(const char* where);
  ~RunsAlone();
  RunsAlone(const RunsAlone&) = delete;
  RunsAlone& operator=(const RunsAlone&) = delete;

 private:
  const char* before_;
};
// FailedJobError after a failure. ArgumentError where the rank runs alone, in a job of several.
void check_not_failed();

// What goes on beside the program (a save that is written) ends before the program says how it ended: leave()
// calls these first, on every rank for itself. They throw what went wrong, or nothing.
void before_leaving(std::function<void()> end);
void end_what_goes_on() noexcept;
// From a catch block: an error that no call can raise any more, because its owner is gone. The program ends
// with it, unless it fails by itself. The first one stays.
void owe_failure_by_exception() noexcept;
const Failure& owed_failure();

// leave() speaks once more, for all.
void speak_in_spite_of_failure();

}  // namespace tessera::comm
