#include "kernels/sort/sort.hpp"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/thresholds.hpp"
#include "kernels/move/transpose_tile.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sort/keys_of_row.hpp"
#include "kernels/sort/lane_sort.hpp"
#include "kernels/sort/merge_vectors.hpp"
#include "kernels/sort/radix_sort.hpp"
#include "types/pooled.hpp"

namespace tessera::kernels {
namespace {

// Shorter rows are sorted by comparisons: a radix sort has to clear and accumulate 256 counters per digit.
constexpr std::int64_t radix_from = 192;
template <class K> constexpr bool has_digits = !std::is_same_v<K, ComplexKey>;

// Sorts rows of n elements one after the other. Positions have 32 bits if the row is short enough.
template <class Position> class RowSorter {
 public:
  virtual ~RowSorter() = default;
  // The positions of the row's elements in sorted order, valid until the next call.
  virtual const Position* argsort(const void* row) = 0;
  // The sorted keys of that row.
  virtual void write_keys(void* keys) const = 0;
};

template <class K, class Position> class KeySorter final : public RowSorter<Position> {
 public:
  KeySorter(Dtype dtype, std::int64_t n, SortOrder order)
      : dtype_(dtype), n_(n), order_(order), keys_(n), at_(n) {}

  const Position* argsort(const void* row) override {
    share(n_, worth_a_thread(sizeof(K)), [&](std::int64_t begin, std::int64_t end) {
      read_keys(dtype_, static_cast<const std::byte*>(row) + begin * itemsize(dtype_), end - begin, order_,
                keys_.data() + begin);
      std::iota(at_.begin() + begin, at_.begin() + end, static_cast<Position>(begin));
    });
    if constexpr (has_digits<K>)
      if (by_digits()) {
        radix_sort(keys_.data(), at_.data(), n_, scratch_);
        return at_.data();
      }
    if constexpr (!has_digits<K> || sizeof(Position) == 4)  // rows with 64-bit positions use radix sort
      std::stable_sort(at_.begin(), at_.end(), [&](Position a, Position b) { return keys_[a] < keys_[b]; });
    return at_.data();
  }

  void write_keys(void* keys) const override {
    K* const out = static_cast<K*>(keys);
    if (by_digits())
      std::copy_n(keys_.data(), n_, out);
    else
      for (std::int64_t i = 0; i < n_; ++i) out[i] = keys_[at_[i]];
  }

 private:
  bool by_digits() const { return has_digits<K> && n_ >= radix_from; }

  Dtype dtype_;
  std::int64_t n_;
  SortOrder order_;
  Pooled<K> keys_;
  Pooled<Position> at_;
  Pooled<std::byte> scratch_;
};

// Calls use(sorter) with a sorter for rows of n elements.
template <class F> void with_sorter(Dtype dtype, std::int64_t n, SortOrder order, F&& use) {
  const auto sorter_of = [&]<class Position>(Position) {
    return visit_keys(dtype, [&]<class K>(K) -> std::unique_ptr<RowSorter<Position>> {
      return std::make_unique<KeySorter<K, Position>>(dtype, n, order);
    });
  };
  if (n > std::numeric_limits<std::uint32_t>::max())
    use(*sorter_of(std::int64_t{}));
  else
    use(*sorter_of(std::uint32_t{}));
}

// Calls work(first, last) for ranges of rows; if there are few rows, each is sorted by all threads.
template <class Work> void for_rows(std::int64_t rows, std::size_t row_bytes, Work&& work) {
  if (rows < threads())
    work(std::int64_t{0}, rows);
  else
    share(rows, worth_a_thread(static_cast<std::int64_t>(row_bytes)), work);
}

// Up to it merges are quicker than Highway's sort, which takes as long for a few numbers as for 1 KiB.
template <class T> constexpr std::int64_t short_row = sizeof(T) == 4 ? 512 : 96;

// Whether rows of n elements are sorted by vectors. A row for several threads is sorted by digits.
template <class T> bool goes_by_vectors(std::int64_t rows, std::int64_t n) {
  constexpr std::int64_t worth_a_vector = 4;
  if constexpr (has_vector_merge<T>)
    return n >= worth_a_vector && n <= longest_vector_sort(sizeof(T)) &&
           (n <= short_row<T> || rows >= threads() || n <= worth_a_thread(sizeof(T)));
  return false;
}

// Whether so many rows of n elements are sorted side by side, one per vector lane.
template <class T> bool goes_by_lanes(std::int64_t rows, std::int64_t n) {
  return has_vector_merge<T> && rows >= sorted_lanes<T> && n > 1 && n <= longest_lane_sort();
}

// Sorts rows of numbers a vector at a time: side by side, or one after the other.
template <class T> class VectorSorter {
 public:
  VectorSorter(std::int64_t rows, std::int64_t n, SortOrder order)
      : order_(order),
        row_(padded(std::min(n, short_row<T>))),
        spare_(row_.size()),
        columns_(goes_by_lanes<T>(rows, n) ? n * sorted_lanes<T> : 0) {}

  void sort(const T* data, std::int64_t rows, std::int64_t n, T* out) {
    constexpr std::int64_t piece = 4096;  // elements that are searched for odd ones together
    const std::int64_t together = columns_.empty() ? std::max<std::int64_t>(piece / n, 1) : sorted_lanes<T>;
    for (std::int64_t first = 0; first < rows; first += together) {
      const std::int64_t last = std::min(rows, first + together);
      const bool has_odd = has_alike_or_infinity(data + first * n, (last - first) * n);
      if (!has_odd && columns_.size() == (last - first) * n) {
        sort_columns(data + first * n, n, out + first * n);
        continue;
      }
      for (std::int64_t r = first; r < last; ++r)
        has_odd ? sort_odd(data + r * n, n, out + r * n) : sort_plain(data + r * n, n, out + r * n);
    }
  }

 private:
  static std::int64_t padded(std::int64_t n) {
    return (n + vector_sort_step - 1) / vector_sort_step * vector_sort_step;
  }

  void sort_columns(const T* rows, std::int64_t n, T* out) {
    constexpr std::int64_t lanes = sorted_lanes<T>;
    T* const columns = columns_.data();
    transpose_plane(reinterpret_cast<std::byte*>(columns), lanes, reinterpret_cast<const std::byte*>(rows), n,
                    n, lanes, sizeof(T));
    sort_lanes(columns, n);
    const T* const first = order_.descending ? columns + (n - 1) * lanes : columns;
    transpose_plane(reinterpret_cast<std::byte*>(out), n, reinterpret_cast<const std::byte*>(first),
                    order_.descending ? -lanes : lanes, lanes, n, sizeof(T));
  }

  // No element is NaN; zeros get any sign. E: T or an integer of its size.
  template <class E> void sort_plain(const E* x, std::int64_t n, E* out) {
    if (n <= short_row<T>) {
      using Limits = std::numeric_limits<E>;
      E* const row = reinterpret_cast<E*>(row_.data());
      std::copy_n(x, n, row);
      std::fill(row + n, row + padded(n), Limits::has_infinity ? Limits::infinity() : Limits::max());
      sort_by_vectors(row, reinterpret_cast<E*>(spare_.data()), padded(n));
      if (order_.descending) std::reverse(row, row + n);
      std::copy_n(row, n, out);  // bytes: `out` may be of another type of the same size
      return;
    }
    if (out != x) std::memcpy(out, x, static_cast<std::size_t>(n) * sizeof(E));
    if (order_.descending)
      sorter_(out, static_cast<std::size_t>(n), hwy::SortDescending());
    else
      sorter_(out, static_cast<std::size_t>(n), hwy::SortAscending());
  }

  // Sorts what is not NaN, and puts NaNs and zeros in the order of the row.
  void sort_odd(const T* x, std::int64_t n, T* out) {
    const Alike<T> alike = alike_of(x, n);
    const std::int64_t count = n - std::ssize(alike.nans);
    if (count != n) {
      std::remove_copy_if(x, x + n, out, [](T e) { return e != e; });
      x = out;
    }
    std::int32_t infinities = 0;
    for (std::int64_t i = 0; i < count; ++i) infinities |= x[i] - x[i] != 0 ? 1 : 0;
    infinities != 0 ? sort_as_integers(x, count, out) : sort_plain(x, count, out);
    put_alike(alike, order_, count, out);
  }
  // Highway 1.0 sorts no infinities. Integers are in the same order, with -0 before 0.
  void sort_as_integers(const T* x, std::int64_t n, T* out) {
    if constexpr (std::is_floating_point_v<T>) {
      using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
      const auto turned = [](T e) {  // the second time restores it
        const I bits = std::bit_cast<I>(e);
        return std::bit_cast<T>(bits < 0 ? bits ^ std::numeric_limits<I>::max() : bits);
      };
      std::transform(x, x + n, out, turned);
      auto* const integers = reinterpret_cast<I*>(out);
      sort_plain(integers, n, integers);
      std::transform(out, out + n, out, turned);
    }
  }

  SortOrder order_;
  Pooled<T> row_, spare_, columns_;
  hwy::Sorter sorter_;
};

// Sorts keys without positions and converts them back to elements.
template <class T>
void sort_by_keys(const T* data, std::int64_t rows, std::int64_t n, SortOrder order, T* out) {
  using K = OrderKey<T>;
  Pooled<K> keys(n);
  Pooled<std::byte> scratch;
  for (std::int64_t r = 0; r < rows; ++r, data += n, out += n) {
    const Alike<T> alike = alike_of(data, n);
    share(n, worth_a_thread(sizeof(K)), [&](std::int64_t begin, std::int64_t end) {
      read_keys(dtype_of<T>(), data + begin, end - begin, order, keys.data() + begin);
    });
    if (n >= radix_from)
      radix_sort(keys.data(), n, scratch);
    else
      std::sort(keys.begin(), keys.end());
    share(n, worth_a_thread(sizeof(K)), [&](std::int64_t begin, std::int64_t end) {
      write_elements(dtype_of<T>(), keys.data() + begin, end - begin, order, out + begin);
    });
    const std::int64_t nans = std::ssize(alike.nans);
    if (order.descending && nans > 0) std::copy(out + nans, out + n, out);
    put_alike(alike, order, n - nans, out);
  }
}

template <class T>
void sort_numbers(const T* data, std::int64_t rows, std::int64_t n, SortOrder order, T* out) {
  for_rows(rows, n * sizeof(T), [&](std::int64_t first, std::int64_t last) {
    if (goes_by_lanes<T>(rows, n) || goes_by_vectors<T>(rows, n)) {
      if constexpr (has_vector_merge<T>)
        VectorSorter<T>(rows, n, order).sort(data + first * n, last - first, n, out + first * n);
    } else {
      sort_by_keys(data + first * n, last - first, n, order, out + first * n);
    }
  });
}

// to[i] = from[at[i]]
template <std::size_t bytes, class Position>
void gather_items(const std::byte* from, const Position* at, std::int64_t n, std::byte* to) {
  share(n, worth_a_thread(bytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from + at[i] * bytes, bytes);
  });
}
template <class Position>
void gather_items(Dtype dtype, const std::byte* from, const Position* at, std::int64_t n, std::byte* to) {
  switch (itemsize(dtype)) {
    case 1: return gather_items<1>(from, at, n, to);
    case 2: return gather_items<2>(from, at, n, to);
    case 4: return gather_items<4>(from, at, n, to);
    case 8: return gather_items<8>(from, at, n, to);
    default: return gather_items<16>(from, at, n, to);
  }
}

// Unsigned values are their own keys.
template <class K, class P> void sort_unsigned_pairs(K* keys, P* payload, std::int64_t n, SortOrder order) {
  Pooled<std::byte> scratch;
  const auto orient = [&] {
    if (order.descending)
      for (std::int64_t i = 0; i < n; ++i) keys[i] = oriented(keys[i], order);
  };
  orient();
  radix_sort(keys, payload, n, scratch);
  orient();
}

}  // namespace

