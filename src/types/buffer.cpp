#include "types/buffer.hpp"

#include <tessera/error.hpp>

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>

#include "types/free_list.hpp"
#include "types/freed_memory.hpp"
#include "types/other_memory.hpp"

namespace tessera {
namespace {

class Pool;
Pool& pool();

// Memory of the system that is kept for later requests.
class Pool {
 public:
  // The lock is held across fork(), so that the child finds the pool consistent, whatever other threads did.
  Pool() {
    pthread_atfork([] { pool().mutex_.lock(); }, [] { pool().mutex_.unlock(); },
                   [] { pool().mutex_.unlock(); });
  }

  std::byte* take(std::size_t bytes, std::size_t& capacity) {
    const std::size_t fresh = bytes < 4096 ? (bytes + 63) / 64 * 64 : shared_capacity(bytes, 64);
    if (auto* const data = take_kept(bytes, fresh, capacity)) return data;
    if (is_bounded()) make_room(fresh);
    const std::scoped_lock lock(mutex_);
    capacity = fresh;
    auto* data = from_system(capacity);
    if (data == nullptr) {
      drop_all();
      data = from_system(capacity);
    }
    if (data == nullptr)
      throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes on this rank");
    mark_taken(data, bytes, capacity);
    count(static_cast<std::int64_t>(capacity));
    return data;
  }

