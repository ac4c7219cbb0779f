#include "io/text/csv_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "base/text.hpp"
#include "kernels/visit.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t marked_every = 1024;  // rows
constexpr std::size_t longest_shown = 80;
constexpr std::size_t longest_line = std::size_t{64} << 20;  // a rank holds one line in memory
constexpr std::int64_t most_names = std::int64_t{1} << 20;   // in a header
constexpr const char* mend = "check the line, or the delimiter";

std::string shown(std::string_view text) {
  return text.size() <= longest_shown ? in_quotes(text) : in_quotes(text.substr(0, longest_shown)) + " ...";
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Calls f(line, its offset) for the lines of a file from an offset on, read in pieces, until f returns false.
template <class F> void for_lines(const File& file, std::int64_t offset, F&& f) {
  constexpr std::int64_t piece = 1 << 20;
  const std::int64_t size = file.bytes();
  std::string text;
  std::int64_t start = offset;  // file offset of `text`
  std::size_t line_begin = 0, looked_at = 0;
  while (true) {
    const auto end = text.find('\n', looked_at);
    if (end != std::string::npos) {
      const auto line = std::string_view(text).substr(line_begin, end - line_begin);
      if (!f(line, start + static_cast<std::int64_t>(line_begin))) return;
      line_begin = looked_at = end + 1;
      continue;
    }
    text.erase(0, line_begin);
    start += static_cast<std::int64_t>(line_begin);
    line_begin = 0;
    looked_at = text.size();
    if (text.size() > longest_line)
      file.fail("has a line of more than " + format_bytes(static_cast<std::int64_t>(longest_line)) +
                    " from byte " + std::to_string(start) + " on",
                "it is no table of numbers, or its lines end otherwise than with a newline");
    const std::int64_t at = start + static_cast<std::int64_t>(text.size()), more = std::min(piece, size - at);
    if (more <= 0) break;
    text.resize(text.size() + static_cast<std::size_t>(more));
    file.read(text.data() + looked_at, more, at);
  }
  if (!text.empty()) f(std::string_view(text), start);
}

// Calls f(field, is_quoted) for each field of a line; a quoted field may contain delimiters, and "" inside it
// is a quote.
template <class F> void for_fields(std::string_view line, char delimiter, F&& f) {
  std::string unquoted;
  std::size_t at = 0;
  while (true) {
    auto end = std::min(line.find(delimiter, at), line.size());
    std::string_view field = trimmed(line.substr(at, end - at));
    const bool is_quoted = field.starts_with('"');
    if (is_quoted) {
      unquoted.clear();
      std::size_t c = line.find('"', at) + 1;
      for (; c < line.size(); ++c) {
        if (line[c] != '"')
          unquoted += line[c];
        else if (c + 1 < line.size() && line[c + 1] == '"')
          unquoted += line[c++];
        else
          break;
      }
      end = std::min(line.find(delimiter, std::min(c, line.size())), line.size());
      field = unquoted;
    }
    f(field, is_quoted);
    if (end == line.size()) return;
    at = end + 1;
  }
}

// A missing value, as R, SQL, spreadsheets and pandas write it.
bool is_missing(std::string_view field) {
  constexpr std::string_view words[] = {"", "NA", "N/A", "n/a", "#N/A", "null", "NULL"};
  return std::find(std::begin(words), std::end(words), field) != std::end(words);
}

// The line without what follows a # outside of quotes; #N/A is a missing value.
std::string_view without_comment(std::string_view line) {
  constexpr std::string_view missing = "#N/A";
  if (line.find('#') == std::string_view::npos) return line;  // as most lines, and quicker told
  bool is_quoted = false;
  for (auto at = line.find_first_of("#\""); at != std::string_view::npos;
       at = line.find_first_of("#\"", at + 1)) {
    if (line[at] == '"') is_quoted = !is_quoted;
    if (line[at] == '#' && !is_quoted && !line.substr(at).starts_with(missing)) return line.substr(0, at);
  }
  return line;
}

// A number that the dtype does not have is infinity or 0, as NumPy and pandas read it.
template <class T> bool beyond_range(std::string_view field, const char* end, T& value) {
  if constexpr (std::is_same_v<T, double>) {
    value = std::strtod(std::string(field).c_str(), nullptr);
    return end == field.data() + field.size();
  } else if constexpr (std::is_same_v<T, float>) {
    value = std::strtof(std::string(field).c_str(), nullptr);
    return end == field.data() + field.size();
  }
  return false;
}

template <class T> bool parse_value(std::string_view field, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = field == "1" || field == "true" || field == "True";
    return value || field == "0" || field == "false" || field == "False";
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (std::is_floating_point_v<T> && is_missing(field)) {
      value = std::numeric_limits<T>::quiet_NaN();
      return true;
    }
    if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (std::is_floating_point_v<T> && error == std::errc::result_out_of_range)
      return beyond_range(field, end, value);
    return error == std::errc() && end == field.data() + field.size();
  } else if constexpr (kernels::is_half_type<T>) {
    double digits = 0;
    const bool is_read = parse_value(field, digits);
    value = T(digits);
    return is_read;
  } else {
    return false;
  }
}

