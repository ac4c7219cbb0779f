// What a launcher has told this process by its environment.
#pragma once
#include <string>

#include "comm/mpi/bridge/found.hpp"

namespace tessera::comm::bridge {

struct Launch {
  Kind kind = Kind::none;    // none: no launcher, or one that starts either (SLURM, PMIx)
  bool likes_mpich = false;  // of those that start either
  int processes = 1;         // that it says, 2 where it does not
  std::string sign;          // the variable it is known by; "": no launcher

  bool fits(Kind library) const {
    return kind == Kind::none || library == kind || (kind == Kind::mpich && library == Kind::standard);
  }
};
Launch launch_of_process();

}  // namespace tessera::comm::bridge
