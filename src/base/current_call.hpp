// The call that is being served, for a thread that watches.
#pragma once
#include <atomic>

namespace tessera {

// Its name; nullptr: the program's own code runs. Asked for on the session's thread, read on any.
const std::atomic<const char*>& name_of_current_call();

}  // namespace tessera