// The meaning of a field for the first line. A number, a missing value or a truth value belongs to a row of
// the table, even if it has another dtype or a unit; an empty field or a number in quotes may belong to
// either.
enum class Says { nothing, row, header };
Says said_by(std::string_view field, bool is_quoted) {
  if (field.empty()) return Says::nothing;
  std::string_view digits = field;
  if (digits.front() == '+' || digits.front() == '-') digits.remove_prefix(1);
  if (digits.starts_with('.')) digits.remove_prefix(1);
  const auto begins_with_digit = !digits.empty() && digits.front() >= '0' && digits.front() <= '9';
  constexpr std::string_view truths[] = {"true", "false", "True", "False", "TRUE", "FALSE"};
  double value = 0;
  const bool stands_in_a_row = begins_with_digit || is_missing(field) || parse_value(field, value) ||
                               std::find(std::begin(truths), std::end(truths), field) != std::end(truths);
  if (!stands_in_a_row) return Says::header;
  return is_quoted ? Says::nothing : Says::row;
}

// Files that begin as another kind of bytes.
void refuse_other_bytes(const File& file) {
  char first[2] = {};
  if (file.bytes() < 2) return;
  file.read(first, 2, 0);
  const std::string_view begin(first, 2);
  if (begin == "\xff\xfe" || begin == "\xfe\xff" || begin[0] == '\0' || begin[1] == '\0')
    file.fail("is text in UTF-16 or UTF-32, or no text at all",
              "write it as UTF-8 (iconv -f UTF-16 -t UTF-8)");
  if (begin == "\x1f\x8b") file.fail("is packed by gzip", "unpack it with gunzip");
}

}  // namespace

std::vector<std::string> csv_fields(std::string_view line, char delimiter) {
  std::vector<std::string> fields;
  for_fields(line, delimiter, [&](std::string_view field, bool) { fields.emplace_back(field); });
  return fields;
}

bool reads_as_name(std::string_view field) { return said_by(field, false) == Says::header; }

CsvText::CsvText(const File& file, const CsvOptions& options) : file_(file), options_(options) {
  refuse_other_bytes(file);
  std::int64_t line_number = 0;
  for_lines(file, 0, [&](std::string_view line, std::int64_t offset) {
    ++line_number;
    if (line_number == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3), offset += 3;
    if (!trimmed(line).empty()) note_row(line, offset, line_number);
    return true;
  });
  if (is_first_) {  // names alone
    header_ = comment_;
    columns_ = static_cast<std::int64_t>(header_.size());
  }
}