void sort_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder order, void* out) {
  if (rows == 0 || n == 0) return;
  const auto* from = static_cast<const std::byte*>(data);
  auto* to = static_cast<std::byte*>(out);
  if (!is_complex(dtype))
    return visit(dtype, [&]<class T>(T) {
      if constexpr (std::is_arithmetic_v<T>)
        sort_numbers(static_cast<const T*>(data), rows, n, order, static_cast<T*>(out));
    });
  const std::size_t row_bytes = n * itemsize(dtype);
  for_rows(rows, row_bytes, [&](std::int64_t first, std::int64_t last) {
    Pooled<std::byte> row(static_cast<std::int64_t>(row_bytes));
    with_sorter(dtype, n, order, [&](auto& sorter) {
      for (std::int64_t r = first; r < last; ++r) {
        gather_items(dtype, from + r * row_bytes, sorter.argsort(from + r * row_bytes), n, row.data());
        share(static_cast<std::int64_t>(row_bytes), worth_a_thread(1),
              [&](std::int64_t begin, std::int64_t end) {
                std::copy(row.data() + begin, row.data() + end, to + r * row_bytes + begin);
              });
      }
    });
  });
}

// Counts each byte, then puts each position to its place: one digit needs no keys to be moved.
template <class P>
void argsort_bytes(Dtype dtype, const std::byte* row, std::int64_t n, SortOrder order, P* out) {
  constexpr std::int64_t shared_from = 1 << 15;  // elements for each thread
  const auto turn =
      static_cast<std::uint8_t>((is_signed_integer(dtype) ? 0x80 : 0) ^ (order.descending ? 0xff : 0));
  const auto key = [&](std::int64_t i) { return static_cast<std::uint8_t>(row[i]) ^ turn; };
  const std::int64_t parts = std::clamp<std::int64_t>(n / threshold(shared_from), 1, threads());
  std::vector<std::array<std::int64_t, 256>> places(static_cast<std::size_t>(parts));
  const auto for_parts = [&](auto&& work) {
    share(parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p) work(places[p], n * p / parts, n * (p + 1) / parts);
    });
  };
  for_parts([&](auto& place, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++place[key(i)];
  });
  std::int64_t total = 0;
  for (std::size_t b = 0; b < 256; ++b)
    for (auto& place : places) total += std::exchange(place[b], total);
  for_parts([&](auto& place, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[place[key(i)]++] = static_cast<P>(i);
  });
}

