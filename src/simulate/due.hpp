// The events to come, in the order of time. A link passes on its messages in the order of their arrival:
// only the first of each link stands in a heap, and millions may be under way in lines beside it.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

// A time from 0 on, and in the low bits of `key` whose it is; above them the number of its push: of two at
// one time the first one is due first. Times that are not negative compare as their bits do, without
// branches.
struct Due {
  static constexpr int bits_of_whose = 24;
  std::uint64_t time, key;
  Due(double at_s, std::uint64_t number, std::size_t whose)
      : time(std::bit_cast<std::uint64_t>(at_s + 0.0)), key(number << bits_of_whose | whose) {}
  double at_s() const { return std::bit_cast<double>(time); }
  std::size_t whose() const { return key & ((std::uint64_t{1} << bits_of_whose) - 1); }
  bool is_before(const Due& other) const {
    return static_cast<bool>(static_cast<int>(time < other.time) |
                             (static_cast<int>(time == other.time) & static_cast<int>(key < other.key)));
  }
};

// A heap of four children a node: they share a line of the cache.
class DueHeap {
 public:
  bool empty() const { return all_.size() == (has_hole_ ? 1U : 0U); }

  const Due& first() {
    settle();
    return all_.front();
  }
  // The earliest. Its place stays free for the next push: what is done is mostly due again.
  Due take() {
    settle();
    has_hole_ = true;
    return all_.front();
  }
  void push(Due due) {
    if (has_hole_) {
      has_hole_ = false;
      return sink(due);
    }
    std::size_t at = all_.size();
    all_.push_back(due);
    for (; at > 0; at = (at - 1) / children) {
      const std::size_t parent = (at - 1) / children;
      if (!due.is_before(all_[parent])) break;
      all_[at] = all_[parent];
    }
    all_[at] = due;
  }

 private:
  static constexpr std::size_t children = 4;

  void settle() {
    if (!has_hole_) return;
    has_hole_ = false;
    const Due last = all_.back();
    all_.pop_back();
    if (!all_.empty()) sink(last);
  }
  // Puts it into the free place at the top, and down from there.
  void sink(Due due) {
    std::size_t at = 0;
    for (std::size_t first = 1; first < all_.size(); first = children * at + 1) {
      const std::size_t least = least_of(first);
      if (!all_[least].is_before(due)) break;
      all_[at] = all_[least];
      at = least;
    }
    all_[at] = due;
  }
  std::size_t least_of(std::size_t first) const {
    if (first + children <= all_.size()) {
      const std::size_t a = first + (all_[first + 1].is_before(all_[first]) ? 1 : 0),
                        b = first + (all_[first + 3].is_before(all_[first + 2]) ? 3 : 2);
      return all_[b].is_before(all_[a]) ? b : a;
    }
    std::size_t least = first;
    for (std::size_t c = first + 1; c < all_.size(); ++c)
      if (all_[c].is_before(all_[least])) least = c;
    return least;
  }

  std::vector<Due> all_;
  bool has_hole_ = false;  // what is at the top was taken
};

// First in, first out. Its memory grows and is kept.
template <class T> class Line {
 public:
  bool empty() const { return size_ == 0; }
  const T& front() const { return all_[first_]; }
  T& push(const T& value) {
    if (size_ == all_.size()) grow();
    return all_[(first_ + size_++) & (all_.size() - 1)] = value;
  }
  void pop() {
    first_ = (first_ + 1) & (all_.size() - 1);
    --size_;
    // Hundreds of lines take turns: the one after the next is fetched before its turn.
    __builtin_prefetch(&all_[(first_ + 1) & (all_.size() - 1)]);
  }

 private:
  void grow() {  // to a power of two
    std::vector<T> more(all_.empty() ? 16 : 2 * all_.size());
    for (std::size_t n = 0; n < size_; ++n) more[n] = all_[(first_ + n) & (all_.size() - 1)];
    all_ = std::move(more);
    first_ = 0;
  }
  std::vector<T> all_;
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace tessera
