// Matrix Market (NIST exchange formats): a text of numbers in column order, or of (row, column, value) lines.
#include <algorithm>
#include <charconv>
#include <complex>
#include <cstring>

#include "base/text.hpp"
#include "io/team.hpp"

namespace tessera::io {
namespace {

enum class Symmetry { general, symmetric, skew, hermitian };

struct Banner {
  bool coordinate = false, pattern = false;
  Dtype dtype = float64;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0, columns = 0, entries = 0;
};

class Text {
 public:
  Text(std::string call, std::string path)
      : call_(std::move(call)), path_(std::move(path)), text_(read_text(call_, path_)) {}
  [[noreturn]] void fail(const std::string& facts) const {
    throw IoError(call_ + ": " + quoted(path_) + ", line " + std::to_string(line_) + ": " + facts +
                  "; check the file against the Matrix Market format");
  }
  // The next line without its end; false at the end of the file.
  bool next_line(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    const auto end = std::min(text_.find('\n', at_), text_.size());
    line = std::string_view(text_).substr(at_, end - at_);
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
  template <class Number> Number number(std::string_view& line, const char* what) const {
    const auto first = line.find_first_not_of(" \t");
    line.remove_prefix(first == std::string_view::npos ? line.size() : first);
    if (!line.empty() && line[0] == '+') line.remove_prefix(1);
    Number value{};
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error == std::errc::result_out_of_range)
      fail(std::string(what) + " is out of range in " + quoted(line));
    const bool ends = end == line.data() + line.size() || *end == ' ' || *end == '\t';
    if (error != std::errc() || !ends)
      fail(std::string(what) + (line.empty() ? " is missing" : " is no number in " + quoted(line)));
    line.remove_prefix(end - line.data());
    return value;
  }
  void expect_end(std::string_view line) const {
    if (line.find_first_not_of(" \t") != std::string_view::npos)
      fail("something follows the numbers: " + quoted(line));
  }

 private:
  std::string call_, path_, text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
};

std::string lower(std::string_view word) {
  std::string result(word);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

template <class Choice> Choice choose(const Text& text, const std::string& word, const char* what,
                                      const std::vector<std::pair<std::string, Choice>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (name == word) return choice;
    names.push_back(name);
  }
  text.fail("the " + std::string(what) + " " + quoted(word) + " is unknown; there are " + join(names) +
            did_you_mean(word, names));
}

Banner read_banner(Text& text) {
  std::string_view line;
  if (!text.next_line(line)) text.fail("the file is empty");
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(lower(line.substr(at, end - at)));
    at = end;
  }
  if (words.empty() || words[0] != "%%matrixmarket") text.fail("does not begin with %%MatrixMarket");
  if (words.size() != 5)
    text.fail("the first line has " + std::to_string(words.size()) +
              " words; it is %%MatrixMarket matrix FORMAT FIELD SYMMETRY");
  if (words[1] != "matrix") text.fail("holds a " + quoted(words[1]) + "; only 'matrix' is known");
  Banner banner;
  banner.coordinate = choose<bool>(text, words[2], "format", {{"coordinate", true}, {"array", false}});
  banner.dtype = choose<Dtype>(text, words[3], "field",
                               {{"real", float64},
                                {"double", float64},
                                {"integer", int64},
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
  if (!text.next_content(line)) text.fail("the line with the sizes is missing");
  banner.rows = text.number<std::int64_t>(line, "the number of rows");
  banner.columns = text.number<std::int64_t>(line, "the number of columns");
  if (banner.coordinate) banner.entries = text.number<std::int64_t>(line, "the number of entries");
  text.expect_end(line);
  if (banner.rows < 0 || banner.columns < 0 || banner.entries < 0) text.fail("a size is negative");
  if (banner.symmetry != Symmetry::general && banner.rows != banner.columns)
    text.fail("a symmetric matrix is square, this one is " + std::to_string(banner.rows) + " x " +
              std::to_string(banner.columns));
  return banner;
}

// The block of one rank, into which the entries of the file fall or not.
template <class T> struct Block {
  Box box;
  T* data;
  void add(std::int64_t row, std::int64_t column, T value) {
    if (row < box[0].start || row >= box[0].stop || column < box[1].start || column >= box[1].stop) return;
    data[(row - box[0].start) * box[1].size() + column - box[1].start] += value;
  }
};

template <class T> T read_value(const Text& text, std::string_view& line, const Banner& banner) {
  if (banner.pattern) return T{1};
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    const double real = text.number<double>(line, "the real part"),
                 imag = text.number<double>(line, "the imaginary part");
    return {real, imag};
  } else {
    return text.number<T>(line, "the value");
  }
}

template <class T> T mirrored(T value, Symmetry symmetry) {
  if (symmetry == Symmetry::skew) return -value;
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return symmetry == Symmetry::hermitian ? std::conj(value) : value;
  else
    return value;
}

template <class T> void read_entries(Text& text, const Banner& banner, const Box& box, std::byte* out) {
  Block<T> block{box, reinterpret_cast<T*>(out)};
  std::string_view line;
  const auto add = [&](std::int64_t row, std::int64_t column, T value) {
    block.add(row, column, value);
    if (banner.symmetry != Symmetry::general && row != column)
      block.add(column, row, mirrored(value, banner.symmetry));
  };
  if (banner.coordinate) {
    for (std::int64_t n = 0; n < banner.entries; ++n) {
      if (!text.next_content(line))
        text.fail("the file ends after " + std::to_string(n) + " of " + std::to_string(banner.entries) +
                  " entries");
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
    }
  } else {
    // Column by column; of symmetric ones the lower triangle (skew: below the diagonal).
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
  if (text.next_content(line)) text.fail("something follows the last value: " + quoted(line));
}

FileInfo info_of(const Banner& banner) {
  return {Shape{banner.rows, banner.columns}, banner.dtype,
          std::string("matrix market, ") + (banner.coordinate ? "coordinate" : "array")};
}

}  // namespace

FileInfo matrix_market_info(const std::string& path) {
  Text text("matrix_market_info", path);
  return info_of(read_banner(text));
}

Array load_matrix_market(const std::string& path, const Sharding& sharding) {
  std::optional<Text> text;
  Banner banner;
  Reader reader;
  reader.header = [&] {
    text.emplace("load_matrix_market", path);
    banner = read_banner(*text);
    return info_of(banner);
  };
  reader.block = [&](const Box& box, std::byte* out) {
    std::memset(out, 0, static_cast<std::size_t>(box_elements(box)) * itemsize(banner.dtype));
    if (banner.dtype == float64)
      read_entries<double>(*text, banner, box, out);
    else if (banner.dtype == int64)
      read_entries<std::int64_t>(*text, banner, box, out);
    else
      read_entries<std::complex<double>>(*text, banner, box, out);
  };
  return load_blocks("load_matrix_market", path, sharding, reader);
}

}  // namespace tessera::io
