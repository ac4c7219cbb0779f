// Freed blocks of memory by capacity, for the pools behind Buffer. Independent of the kind of memory: a Block
// holds what its pool needs to release it.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

// Rounds up to a multiple of an eighth of the next power of two, at least least_step, so that similar sizes
// share a capacity.
inline std::size_t shared_capacity(std::size_t bytes, std::size_t least_step) {
  const std::size_t step = std::max(std::bit_ceil(bytes) / 8, least_step);
  return (bytes + step - 1) / step * step;
}

template <class Block> class FreeList {
 public:
  struct Found {
    std::size_t capacity;
    Block block;
  };

  // Takes the smallest block that wastes less than half of itself.
  std::optional<Found> take(std::size_t bytes) { return take(bytes, 2 * bytes + 1); }
  // Takes the smallest block of `bytes` to `most` bytes.
  std::optional<Found> take(std::size_t bytes, std::size_t most) {
    const auto kept = free_.lower_bound(bytes);
    if (kept == free_.end() || kept->first > most) return std::nullopt;
    return remove(kept);
  }
  // Returns whether the block is kept. Called in destructors: if the list has no memory for its own entry,
  // the caller releases the block instead.
  bool give(std::size_t capacity, const Block& block) noexcept {
    try {
      blocks_of(capacity).push_back(block);
    } catch (const std::bad_alloc&) {
      if (const auto kept = free_.find(capacity); kept != free_.end() && kept->second.empty())
        free_.erase(kept);
      return false;
    }
    bytes_ += static_cast<std::int64_t>(capacity);
    return true;
  }
  // Calls release(block) until no more than most_bytes are kept: the largest blocks first, those of the
  // capacity in use now last.
  template <class Release> void shrink(std::int64_t most_bytes, std::size_t in_use_now, Release&& release) {
    while (bytes_ > most_bytes && !free_.empty()) {
      auto from = std::prev(free_.end());
      if (from->first == in_use_now && from != free_.begin()) --from;
      release(remove(from));
    }
  }
  template <class Release> void clear(Release&& release) {
    while (!free_.empty()) release(remove(free_.begin()));
  }
  std::int64_t bytes() const { return bytes_; }
  bool empty() const { return free_.empty(); }

 private:
  using Blocks = std::map<std::size_t, std::vector<Block>>;

  std::vector<Block>& blocks_of(std::size_t capacity) {
    if (!spare_ || free_.contains(capacity)) return free_[capacity];
    spare_.key() = capacity;
    return free_.insert(std::move(spare_)).position->second;
  }

  Found remove(typename Blocks::iterator from) {
    Found found{from->first, std::move(from->second.back())};
    from->second.pop_back();
    bytes_ -= static_cast<std::int64_t>(found.capacity);
    if (from->second.empty()) spare_ = free_.extract(from);
    return found;
  }

  Blocks free_;
  typename Blocks::node_type spare_;  // the entry that was emptied last: the same size is often freed next
  std::int64_t bytes_ = 0;
};

}  // namespace tessera