template <class P>
void argsort_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder order, P* out) {
  if (rows == 0 || n == 0) return;
  const auto* from = static_cast<const std::byte*>(data);
  const std::size_t row_bytes = n * itemsize(dtype);
  for_rows(rows, row_bytes, [&](std::int64_t first, std::int64_t last) {
    if (itemsize(dtype) == 1 && n >= radix_from) {
      for (std::int64_t r = first; r < last; ++r)
        argsort_bytes(dtype, from + r * row_bytes, n, order, out + r * n);
      return;
    }
    with_sorter(dtype, n, order, [&](auto& sorter) {
      for (std::int64_t r = first; r < last; ++r) {
        const auto* at = sorter.argsort(from + r * row_bytes);
        share(n, worth_a_thread(8), [&](std::int64_t begin, std::int64_t end) {
          std::copy(at + begin, at + end, out + r * n + begin);
        });
      }
    });
  });
}
template void argsort_rows(Dtype, const void*, std::int64_t, std::int64_t, SortOrder, std::int32_t*);
template void argsort_rows(Dtype, const void*, std::int64_t, std::int64_t, SortOrder, std::int64_t*);

Dtype dtype_of_keys(Dtype dtype) {
  switch (itemsize(dtype)) {
    case 1: return uint8;
    case 2: return uint16;
    case 4: return uint32;
    default: return uint64;
  }
}

