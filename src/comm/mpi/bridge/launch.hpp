// The launcher that started this process, as told by environment variables.
#pragma once
#include <string>

#include "comm/mpi/bridge/found.hpp"

namespace tessera::comm::bridge {

struct Launch {
  Kind kind = Kind::none;    // none: no launcher, or one that can start either kind (SLURM, PMIx)
  bool likes_mpich = false;  // for launchers that can start either kind
  int processes = 1;         // the launcher's count; 2 if it gives none
  std::string sign;          // the variable that identified it; "": no launcher

  bool fits(Kind library) const {
    return kind == Kind::none || library == kind || (kind == Kind::mpich && library == Kind::standard);
  }
};
Launch launch_of_process();

}  // namespace tessera::comm::bridge
