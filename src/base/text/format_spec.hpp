// The format of one value: the part after the colon of {:>8.3f}, as in Python and std::format.
//
//   [[fill]align][sign][#][0][width][.precision][type]
//   align < > ^ =    sign + - space    type d x X o b of integers, f F e E g G % of all numbers, s of texts
#pragma once
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

struct FormatSpec {
  std::string fill = " ";  // one character, which may take several bytes
  char align = 0;          // 0: texts left, numbers right
  char sign = '-';
  bool alternate = false;  // # writes 0x, 0o, 0b
  bool zeros = false;      // pads with zeros after the sign
  int width = 0;
  std::optional<int> precision;
  char type = 0;
};

// nullopt if the text is invalid, or asks for more than 1000 columns or digits.
std::optional<FormatSpec> parse_format_spec(std::string_view text);

// Each returns nullopt if the spec has a type or options that the value cannot have: {:x} of 1.5, {:d} of a
// text.
std::optional<std::string> formatted(const FormatSpec&, double);
std::optional<std::string> formatted(const FormatSpec&, std::complex<double>);
std::optional<std::string> formatted(const FormatSpec&, std::int64_t);
std::optional<std::string> formatted(const FormatSpec&, std::uint64_t);
std::optional<std::string> formatted(const FormatSpec&, std::string_view);

}  // namespace tessera
