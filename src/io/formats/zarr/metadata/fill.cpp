// Fill values: numbers, texts for numbers that JSON lacks, pairs of these for complex ones.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {
namespace {

template <class T> void put(Element& element, T value, std::size_t at = 0) {
  std::memcpy(element.data() + at, &value, sizeof value);
}
template <class T> T get(const Element& element, std::size_t at = 0) {
  T value;
  std::memcpy(&value, element.data() + at, sizeof value);
  return value;
}

[[noreturn]] void refuse_fill(const Json& value, Dtype dtype) {
  refuse("has the fill value " + value_text(value).substr(0, 80) + ", which is no " + name(dtype));
}

// "0x7fc00001": the bits of the number, most significant first.
std::optional<std::uint64_t> bits_in(const std::string& text, std::size_t bytes) {
  if (!text.starts_with("0x") || text.size() != 2 + 2 * bytes) return std::nullopt;
  std::uint64_t bits = 0;
  for (const char c : text.substr(2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    bits = bits << 4 | static_cast<std::uint64_t>(digit);
  }
  return bits;
}

double special_number(const Json& value, Dtype dtype) {
  const auto& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  refuse_fill(value, dtype);
}

void put_number(Element& element, std::size_t at, double number, Dtype dtype) {
  if (dtype == float64)
    put(element, number, at);
  else if (dtype == float32)
    put(element, static_cast<float>(number), at);
  else if (dtype == float16)
    put(element, float16_t(number), at);
  else
    put(element, bfloat16_t(number), at);
}

void put_float(Element& element, std::size_t at, const Json& value, Dtype dtype) {
  if (value.is_number()) return put_number(element, at, value.get<double>(), dtype);
  if (!value.is_string()) refuse_fill(value, dtype);
  const auto bits = bits_in(value.get_ref<const std::string&>(), itemsize(dtype));
  if (bits)
    std::memcpy(element.data() + at, &*bits, itemsize(dtype));
  else
    put_number(element, at, special_number(value, dtype), dtype);
}

// Integers, also if written as 3.0.
void put_integer(Element& element, const Json& value, Dtype dtype) {
  const int bits = static_cast<int>(8 * itemsize(dtype));
  const bool has_sign = is_signed_integer(dtype);
  const double most = std::ldexp(1.0, has_sign ? bits - 1 : bits), least = has_sign ? -most : 0;
  std::uint64_t stored = 0;
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number != std::floor(number) || number < least || number >= most) refuse_fill(value, dtype);
    stored = number < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(number))
                        : static_cast<std::uint64_t>(number);
  } else if (value.is_number_unsigned()) {
    stored = value.get<std::uint64_t>();
    const std::uint64_t limit = ~std::uint64_t{0} >> (64 - bits + (has_sign ? 1 : 0));
    if (stored > limit) refuse_fill(value, dtype);
  } else if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number < 0 && static_cast<double>(number) < least) refuse_fill(value, dtype);
    stored = static_cast<std::uint64_t>(number);
  } else {
    refuse_fill(value, dtype);
  }
  std::memcpy(element.data(), &stored, itemsize(dtype));  // little-endian: the low bytes
}

Json float_json(const Element& element, std::size_t at, Dtype dtype) {
  double number = 0;
  if (dtype == float64)
    number = get<double>(element, at);
  else if (dtype == float32)
    number = get<float>(element, at);
  else if (dtype == float16)
    number = static_cast<float>(get<float16_t>(element, at));
  else
    number = static_cast<float>(get<bfloat16_t>(element, at));
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

}  // namespace

Element read_fill(const Json& value, Dtype dtype) {
  Element element = {};
  if (dtype == bool_) {
    if (!value.is_boolean()) refuse_fill(value, dtype);
    put(element, static_cast<std::uint8_t>(value.get<bool>()));
  } else if (is_integer(dtype)) {
    put_integer(element, value, dtype);
  } else if (is_complex(dtype)) {
    if (!value.is_array() || value.size() != 2) refuse_fill(value, dtype);
    const Dtype part = real_dtype(dtype);
    put_float(element, 0, value[0], part);
    put_float(element, itemsize(part), value[1], part);
  } else {
    put_float(element, 0, value, dtype);
  }
  return element;
}

Json fill_json(const Element& element, Dtype dtype) {
  if (dtype == bool_) return get<std::uint8_t>(element) != 0;
  if (is_complex(dtype)) {
    const Dtype part = real_dtype(dtype);
    return Json::array({float_json(element, 0, part), float_json(element, itemsize(part), part)});
  }
  if (is_floating(dtype)) return float_json(element, 0, dtype);
  const int unused = static_cast<int>(64 - 8 * itemsize(dtype));
  const auto bits = get<std::uint64_t>(element);
  if (is_unsigned_integer(dtype)) return bits << unused >> unused;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace tessera::io::zarr
