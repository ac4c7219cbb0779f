// Gaussian elimination with partial pivoting, and Cholesky, on several small systems at once: system l of a
// group is in lane l of every vector.
//
//   a[i][j] of systems 0 1 2 ...      =>  lanes[(i * n + j) * width + 0 1 2 ...]
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/factor/small_systems.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>

#include "kernels/factor/lapack.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t line_bytes = 64;  // a group fills a cache line per element

template <class R> struct Group {
  static constexpr int width = static_cast<int>(line_bytes / sizeof(R));
  using Row = std::conditional_t<sizeof(R) == 8, std::int64_t, std::int32_t>;
  std::int64_t n, k;
  R* HWY_RESTRICT a;
  R* HWY_RESTRICT b;
  bool hard[width] = {};

  R* at(std::int64_t i, std::int64_t j) const { return a + (i * n + j) * width; }
  R* rhs(std::int64_t i, std::int64_t j) const { return b + (i * k + j) * width; }

  void exchange_rows(std::int64_t j, const Row* HWY_RESTRICT pivot_row) {
    for (int l = 0; l < width; ++l) {
      const std::int64_t p = pivot_row[l];
      if (p == j) continue;
      for (std::int64_t c = j; c < n; ++c) std::swap(at(j, c)[l], at(p, c)[l]);
      for (std::int64_t c = 0; c < k; ++c) std::swap(rhs(j, c)[l], rhs(p, c)[l]);
    }
  }

  // Row i of both sides minus factor times row j.
  void subtract_row(std::int64_t i, std::int64_t j, const R* HWY_RESTRICT factor) {
    for (std::int64_t c = j + 1; c < n; ++c) {
      const R* HWY_RESTRICT pivot = at(j, c);
      R* HWY_RESTRICT target = at(i, c);
      for (int l = 0; l < width; ++l) target[l] -= factor[l] * pivot[l];
    }
    for (std::int64_t c = 0; c < k; ++c) {
      const R* HWY_RESTRICT pivot = rhs(j, c);
      R* HWY_RESTRICT target = rhs(i, c);
      for (int l = 0; l < width; ++l) target[l] -= factor[l] * pivot[l];
    }
  }

  void eliminate() {
    R least[width], most[width];  // pivot
    std::fill_n(least, width, std::numeric_limits<R>::max()), std::fill_n(most, width, R(0));
    for (std::int64_t j = 0; j < n; ++j) {
      R best[width], reciprocal[width], factor[width];
      Row row[width];
      for (int l = 0; l < width; ++l) best[l] = std::abs(at(j, j)[l]), row[l] = static_cast<Row>(j);
      for (std::int64_t i = j + 1; i < n; ++i) {
        const R* HWY_RESTRICT candidate = at(i, j);
        for (int l = 0; l < width; ++l) {
          const R magnitude = std::abs(candidate[l]);
          const bool larger = magnitude > best[l];
          best[l] = larger ? magnitude : best[l];
          row[l] = larger ? static_cast<Row>(i) : row[l];
        }
      }
      exchange_rows(j, row);
      // Pivots without a safe reciprocal (zero, subnormal, NaN) are left to LAPACK.
      for (int l = 0; l < width; ++l)
        hard[l] |=
            !(best[l] >= std::numeric_limits<R>::min() && best[l] <= std::numeric_limits<R>::max() / 4);
      for (int l = 0; l < width; ++l)
        least[l] = std::min(least[l], best[l]), most[l] = std::max(most[l], best[l]);
      for (int l = 0; l < width; ++l) reciprocal[l] = R(1) / at(j, j)[l];
      for (std::int64_t i = j + 1; i < n; ++i) {
        for (int l = 0; l < width; ++l) factor[l] = at(i, j)[l] * reciprocal[l];
        subtract_row(i, j, factor);
      }
      for (int l = 0; l < width; ++l) at(j, j)[l] = reciprocal[l];  // substitution multiplies by reciprocals
    }
    constexpr R far_apart =
        64 * std::numeric_limits<R>::epsilon();  // beyond this ratio the condition is estimated
    for (int l = 0; l < width; ++l) hard[l] |= !(least[l] > far_apart * most[l]);
  }

  // The factor takes the place of the lower triangle of a; a minor that is not safely positive makes a system
  // hard.
  void factor_cholesky() {
    for (std::int64_t j = 0; j < n; ++j) {
      R root[width];
      for (int l = 0; l < width; ++l) {
        const R minor = at(j, j)[l];
        hard[l] |= !(minor >= std::numeric_limits<R>::min() && minor <= std::numeric_limits<R>::max());
      }
      const hn::ScalableTag<R> d;
      for (int l = 0; l < width; l += static_cast<int>(hn::Lanes(d)))
        hn::StoreU(hn::Sqrt(hn::LoadU(d, at(j, j) + l)), d, root + l);
      std::copy_n(root, width, at(j, j));
      for (std::int64_t i = j + 1; i < n; ++i)
        for (int l = 0; l < width; ++l) at(i, j)[l] /= root[l];
      for (std::int64_t i = j + 1; i < n; ++i)
        for (std::int64_t c = j + 1; c <= i; ++c) {
          const R *HWY_RESTRICT left = at(i, j), *HWY_RESTRICT right = at(c, j);
          R* HWY_RESTRICT target = at(i, c);
          for (int l = 0; l < width; ++l) target[l] -= left[l] * right[l];
        }
    }
  }

  void substitute_back() {
    for (std::int64_t i = n; i-- > 0;)
      for (std::int64_t c = 0; c < k; ++c) {
        R value[width];
        for (int l = 0; l < width; ++l) value[l] = rhs(i, c)[l];
        for (std::int64_t j = i + 1; j < n; ++j) {
          const R* HWY_RESTRICT coefficient = at(i, j);
          const R* HWY_RESTRICT known = rhs(j, c);
          for (int l = 0; l < width; ++l) value[l] -= coefficient[l] * known[l];
        }
        for (int l = 0; l < width; ++l) rhs(i, c)[l] = value[l] * at(i, i)[l];
      }
  }
};

