#include "io/text/csv_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.hpp"
#include "kernels/visit.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t marked_every = 1024;  // rows
constexpr std::size_t longest_shown = 80;
constexpr const char* mend = "check the line, or the delimiter";

std::string shown(std::string_view text) {
  return text.size() <= longest_shown ? quoted(text) : quoted(text.substr(0, longest_shown)) + " ...";
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Lines of a file from an offset on, read in pieces: f(line, its offset) until it says false.
template <class F> void for_lines(const File& file, std::int64_t offset, F&& f) {
  constexpr std::int64_t piece = 1 << 20;
  const std::int64_t size = file.bytes();
  std::string text;
  std::int64_t start = offset;  // of text
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
    const std::int64_t at = start + static_cast<std::int64_t>(text.size()), more = std::min(piece, size - at);
    if (more <= 0) break;
    text.resize(text.size() + static_cast<std::size_t>(more));
    file.read(text.data() + looked_at, more, at);
  }
  if (!text.empty()) f(std::string_view(text), start);
}

// Calls f(field) for each field of a line; quotes around a field may hold delimiters, and "" is a quote.
template <class F> void for_fields(std::string_view line, char delimiter, F&& f) {
  std::string unquoted;
  std::size_t at = 0;
  while (true) {
    auto end = std::min(line.find(delimiter, at), line.size());
    std::string_view field = trimmed(line.substr(at, end - at));
    if (!field.empty() && field.front() == '"') {
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
    f(field);
    if (end == line.size()) return;
    at = end + 1;
  }
}

template <class T> bool parse_value(std::string_view field, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = field == "1" || field == "true" || field == "True";
    return value || field == "0" || field == "false" || field == "False";
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (std::is_floating_point_v<T> && field.empty()) {
      value = std::numeric_limits<T>::quiet_NaN();
      return true;
    }
    if (!field.empty() && field.front() == '+') field.remove_prefix(1);
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
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

// A number as a field of a header would not be one: empty fields say nothing.
bool is_number(std::string_view field) {
  double value = 0;
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return field.empty() || (error != std::errc::invalid_argument && end == field.data() + field.size());
}

}  // namespace

std::vector<std::string> csv_fields(std::string_view line, char delimiter) {
  std::vector<std::string> fields;
  for_fields(line, delimiter, [&](std::string_view field) { fields.emplace_back(field); });
  return fields;
}

CsvText::CsvText(const File& file, const CsvOptions& options) : file_(file), options_(options) {
  std::int64_t line_number = 0;
  for_lines(file, 0, [&](std::string_view line, std::int64_t offset) {
    ++line_number;
    if (line_number == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3), offset += 3;
    if (!trimmed(line).empty()) note_row(line, offset, line_number);
    return true;
  });
}

// The first line says how many columns there are, and whether it is a header; of the others their number
// counts.
void CsvText::note_row(std::string_view line, std::int64_t offset, std::int64_t line_number) {
  if (is_first_) {
    is_first_ = false;
    const bool is_comment = line.starts_with('#');  // numpy.savetxt's headers
    auto fields = csv_fields(is_comment ? trimmed(line.substr(1)) : line, options_.delimiter);
    columns_ = static_cast<std::int64_t>(fields.size());
    if (is_comment ||
        !std::all_of(fields.begin(), fields.end(), [](const auto& f) { return is_number(f); })) {
      header_ = std::move(fields);
      return;
    }
  }
  // A row of too few fields is told when it is read; but a file of few bytes claims no large table.
  if (static_cast<std::int64_t>(line.size()) + 1 < columns_)
    fail_fields(static_cast<std::int64_t>(csv_fields(line, options_.delimiter).size()), line_number);
  if (rows_++ % marked_every == 0) marks_.push_back({rows_ - 1, offset, line_number});
}

void CsvText::fail_fields(std::int64_t fields, std::int64_t line_number) const {
  file_.fail("has in line " + std::to_string(line_number) + ": " + format_count(fields, "field") +
                 ", where the first line has " + std::to_string(columns_),
             mend);
}

template <class T>
void CsvText::read_row(std::string_view line, std::int64_t line_number, Range columns, T* out) const {
  std::int64_t column = 0;
  for_fields(line, options_.delimiter, [&](std::string_view field) {
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
      if (trimmed(line).empty()) return true;
      if (row >= rows.start) read_row(line, line_number, columns, to + (row - rows.start) * columns.size());
      return ++row < rows.stop;
    });
    if (row < rows.stop)
      file_.fail("has fewer rows than a moment ago", "somebody writes to it: read it again when it is done");
  });
}

}  // namespace tessera::io
