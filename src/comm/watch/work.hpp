// Whether a rank outside of comm's calls makes progress. For src/comm/watch alone.
#pragma once
#include <time.h>

#include <cstdint>

namespace tessera::comm {

// The resources that this process has used so far. Read only while the rank computes, since a waiting rank
// polls, which is no work.
struct Work {
  std::int64_t thread_cpu_ns = 0, process_cpu_ns = 0, file_bytes = 0;
};

class WorkMeter {
 public:
  WorkMeter();  // for the thread that creates it: the session's
  // Whether the process used more CPU time since the last call than the watchdog itself does, or moved bytes
  // of files. Inside the library all threads count. In the program's own code only the session's thread
  // counts, since others may spin for ever while it waits for a lock.
  bool has_worked(std::int64_t passed_ns, bool in_library);

 private:
  Work so_far() const;
  clockid_t session_thread_;
  Work before_;
};

}  // namespace tessera::comm
