// A round counts a digit of the elements' order keys, behind the digits that earlier rounds found:
//
//   position 6 of 10    counts of the upper digit: 0: 2  1: 3  2: 5     its digit is 2, its place is 1 of 5
//   next round          counts of the lower digit of keys that begin with 2
#include "ops/sort/select_by_rounds.hpp"

#include <tessera/control/lax.hpp>

#include <algorithm>

#include "kernels/sort/count_digits.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

struct DigitParams {
  int shift;  // bits of the digits below
  template <class V> void fields(V&& visit) const { visit("shift", shift); }
};

// (B.., p) prefixes, (B.., N..) -> (B.., p, digits). Nothing is kept of the elements, so that they can come
// slab by slab.
const OpDef count_digits_op{
    .name = "count_digits",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{join(in[0].shape, {kernels::digit_count}), int64}};
    },
    .sharding = Rule("B.. p, B.. N.. -> B.. p d | sum N"),
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile &prefixes = a.in[0], &x = a.in[1];
      const auto count = prefixes.box.back().size(),
                 rows = prefixes.elements() / std::max<std::int64_t>(count, 1),
                 n = x.elements() / std::max<std::int64_t>(rows, 1);
      for (std::int64_t r = 0; r < rows; ++r)
        kernels::count_digits(x.dtype, x.data + r * n * static_cast<std::int64_t>(itemsize(x.dtype)), n,
                              {prefixes.as<std::uint64_t>() + r * count, static_cast<std::size_t>(count)},
                              a.params.as<DigitParams>().shift,
                              a.out[0].as<std::int64_t>() + r * count * kernels::digit_count);
    }},
    .vjp = [](const VjpArgs&) -> Cotangents { return Cotangents(2); },  // a step function
    .batch = batch_leading,
    .parts = Parts::all_dims,
};
const Registered registered(count_digits_op);

// The float whose order key (order_key.hpp) this is.
Array element_of_key(const Array& key, Dtype dtype) {
  const bool is_short = dtype == float32;
  const Array bits = is_short ? astype(key, uint32) : key;
  const Array top = full({}, is_short ? std::uint64_t{1} << 31 : std::uint64_t{1} << 63, bits.dtype());
  return bitcast_convert_type(where((bits & top) != 0, bits ^ top, ~bits), dtype);
}

}  // namespace

Array elements_by_rounds(const Array& x, const std::vector<std::int64_t>& positions) {
  const auto count = std::ssize(positions);
  Array rank = reshape(array(positions), {count, 1}), prefix = zeros({count}, uint64);
  for (int shift = 8 * static_cast<int>(itemsize(x.dtype())) - kernels::digit_bits; shift >= 0;
       shift -= kernels::digit_bits) {
    const Array counts = record(count_digits_op, make_params(DigitParams{shift}), {prefix, x});
    const Array up_to = cumsum(counts, 1);
    const Array digit =
        sum(astype(up_to <= rank, int64), Axes(1), true);  // the digits below that of the rank
    const Array before = where(digit > 0, take_along_axis(up_to, maximum(digit - 1, 0), 1), 0);
    rank = rank - before;
    prefix =
        prefix * static_cast<std::uint64_t>(kernels::digit_count) + astype(reshape(digit, {count}), uint64);
  }
  return element_of_key(prefix, x.dtype());
}

}  // namespace tessera
