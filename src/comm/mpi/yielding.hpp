// Waits that give the core up. Open MPI yields the core between two polls if it is told to (environment.cpp).
// MPICH and its descendants do not: where ranks share cores, or other programs run, each message then takes
// a time slice of the system (8 ranks on 2 busy cores: 5 to 7 ms of CPU for an 8-byte all-reduce, 0.06 to
// 0.2 ms with this).
#pragma once
#include <sched.h>

namespace tessera::comm {

// Whether this host has more ranks than cores: a waiting rank then yields its core at once.
inline bool shares_cores = false;

// Polls with test(&done) until that fails or is done. A rank with a core of its own polls for a while before
// it yields.
template <class Test> int poll(Test test) {
  constexpr int quick = 10'000, success = 0;  // MPI_SUCCESS of every MPI
  for (int turn = shares_cores ? quick : 0;;) {
    int done = 0;
    const int code = test(&done);
    if (code != success || done != 0) return code;
    if (turn < quick)
      ++turn;
    else
      sched_yield();
  }
}

// Calls wait(), or polls if this MPI keeps its core. The bridge has no name for what `test` calls.
template <bool keeps_its_core, class Wait, class Test> int wait_by(Wait wait, Test test) {
  if constexpr (keeps_its_core)
    return poll(test);
  else
    return wait();
}

}  // namespace tessera::comm
