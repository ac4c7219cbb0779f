#include "kernels/threads.hpp"

#include <algorithm>
#include <atomic>

namespace tessera::kernels {
namespace {
std::atomic<int> thread_count{1};
}

int threads() { return thread_count.load(std::memory_order_relaxed); }
void set_threads(int count) { thread_count.store(std::max(count, 1), std::memory_order_relaxed); }

}  // namespace tessera::kernels
