#include "types/buffer.hpp"

#include <tessera/error.hpp>

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "types/other_memory.hpp"

namespace tessera {
namespace {

// Freed blocks by capacity. A request takes the smallest kept block that wastes less than half of it.
class Pool {
 public:
  std::byte* take(std::size_t bytes, std::size_t& capacity) {
    const std::scoped_lock lock(mutex_);
    auto kept = free_.lower_bound(bytes);
    if (kept != free_.end() && kept->first / 2 <= bytes) {
      capacity = kept->first;
      std::byte* data = kept->second.back();
      kept->second.pop_back();
      if (kept->second.empty()) free_.erase(kept);
      use_.pooled_bytes -= static_cast<std::int64_t>(capacity);
      count(static_cast<std::int64_t>(capacity));
      return data;
    }
    // Small blocks round up to a power of two, large ones to 1/8 of one, so that near sizes share a class.
    const std::size_t step = bytes < 4096 ? 64 : std::bit_ceil(bytes) / 8;
    capacity = (bytes + step - 1) / step * step;
    auto* data = static_cast<std::byte*>(
        std::aligned_alloc(capacity >= large_bytes ? huge_page : 64, round_up(capacity)));
    if (data == nullptr) {
      drop_all();
      data = static_cast<std::byte*>(std::aligned_alloc(64, round_up(capacity)));
    }
    if (data == nullptr)
      throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes on this rank");
#ifdef MADV_HUGEPAGE
    if (capacity >= large_bytes) madvise(data, capacity, MADV_HUGEPAGE);
#endif
    count(static_cast<std::int64_t>(capacity));
    return data;
  }

  void give(std::byte* data, std::size_t capacity) {
    const std::scoped_lock lock(mutex_);
    use_.live_bytes -= static_cast<std::int64_t>(capacity);
    use_.pooled_bytes += static_cast<std::int64_t>(capacity);
    free_[capacity].push_back(data);
    // What is kept never exceeds what was in use at the peak. Blocks of the size that is in use now stay
    // longest.
    while (use_.pooled_bytes > use_.peak_bytes + slack_bytes) drop_largest_but(capacity);
  }

  void drop() {
    void (*drop_other)() = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      drop_all();
      drop_other = drop_other_;
    }
    if (drop_other != nullptr) drop_other();
  }
  void count_other(std::int64_t live_change, std::int64_t pooled_change) {
    const std::scoped_lock lock(mutex_);
    other_pooled_bytes_ += pooled_change;
    count(live_change);
  }
  void on_drop(void (*drop_other)()) {
    const std::scoped_lock lock(mutex_);
    drop_other_ = drop_other;
  }

  MemoryUse use() {
    const std::scoped_lock lock(mutex_);
    MemoryUse use = use_;
    use.pooled_bytes += other_pooled_bytes_;
    return use;
  }
  void reset_peak() {
    const std::scoped_lock lock(mutex_);
    use_.peak_bytes = use_.live_bytes;
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20, large_bytes = 2 * huge_page;
  static constexpr std::int64_t slack_bytes = std::int64_t{64} << 20;

  static std::size_t round_up(std::size_t capacity) {
    const std::size_t align = capacity >= large_bytes ? huge_page : 64;
    return (capacity + align - 1) / align * align;
  }
  void count(std::int64_t capacity) {
    use_.live_bytes += capacity;
    use_.peak_bytes = std::max(use_.peak_bytes, use_.live_bytes);
  }
  void drop_largest_but(std::size_t capacity) {
    auto from = std::prev(free_.end());
    if (from->first == capacity && from != free_.begin()) --from;
    std::free(from->second.back());
    from->second.pop_back();
    use_.pooled_bytes -= static_cast<std::int64_t>(from->first);
    if (from->second.empty()) free_.erase(from);
  }
  void drop_all() {
    for (auto& [capacity, blocks] : free_)
      for (auto* block : blocks) std::free(block);
    free_.clear();
    use_.pooled_bytes = 0;
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  MemoryUse use_;
  std::int64_t other_pooled_bytes_ = 0;
  void (*drop_other_)() = nullptr;
};

Pool& pool() {
  static Pool* instance = new Pool;  // outlives every static array handle of the program
  return *instance;
}

}  // namespace

Buffer::Block::~Block() {
  if (release)
    release();
  else if (data != nullptr)
    pool().give(data, capacity);
}

Buffer Buffer::allocate(std::size_t bytes) {
  Buffer buffer;
  buffer.block_ = std::make_shared<Block>();
  buffer.block_->bytes = bytes;
  buffer.block_->data = pool().take(std::max<std::size_t>(bytes, 64), buffer.block_->capacity);
  return buffer;
}

Buffer Buffer::wrap(void* data, std::size_t bytes, std::function<void()> release) {
  Buffer buffer;
  buffer.block_ = std::make_shared<Block>();
  buffer.block_->data = static_cast<std::byte*>(data);
  buffer.block_->bytes = bytes;
  buffer.block_->release = release ? std::move(release) : [] {};
  return buffer;
}

MemoryUse memory_use() { return pool().use(); }
void reset_peak_memory() { pool().reset_peak(); }
void release_pooled_memory() { pool().drop(); }
void count_other_memory(std::int64_t live_change, std::int64_t pooled_change) {
  pool().count_other(live_change, pooled_change);
}
void on_release_pooled_memory(void (*drop)()) { pool().on_drop(drop); }

}  // namespace tessera
