#include "kernels/sort/sort.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/sort/keys_of_row.hpp"
#include "kernels/sort/radix_sort.hpp"

namespace tessera::kernels {
namespace {

// Rows shorter than this are sorted by comparisons: a radix sort has 256 counters per digit to clear and add
// up.
constexpr std::int64_t radix_from = 192;
template <class K> constexpr bool has_digits = !std::is_same_v<K, ComplexKey>;

// Sorts rows of n elements one after the other. Positions have 32 bits where the row allows it.
template <class Position> class RowSorter {
 public:
  virtual ~RowSorter() = default;
  // The positions of the row's elements in sorted order, valid until the next call.
  virtual const Position* argsort(const void* row) = 0;
};

template <class K, class Position> class KeySorter final : public RowSorter<Position> {
 public:
  KeySorter(Dtype dtype, std::int64_t n, SortOrder order)
      : dtype_(dtype), n_(n), order_(order), keys_(n), at_(n) {
    if (by_digits()) spare_keys_.resize(n), spare_at_.resize(n);
  }

  const Position* argsort(const void* row) override {
    read_keys(dtype_, row, n_, order_, keys_.data());
    std::iota(at_.begin(), at_.end(), Position{0});
    if constexpr (has_digits<K>)
      if (by_digits()) {
        radix_sort(keys_.data(), at_.data(), spare_keys_.data(), spare_at_.data(), n_);
        return at_.data();
      }
    if constexpr (!has_digits<K> || sizeof(Position) == 4)  // rows with longer positions are long
      std::stable_sort(at_.begin(), at_.end(), [&](Position a, Position b) { return keys_[a] < keys_[b]; });
    return at_.data();
  }

 private:
  bool by_digits() const { return has_digits<K> && n_ >= radix_from; }

  Dtype dtype_;
  std::int64_t n_;
  SortOrder order_;
  std::vector<K> keys_, spare_keys_;
  std::vector<Position> at_, spare_at_;
};

// Calls use(sorter) with a sorter of rows of n elements.
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

// Integers carry nothing that their keys do not: no positions needed.
template <class K> void sort_integers(Dtype dtype, const std::byte* data, std::int64_t rows, std::int64_t n,
                                      SortOrder order, std::byte* out) {
  std::vector<K> keys(n), spare(n >= radix_from ? n : 0);
  const std::size_t row_bytes = n * sizeof(K);
  for (std::int64_t r = 0; r < rows; ++r) {
    read_keys(dtype, data + r * row_bytes, n, order, keys.data());
    if (n >= radix_from)
      radix_sort(keys.data(), spare.data(), n);
    else
      std::sort(keys.begin(), keys.end());
    write_integers(dtype, keys.data(), n, order, out + r * row_bytes);
  }
}

// to[i] = from[at[i]]
template <std::size_t bytes, class Position>
void gather_items(const std::byte* from, const Position* at, std::int64_t n, std::byte* to) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * bytes, from + at[i] * bytes, bytes);
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
template <class K> void sort_unsigned_pairs(K* keys, std::int64_t* payload, std::int64_t n, SortOrder order) {
  const std::unique_ptr<K[]> spare(new K[n]);
  const std::unique_ptr<std::int64_t[]> spare_payload(new std::int64_t[n]);
  const auto orient = [&] {
    if (order.descending)
      for (std::int64_t i = 0; i < n; ++i) keys[i] = oriented(keys[i], order);
  };
  orient();
  radix_sort(keys, payload, spare.get(), spare_payload.get(), n);
  orient();
}

}  // namespace

void sort_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder order, void* out) {
  if (rows == 0 || n == 0) return;
  const auto* from = static_cast<const std::byte*>(data);
  auto* to = static_cast<std::byte*>(out);
  if (!is_inexact(dtype))
    return visit_keys(dtype, [&]<class K>(K) {
      if constexpr (has_digits<K>) sort_integers<K>(dtype, from, rows, n, order, to);
    });
  const std::size_t row_bytes = n * itemsize(dtype);
  const std::unique_ptr<std::byte[]> row(new std::byte[row_bytes]);
  with_sorter(dtype, n, order, [&](auto& sorter) {
    for (std::int64_t r = 0; r < rows; ++r) {
      gather_items(dtype, from + r * row_bytes, sorter.argsort(from + r * row_bytes), n, row.get());
      std::memcpy(to + r * row_bytes, row.get(), row_bytes);
    }
  });
}

void argsort_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder order,
                  std::int64_t* out) {
  if (rows == 0 || n == 0) return;
  const auto* row = static_cast<const std::byte*>(data);
  with_sorter(dtype, n, order, [&](auto& sorter) {
    for (std::int64_t r = 0; r < rows; ++r, row += n * itemsize(dtype), out += n)
      std::copy_n(sorter.argsort(row), n, out);
  });
}

void sort_pairs(Dtype dtype, void* keys, std::int64_t* payload, std::int64_t n, SortOrder order) {
  if (n < 2) return;
  if (is_unsigned_integer(dtype) && n >= radix_from)
    return visit_keys(dtype, [&]<class K>(K) {
      if constexpr (has_digits<K>) sort_unsigned_pairs(static_cast<K*>(keys), payload, n, order);
    });
  const std::size_t bytes = n * itemsize(dtype);
  const std::unique_ptr<std::byte[]> old_keys(new std::byte[bytes]);
  const std::vector<std::int64_t> old_payload(payload, payload + n);
  std::memcpy(old_keys.get(), keys, bytes);
  with_sorter(dtype, n, order, [&](auto& sorter) {
    const auto* at = sorter.argsort(keys);
    gather_items(dtype, old_keys.get(), at, n, static_cast<std::byte*>(keys));
    for (std::int64_t i = 0; i < n; ++i) payload[i] = old_payload[at[i]];
  });
}

}  // namespace tessera::kernels
