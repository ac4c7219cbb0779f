#include "kernels/sparse/csr.hpp"

#include <algorithm>
#include <complex>
#include <vector>

#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

template <class F> void visit_floating(Dtype dtype, F&& f) {
  switch (dtype.code) {
    case 9: return f(float{});
    case 10: return f(double{});
    case 11: return f(std::complex<float>{});
    default: return f(std::complex<double>{});
  }
}

// Plain complex product: std::complex's operator* also checks for infinities.
template <class T> T product(T a, T b) {
  if constexpr (is_complex_type<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return a * b;
}

struct RowRange {
  std::int64_t first, last;
};
RowRange run_of(const CsrRows& a, CsrPart part, std::int64_t row) {
  return part == CsrPart::own ? RowRange{a.begin[row], a.split[row]}
                              : RowRange{a.split[row], a.begin[row + 1]};
}

// Calls visit(row) for the rows that have entries of the part, which are few where others hold the columns.
template <class Visit> void for_rows_of(const CsrRows& a, CsrPart part, Visit visit) {
  if (part == CsrPart::others)
    for (const auto r : a.receiving) visit(r);
  else
    for (std::int64_t r = 0; r < a.rows; ++r) visit(r);
}

template <class T> void multiply_vector(CsrPart part, const CsrRows& a, const T* values, const T* x, T* y) {
  for_rows_of(a, part, [&](std::int64_t r) {
    const auto [first, last] = run_of(a, part, r);
    T sum{};
    for (auto e = first; e < last; ++e) sum += product(values[e], x[a.column[e]]);
    y[r] = part == CsrPart::own ? sum : y[r] + sum;
  });
}
template <class T>
void multiply(CsrPart part, const CsrRows& a, const T* values, const T* x, std::int64_t width, T* y) {
  for_rows_of(a, part, [&](std::int64_t r) {
    const auto [first, last] = run_of(a, part, r);
    T* to = y + r * width;
    if (part == CsrPart::own)
      for (std::int64_t k = 0; k < width; ++k) to[k] = T{};
    for (auto e = first; e < last; ++e) {
      const T value = values[e];
      const T* from = x + a.column[e] * width;
      for (std::int64_t k = 0; k < width; ++k) to[k] += product(value, from[k]);
    }
  });
}

template <class Visit> void for_rows_with(const CsrRows& a, RowsWith which, Visit visit) {
  if (which == RowsWith::received_columns) return for_rows_of(a, CsrPart::others, visit);
  for (std::int64_t r = 0; r < a.rows; ++r)
    if (a.split[r] == a.begin[r + 1]) visit(r);
}
// One element of a row is added up in a register; with several each entry is read once.
template <class T> void multiply_vector_in_order(const CsrRows& a, RowsWith which, const T* values,
                                                 const T* own, const T* others, std::int64_t before, T* y) {
  for_rows_with(a, which, [&](std::int64_t r) {
    T sum{};
    auto other = a.split[r];
    for (; other < a.begin[r + 1] && a.column[other] < before; ++other)
      sum += product(values[other], others[a.column[other]]);
    for (auto e = a.begin[r]; e < a.split[r]; ++e) sum += product(values[e], own[a.column[e]]);
    for (; other < a.begin[r + 1]; ++other) sum += product(values[other], others[a.column[other]]);
    y[r] = sum;
  });
}
template <class T> void multiply_in_order(const CsrRows& a, RowsWith which, const T* values, const T* own,
                                          const T* others, std::int64_t before, std::int64_t width, T* y) {
  if (width == 1) return multiply_vector_in_order(a, which, values, own, others, before, y);
  for_rows_with(a, which, [&](std::int64_t r) {
    T* to = y + r * width;
    std::fill_n(to, width, T{});
    const auto add = [&](std::int64_t e, const T* x) {
      for (std::int64_t k = 0; k < width; ++k) to[k] += product(values[e], x[a.column[e] * width + k]);
    };
    auto other = a.split[r];
    for (; other < a.begin[r + 1] && a.column[other] < before; ++other) add(other, others);
    for (auto e = a.begin[r]; e < a.split[r]; ++e) add(e, own);
    for (; other < a.begin[r + 1]; ++other) add(other, others);
  });
}

template <class T> void multiply_transposed(CsrPart part, const CsrRows& a, const T* values, const T* y,
                                            std::int64_t width, T* x) {
  for_rows_of(a, part, [&](std::int64_t r) {
    const auto [first, last] = run_of(a, part, r);
    const T* from = y + r * width;
    for (auto e = first; e < last; ++e) {
      const T value = values[e];
      T* to = x + a.column[e] * width;
      for (std::int64_t k = 0; k < width; ++k) to[k] += product(value, from[k]);
    }
  });
}

template <class T>
void sample(CsrPart part, const CsrRows& a, const T* y, const T* x, std::int64_t width, T* values) {
  for_rows_of(a, part, [&](std::int64_t r) {
    const auto [first, last] = run_of(a, part, r);
    for (auto e = first; e < last; ++e) {
      T sum{};
      for (std::int64_t k = 0; k < width; ++k) sum += product(y[r * width + k], x[a.column[e] * width + k]);
      values[e] = sum;
    }
  });
}

// Row by row: entries left of the diagonal are eliminated by the rows above, in place and only at existing
// entries (Saad, Iterative Methods for Sparse Linear Systems, 10.3.2).
template <class T> std::int64_t incomplete_lu(const CsrRows& a, T* values) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(a.rows), -1), diagonal(place);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const auto [first, last] = run_of(a, CsrPart::own, r);
    for (auto e = first; e < last; ++e) {
      if (a.column[e] < a.rows) place[a.column[e]] = e;
      if (a.column[e] == r) diagonal[r] = e;
    }
    for (auto e = first; e < last && a.column[e] < r; ++e) {
      const auto above = a.column[e];
      values[e] /= values[diagonal[above]];
      for (auto u = diagonal[above] + 1; u < a.split[above]; ++u)
        if (a.column[u] < a.rows && place[a.column[u]] >= 0)
          values[place[a.column[u]]] -= product(values[e], values[u]);
    }
    for (auto e = first; e < last; ++e)
      if (a.column[e] < a.rows) place[a.column[e]] = -1;
    if (diagonal[r] < 0 || values[diagonal[r]] == T{}) return r;
  }
  return -1;
}