// A header has only names, and a row has none: a line with both is refused, since it is ambiguous and a row
// must not be lost.
bool CsvText::is_header(std::string_view line) const {
  std::string name, value;
  for_fields(line, options_.delimiter, [&](std::string_view field, bool is_quoted) {
    const Says says = said_by(field, is_quoted);
    auto& first = says == Says::header ? name : value;
    if (says != Says::nothing && first.empty()) first = shown(field);
  });
  if (!name.empty() && !value.empty())
    file_.fail("has in its first line the name " + name + " beside the value " + value,
               "a header has only names, in quotes those that look like numbers, or begins with #; a row has "
               "only values");
  return !name.empty();
}

// Lines before the table that begin with # are comments; the last of them has the names if there are as many
// as columns, as in headers of numpy.savetxt.
void CsvText::note_comment(std::string_view text) {
  if (number_of_fields(text) > most_names)
    file_.fail("has a header of " + std::to_string(number_of_fields(text)) + " names",
               "no table has more than " + std::to_string(most_names));
  comment_ = csv_fields(text, options_.delimiter);
}

// The first line that is no comment determines the number of columns, and whether it is a header; other lines
// are only counted.
void CsvText::note_row(std::string_view line, std::int64_t offset, std::int64_t line_number) {
  if (is_first_) {
    if (trimmed(without_comment(line)).empty()) return note_comment(trimmed(line.substr(line.find('#') + 1)));
    is_first_ = false;
    const bool has_names = is_header(without_comment(line));
    if (!has_names) line = without_comment(line);
    columns_ = number_of_fields(line);
    if (has_names) {
      note_comment(line);
      header_ = comment_;
      return;
    }
    if (static_cast<std::int64_t>(comment_.size()) == columns_) header_ = comment_;
  }
  line = without_comment(line);
  if (trimmed(line).empty()) return;
  // Rows with too few fields are reported on reading; a line too short for its columns is refused now, so
  // that a small file cannot claim a large table.
  if (static_cast<std::int64_t>(line.size()) + 1 < columns_) fail_fields(number_of_fields(line), line_number);
  if (rows_++ % marked_every == 0) marks_.push_back({rows_ - 1, offset, line_number});
}

std::int64_t CsvText::number_of_fields(std::string_view line) const {
  std::int64_t count = 0;
  for_fields(line, options_.delimiter, [&](std::string_view, bool) { ++count; });
  return count;
}

void CsvText::fail_fields(std::int64_t fields, std::int64_t line_number) const {
  file_.fail("has in line " + std::to_string(line_number) + ": " + format_count(fields, "field") +
                 ", where the first line has " + std::to_string(columns_),
             mend);
}

template <class T>
void CsvText::read_row(std::string_view line, std::int64_t line_number, Range columns, T* out) const {
  std::int64_t column = 0;
  for_fields(line, options_.delimiter, [&](std::string_view field, bool) {
    if (column >= columns.start && column < columns.stop && !parse_value(field, out[column - columns.start]))
      file_.fail("has in line " + std::to_string(line_number) + ": " + shown(field) + " in column " +
                     std::to_string(column + 1) + ", which is no " + name(options_.dtype),
                 mend);
    ++column;
  });
  if (column != columns_) fail_fields(column, line_number);
}

void CsvText::read(const Box& box, std::byte* out) const {
  if (is_empty(box)) return;
  const Range rows = box[0], columns = box[1];
  const auto mark = marks_[static_cast<std::size_t>(rows.start / marked_every)];
  kernels::visit_stored(options_.dtype, [&]<class T>(T) {
    std::int64_t row = mark.row, line_number = mark.line - 1;
    auto* to = reinterpret_cast<T*>(out);
    for_lines(file_, mark.offset, [&](std::string_view line, std::int64_t) {
      ++line_number;
      line = without_comment(line);
      if (trimmed(line).empty()) return true;
      if (row >= rows.start) read_row(line, line_number, columns, to + (row - rows.start) * columns.size());
      return ++row < rows.stop;
    });
    if (row < rows.stop)
      file_.fail("has fewer rows than a moment ago", "somebody writes to it: read it again when it is done");
  });
}

}  // namespace tessera::io
