// A rank that fails alone while others go on: they are inside of collectives that it will not join, and what
// it called next would match one of theirs. So it talks to nobody any more, gives back no memory that MPI may
// still write into, and ends the job when its program ends (leave()).
#pragma once
#include <tessera/error.hpp>

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
// FailedJobError after a failure.
void check_not_failed();

// leave() speaks once more, for all.
void speak_in_spite_of_failure();

}  // namespace tessera::comm
