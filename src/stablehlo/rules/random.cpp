// rng_bit_generator: Philox-4x32-10 of a counter (Salmon et al., 2011), XLA's default on the CPU.
#include <tessera/control/lax.hpp>
#include <tessera/ops.hpp>

#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

Array wide(const Array& x) { return astype(x, uint64); }
Array word(std::uint64_t value) { return full({}, value, uint64); }
Array half(std::uint32_t value) { return full({}, value, uint32); }
Array low_of(const Array& x) { return astype(x, uint32); }
Array high_of(const Array& x) { return astype(bitwise_right_shift(x, word(32)), uint32); }
Array of_halves(const Array& low, const Array& high) {
  return bitwise_or(wide(low), bitwise_left_shift(wide(high), word(32)));
}

// Philox 4x32 with 10 rounds: four words for each counter of 128 bits (low, high).
std::vector<Array> philox(const Array& low, const Array& high, Array k0, Array k1) {
  std::vector<Array> x{low_of(low), high_of(low), low_of(high), high_of(high)};
  for (int round = 0; round < 10; ++round) {
    const Array a = multiply(wide(x[0]), word(0xD2511F53)), b = multiply(wide(x[2]), word(0xCD9E8D57));
    x = {bitwise_xor(bitwise_xor(high_of(b), x[1]), k0), low_of(b),
         bitwise_xor(bitwise_xor(high_of(a), x[3]), k1), low_of(a)};
    k0 = add(k0, half(0x9E3779B9)), k1 = add(k1, half(0xBB67AE85));
  }
  return x;
}

Arrays rng_bit_generator(OpCall& s) {
  s.want_operands(1);
  auto algorithm = s.word(s.has("algorithm") ? "algorithm" : "rng_algorithm");
  if (algorithm == "THREE_FRY") s.refuse("the algorithm THREE_FRY: keys of jax.random have the same rounds");
  const Array& key = s.x[0];
  if (key.ndim() != 1 || !is_unsigned_integer(key.dtype()) || itemsize(key.dtype()) < 4)
    s.refuse("a state of " + name(key.dtype()) + tessera::to_string(key.shape()));
  const Array words = key.dtype() == uint32 ? key : reshape(bitcast_convert_type(key, uint32), Shape{-1});
  const auto count = words.shape()[0];
  if (count != 4 && count != 6)
    s.refuse("a state of " + std::to_string(count) + " words: 4 or 6 are expected");
  const TensorType& type = s.type(1);
  if (!is_integer(type.dtype)) s.refuse("bits as " + name(type.dtype));
  const auto at = [&](std::int64_t n) { return reshape(part_along(words, 0, n, n + 1), Shape{}); };
  const auto elements = type.shape.elements();
  const bool is_wide = itemsize(type.dtype) == 8;
  const auto blocks =
      (elements * (is_wide ? 8 : 4) + 15) / 16;  // of narrower numbers each is the low end of a word
  const Array low = of_halves(at(2), at(3)),
              high = count > 4 ? of_halves(at(4), at(5)) : of_halves(at(0), at(1));
  const Array counter = add(arange(blocks, uint64), low);
  const auto x = philox(counter, add(high, wide(less(counter, low))), at(0), at(1));
  Array bits = reshape(stack(x, 1), Shape{-1});
  if (is_wide) bits = bitcast_convert_type(reshape(bits, Shape{-1, 2}), uint64);
  const Array next_low = add(low, word(static_cast<std::uint64_t>(blocks)));
  const Array next_high = add(high, wide(less(next_low, low)));
  std::vector<Array> state{at(0), at(1), low_of(next_low), high_of(next_low)};
  if (count > 4) state.push_back(low_of(next_high)), state.push_back(high_of(next_high));
  Array next = stack(state, 0);
  if (key.dtype() != uint32) next = bitcast_convert_type(reshape(next, Shape{-1, 2}), key.dtype());
  return {next, reshape(astype(part_along(bits, 0, 0, elements), type.dtype), type.shape)};
}

}  // namespace

void add_random(Rules& rules) { rules["stablehlo.rng_bit_generator"] = rng_bit_generator; }

}  // namespace tessera::stablehlo
