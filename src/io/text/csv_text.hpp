// A table of numbers as text. Errors are IoErrors with the path and the line.
#pragma once
#include <tessera/io.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.hpp"
#include "types/box.hpp"

namespace tessera::io {

// The fields of a line, without their quotes and the blanks around them.
std::vector<std::string> csv_fields(std::string_view line, char delimiter);

// Whether a first line with such a field must be a header.
bool reads_as_name(std::string_view field);

// Views a file (or bytes in memory) owned by the caller. The constructor counts the rows in one pass over the
// text.
class CsvText {
 public:
  CsvText(const File& file, const CsvOptions& options);
  const std::vector<std::string>& header() const { return header_; }
  Shape shape() const { return {rows_, columns_}; }
  // Reads the box of the table, dense, in options.dtype. Only its rows are parsed again.
  void read(const Box&, std::byte* out) const;

 private:
  void note_comment(std::string_view text);
  void note_row(std::string_view line, std::int64_t offset, std::int64_t line_number);
  bool is_header(std::string_view line) const;
  std::int64_t number_of_fields(std::string_view line) const;
  [[noreturn]] void fail_fields(std::int64_t fields, std::int64_t line_number) const;
  template <class T>
  void read_row(std::string_view line, std::int64_t line_number, Range columns, T* out) const;
  const File& file_;
  CsvOptions options_;
  std::vector<std::string> header_, comment_;  // the names; the fields of the last line with #
  struct Mark {
    std::int64_t row, offset, line;
  };
  std::vector<Mark> marks_;  // the offsets of some rows
  std::int64_t rows_ = 0, columns_ = 0;
  bool is_first_ = true;
};

}  // namespace tessera::io
