#include "io/matrix_market_text.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <charconv>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "types/checked.hpp"

namespace tessera::io {
namespace {

using Symmetry = MatrixMarketBanner::Symmetry;

// The part of a line shown in an error: the line may be long and have any content.
std::string excerpt(std::string_view text) {
  constexpr std::size_t most = 80;
  return text.size() <= most ? in_quotes(text) : in_quotes(text.substr(0, most)) + " ...";
}

class Lines {
 public:
  Lines(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}
  [[noreturn]] void fail(const std::string& facts) const {
    throw IoError(name_ + ", line " + std::to_string(line_) + ": " + facts +
                  "; check the file against the Matrix Market format");
  }
  // The next line without its end; false at the end of the file.
  bool next_line(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    const auto end = std::min(text_.find('\n', at_), text_.size());
    line = text_.substr(at_, end - at_);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    at_ = end + 1;
    ++line_;
    return true;
  }
  // Skips comments and empty lines.
  bool next_content(std::string_view& line) {
    while (next_line(line)) {
      const auto first = line.find_first_not_of(" \t");
      if (first != std::string_view::npos && line[first] != '%') return true;
    }
    return false;
  }
  std::int64_t at() const { return static_cast<std::int64_t>(std::min(at_, text_.size())); }
  template <class Number> Number number(std::string_view& line, const char* what) const {
    const auto first = line.find_first_not_of(" \t");
    line.remove_prefix(first == std::string_view::npos ? line.size() : first);
    if (line.starts_with('+') && !line.starts_with("+-")) line.remove_prefix(1);
    Number value{};
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error == std::errc::result_out_of_range)
      fail(std::string(what) + " is out of range in " + excerpt(line));
    const bool ends = end == line.data() + line.size() || *end == ' ' || *end == '\t';
    if (error != std::errc() || !ends)
      fail(std::string(what) + (line.empty() ? " is missing" : " is no number in " + excerpt(line)));
    line.remove_prefix(end - line.data());
    return value;
  }
  void expect_end(std::string_view line) const {
    if (line.find_first_not_of(" \t") != std::string_view::npos)
      fail("something follows the numbers: " + excerpt(line));
  }

 private:
  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
};

std::string lower(std::string_view word) {
  std::string result(word);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

template <class Choice> Choice choose(const Lines& text, const std::string& word, const char* what,
                                      const std::vector<std::pair<std::string, Choice>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (name == word) return choice;
    names.push_back(name);
  }
  text.fail("the " + std::string(what) + " " + excerpt(word) + " is unknown; there are " + join(names) +
            did_you_mean(word, names));
}

MatrixMarketBanner read_banner(Lines& text) {
  std::string_view line;
  if (!text.next_line(line)) text.fail("the file is empty");
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(lower(line.substr(at, end - at)));
    at = end;
  }
  if (words.empty() || words[0] != "%%matrixmarket")
    text.fail(line.starts_with("\x1f\x8b") ? "is packed by gzip (unpack it with gunzip) and does not begin "
                                             "with %%MatrixMarket"
                                           : "does not begin with %%MatrixMarket");
  if (words.size() != 5)
    text.fail("the first line has " + std::to_string(words.size()) +
              " words; it is %%MatrixMarket matrix FORMAT FIELD SYMMETRY");
  if (words[1] != "matrix") text.fail("holds a " + excerpt(words[1]) + "; only 'matrix' is known");
  MatrixMarketBanner banner;
  banner.coordinate = choose<bool>(text, words[2], "format", {{"coordinate", true}, {"array", false}});
  banner.dtype = choose<Dtype>(text, words[3], "field",
                               {{"real", float64},
                                {"double", float64},
                                {"integer", int64},
                                {"unsigned-integer", uint64},
                                {"complex", complex128},
                                {"pattern", float64}});
  banner.pattern = words[3] == "pattern";
  banner.symmetry = choose<Symmetry>(text, words[4], "symmetry",
                                     {{"general", Symmetry::general},
                                      {"symmetric", Symmetry::symmetric},
                                      {"skew-symmetric", Symmetry::skew},
                                      {"hermitian", Symmetry::hermitian}});
  if (banner.pattern && !banner.coordinate) text.fail("a pattern has no values, so it cannot be an array");
  if (banner.symmetry == Symmetry::hermitian && banner.dtype != complex128)
    text.fail("hermitian goes with complex");
  if (banner.symmetry == Symmetry::skew && banner.dtype == uint64)
    text.fail("skew-symmetric does not go with unsigned-integer");
  if (!text.next_content(line)) text.fail("the line with the sizes is missing");
  banner.rows = text.number<std::int64_t>(line, "the number of rows");
  banner.columns = text.number<std::int64_t>(line, "the number of columns");
  if (banner.coordinate) banner.entries = text.number<std::int64_t>(line, "the number of entries");
  text.expect_end(line);
  banner.body = text.at();
  if (banner.rows < 0 || banner.columns < 0 || banner.entries < 0) text.fail("a size is negative");
  if (banner.symmetry != Symmetry::general && banner.rows != banner.columns)
    text.fail("a symmetric matrix is square, this one is " + std::to_string(banner.rows) + " x " +
              std::to_string(banner.columns));
  try {
    checked_bytes(Shape{banner.rows, banner.columns}, banner.dtype, "");
  } catch (const ShapeError&) {
    text.fail("the bytes of a matrix of " + std::to_string(banner.rows) + " x " +
              std::to_string(banner.columns) + " exceed 2^63");
  }
  return banner;
}