template <class T> void solve_lu(const CsrRows& a, const T* factors, const T* y, std::int64_t width, T* x) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    T* to = x + r * width;
    for (std::int64_t k = 0; k < width; ++k) to[k] = y[r * width + k];
    for (auto e = a.begin[r]; e < a.split[r] && a.column[e] < r; ++e)
      for (std::int64_t k = 0; k < width; ++k) to[k] -= product(factors[e], x[a.column[e] * width + k]);
  }
  for (auto r = a.rows; r-- > 0;) {
    T* to = x + r * width;
    T pivot{1};
    for (auto e = a.split[r]; e-- > a.begin[r] && a.column[e] >= r;) {
      if (a.column[e] == r) pivot = factors[e];
      if (a.column[e] == r || a.column[e] >= a.rows) continue;
      for (std::int64_t k = 0; k < width; ++k) to[k] -= product(factors[e], x[a.column[e] * width + k]);
    }
    for (std::int64_t k = 0; k < width; ++k) to[k] /= pivot;
  }
}

// Solves forwards by the rows of u, then backwards by those of l: each element updates the columns behind it.
template <class T>
void solve_lu_transposed(const CsrRows& a, const T* factors, const T* y, std::int64_t width, T* x) {
  std::copy_n(y, a.rows * width, x);
  const auto update = [&](std::int64_t e, std::int64_t row) {
    for (std::int64_t k = 0; k < width; ++k)
      x[a.column[e] * width + k] -= product(factors[e], x[row * width + k]);
  };
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (auto e = a.begin[r]; e < a.split[r]; ++e)
      if (a.column[e] == r)
        for (std::int64_t k = 0; k < width; ++k) x[r * width + k] /= factors[e];
    for (auto e = a.begin[r]; e < a.split[r]; ++e)
      if (a.column[e] > r) update(e, r);
  }
  for (auto r = a.rows; r-- > 0;)
    for (auto e = a.begin[r]; e < a.split[r] && a.column[e] < r; ++e) update(e, r);
}

}  // namespace

void csr_multiply(Dtype dtype, CsrPart part, const CsrRows& a, const void* values, const void* x,
                  std::int64_t width, void* y) {
  visit_floating(dtype, [&]<class T>(T) {
    const auto *v = static_cast<const T*>(values), *from = static_cast<const T*>(x);
    if (width == 1) return multiply_vector(part, a, v, from, static_cast<T*>(y));
    multiply(part, a, v, from, width, static_cast<T*>(y));
  });
}
void csr_multiply_in_order(Dtype dtype, const CsrRows& a, RowsWith which, const void* values, const void* own,
                           const void* others, std::int64_t before, std::int64_t width, void* y) {
  visit_floating(dtype, [&]<class T>(T) {
    multiply_in_order(a, which, static_cast<const T*>(values), static_cast<const T*>(own),
                      static_cast<const T*>(others), before, width, static_cast<T*>(y));
  });
}
void csr_multiply_transposed(Dtype dtype, CsrPart part, const CsrRows& a, const void* values, const void* y,
                             std::int64_t width, void* x) {
  visit_floating(dtype, [&]<class T>(T) {
    multiply_transposed(part, a, static_cast<const T*>(values), static_cast<const T*>(y), width,
                        static_cast<T*>(x));
  });
}
void csr_sample(Dtype dtype, CsrPart part, const CsrRows& a, const void* y, const void* x, std::int64_t width,
                void* values) {
  visit_floating(dtype, [&]<class T>(T) {
    sample(part, a, static_cast<const T*>(y), static_cast<const T*>(x), width, static_cast<T*>(values));
  });
}
std::int64_t csr_incomplete_lu(Dtype dtype, const CsrRows& a, void* values) {
  std::int64_t failed = -1;
  visit_floating(dtype, [&]<class T>(T) { failed = incomplete_lu(a, static_cast<T*>(values)); });
  return failed;
}
void csr_solve_lu(Dtype dtype, const CsrRows& a, const void* factors, const void* y, std::int64_t width,
                  void* x, bool transposed) {
  visit_floating(dtype, [&]<class T>(T) {
    const auto *f = static_cast<const T*>(factors), *from = static_cast<const T*>(y);
    if (transposed) return solve_lu_transposed(a, f, from, width, static_cast<T*>(x));
    solve_lu(a, f, from, width, static_cast<T*>(x));
  });
}

}  // namespace tessera::kernels
