#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/thresholds.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "kernels/reduce/extreme_place.hpp"
#include "kernels/reduce/order.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_rows.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

// Whether `candidate`, which has the higher index, replaces `best`.
template <bool max, class T> bool better(const T& candidate, const T& best) {
  if (is_nan(best)) return false;
  return is_nan(candidate) || (max ? less(best, candidate) : less(candidate, best));
}

// The index of the first element for which `is` holds; there must be one.
template <class T, class Is> std::int64_t first_place(const T* x, std::int64_t n, Is is) {
  constexpr std::int64_t group = 64;
  std::int64_t at = 0;
  for (bool found = false; at + group <= n; at += group) {
    for (std::int64_t l = 0; l < group; ++l) found |= is(x[at + l]);  // without a branch: vectorised
    if (found) break;
  }
  return std::find_if(x + at, x + n, is) - x;
}

// Finds the extremes of blocks by the vectorised reduction, then the index in the first block with the best.
template <bool max, class T> std::int64_t place_in_row(const T* x, std::int64_t n) {
  constexpr std::int64_t block = 1024, blocks_at_once = 64, shared_row = 1 << 18;
  constexpr auto kind = max ? ReduceKind::max : ReduceKind::min;
  if constexpr (std::is_same_v<T, bool>) {
    const auto* const found =
        static_cast<const bool*>(std::memchr(x, max ? 1 : 0, static_cast<std::size_t>(n)));
    return found == nullptr ? 0 : found - x;
  }
  if constexpr (has_extreme_place<T>)
    if (n < threshold(shared_row) || threads() == 1) return extreme_place(max, dtype_of<T>(), x, n);
  const RowReduceFn on_this_thread = find_row_reduce(kind, dtype_of<T>());
  const auto extremes_of = [&](const T* blocks, std::int64_t count, std::int64_t size, T* extremes) {
    if (n < threshold(shared_row) || threads() == 1) return on_this_thread(blocks, count, size, extremes);
    reduce(kind, dtype_of<T>(), blocks, Shape({count, size}), {1}, extremes);
  };
  T best{};
  std::int64_t first = -1;
  const auto offer = [&](const T& value, std::int64_t at) {
    if (first < 0 || better<max>(value, best)) best = value, first = at;
  };
  std::int64_t at = 0;
  for (; at + block <= n && !(first >= 0 && is_nan(best));) {
    const std::int64_t blocks = std::min((n - at) / block, blocks_at_once);
    T extremes[blocks_at_once];
    extremes_of(x + at, blocks, block, extremes);
    for (std::int64_t b = 0; b < blocks; ++b) offer(extremes[b], at + b * block);
    at += blocks * block;
  }
  if (at < n && !(first >= 0 && is_nan(best))) {
    T extreme{};
    extremes_of(x + at, 1, n - at, &extreme);
    offer(extreme, at);
  }
  const std::int64_t size = std::min(block, n - first);
  return first + (is_nan(best) ? first_place(x + first, size, [](const T& value) { return is_nan(value); })
                               : first_place(x + first, size, [&](const T& value) { return value == best; }));
}

// Rows too short for vectors.
template <bool max, class T> std::int64_t place_in_short_row(const T* x, std::int64_t n) {
  std::int64_t place = 0;
  T best = x[0];
  for (std::int64_t i = 1; i < n; ++i) {
    const bool replaces = better<max>(x[i], best);
    best = replaces ? x[i] : best;
    place = replaces ? i : place;
  }
  return place;
}

template <bool max, class T> void scan_rows(const T* x, std::int64_t rows, std::int64_t n,
                                            std::int64_t offset, T* values, std::int64_t* index) {
  constexpr std::int64_t short_row = 12;
  for (std::int64_t r = 0; r < rows; ++r, x += n) {
    const std::int64_t at = n <= short_row ? place_in_short_row<max>(x, n) : place_in_row<max>(x, n);
    index[r] = offset + at;
    if (values != nullptr) values[r] = x[at];
  }
}

