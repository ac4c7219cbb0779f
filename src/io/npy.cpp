// .npy files: a header, then the elements; so every rank can find its own box.
#include <algorithm>
#include <cstring>

#include "base/call.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "io/blocks.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"
#include "kernels/move/copy.hpp"
#include "types/checked.hpp"

namespace tessera::io {
namespace {

// The parsers say fact and mend; here the call and the path are put in front.
template <class Parse> auto parsed(const File& file, Parse parse) {
  try {
    return parse();
  } catch (const IoError& error) {
    const std::string text = error.what();
    const auto cut = text.rfind("; ");
    file.fail(text.substr(0, cut), cut == std::string::npos ? "write it again with numpy.save or io::save_npy"
                                                            : text.substr(cut + 2));
  }
}

NpyHeader read_header(const File& file) {
  const auto size = file.bytes();
  char first[12];
  const auto count = std::min<std::int64_t>(size, sizeof first);
  file.read(first, count, 0);
  const auto prefix = parsed(file, [&] {
    return parse_npy_prefix({first, static_cast<std::size_t>(count)}, size);
  });
  std::string dict(prefix.dict_bytes, '\0');
  file.read(dict.data(), prefix.dict_bytes, prefix.dict_offset);
  NpyHeader header = parsed(file, [&] { return parse_npy_dict(dict, prefix); });
  std::int64_t bytes = 0;
  try {
    bytes = checked_bytes(header.shape, header.dtype, "load_npy");
  } catch (const ShapeError&) {
    file.fail("claims the shape " + to_string(header.shape) + ", whose bytes exceed 2^63",
              "it is damaged: write it again");
  }
  if (bytes > size - header.data_offset)
    file.fail("has " + std::to_string(size) + " bytes, but its header claims shape " +
                  to_string(header.shape) + " of " + name(header.dtype) + ", which needs " +
                  std::to_string(bytes) + " after the header's " + std::to_string(header.data_offset),
              "it was cut short: copy or write it again");
  header.bytes_behind = size - header.data_offset - bytes;
  return header;
}

void reverse_bytes(std::byte* data, std::int64_t count, std::size_t width) {
  for (std::int64_t i = 0; i < count; ++i, data += width) std::reverse(data, data + width);
}

// A Fortran-order file is the transposed array in C order: the reversed box of the reversed shape, turned
// back in memory.
void read_fortran_box(const File& file, const NpyHeader& header, const Box& box, std::byte* out) {
  std::vector<std::int64_t> extents(header.shape.begin(), header.shape.end());
  std::reverse(extents.begin(), extents.end());
  const Box reversed(box.rbegin(), box.rend());
  const auto width = itemsize(header.dtype);
  const auto elements = static_cast<std::size_t>(box_elements(box));
  const std::unique_ptr<std::byte[]> turned(new std::byte[elements * width]);
  read_box(file, {Shape(extents), static_cast<std::int64_t>(width), header.data_offset}, reversed,
           turned.get());
  std::vector<int> order;
  for (int d = static_cast<int>(box.size()); d-- > 0;) order.push_back(d);
  if (elements > 0) kernels::transpose(out, turned.get(), box_shape(reversed), order, width);
}

FileInfo info_of(const NpyHeader& header) {
  return {header.shape, header.dtype,
          "npy " + std::to_string(header.major) + ".0, " +
              (header.fortran_order ? "Fortran order" : "C order") +
              (header.swap_bytes ? ", other byte order" : "")};
}

}  // namespace

FileInfo npy_info(const std::string& path, std::source_location where) {
  const Call call("npy_info", where);
  return info_of(read_header(File(call_text(), path, File::Mode::read)));
}

namespace {

Array load(const std::string& path, const std::optional<Sharding>& sharding) {
  std::optional<File> file;
  NpyHeader header;
  Reader reader;
  reader.header = [&] {
    file.emplace(call_text(), path, File::Mode::read);
    header = read_header(*file);
    if (header.bytes_behind > 0)
      log_once(LogLevel::warn, call_text() + ": " + quoted(path) + " has " +
                                   format_count(header.bytes_behind, "byte") +
                                   " after its array; they are ignored");
    return info_of(header);
  };
  reader.block = [&](const Box& box, std::byte* out) {
    const auto width = itemsize(header.dtype);
    if (header.fortran_order && box.size() > 1)
      read_fortran_box(*file, header, box, out);
    else
      read_box(*file, {header.shape, static_cast<std::int64_t>(width), header.data_offset}, box, out);
    const auto parts = is_complex(header.dtype) ? 2 : 1;
    if (header.swap_bytes)
      reverse_bytes(out, box_elements(box) * parts, width / static_cast<std::size_t>(parts));
    // A bool is 0 or 1 everywhere in tessera, whatever wrote the file.
    if (header.dtype == bool_)
      for (std::int64_t i = 0; i < box_elements(box); ++i)
        out[i] = out[i] == std::byte{0} ? std::byte{0} : std::byte{1};
  };
  return load_blocks(quoted(path), sharding, reader);
}

}  // namespace

Array load_npy(const std::string& path, const Sharding& sharding, std::source_location where) {
  const Call call("load_npy", where);
  return load(path, sharding);
}
Array load_npy(const std::string& path, std::source_location where) {
  const Call call("load_npy", where);
  return load(path, std::nullopt);
}

void save_npy(const std::string& path, const Array& x, std::source_location where) {
  const Call call("save_npy", where);
  save_blocks(path, "", x, [&](const std::string& temporary, const std::string&) {
    File file(call_text(), temporary, File::Mode::create);
    const std::string header = npy_header_text(x.shape(), x.dtype());
    file.write(header.data(), static_cast<std::int64_t>(header.size()), 0);
    file.resize(static_cast<std::int64_t>(header.size()) + x.nbytes());
    file.sync();
    return static_cast<std::int64_t>(header.size());
  });
}

}  // namespace tessera::io
