#include "viz/data/png.hpp"

#include <png.h>

#include <tessera/error.hpp>

#include <cmath>
#include <cstdint>

namespace tessera::viz {
namespace {

void append(png_structp png, png_bytep data, png_size_t bytes) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), bytes);
}
void flush(png_structp) {}
[[noreturn]] void fail(png_structp, png_const_charp why) {
  throw InternalError(std::string("libpng: ") + why);
}
void ignore(png_structp, png_const_charp) {}

std::vector<png_byte> row_of(const DataGrid& grid, std::int64_t row, const ValueRange& range,
                             const Colormap& colours, int enlarge) {
  std::vector<png_byte> bytes;
  for (std::int64_t column = 0; column < grid.columns; ++column) {
    const double value = grid.at(row, column);
    const bool missing = std::isnan(value);
    const Rgb c = missing ? Rgb{} : colours.at(range.place(value));
    for (int i = 0; i < enlarge; ++i)
      bytes.insert(bytes.end(), {c.r, c.g, c.b, static_cast<png_byte>(missing ? 0 : 255)});
  }
  return bytes;
}

}  // namespace

std::string png_of(const DataGrid& grid, const ValueRange& range, const Colormap& colours, int enlarge) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, fail, ignore);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append, flush);
  png_set_IHDR(png, info, static_cast<png_uint_32>(grid.columns * enlarge),
               static_cast<png_uint_32>(grid.rows * enlarge), 8, PNG_COLOR_TYPE_RGBA, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    const auto bytes = row_of(grid, row, range, colours, enlarge);
    for (int i = 0; i < enlarge; ++i) png_write_row(png, bytes.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace tessera::viz