// The block of one rank; entries outside its box are ignored.
template <class T> struct Block {
  Box box;
  T* data;
  bool overflowed = false;
  void add(std::int64_t row, std::int64_t column, T value) {
    if (row < box[0].start || row >= box[0].stop || column < box[1].start || column >= box[1].stop) return;
    T& entry = data[(row - box[0].start) * box[1].size() + column - box[1].start];
    if constexpr (std::is_integral_v<T>) {
      if (__builtin_add_overflow(entry, value, &entry)) overflowed = true;
    } else {
      entry += value;
    }
  }
};

template <class T> T read_value(const Lines& text, std::string_view& line, const MatrixMarketBanner& banner) {
  if (banner.pattern) return T{1};
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    const double real = text.number<double>(line, "the real part"),
                 imag = text.number<double>(line, "the imaginary part");
    return {real, imag};
  } else {
    return text.number<T>(line, "the value");
  }
}

// The value at the mirrored position across the diagonal.
template <class T> T mirrored(const Lines& text, T value, Symmetry symmetry) {
  if constexpr (std::is_unsigned_v<T>) return value;
  if (symmetry == Symmetry::skew) {
    if constexpr (std::is_integral_v<T>)
      if (value == std::numeric_limits<T>::min()) text.fail("the value has no negative in int64");
    return -value;
  }
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return symmetry == Symmetry::hermitian ? std::conj(value) : value;
  else
    return value;
}

// Parses an entry and calls add(row, column, value), also for its mirror image under the symmetry.
template <class T, class Add> void read_coordinate(const Lines& text, std::string_view line,
                                                   const MatrixMarketBanner& banner, const Add& add) {
  const auto row = text.number<std::int64_t>(line, "the row"),
             column = text.number<std::int64_t>(line, "the column");
  const T value = read_value<T>(text, line, banner);
  text.expect_end(line);
  if (row < 1 || row > banner.rows || column < 1 || column > banner.columns)
    text.fail("the entry (" + std::to_string(row) + ", " + std::to_string(column) +
              ") lies outside a matrix of " + std::to_string(banner.rows) + " x " +
              std::to_string(banner.columns));
  if (banner.symmetry != Symmetry::general && column > row)
    text.fail("an entry above the diagonal; a symmetric file holds the lower triangle");
  if (banner.symmetry == Symmetry::skew && column == row)
    text.fail("an entry on the diagonal of a skew-symmetric matrix");
  add(row - 1, column - 1, value);
  if (banner.symmetry != Symmetry::general && row != column)
    add(column - 1, row - 1, mirrored(text, value, banner.symmetry));
}

