#include "base/child_process.hpp"

#include <pthread.h>

#include "base/session.hpp"

namespace tessera {
namespace {

bool is_child = false, parent_has_peers = false;

void become_child() {
  is_child = true;
  detail::session_thread = pthread_t{};  // the next call adopts its own thread, or is refused
}

}  // namespace

void expect_children(bool has_peers) {
  static const int registered = pthread_atfork(nullptr, nullptr, become_child);
  static_cast<void>(registered);
  parent_has_peers = has_peers;
}
bool is_child_process() { return is_child; }
bool is_child_of_rank_with_peers() { return is_child && parent_has_peers; }

}  // namespace tessera
