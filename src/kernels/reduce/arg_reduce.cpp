#include <algorithm>
#include <cstring>

#include "kernels/move/copy.hpp"
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

template <bool max, class T> void scan_rows(const T* x, std::int64_t rows, std::int64_t n,
                                            std::int64_t offset, T* values, std::int64_t* index) {
  for (std::int64_t r = 0; r < rows; ++r, x += n) {
    // The extreme by the vectorised reduction, then the first place that holds it.
    T best{};
    reduce(max ? ReduceKind::max : ReduceKind::min, dtype_of<T>(), x, Shape({n}), {0}, &best);
    std::int64_t at = 0;
    if (is_nan(best))
      while (!is_nan(x[at])) ++at;
    else
      while (x[at] != best) ++at;
    index[r] = offset + at;
    if (values != nullptr) values[r] = x[at];
  }
}

// A cache-sized strip of columns at a time; short columns of a single row do not come here.
template <bool max, class T> void scan_columns(const T* x, std::int64_t n, std::int64_t width,
                                               std::int64_t offset, T* values, std::int64_t* index) {
  constexpr std::int64_t strip = 256;
  T best[strip];
  for (std::int64_t j0 = 0; j0 < width; j0 += strip) {
    const std::int64_t columns = std::min(strip, width - j0);
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
}

template <bool max, class T>
void arg_reduce_typed(const T* x, AxisView view, std::int64_t offset, T* values, std::int64_t* index) {
  if (view.inner == 1) return scan_rows<max>(x, view.outer, view.extent, offset, values, index);
  for (std::int64_t o = 0; o < view.outer; ++o)
    scan_columns<max>(x + o * view.extent * view.inner, view.extent, view.inner, offset,
                      values == nullptr ? nullptr : values + o * view.inner, index + o * view.inner);
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
