// Numbers as text that parses back to the same bits, and text files in which each rank writes its own part.
#pragma once
#include <charconv>
#include <complex>
#include <functional>
#include <string>
#include <type_traits>

#include "io/blocks.hpp"
#include "kernels/visit.hpp"

namespace tessera::io {

// The shortest text that parses back to the same value; complex numbers as "re im".
template <class T> void append_number(std::string& out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? '1' : '0';
  } else if constexpr (std::is_arithmetic_v<T>) {
    char text[40];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    out.append(text, end);
  } else if constexpr (kernels::is_half_type<T>) {
    append_number(out, float{value});
  } else {
    append_number(out, value.real());
    out += ' ';
    append_number(out, value.imag());
  }
}

// Converts a block to text: its elements in the order of the file, a range of them at a time.
struct TextWriter {
  // Appends the text of the block's elements [first, last); returns the number of entries.
  std::function<std::int64_t(const OwnBlock&, std::int64_t first, std::int64_t last, std::string& out)> write;
  // The header, given the number of entries.
  std::function<std::string(std::int64_t entries)> header;
};
// Saves x split along `dim` over all devices, so that the ranks' texts follow each other; other dims are not
// split.
void save_text(const std::string& path, const std::string& details, const Array& x, int dim,
               const TextWriter&);

}  // namespace tessera::io