void argsort_keys(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t first,
                  void* keys, std::int64_t* positions) {
  if (rows == 0 || n == 0) return;
  const std::size_t row_bytes = n * itemsize(dtype);
  for_rows(rows, row_bytes, [&](std::int64_t begin_row, std::int64_t end_row) {
    with_sorter(dtype, n, {}, [&](auto& sorter) {
      for (std::int64_t r = begin_row; r < end_row; ++r) {
        const auto* at = sorter.argsort(static_cast<const std::byte*>(data) + r * row_bytes);
        sorter.write_keys(static_cast<std::byte*>(keys) + r * row_bytes);
        share(n, worth_a_thread(8), [&](std::int64_t begin, std::int64_t end) {
          for (auto i = begin; i < end; ++i) positions[r * n + i] = first + static_cast<std::int64_t>(at[i]);
        });
      }
    });
  });
}

template <class P> void sort_pairs(Dtype dtype, void* keys, P* payload, std::int64_t n, SortOrder order) {
  if (n < 2) return;
  if (is_unsigned_integer(dtype) && n >= radix_from)
    return visit_keys(dtype, [&]<class K>(K) {
      if constexpr (has_digits<K>) sort_unsigned_pairs(static_cast<K*>(keys), payload, n, order);
    });
  const std::size_t bytes = n * itemsize(dtype);
  Pooled<std::byte> old_keys(static_cast<std::int64_t>(bytes));
  Pooled<P> old_payload(n);
  std::memcpy(old_keys.data(), keys, bytes);
  std::copy_n(payload, n, old_payload.data());
  with_sorter(dtype, n, order, [&](auto& sorter) {
    const auto* at = sorter.argsort(keys);
    gather_items(dtype, old_keys.data(), at, n, static_cast<std::byte*>(keys));
    share(n, worth_a_thread(8), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) payload[i] = old_payload[at[i]];
    });
  });
}
template void sort_pairs(Dtype, void*, std::uint32_t*, std::int64_t, SortOrder);
template void sort_pairs(Dtype, void*, std::int64_t*, std::int64_t, SortOrder);

}  // namespace tessera::kernels
