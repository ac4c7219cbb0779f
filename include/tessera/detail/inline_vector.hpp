// A vector whose elements lie in the object itself while there are at most `room` of them: shapes, operands
// and results of an op are few, and malloc would cost more than the work on them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>

namespace tessera::detail {

template <class T, std::size_t room> class InlineVector {
 public:
  using value_type = T;
  InlineVector() = default;
  explicit InlineVector(std::size_t size) : InlineVector() { resize(size); }
  InlineVector(std::initializer_list<T> values) : InlineVector(values.begin(), values.end()) {}
  template <std::forward_iterator It> InlineVector(It first, It last) : InlineVector() {
    reserve(static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) emplace_back(*first);
  }
  InlineVector(const InlineVector& other) : InlineVector(other.begin(), other.end()) {}
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) *this = InlineVector(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }
  ~InlineVector() { release(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t least) {
    if (least > capacity_) move_to(std::allocator<T>().allocate(least), least);
  }
  template <class... A> T& emplace_back(A&&... arguments) {
    if (size_ == capacity_) {  // the arguments may lie in this vector: made before the elements move
      T last(std::forward<A>(arguments)...);
      reserve(2 * size_);
      return *std::construct_at(data_ + size_++, std::move(last));
    }
    return *std::construct_at(data_ + size_++, std::forward<A>(arguments)...);
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  void pop_back() { std::destroy_at(data_ + --size_); }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }
  void resize(std::size_t size) {
    reserve(size);
    while (size_ > size) pop_back();
    while (size_ < size) std::construct_at(data_ + size_++);
  }
  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* own() { return reinterpret_cast<T*>(memory_); }
  void free_memory() {
    if (data_ != own()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void move_to(T* memory, std::size_t capacity) {
    std::uninitialized_move(begin(), end(), memory);
    std::destroy(begin(), end());
    free_memory();
    data_ = memory;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  void release() {
    clear();
    free_memory();
    data_ = own();
    capacity_ = room;
  }
  // Into an empty vector without memory of its own.
  void take(InlineVector& other) {
    if (other.data_ != other.own()) {
      data_ = std::exchange(other.data_, other.own());
      capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(room));
    } else {
      std::uninitialized_move(other.begin(), other.end(), data_);
      std::destroy(other.begin(), other.end());
    }
    size_ = std::exchange(other.size_, 0u);
  }

  T* data_ = own();
  std::uint32_t size_ = 0, capacity_ = room;
  alignas(T) std::byte memory_[room * sizeof(T)];
};

}  // namespace tessera::detail
