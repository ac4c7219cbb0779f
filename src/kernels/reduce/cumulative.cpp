#include <tessera/error.hpp>

#include <cmath>
#include <cstring>
#include <string>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "kernels/reduce/order.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/scan_vectors.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

struct Sum {
  template <class T> static T of(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, bool>)
      return a | b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  }
};
struct Prod {
  template <class T> static T of(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, bool>)
      return a & b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else if constexpr (is_complex_type<T>)
      return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    else
      return a * b;
  }
};
struct Max {
  template <class T> static T of(const T& a, const T& b) {
    return is_nan(a) || (!is_nan(b) && less(b, a)) ? a : b;
  }
};
struct Min {
  template <class T> static T of(const T& a, const T& b) {
    return is_nan(a) || (!is_nan(b) && less(a, b)) ? a : b;
  }
};

template <class Op, class T>
void scan_rows(const T* x, std::int64_t rows, std::int64_t n, bool reverse, const T* before, T* out) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, out += n) {
    const std::int64_t step = reverse ? -1 : 1;
    std::int64_t i = reverse ? n - 1 : 0;
    T running = before == nullptr ? x[i] : Op::of(before[r], x[i]);
    out[i] = running;
    for (std::int64_t k = 1; k < n; ++k) {
      i += step;
      running = Op::of(running, x[i]);
      out[i] = running;
    }
  }
}

template <class Op> void scan_rows_of(Dtype dtype, const void* x, std::int64_t rows, std::int64_t n,
                                      bool reverse, const void* before, void* out) {
  visit(dtype, [&]<class T>(T) {
    scan_rows<Op>(static_cast<const T*>(x), rows, n, reverse, static_cast<const T*>(before),
                  static_cast<T*>(out));
  });
}

// log(sum(exp(x[0..i]))): the running maximum m and s = sum(exp(x - m)), rescaled when m moves.
template <class T> void scan_logsumexp(const T* x, std::int64_t rows, std::int64_t n, bool reverse, T* out) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, out += n) {
    T largest = lowest<T>(), scaled = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t i = reverse ? n - 1 - k : k;
      const T value = x[i];
      if (value > largest) {
        scaled = scaled * std::exp(largest - value) + 1;
        largest = value;
      } else if (value == largest) {
        scaled += 1;  // also if both are infinite: their difference would be NaN
      } else {
        scaled += std::exp(value - largest);
      }
      out[i] = largest == lowest<T>() && !(scaled != scaled) ? lowest<T>() : largest + std::log(scaled);
    }
  }
}

// Scans along an outer axis: row i is row i - 1 combined with it, whole rows at a time.
void scan_columns(ReduceKind kind, Dtype dtype, const std::byte* x, AxisView view, bool reverse,
                  const std::byte* before, std::byte* out) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype)), row_bytes = view.inner * item;
  const auto scan = [&](std::int64_t o, std::int64_t first, std::int64_t last) {
    for (std::int64_t k = 0; k < view.extent; ++k) {
      const std::int64_t i = reverse ? view.extent - 1 - k : k,
                         at = (o * view.extent + i) * row_bytes + first * item;
      const std::byte* previous = reverse ? out + at + row_bytes : out + at - row_bytes;
      if (out != x) std::memcpy(out + at, x + at, static_cast<std::size_t>((last - first) * item));
      if (k == 0 && before != nullptr) previous = before + o * row_bytes + first * item;
      if (k > 0 || before != nullptr) combine(kind, dtype, previous, out + at, last - first);
    }
  };
  share(view.outer * view.inner, worth_a_thread(view.extent * item), 16,
        [&](std::int64_t begin, std::int64_t end) {
          while (begin < end) {
            const std::int64_t o = begin / view.inner, last = std::min(end, (o + 1) * view.inner);
            scan(o, begin - o * view.inner, last - o * view.inner);
            begin = last;
          }
        });
}

