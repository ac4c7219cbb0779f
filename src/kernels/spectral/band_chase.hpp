// The second stage of a reduction to tridiagonal or bidiagonal form: a band of width b is chased down column
// by column. Column-major.
//
//   sweep s     H(s, 0) clears column s below its first subdiagonal; what it fills below the band is cleared
//               in its first column by H(s, 1), b rows further down, and so on to the end
//   H(s, t)     = I - tau v v^H acts on the rows s + 1 + t b and up to b - 1 below, v starts with a one
//   A = Q T Q^H with Q = H(0, 0) H(0, 1) ... H(1, 0) H(1, 1) ...;  T is real
//
//   An upper band: G(s, 0) clears row s beyond its first superdiagonal, what it fills below the diagonal is
//   cleared in its first column by H(s, 0), what that fills beyond the band in its first row by G(s, 1), ...
//   A = P B Q^H with P of the H and Q of the G as above;  B is real but for its first element
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/factor/lapack_calls.hpp"

namespace tessera::kernels {

// The sweeps of a band, and the layout of their reflectors: vectors one after the other, and one tau each.
struct BandSweeps {
  std::int64_t n = 0, width = 1;
  std::int64_t count() const { return std::max<std::int64_t>(n - 1, 0); }
  std::int64_t steps(std::int64_t sweep) const { return (n - 1 - sweep + width - 1) / width; }
  // The elements of the sweeps before this one.
  std::int64_t values_before(std::int64_t sweep) const { return sweep * (n - 1) - sweep * (sweep - 1) / 2; }
  std::int64_t taus_before(std::int64_t sweep) const;
  std::int64_t length(std::int64_t sweep, std::int64_t step) const {
    return std::min(width, n - 1 - sweep - step * width);
  }
};

// The lower band in columns of 2 * width elements, the diagonal first and zeros beyond the band, then
// `columns_beyond` columns of zeros (destroyed) -> T's diagonal (n) and subdiagonal (n - 1), and the
// reflectors if `values` and `taus` are given.
inline constexpr std::int64_t columns_beyond = 8;
template <class T>
void chase_band(const BandSweeps&, T* band, real_of<T>* diagonal, real_of<T>* beside, T* values, T* taus);

// The reflectors of one side, in the order of BandSweeps; null: not wanted.
template <class T> struct SideReflectors { T *values = nullptr, *taus = nullptr; };
// The upper band in columns of 3 * width - 1 elements, the diagonal in place 2 * width - 1 and zeros beyond
// the band (destroyed) -> B's diagonal (n) and superdiagonal (n - 1). B's first element is diagonal[0] times
// the number of modulus one that is returned.
template <class T> T chase_upper_band(const BandSweeps&, T* band, real_of<T>* diagonal, real_of<T>* beside,
                                      SideReflectors<T> left, SideReflectors<T> right);

// The reflectors H(s, t) of `sweeps` consecutive sweeps as one block, I - V t V^H on the rows from `row` on.
struct SweepBlock {
  std::int64_t row = 0, rows = 0, columns = 0;
};
SweepBlock sweep_block(const BandSweeps&, std::int64_t first_sweep, std::int64_t sweeps, std::int64_t step);
// v (rows x columns) and t (columns x columns) of a block; values and taus start at the first sweep's.
template <class T> void fill_sweep_block(const BandSweeps&, std::int64_t first_sweep, std::int64_t step,
                                         const SweepBlock&, const T* values, const T* taus, T* v, T* t);

}  // namespace tessera::kernels
