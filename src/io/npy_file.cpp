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

// The extents of a part of a box that is read at a time: long runs in the file's order, in which dim 0 is the
// innermost, and enough of the last dim that runs in memory are not short either. It stays in the cache.
Shape part_of_fortran_box(const Shape& box, std::int64_t width) {
  constexpr std::int64_t run = 64 << 10, all = 1 << 20, least_in_memory = 256;  // bytes
  auto part = std::vector<std::int64_t>(box.size(), 1);
  std::int64_t bytes = width;
  for (std::size_t d = 0; d < part.size() && bytes < run; ++d) {
    part[d] = std::clamp<std::int64_t>(run / bytes, 1, box[d]);
    bytes *= part[d];
    if (part[d] < box[d]) break;
  }
  const auto last = part.size() - 1;
  bytes /= part[last];
  part[last] =
      std::clamp<std::int64_t>(std::max(all / bytes, least_in_memory / width), part[last], box[last]);
  return Shape(std::move(part));
}

// A Fortran-order file is the transposed array in C order: reads parts of the reversed box of the reversed
// shape, and transposes each in the cache.
void read_fortran_box(const File& file, const NpyHeader& header, const Box& box, std::byte* out) {
  if (is_empty(box)) return;
  const auto shape = header.shape.vector();
  const Shape reversed_shape(std::vector<std::int64_t>(shape.rbegin(), shape.rend()));
  const auto width = static_cast<std::int64_t>(itemsize(header.dtype));
  const Shape extents = box_shape(box), most = part_of_fortran_box(extents, width);
  const std::unique_ptr<std::byte[]> turned(new std::byte[static_cast<std::size_t>(most.elements() * width)]);
  const auto out_strides = row_major_strides(extents);
  std::vector<std::int64_t> at(box.size(), 0);  // of the part, in the box
  while (true) {
    Box part;
    std::int64_t first = 0;
    for (std::size_t d = 0; d < box.size(); ++d) {
      part.push_back({box[d].start + at[d], std::min(box[d].stop, box[d].start + at[d] + most[d])});
      first += at[d] * out_strides[d];
    }
    const Box reversed(part.rbegin(), part.rend());
    read_box(file, {reversed_shape, width, header.data_offset}, reversed, turned.get());
    auto strides = row_major_strides(box_shape(reversed));
    std::reverse(strides.begin(), strides.end());
    kernels::copy_strided(out + first * width, out_strides, turned.get(), strides, box_shape(part),
                          static_cast<std::size_t>(width));
    std::size_t d = 0;
    while (d < box.size() && (at[d] += most[d]) >= extents[d]) at[d++] = 0;
    if (d == box.size()) return;
  }
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

Buffer mapped_npy_box(const File& file, const NpyHeader& header, const Box& box) {
  const auto width = static_cast<std::int64_t>(itemsize(header.dtype));
  const bool is_as_in_memory = !header.swap_bytes && header.dtype != bool_ &&
                               header.data_offset % width == 0 && (!header.fortran_order || box.size() < 2);
  return is_as_in_memory ? mapped_box(file, {header.shape, width, header.data_offset}, box) : Buffer();
}

FileInfo npy_file_info(const NpyHeader& header) {
  return {header.shape, header.dtype,
          "npy " + std::to_string(header.major) + ".0, " +
              (header.fortran_order ? "Fortran order" : "C order") +
              (header.swap_bytes ? ", other byte order" : "")};
}

}  // namespace tessera::io