// Signed integers are added as unsigned ones: the bits are the same.
template <class T> struct ScannedAs { using type = T; };
template <> struct ScannedAs<std::int32_t> { using type = std::uint32_t; };
template <> struct ScannedAs<std::int64_t> { using type = std::uint64_t; };

// Returns false where there is no such scan.
bool scan_by_vectors(ReduceKind kind, Dtype dtype, const void* data, std::int64_t rows, std::int64_t n,
                     bool reverse, const void* before, void* out) {
  if (kind != ReduceKind::sum && !(kind == ReduceKind::prod && (dtype == float32 || dtype == float64)))
    return false;
  bool is_done = false;
  visit(dtype, [&]<class T>(T) {
    if constexpr (has_vector_scan<T>) {
      using S = typename ScannedAs<T>::type;
      for (std::int64_t r = 0; r < rows; ++r) {
        const LineToScan<S> line = {static_cast<const S*>(data) + r * n, n, reverse,
                                    before == nullptr ? nullptr : static_cast<const S*>(before) + r,
                                    static_cast<S*>(out) + r * n};
        if (kind == ReduceKind::sum) sum_by_vectors(line);
        if constexpr (std::is_floating_point_v<S>)
          if (kind == ReduceKind::prod) multiply_by_vectors(line);
      }
      is_done = true;
    }
  });
  return is_done;
}

// Scans lines one after the other: an element depends on the one before it, lines are independent.
void scan_lines(ReduceKind kind, Dtype dtype, const void* data, std::int64_t rows, std::int64_t n,
                bool reverse, const void* before, void* out) {
  if (kind == ReduceKind::sum) return scan_rows_of<Sum>(dtype, data, rows, n, reverse, before, out);
  if (kind == ReduceKind::prod) return scan_rows_of<Prod>(dtype, data, rows, n, reverse, before, out);
  if (kind == ReduceKind::max) return scan_rows_of<Max>(dtype, data, rows, n, reverse, before, out);
  if (kind == ReduceKind::min) return scan_rows_of<Min>(dtype, data, rows, n, reverse, before, out);
  if (before != nullptr) throw InternalError("kernels::cumulative: logsumexp begins with nothing before it");
  if (kind == ReduceKind::logsumexp && dtype == float32)
    return scan_logsumexp(static_cast<const float*>(data), rows, n, reverse, static_cast<float*>(out));
  if (kind == ReduceKind::logsumexp && dtype == float64)
    return scan_logsumexp(static_cast<const double*>(data), rows, n, reverse, static_cast<double*>(out));
  throw InternalError("kernels::cumulative: there is no scan '" + std::string(name(kind)) + "' of " +
                      name(dtype));
}

constexpr std::int64_t long_line = 32;  // shorter ones are as fast one by one

}  // namespace

void cumulative(ReduceKind kind, bool reverse, Dtype dtype, const void* data, const Shape& shape, int axis,
                void* out, const void* before, ScanOrder order) {
  const AxisView view = axis_view(shape, axis);
  if (view.outer == 0 || view.extent == 0 || view.inner == 0) return;
  const auto* const first = static_cast<const std::byte*>(before);
  if (view.inner > 1)
    return scan_columns(kind, dtype, static_cast<const std::byte*>(data), view, reverse, first,
                        static_cast<std::byte*>(out));
  const auto item = static_cast<std::int64_t>(itemsize(dtype)), row_bytes = view.extent * item;
  share(view.outer, worth_a_thread(row_bytes), [&](std::int64_t begin, std::int64_t end) {
    const auto* const x = static_cast<const std::byte*>(data) + begin * row_bytes;
    const auto* const start = first == nullptr ? nullptr : first + begin * item;
    auto* const to = static_cast<std::byte*>(out) + begin * row_bytes;
    const bool is_done = order == ScanOrder::by_vectors && view.extent >= long_line &&
                         scan_by_vectors(kind, dtype, x, end - begin, view.extent, reverse, start, to);
    if (!is_done) scan_lines(kind, dtype, x, end - begin, view.extent, reverse, start, to);
  });
}

}  // namespace tessera::kernels
