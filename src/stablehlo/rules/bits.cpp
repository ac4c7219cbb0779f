// Functions of the bits of numbers.
#include <tessera/control/lax.hpp>
#include <tessera/ops/special.hpp>

#include <charconv>

#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

void want_integers(const OpCall& s) {
  s.want_operands(2);
  if (!is_integer(s.x[0].dtype()) || s.x[0].dtype() != s.x[1].dtype())
    s.refuse("takes two arrays of one integer dtype");
}

Arrays shift_left(OpCall& s) {
  want_integers(s);
  return {bitwise_left_shift(s.x[0], s.x[1])};
}

// The sign of unsigned integers is their highest bit, as for XLA.
Arrays shift_right_arithmetic(OpCall& s) {
  want_integers(s);
  if (is_signed_integer(s.x[0].dtype())) return {bitwise_right_shift(s.x[0], s.x[1])};
  return {bitcast_convert_type(bitwise_right_shift(bits_of(s.x[0], true), bits_of(s.x[1], true)),
                               s.x[0].dtype())};
}

Arrays shift_right_logical(OpCall& s) {
  want_integers(s);
  if (is_unsigned_integer(s.x[0].dtype())) return {bitwise_right_shift(s.x[0], s.x[1])};
  return {bitcast_convert_type(bitwise_right_shift(bits_of(s.x[0]), bits_of(s.x[1])), s.x[0].dtype())};
}

Arrays popcnt(OpCall& s) {
  s.want_operands(1);
  return {astype(population_count(s.x[0]), s.x[0].dtype())};
}

// Every bit behind the first one is set, and the rest counted.
Arrays count_leading_zeros(OpCall& s) {
  s.want_operands(1);
  Array bits = bits_of(s.x[0]);
  const int size = static_cast<int>(itemsize(bits.dtype())) * 8;
  for (int step = 1; step < size; step *= 2)
    bits = bitwise_or(bits, bitwise_right_shift(bits, number_like(step, bits)));
  return {astype(subtract(number_like(size, bits), astype(population_count(bits), bits.dtype())),
                 s.x[0].dtype())};
}

Arrays bitcast(OpCall& s) {
  s.want_operands(1);
  const Dtype from = s.x[0].dtype(), to = s.type().dtype;
  if (from == to) return {s.x[0]};
  if (from == bool_ || to == bool_) {
    if (itemsize(from) != itemsize(to)) s.refuse("bool to or from a type of another width");
    return {astype(s.x[0], to)};
  }
  return {bitcast_convert_type(s.x[0], to)};
}

struct Format {
  int exponent = 0, mantissa = 0;
};

Format format_of(Dtype dtype) {
  return dtype == float32    ? Format{8, 23}
         : dtype == float64  ? Format{11, 52}
         : dtype == bfloat16 ? Format{8, 7}
                             : Format{5, 10};
}

// "e8m7", or exponent_bits and mantissa_bits.
Format wanted_format(const OpCall& s) {
  Format format{static_cast<int>(s.integer("exponent_bits", 0)),
                static_cast<int>(s.integer("mantissa_bits", -1))};
  const auto text = s.word("format");
  const auto cut = text.find('m');
  if (cut != std::string::npos && text[0] == 'e') {
    std::from_chars(text.data() + 1, text.data() + cut, format.exponent);
    std::from_chars(text.data() + cut + 1, text.data() + text.size(), format.mantissa);
  }
  if (format.exponent < 1 || format.exponent > 11 || format.mantissa < 0 || format.mantissa > 52)
    s.refuse("the format e" + std::to_string(format.exponent) + "m" + std::to_string(format.mantissa));
  return format;
}

Array bits_number(std::uint64_t value, const Array& like) { return full({}, value, like.dtype()); }

// Rounded to nearest even as a format of that many bits would hold it: XLA's steps on the bits.
Arrays reduce_precision(OpCall& s) {
  s.want_operands(1);
  const Array& x = s.x[0];
  if (!is_floating(x.dtype())) s.refuse("takes floats");
  const Format own = format_of(x.dtype()), to = wanted_format(s);
  Array bits = bits_of(x);
  if (to.mantissa < own.mantissa) {
    const int cut = own.mantissa - to.mantissa;
    const Array last = bitwise_and(bitwise_right_shift(bits, number_like(cut, bits)), number_like(1, bits));
    bits = add(bits, add(last, bits_number((std::uint64_t{1} << (cut - 1)) - 1, bits)));
    const int all = own.exponent + own.mantissa + 1;
    const std::uint64_t whole = all == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << all) - 1;
    bits = bitwise_and(bits, bits_number(whole ^ ((std::uint64_t{1} << cut) - 1), bits));
  }
  if (to.exponent < own.exponent) {
    const int bias = (1 << (own.exponent - 1)) - 1, small = (1 << (to.exponent - 1)) - 1;
    const auto infinity = ((std::uint64_t{1} << own.exponent) - 1) << own.mantissa;
    const Array sign =
        bitwise_and(bits, bits_number(std::uint64_t{1} << (own.exponent + own.mantissa), bits));
    const Array size = bitwise_and(bits, bits_number(infinity, bits));
    const auto at = [&](int exponent) {
      return bits_number(static_cast<std::uint64_t>(exponent) << own.mantissa, bits);
    };
    bits = where(greater(size, at(bias + small)), bitwise_or(sign, bits_number(infinity, bits)),
                 where(less_equal(size, at(bias - small)), sign, bits));
  }
  return {where(isnan(x), x, bitcast_convert_type(bits, x.dtype()))};
}

}  // namespace

void add_bits(Rules& rules) {
  rules["stablehlo.shift_left"] = shift_left;
  rules["stablehlo.shift_right_arithmetic"] = shift_right_arithmetic;
  rules["stablehlo.shift_right_logical"] = shift_right_logical;
  rules["stablehlo.popcnt"] = popcnt;
  rules["stablehlo.count_leading_zeros"] = count_leading_zeros;
  rules["stablehlo.bitcast_convert"] = bitcast;
  rules["stablehlo.reduce_precision"] = reduce_precision;
}

}  // namespace tessera::stablehlo