template <class T> MatrixMarketEntries entries_of(Lines& text, const MatrixMarketBanner& banner) {
  MatrixMarketEntries entries;
  std::vector<T> values;
  std::string_view line;
  while (text.next_content(line)) {
    ++entries.lines;
    read_coordinate<T>(text, line, banner, [&](std::int64_t row, std::int64_t column, T value) {
      entries.rows.push_back(row);
      entries.columns.push_back(column);
      values.push_back(value);
    });
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  entries.values.assign(bytes, bytes + values.size() * sizeof(T));
  return entries;
}

template <class T>
void read_entries(Lines& text, const MatrixMarketBanner& banner, const Box& box, std::byte* out) {
  Block<T> block{box, reinterpret_cast<T*>(out)};
  std::string_view line;
  const auto add_once = [&](std::int64_t row, std::int64_t column, T value) {
    block.add(row, column, value);
    if (block.overflowed)
      text.fail("the entries of one place do not fit " + name(banner.dtype) + " when they are added up");
  };
  const auto add = [&](std::int64_t row, std::int64_t column, T value) {
    add_once(row, column, value);
    if (banner.symmetry != Symmetry::general && row != column)
      block.add(column, row, mirrored(text, value, banner.symmetry));
  };
  if (banner.coordinate) {
    for (std::int64_t n = 0; n < banner.entries; ++n) {
      if (!text.next_content(line))
        text.fail("the file ends after " + std::to_string(n) + " of " + std::to_string(banner.entries) +
                  " entries");
      read_coordinate<T>(text, line, banner, add_once);
    }
  } else {
    // In column order; for symmetric matrices the lower triangle (skew: below the diagonal).
    for (std::int64_t column = 0; column < banner.columns; ++column) {
      const auto first = banner.symmetry == Symmetry::general ? 0
                         : banner.symmetry == Symmetry::skew  ? column + 1
                                                              : column;
      for (std::int64_t row = first; row < banner.rows; ++row) {
        if (!text.next_content(line))
          text.fail("the file ends before the value at (" + std::to_string(row + 1) + ", " +
                    std::to_string(column + 1) + ")");
        const T value = read_value<T>(text, line, banner);
        text.expect_end(line);
        add(row, column, value);
      }
    }
  }
  if (text.next_content(line)) text.fail("something follows the last value: " + excerpt(line));
}

}  // namespace

MatrixMarketBanner matrix_market_banner(std::string_view head, const std::string& name) {
  Lines lines(head, name);
  return read_banner(lines);
}

MatrixMarketEntries matrix_market_entries(std::string_view text, const MatrixMarketBanner& banner,
                                          const std::string& name, std::int64_t from_byte) {
  Lines lines(text, name + ", from byte " + std::to_string(from_byte));
  if (banner.dtype == float64) return entries_of<double>(lines, banner);
  if (banner.dtype == int64) return entries_of<std::int64_t>(lines, banner);
  if (banner.dtype == uint64) return entries_of<std::uint64_t>(lines, banner);
  return entries_of<std::complex<double>>(lines, banner);
}

MatrixMarketText::MatrixMarketText(std::string_view text, std::string name)
    : text_(text), name_(std::move(name)) {
  Lines lines(text_, name_);
  banner_ = read_banner(lines);
}

void MatrixMarketText::read(const Box& box, std::byte* out) const {
  const auto bytes = checked_bytes(box_shape(box), banner_.dtype, "load_matrix_market");
  if (bytes > 0) std::memset(out, 0, static_cast<std::size_t>(bytes));
  Lines lines(text_, name_);
  read_banner(lines);  // skips the banner
  if (banner_.dtype == float64)
    read_entries<double>(lines, banner_, box, out);
  else if (banner_.dtype == int64)
    read_entries<std::int64_t>(lines, banner_, box, out);
  else if (banner_.dtype == uint64)
    read_entries<std::uint64_t>(lines, banner_, box, out);
  else
    read_entries<std::complex<double>>(lines, banner_, box, out);
}

}  // namespace tessera::io