// Scans a cache-sized strip of columns at a time; short columns of a single row take another path.
template <bool max, class T> void scan_columns(const T* x, std::int64_t n, std::int64_t width,
                                               std::int64_t offset, T* values, std::int64_t* index) {
  constexpr std::int64_t strip = 256;
  share(width, worth_a_thread(n * static_cast<std::int64_t>(sizeof(T))), 16,
        [&](std::int64_t begin, std::int64_t end) {
          T best[strip];
          for (std::int64_t j0 = begin; j0 < end; j0 += strip) {
            const std::int64_t columns = std::min(strip, end - j0);
            std::copy_n(x + j0, columns, best);
            std::fill_n(index + j0, columns, offset);
            for (std::int64_t i = 1; i < n; ++i) {
              const T* row = x + i * width + j0;
              for (std::int64_t j = 0; j < columns; ++j) {
                const bool replace = better<max>(row[j], best[j]);
                best[j] = replace ? row[j] : best[j];
                index[j0 + j] = replace ? offset + i : index[j0 + j];
              }
              if constexpr (std::is_same_v<T, bool>)  // nothing replaces a bool that is extreme
                if (std::memchr(best, max ? 0 : 1, static_cast<std::size_t>(columns)) == nullptr) break;
            }
            if (values != nullptr) std::copy_n(best, columns, values + j0);
          }
        });
}

// Few columns: parts of them are brought together, and then scanned as rows are.
constexpr std::int64_t few_columns = 8, worth_parts = 64;  // elements of a column
template <class T> void bring_together(const T* x, std::int64_t rows, std::int64_t width, T* to) {
  const auto copy = [&](auto columns) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = x[i * columns + j];
  };
  if (width == 2) return copy(std::integral_constant<std::int64_t, 2>());
  if (width == 3) return copy(std::integral_constant<std::int64_t, 3>());
  if (width == 4) return copy(std::integral_constant<std::int64_t, 4>());
  copy(width);
}
template <bool max, class T> void scan_few_columns(const T* x, std::int64_t n, std::int64_t width,
                                                   std::int64_t offset, T* values, std::int64_t* index) {
  constexpr std::int64_t part_elements = 4096;  // stay in the first-level cache
  T part[part_elements], best[few_columns];
  const std::int64_t rows = part_elements / width;
  for (std::int64_t first = 0; first < n; first += rows) {
    const std::int64_t some = std::min(rows, n - first);
    bring_together(x + first * width, some, width, part);
    for (std::int64_t j = 0; j < width; ++j) {
      const T* const column = part + j * some;
      const std::int64_t at = extreme_place(max, dtype_of<T>(), column, some);
      if (first > 0 && !better<max>(column[at], best[j])) continue;
      best[j] = column[at];
      index[j] = offset + first + at;
    }
  }
  if (values != nullptr) std::copy_n(best, width, values);
}

template <bool max, class T>
void arg_reduce_typed(const T* x, AxisView view, std::int64_t offset, T* values, std::int64_t* index) {
  const auto part = [&](T* all, std::int64_t at) { return all == nullptr ? nullptr : all + at; };
  const std::int64_t size = view.extent * view.inner, bytes = size * static_cast<std::int64_t>(sizeof(T));
  const auto scan = [&](std::int64_t begin, std::int64_t end) {
    if (view.inner == 1)
      return scan_rows<max>(x + begin * size, end - begin, size, offset, part(values, begin), index + begin);
    constexpr bool is_scanned_as_rows = has_extreme_place<T> && !std::is_same_v<T, bool>;
    auto* scan_block = scan_columns<max, T>;
    if constexpr (is_scanned_as_rows)
      if (view.inner <= few_columns && view.extent >= worth_parts) scan_block = scan_few_columns<max, T>;
    for (std::int64_t o = begin; o < end; ++o)
      scan_block(x + o * size, view.extent, view.inner, offset, part(values, o * view.inner),
                 index + o * view.inner);
  };
  if (view.outer < threads())  // each row on all threads
    scan(0, view.outer);
  else
    share(view.outer, worth_a_thread(bytes), scan);
}

}  // namespace

void arg_reduce(bool max, Dtype dtype, const void* data, const Shape& shape, int axis,
                std::int64_t index_offset, void* values_out, std::int64_t* index_out) {
  const AxisView view = axis_view(shape, axis);
  if (view.extent == 0) return;
  visit(dtype, [&]<class T>(T) {
    const auto run = max ? arg_reduce_typed<true, T> : arg_reduce_typed<false, T>;
    run(static_cast<const T*>(data), view, index_offset, static_cast<T*>(values_out), index_out);
  });
}

}  // namespace tessera::kernels
