#include "io/hdf5/chunk_read.hpp"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/hdf5/places.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "types/buffer.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t batch_bytes = 2 << 20;  // of packed chunks; at least one for each thread

struct Deflated {
  Shape chunk;
  std::size_t width = 0;
  bool is_shuffled = false;
  std::size_t bytes() const { return static_cast<std::size_t>(chunk.elements()) * width; }
};

// nullopt: the library reads it.
std::optional<Deflated> form_of(hid_t dataset, hid_t memory_type) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose), stored(H5Dget_type(dataset), H5Tclose);
  const int filters = H5Pget_nfilters(creation);
  unsigned options = 0;
  if (H5Pget_layout(creation) != H5D_CHUNKED || filters < 1 || filters > 2 ||
      H5Tequal(stored, memory_type) <= 0 || H5Pget_chunk_opts(creation, &options) < 0 || options != 0)
    return std::nullopt;
  Deflated form{.chunk = {}, .width = H5Tget_size(stored)};
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0, value = 0;  // of shuffle: the bytes of an element; of deflate: the level
    std::size_t values = 1;
    const auto id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, &value, 0, nullptr, &config);
    if (id == H5Z_FILTER_SHUFFLE && i == 0 && filters == 2 && value == form.width)
      form.is_shuffled = form.width > 1;
    else if (id != H5Z_FILTER_DEFLATE || i != filters - 1 || value > 9)
      return std::nullopt;
  }
  std::vector<hsize_t> extents(H5S_MAX_RANK);
  const int ndim = H5Pget_chunk(creation, H5S_MAX_RANK, extents.data());
  if (ndim <= 0) return std::nullopt;
  form.chunk = Shape(std::vector<std::int64_t>(extents.begin(), extents.begin() + ndim));
  return form;
}

// A chunk as it is stored; empty if the library has to read it.
std::vector<Bytef> stored_chunk(hid_t dataset, const Deflated& form, const Box& chunk) {
  std::vector<hsize_t> origin;
  for (const Range& range : chunk) origin.push_back(static_cast<hsize_t>(range.start));
  hsize_t bytes = 0;
  const hsize_t most = form.bytes() + form.bytes() / 64 + 1024;
  if (H5Dget_chunk_storage_size(dataset, origin.data(), &bytes) < 0 || bytes > most) return {};
  std::vector<Bytef> stored(bytes);
  std::uint32_t skipped_filters = 0;
  if (bytes == 0 || H5Dread_chunk(dataset, H5P_DEFAULT, origin.data(), &skipped_filters, stored.data()) < 0 ||
      skipped_filters != 0)
    return {};
  return stored;
}

// Memory for the chunks of one thread.
struct Unpacker {
  Unpacker(const Hdf5Source& of, const Deflated& deflated) : source(of), form(deflated) {
    values = Buffer::allocate(form.bytes());
    if (form.is_shuffled) planes = Buffer::allocate(form.bytes());
  }
  bool unpack(const std::vector<Bytef>& stored, const Box& chunk, const Box& box, std::byte* out) const {
    const Buffer& inflated = form.is_shuffled ? planes : values;
    auto length = static_cast<uLongf>(form.bytes());
    if (stored.empty() || uncompress(reinterpret_cast<Bytef*>(inflated.data()), &length, stored.data(),
                                     static_cast<uLong>(stored.size())) != Z_OK)
      return false;
    if (length != form.bytes())
      source.fail("has a chunk at " + to_string(chunk) + " of its dataset " + in_quotes(source.dataset) +
                      " that unpacks to " + std::to_string(length) + " bytes, where it has " +
                      std::to_string(form.bytes()),
                  "it is damaged: copy or write it again");
    const std::int64_t elements = form.chunk.elements();
    if (form.is_shuffled)
      kernels::transpose(values.data(), planes.data(), {static_cast<std::int64_t>(form.width), elements},
                         std::vector<int>{1, 0}, 1);
    const Box part = intersect(chunk, box);
    const auto width = static_cast<std::int64_t>(form.width);
    const auto to = row_major_strides(box_shape(box)), from = row_major_strides(form.chunk);
    std::int64_t to_first = 0, from_first = 0;
    for (std::size_t d = 0; d < part.size(); ++d) {
      to_first += (part[d].start - box[d].start) * to[d];
      from_first += (part[d].start - chunk[d].start) * from[d];
    }
    kernels::copy_strided(out + to_first * width, to, values.data() + from_first * width, from,
                          box_shape(part), form.width);
    return true;
  }
  const Hdf5Source& source;
  const Deflated& form;
  Buffer values, planes;  // planes: byte 0 of all elements, byte 1 of all, ...
};

}  // namespace

std::int64_t dataset_reading_bytes(std::int64_t chunk_bytes) {
  return batch_bytes + 3 * kernels::threads() * chunk_bytes;
}

std::vector<Box> read_deflated(const Hdf5Source& source, hid_t dataset, hid_t memory_type, const Box& box,
                               std::byte* out) {
  const auto form = form_of(dataset, memory_type);
  if (!form) return {box};
  const auto chunks = chunks_of(form->chunk, box);
  std::vector<Box> rest;
  for (std::size_t first = 0; first < chunks.size();) {
    std::vector<std::vector<Bytef>> batch;
    std::size_t bytes = 0;
    while (first + batch.size() < chunks.size() &&
           (bytes < batch_bytes || std::ssize(batch) < kernels::threads())) {
      batch.push_back(stored_chunk(dataset, *form, box_of_chunk(form->chunk, chunks[first + batch.size()])));
      bytes += batch.back().size();
    }
    std::vector<char> is_done(batch.size());
    kernels::share(std::ssize(batch), 1, [&](std::int64_t begin, std::int64_t end) {
      const Unpacker unpacker(source, *form);
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        is_done[i] = unpacker.unpack(batch[i], box_of_chunk(form->chunk, chunks[first + i]), box, out);
    });
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (is_done[i] == 0) rest.push_back(intersect(box_of_chunk(form->chunk, chunks[first + i]), box));
    first += batch.size();
  }
  return rest;
}

}  // namespace tessera::io
