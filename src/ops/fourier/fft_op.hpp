// The op behind every function of tessera::fft.
//
//   fft          one node: kind, dims, scale, and where the result is to lie. Lowered to stages
//     (stages.hpp), each of which is a local
//                transform of dims that are whole there, or a transform of one split dim by ranks together
//                  (line.hpp).
//   fft_resize   crops and zero-pads dims, as numpy.fft's n and s do
#pragma once
#include <tessera/sharding.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/node.hpp"
#include "kernels/fourier/fft.hpp"

namespace tessera {

enum class FftPlace {
  keep,
  transposed,
  given
};  // the result: split as the operand, as the last stage leaves it, or as `given`

struct FftParams {
  kernels::FftKind kind = kernels::FftKind::c2c;
  kernels::FftSign sign = kernels::FftSign::forward;
  std::vector<int> dims;    // transformed; the last is the halved one of r2c and c2r
  std::int64_t length = 0;  // c2r: points of the halved dim of the result
  double scale = 1;
  FftPlace place = FftPlace::keep;
  std::optional<Sharding> given;
  template <class V> void fields(V&& visit) const {
    visit("kind", kind), visit("sign", sign), visit("dims", dims), visit("length", length),
        visit("scale", scale), visit("place", place), visit("given", given);
  }
};

// The arithmetic of an FFT: 5 N log2 n for each transformed dim of n in N elements, half of it for real ones.
double fft_flops(kernels::FftKind, const std::vector<int>& dims, const Shape& in, const Shape& out);
// x of the kind's dtype already: complex, or real for r2c.
Array record_fft(const Array& x, FftParams);
// x with these extents: cut off at the end, or followed by zeros.
Array record_fft_resize(const Array& x, Shape extents);

}  // namespace tessera
