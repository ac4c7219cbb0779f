// The call that is being served, for a watching thread.
#pragma once
#include <atomic>

namespace tessera {

// Its name; nullptr while the program's own code runs. Obtained on the session's thread, read on any.
const std::atomic<const char*>& name_of_current_call();

}  // namespace tessera