template <class R>
void interleave(const R* HWY_RESTRICT from, std::int64_t systems, std::int64_t size, R* HWY_RESTRICT lanes) {
  constexpr int width = Group<R>::width;
  for (int l = 0; l < width; ++l) {
    const R* HWY_RESTRICT system =
        from + std::min<std::int64_t>(l, systems - 1) * size;  // pads by the last system
    for (std::int64_t e = 0; e < size; ++e) lanes[e * width + l] = system[e];
  }
}

// Aligned memory of `elements` groups of lanes.
template <class R> class Lanes {
 public:
  explicit Lanes(std::int64_t elements)
      : space_(static_cast<std::size_t>(elements + 1) * line_bytes), memory_(new std::byte[space_]) {
    void* start = memory_.get();
    data_ = static_cast<R*>(std::align(line_bytes, space_ - line_bytes, start, space_));
  }
  R* data() const { return data_; }

 private:
  std::size_t space_;
  std::unique_ptr<std::byte[]> memory_;
  R* data_;
};

template <class R> void solve_groups(std::int64_t batch, std::int64_t n, std::int64_t k, const R* a,
                                     const R* b, R* x, bool* hard) {
  constexpr int width = Group<R>::width;
  const Lanes<R> lanes(n * n + n * k);
  for (std::int64_t first = 0; first < batch; first += width) {
    const std::int64_t systems = std::min<std::int64_t>(width, batch - first);
    Group<R> group{n, k, lanes.data(), lanes.data() + n * n * width};
    interleave(a + first * n * n, systems, n * n, group.a);
    interleave(b + first * n * k, systems, n * k, group.b);
    group.eliminate();
    group.substitute_back();
    for (std::int64_t l = 0; l < systems; ++l) {
      hard[first + l] = group.hard[l];
      R* HWY_RESTRICT result = x + (first + l) * n * k;
      for (std::int64_t e = 0; e < n * k; ++e) result[e] = group.b[e * width + l];
    }
  }
}

template <class R>
void cholesky_groups(std::int64_t batch, std::int64_t n, const R* a, R* factors, bool* hard) {
  constexpr int width = Group<R>::width;
  const Lanes<R> lanes(n * n);
  for (std::int64_t first = 0; first < batch; first += width) {
    const std::int64_t systems = std::min<std::int64_t>(width, batch - first);
    Group<R> group{n, 0, lanes.data(), nullptr};
    interleave(a + first * n * n, systems, n * n, group.a);
    group.factor_cholesky();
    for (std::int64_t l = 0; l < systems; ++l) {
      hard[first + l] = group.hard[l];
      R* HWY_RESTRICT result = factors + (first + l) * n * n;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) *result++ = j <= i ? group.at(i, j)[l] : R(0);
    }
  }
}

void CholeskyF32(std::int64_t batch, std::int64_t n, const float* a, float* factors, bool* hard) {
  cholesky_groups(batch, n, a, factors, hard);
}
void CholeskyF64(std::int64_t batch, std::int64_t n, const double* a, double* factors, bool* hard) {
  cholesky_groups(batch, n, a, factors, hard);
}
void SolveF32(std::int64_t batch, std::int64_t n, std::int64_t k, const float* a, const float* b, float* x,
              bool* hard) {
  solve_groups(batch, n, k, a, b, x, hard);
}
void SolveF64(std::int64_t batch, std::int64_t n, std::int64_t k, const double* a, const double* b, double* x,
              bool* hard) {
  solve_groups(batch, n, k, a, b, x, hard);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/parallel.hpp"
namespace tessera::kernels {
HWY_EXPORT(CholeskyF32);
HWY_EXPORT(CholeskyF64);
HWY_EXPORT(SolveF32);
HWY_EXPORT(SolveF64);

void solve_small_systems(Dtype dtype, std::int64_t batch, std::int64_t n, std::int64_t k, const void* a,
                         const void* b, void* x, bool* hard) {
  constexpr std::int64_t whole_groups = 16;
  share(batch, worth_a_thread(8 * n * n * (n + k)), whole_groups, [&](std::int64_t first, std::int64_t last) {
    const auto solve = [&]<class R>(R, auto&& on_this_machine) {
      on_this_machine(last - first, n, k, static_cast<const R*>(a) + first * n * n,
                      static_cast<const R*>(b) + first * n * k, static_cast<R*>(x) + first * n * k,
                      hard + first);
    };
    if (dtype == float32)
      solve(float{}, HWY_DYNAMIC_DISPATCH(SolveF32));
    else
      solve(double{}, HWY_DYNAMIC_DISPATCH(SolveF64));
  });
}

void cholesky_of_small(Dtype dtype, std::int64_t batch, std::int64_t n, const void* a, void* factors,
                       bool* hard) {
  if (dtype == float32) HWY_DYNAMIC_DISPATCH(CholeskyF32)
  (batch, n, static_cast<const float*>(a), static_cast<float*>(factors), hard);
  else HWY_DYNAMIC_DISPATCH(CholeskyF64)(batch, n, static_cast<const double*>(a),
                                         static_cast<double*>(factors), hard);
}
}  // namespace tessera::kernels
#endif
