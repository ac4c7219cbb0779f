// Whether a rank that stands in no call of this room goes on. For src/comm/watch alone.
#pragma once
#include <time.h>

#include <cstdint>

namespace tessera::comm {

// What this process has used so far. A rank that waits polls, which is no work: asked only while it computes.
struct Work {
  std::int64_t thread_cpu_ns = 0, process_cpu_ns = 0, file_bytes = 0;
};

class WorkMeter {
 public:
  WorkMeter();  // of the thread that makes it: the session's
  // Since the last call of this function, more than the watchdog itself uses. Inside of the library all
  // threads count. In the program's own code the session's thread does: others may spin for ever while it
  // waits for a lock.
  bool has_worked(std::int64_t passed_ns, bool in_library);

 private:
  Work so_far() const;
  clockid_t session_thread_;
  Work before_;
};

}  // namespace tessera::comm
