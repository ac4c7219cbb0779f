// The op that implements every function of tessera::fft: one node has kind, dims, scale and the layout of its
// result. It is lowered to stages (stages.hpp): local transforms of dims that are unsplit there, or joint
// transforms of one split dim by several ranks (line.hpp).
#pragma once
#include <tessera/ops/choices.hpp>
#include <tessera/sharding.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "kernels/fourier/fft.hpp"

namespace tessera {

struct FftParams {
  kernels::FftKind kind = kernels::FftKind::c2c;
  kernels::FftSign sign = kernels::FftSign::forward;
  std::vector<int> dims;    // transformed; the last is the halved one of r2c and c2r
  std::int64_t length = 0;  // c2r: points of the halved dim of the result
  double scale = 1;
  fft::OutSharding out_sharding = fft::OutSharding::keep;
  std::optional<Sharding> given;
  template <class V> void fields(V&& visit) const {
    visit("kind", kind), visit("sign", sign), visit("dims", dims), visit("length", length),
        visit("scale", scale), visit("out_sharding", out_sharding), visit("given", given);
  }
};

// The flops of an FFT: 5 N log2 n for each transformed dim of n in N elements, half of it for real ones.
double fft_flops(kernels::FftKind, const std::vector<int>& dims, const Shape& in, const Shape& out);
// The vjp of a node with FftParams.
std::vector<Array> fft_cotangent(const VjpArgs&);
// x must have the kind's dtype: complex, or real for r2c.
Array record_fft(const Array& x, FftParams);
// x with these extents: cropped, or padded with zeros, at the end.
Array record_fft_resize(const Array& x, Shape extents);
// The next length, from n on, that FFTW transforms fast: a product of 2, 3, 5 and 7.
std::int64_t fast_length(std::int64_t n);
// x (r, c), complex, times exp(-+ 2 pi i rows[r] columns[c] / points); the places are int64, and their
// products are below `points`.
Array record_fft_turn(const Array& x, const Array& rows, const Array& columns, std::int64_t points,
                      kernels::FftSign);

}  // namespace tessera
