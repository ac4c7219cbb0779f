// The contents of a .npy file, or of such a file inside an archive.
#include "io/npy_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/text.hpp"
#include "kernels/move/copy.hpp"
#include "types/checked.hpp"

namespace tessera::io {

NpyHeader read_npy_header(const File& file, std::int64_t start, std::int64_t size) {
  char first[12];
  const auto count = std::min<std::int64_t>(size, sizeof first);
  file.read(first, count, start);
  const auto prefix = parsed(file, "write it again with numpy.save or io::save_npy", [&] {
    return parse_npy_prefix({first, static_cast<std::size_t>(count)}, size);
  });
  std::string dict(prefix.dict_bytes, '\0');
  file.read(dict.data(), prefix.dict_bytes, start + prefix.dict_offset);
  NpyHeader header = parsed(file, "write it again with numpy.save or io::save_npy",
                            [&] { return parse_npy_dict(dict, prefix); });
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
  header.data_offset += start;
  return header;
}

namespace {

// Reverses the bytes of each word, in a loop that compilers vectorize.
template <class Word, Word (*swapped)(Word)> void swap_words(std::byte* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, data += sizeof(Word)) {
    Word word;
    std::memcpy(&word, data, sizeof word);
    word = swapped(word);
    std::memcpy(data, &word, sizeof word);
  }
}
std::uint16_t swapped16(std::uint16_t word) { return __builtin_bswap16(word); }
std::uint32_t swapped32(std::uint32_t word) { return __builtin_bswap32(word); }
std::uint64_t swapped64(std::uint64_t word) { return __builtin_bswap64(word); }

void reverse_bytes(std::byte* data, std::int64_t count, std::size_t width) {
  if (width == 2) swap_words<std::uint16_t, swapped16>(data, count);
  if (width == 4) swap_words<std::uint32_t, swapped32>(data, count);
  if (width == 8) swap_words<std::uint64_t, swapped64>(data, count);
}

// Normalizes bools to 0 or 1, as everywhere in tessera; skips eight at a time if they already are.
void make_bools(std::byte* data, std::int64_t count) {
  constexpr std::uint64_t beyond_one = 0xfefefefefefefefe;
  for (std::int64_t i = 0; i < count;) {
    std::uint64_t eight = beyond_one;
    if (count - i >= 8) std::memcpy(&eight, data + i, sizeof eight);
    const std::int64_t end = std::min(count, i + 8);
    if ((eight & beyond_one) != 0)
      for (std::int64_t k = i; k < end; ++k) data[k] = data[k] == std::byte{0} ? std::byte{0} : std::byte{1};
    i = end;
  }
}

// A Fortran-order file is the transposed array in C order: reads the reversed box of the reversed shape and
// transposes it in memory.
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

}  // namespace

void finish_npy_values(const NpyHeader& header, std::int64_t elements, std::byte* values) {
  const auto parts = is_complex(header.dtype) ? 2 : 1;
  if (header.swap_bytes)
    reverse_bytes(values, elements * parts, itemsize(header.dtype) / static_cast<std::size_t>(parts));
  if (header.dtype == bool_) make_bools(values, elements);
}

void read_npy_box(const File& file, const NpyHeader& header, const Box& box, std::byte* out) {
  const auto width = static_cast<std::int64_t>(itemsize(header.dtype));
  if (header.fortran_order && box.size() > 1)
    read_fortran_box(file, header, box, out);
  else
    read_box(file, {header.shape, width, header.data_offset}, box, out);
  finish_npy_values(header, box_elements(box), out);
}

FileInfo npy_file_info(const NpyHeader& header) {
  return {header.shape, header.dtype,
          "npy " + std::to_string(header.major) + ".0, " +
              (header.fortran_order ? "Fortran order" : "C order") +
              (header.swap_bytes ? ", other byte order" : "")};
}

}  // namespace tessera::io