  // Keeps at most as many bytes as were in use at the peak; under a PoolBound, at most the bytes that it
  // leaves.
  void give(std::byte* data, std::size_t capacity) {
    const std::scoped_lock lock(mutex_);
    use_.live_bytes -= static_cast<std::int64_t>(capacity);
    mark_freed(data, capacity);
    if (!free_.give(capacity, data)) to_system(data, capacity);
    free_.shrink(use_.peak_bytes + slack_bytes, capacity,
                 [](const auto& found) { to_system(found.block, found.capacity); });
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

  void set_bound(std::int64_t bytes) {
    bound_ = bytes;
    if (bytes > 0) make_room(0);
  }
  std::int64_t bound() const { return bound_.load(std::memory_order_relaxed); }
  bool is_bounded() const { return bound() > 0; }
  std::int64_t over_bound(std::size_t fresh) {
    const std::scoped_lock lock(mutex_);
    return excess(fresh);
  }
  void shrink(std::int64_t by) {
    const std::scoped_lock lock(mutex_);
    shrink_by(by);
  }

  MemoryUse use() {
    const std::scoped_lock lock(mutex_);
    MemoryUse use = use_;
    use.pooled_bytes = free_.bytes() + other_pooled_bytes_;
    return use;
  }
  void reset_peak() {
    const std::scoped_lock lock(mutex_);
    use_.peak_bytes = use_.live_bytes;
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20, large_bytes = 2 * huge_page,
                               // The largest page size of common systems.
      largest_page = std::size_t{64} << 10;
  static constexpr std::int64_t slack_bytes = std::int64_t{64} << 20;

  static std::size_t round_up(std::size_t bytes, std::size_t step) {
    return (bytes + step - 1) / step * step;
  }

#ifdef __SANITIZE_ADDRESS__  // the address sanitizer checks the ends of malloc's blocks
  static bool is_mapped(std::size_t) { return false; }
#else
  static bool is_mapped(std::size_t capacity) { return capacity >= large_bytes; }
#endif

  // Large blocks are separate mappings. In malloc's heap the huge-page advice would remain after a block is
  // freed, and the next header stored there would take 2 MiB.
  static std::byte* from_system(std::size_t capacity) {
    if (!is_mapped(capacity)) return static_cast<std::byte*>(std::aligned_alloc(64, round_up(capacity, 64)));
    if (capacity > std::numeric_limits<std::ptrdiff_t>::max() - 2 * huge_page) return nullptr;
    const std::size_t bytes = round_up(capacity, largest_page);
    void* const mapped =
        mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* const first = static_cast<std::byte*>(mapped);
    const std::size_t ahead = (huge_page - reinterpret_cast<std::uintptr_t>(mapped) % huge_page) % huge_page;
    if (ahead > 0) munmap(first, ahead);
    if (ahead < huge_page) munmap(first + ahead + bytes, huge_page - ahead);
#ifdef MADV_HUGEPAGE
    madvise(first + ahead, bytes, MADV_HUGEPAGE);
#endif
    return first + ahead;
  }
  static void to_system(std::byte* data, std::size_t capacity) noexcept {
    unmark(data, capacity);
    if (!is_mapped(capacity))
      std::free(data);
    else
      munmap(data, round_up(capacity, largest_page));
  }
  std::byte* take_kept(std::size_t bytes, std::size_t fresh, std::size_t& capacity) {
    const std::scoped_lock lock(mutex_);
    const auto kept = free_.take(bytes, is_bounded() ? fresh : 2 * bytes + 1);
    if (!kept) return nullptr;
    capacity = kept->capacity;
    mark_taken(kept->block, bytes, capacity);
    count(static_cast<std::int64_t>(capacity));
    return kept->block;
  }
  std::int64_t excess(std::size_t fresh) const {
    if (!is_bounded()) return 0;
    return std::max<std::int64_t>(0, use_.live_bytes + free_.bytes() + other_pooled_bytes_ +
                                         static_cast<std::int64_t>(fresh) - bound());
  }
  void shrink_by(std::int64_t bytes) {
    free_.shrink(std::max<std::int64_t>(0, free_.bytes() - bytes), 0,
                 [](const auto& found) { to_system(found.block, found.capacity); });
  }
  // The other pool takes its own lock first, and is emptied outside of this one.
  void make_room(std::size_t fresh) {
    void (*drop_other)() = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      shrink_by(excess(fresh));
      if (excess(fresh) > 0 && other_pooled_bytes_ > 0) drop_other = drop_other_;
    }
    if (drop_other != nullptr) drop_other();
  }
  void count(std::int64_t capacity) {
    use_.live_bytes += capacity;
    use_.peak_bytes = std::max(use_.peak_bytes, use_.live_bytes);
  }
  void drop_all() {
    free_.clear([](const auto& found) { to_system(found.block, found.capacity); });
  }

  std::mutex mutex_;
  FreeList<std::byte*> free_;
  MemoryUse use_;
  std::int64_t other_pooled_bytes_ = 0;
  std::atomic<std::int64_t> bound_ = 0;  // 0: none
  void (*drop_other_)() = nullptr;
};

Pool& pool() {
  static Pool* instance = new Pool;  // never destroyed: static array handles of the program may outlive it
  return *instance;
}

std::atomic<bool> reuses_memory = true;
#ifdef TESSERA_VERIFY
bool (*refuses_memory)(std::size_t) = nullptr;
#endif

void require_memory([[maybe_unused]] std::size_t bytes) {
#ifdef TESSERA_VERIFY
  if (refuses_memory != nullptr && refuses_memory(bytes))
    throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes on this rank");
#endif
}

}  // namespace

Buffer::Block::~Block() {
  if (data != nullptr && !memory_is_reused()) return;
  if (release)
    release();
  else if (data != nullptr)
    pool().give(data, capacity);
}

Buffer Buffer::allocate(std::size_t bytes) {
  require_memory(bytes);
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

Buffer Buffer::borrow(void* data, std::size_t bytes, std::function<void()> release) {
  Buffer buffer = wrap(data, bytes, std::move(release));
  buffer.block_->is_borrowed = true;
  return buffer;
}

MemoryUse memory_use() { return pool().use(); }
void reset_peak_memory() { pool().reset_peak(); }
void release_pooled_memory() { pool().drop(); }
void count_other_memory(std::int64_t live_change, std::int64_t pooled_change) {
  pool().count_other(live_change, pooled_change);
}
void on_release_pooled_memory(void (*drop)()) { pool().on_drop(drop); }
PoolBound::PoolBound(std::int64_t bytes) : before_(pool().bound()) {
  pool().set_bound(before_ > 0 ? std::min(before_, bytes) : bytes);
}
PoolBound::~PoolBound() { pool().set_bound(before_); }
std::size_t most_reused(std::size_t bytes, std::size_t capacity) {
  return pool().is_bounded() ? capacity : 2 * bytes + 1;
}
std::int64_t bytes_over_bound(std::size_t fresh) { return pool().over_bound(fresh); }
void shrink_malloc_pool(std::int64_t by) { pool().shrink(by); }
void stop_reusing_memory() noexcept { reuses_memory = false; }
bool memory_is_reused() noexcept { return reuses_memory.load(std::memory_order_relaxed); }
#ifdef TESSERA_VERIFY
void refuse_memory_when(bool (*refuses)(std::size_t)) { refuses_memory = refuses; }
#endif

}  // namespace tessera
