// Uninitialised memory from the pool of Buffers: the first touch of fresh pages costs as much as a copy.
#pragma once
#include <algorithm>
#include <cstdint>

#include "types/buffer.hpp"

namespace tessera {

template <class T> class Pooled {
 public:
  explicit Pooled(std::int64_t count = 0) { resize(count); }
  void resize(std::int64_t count) {  // the old contents are lost
    count_ = count;
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T);
    if (buffer_.bytes() < bytes) buffer_ = Buffer(), buffer_ = Buffer::allocate(bytes);
  }
  T* data() { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }
  T* begin() { return data(); }
  T* end() { return data() + count_; }
  T& operator[](std::int64_t i) { return data()[i]; }
  const T& operator[](std::int64_t i) const { return data()[i]; }
  std::int64_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  Buffer buffer_;
  std::int64_t count_ = 0;
};

}  // namespace tessera
