// Memory that holds a rank's block of an array.
//
// A Buffer is a shared handle on bytes from an Allocator. The default allocator keeps freed blocks in
// size-classed pools, because the first touch of fresh pages costs more than most kernels. Code must not
// assume malloc: the bytes may belong to a caller (wrap) or, on one host, to memory that other ranks map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace tessera {

class Buffer {
 public:
  Buffer() = default;                         // holds nothing
  static Buffer allocate(std::size_t bytes);  // 64-byte aligned, uninitialised; MemoryError
  static Buffer wrap(void* data, std::size_t bytes, std::function<void()> release);
  // The same for memory that others read, or that is read-only: no result ever reuses it.
  static Buffer borrow(void* data, std::size_t bytes, std::function<void()> release);
  std::byte* data() const { return block_ ? block_->data : nullptr; }
  std::size_t bytes() const { return block_ ? block_->bytes : 0; }
  explicit operator bool() const { return block_ != nullptr; }
  // Whether this is the only handle, so that the memory may be overwritten in place.
  bool is_unique() const { return block_.use_count() == 1 && !block_->is_borrowed; }
  void reset() { block_.reset(); }

 private:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0, capacity = 0;
    bool is_borrowed = false;
    std::function<void()> release;
    ~Block();
  };
  std::shared_ptr<Block> block_;
};

struct MemoryUse {
  std::int64_t live_bytes = 0, peak_bytes = 0, pooled_bytes = 0;
};
MemoryUse memory_use();
void reset_peak_memory();
void release_pooled_memory();

}  // namespace tessera
