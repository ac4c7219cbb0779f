// CSV files: every rank locates its rows and reads or writes those.
#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/text/csv_text.hpp"
#include "io/text/text_values.hpp"
#include "kernels/visit.hpp"

namespace tessera::io {
namespace {

void check_options(const CsvOptions& options) {
  if (is_complex(options.dtype))
    throw DtypeError(call_text() +
                     ": a CSV file has no complex numbers; load real and imaginary parts as columns");
  const char d = options.delimiter;
  if (d == '\n' || d == '\r' || d == '"' || d == '.' || d == '-' || d == '+' || (d >= '0' && d <= '9'))
    throw ArgumentError(call_text() + ": " + in_quotes(std::string(1, d)) +
                        " cannot stand between numbers; use a comma, a semicolon, a tab or a blank");
}

struct OpenText {
  File file;
  CsvText text;
  CsvOptions options;
  OpenText(const std::string& path, const CsvOptions& options)
      : file(call_text(), path, File::Mode::read), text(file, options), options(options) {}
  FileInfo info() const {
    return {text.shape(), options.dtype,
            text.header().empty() ? "csv" : "csv with a header of " + format_count(text.shape()[1], "name")};
  }
};

Array load(const std::string& path, const std::optional<Sharding>& sharding, const CsvOptions& options) {
  check_options(options);
  std::optional<OpenText> text;
  Reader reader;
  reader.header = [&] {
    text.emplace(path, options);
    return text->info();
  };
  reader.block = [&](const Box& box, std::byte* out) { text->text.read(box, out); };
  return load_blocks(in_quotes(path) + ", delimiter " + in_quotes(std::string(1, options.delimiter)) + ", " +
                         name(options.dtype),
                     sharding, reader);
}

std::string header_line(const CsvOptions& options) {
  std::string line;
  bool is_clear = true;  // no reader could take the line for a row
  for (const std::string& column : options.header) {
    if (&column != &options.header.front()) line += options.delimiter;
    is_clear = is_clear && reads_as_name(column);
    const bool is_plain =
        column.find_first_of(std::string("\"\n\r#") + options.delimiter) == std::string::npos;
    line += is_plain ? column : "\"";
    if (is_plain) continue;
    for (const char c : column) line += c == '"' ? std::string("\"\"") : std::string(1, c == '\n' ? ' ' : c);
    line += '"';
  }
  return options.header.empty() ? line : (is_clear ? "" : "#") + line + "\n";
}

}  // namespace

void save_csv(const std::string& path, const Array& x, const CsvOptions& options,
              std::source_location where) {
  const Call call("save_csv", where);
  check_usable(x);
  CsvOptions checked = options;
  checked.dtype = x.dtype();
  check_options(checked);
  if (x.ndim() < 1 || x.ndim() > 2)
    throw ShapeError(call_text() + ": a CSV file is a table, the array has the shape " +
                     to_string(x.shape()) + "; reshape it to two dims");
  const std::int64_t columns = x.ndim() == 1 ? 1 : x.shape()[1];
  if (!options.header.empty() && static_cast<std::int64_t>(options.header.size()) != columns)
    throw ShapeError(call_text() + ": the header has " +
                     format_count(static_cast<std::int64_t>(options.header.size()), "name") + " for " +
                     format_count(columns, "column"));
  TextWriter writer;
  writer.header = [&](std::int64_t) { return header_line(options); };
  writer.write = [&](const OwnBlock& own, std::int64_t first, std::int64_t last, std::string& out) {
    kernels::visit_stored(x.dtype(), [&]<class T>(T) {
      const auto* values = reinterpret_cast<const T*>(own.data);
      for (std::int64_t k = first; k < last; ++k) {
        append_number(out, values[k]);
        out += k % columns == columns - 1 ? '\n' : options.delimiter;
      }
    });
    return last - first;
  };
  save_text(
      path,
      ", delimiter " + in_quotes(std::string(1, options.delimiter)) + ", header " + join(options.header), x,
      0, writer);
}

Array load_csv(const std::string& path, const Sharding& sharding, const CsvOptions& options,
               std::source_location where) {
  const Call call("load_csv", where);
  return load(path, sharding, options);
}
Array load_csv(const std::string& path, const CsvOptions& options, std::source_location where) {
  const Call call("load_csv", where);
  return load(path, std::nullopt, options);
}
FileInfo csv_info(const std::string& path, const CsvOptions& options, std::source_location where) {
  const Call call("csv_info", where);
  check_options(options);
  return OpenText(path, options).info();
}
std::vector<std::string> csv_header(const std::string& path, const CsvOptions& options,
                                    std::source_location where) {
  const Call call("csv_header", where);
  return OpenText(path, options).text.header();
}

}  // namespace tessera::io
