#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "kernels/reduce/order.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

// Whether `candidate`, which comes later, replaces `best`.
template <bool max, class T> bool better(const T& candidate, const T& best) {
  if (is_nan(best)) return false;
  return is_nan(candidate) || (max ? less(best, candidate) : less(candidate, best));
}

// The first element that `is` holds for; there is one.
template <class T, class Is> std::int64_t first_place(const T* x, std::int64_t n, Is is) {
  constexpr std::int64_t piece = 4096;
  std::atomic<std::int64_t> first{n};
  share(n, worth_a_thread(sizeof(T)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end && begin < first; at += piece) {
      const T* const stop = x + std::min(at + piece, end);
      const T* const found = std::find_if(x + at, stop, is);
      if (found == stop) continue;
      std::int64_t least = first;
      while (found - x < least && !first.compare_exchange_weak(least, found - x)) continue;
      return;
    }
  });
  return first;
}

template <bool max, class T> void scan_rows(const T* x, std::int64_t rows, std::int64_t n,
                                            std::int64_t offset, T* values, std::int64_t* index) {
  for (std::int64_t r = 0; r < rows; ++r, x += n) {
    // The extreme by the vectorised reduction, then the first place that holds it.
    T best{};
    reduce(max ? ReduceKind::max : ReduceKind::min, dtype_of<T>(), x, Shape({n}), {0}, &best);
    const std::int64_t at = is_nan(best) ? first_place(x, n, [](const T& value) { return is_nan(value); })
                                         : first_place(x, n, [&](const T& value) { return value == best; });
    index[r] = offset + at;
    if (values != nullptr) values[r] = x[at];
  }
}

// A cache-sized strip of columns at a time; short columns of a single row do not come here.
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
            }
            if (values != nullptr) std::copy_n(best, columns, values + j0);
          }
        });
}

template <bool max, class T>
void arg_reduce_typed(const T* x, AxisView view, std::int64_t offset, T* values, std::int64_t* index) {
  const auto part = [&](T* all, std::int64_t at) { return all == nullptr ? nullptr : all + at; };
  const std::int64_t size = view.extent * view.inner, bytes = size * static_cast<std::int64_t>(sizeof(T));
  const auto scan = [&](std::int64_t begin, std::int64_t end) {
    if (view.inner == 1)
      return scan_rows<max>(x + begin * size, end - begin, size, offset, part(values, begin), index + begin);
    for (std::int64_t o = begin; o < end; ++o)
      scan_columns<max>(x + o * size, view.extent, view.inner, offset, part(values, o * view.inner),
                        index + o * view.inner);
  };
  if (view.outer < threads())  // each on all threads
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
