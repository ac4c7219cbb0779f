#include "io/archive/stored_npy.hpp"

#include <zlib.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <numeric>

#include "api/evaluate.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "io/npy_file.hpp"
#include "types/checked.hpp"

namespace tessera::io {
namespace {

DenseInFile dense_of(const StoredNpy& npy, const Shape& shape) {
  return {shape, static_cast<std::int64_t>(itemsize(npy.header.dtype)), npy.header.data_offset};
}

// Whether every rank's box is one run of bytes.
bool reads_runs(const Sharding& sharding, const FileInfo& info) {
  const DenseInFile dense{info.shape, static_cast<std::int64_t>(itemsize(info.dtype)), 0};
  const auto boxes = sharding.devices_indices_map(info.shape);
  return std::all_of(boxes.begin(), boxes.end(),
                     [&](const auto& one) { return is_one_run(dense, one.second); });
}

// The same bytes as an array of one dim, in equal parts over the devices of the mesh.
Opened as_one_dim(const Opened& opened) {
  Opened flat = opened;
  flat.info.shape = Shape{opened.info.shape.elements()};
  if (!opened.committed) return flat;
  const Mesh mesh = opened.sharding.mesh();
  std::vector<int> axes(mesh.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  flat.sharding = Sharding::from_dim_axes(mesh, {axes});
  return flat;
}

// Reads a box that is one run of bytes and returns its part of the checksum.
SummedPart read_part(const StoredNpy& npy, const DenseInFile& dense, const Box& box, std::byte* out) {
  read_box(npy.file, dense, box, out);
  const auto strides = row_major_strides(dense.shape);
  SummedPart part{0, box_elements(box) * dense.itemsize, 0};
  for (std::size_t d = 0; d < box.size(); ++d) part.place += box[d].start * strides[d];
  part.sum = crc_of(out, part.bytes);
  finish_npy_values(npy.header, box_elements(box), out);
  return part;
}

// Continues a checksum over bytes of the file, a piece at a time.
std::uint32_t sum_of_file(const File& file, std::int64_t from, std::int64_t to, std::uint32_t sum) {
  constexpr std::int64_t most = 1 << 20;
  std::string piece;
  for (; from < to; from += static_cast<std::int64_t>(piece.size())) {
    piece.resize(std::min(most, to - from));
    file.read(piece.data(), static_cast<std::int64_t>(piece.size()), from);
    sum =
        static_cast<std::uint32_t>(crc32_z(sum, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
  }
  return sum;
}

// Checks the sum over the header, the parts that the ranks have read, and any bytes behind the array.
void check_sum(const StoredNpy& npy, const std::vector<SummedPart>& parts) {
  const auto& [file, facts, start, header] = npy;
  const std::int64_t end = start + facts.bytes;
  const auto read = combined_sum(parts, sum_of_file(file, start, header.data_offset, 0));
  if (!read || sum_of_file(file, end - header.bytes_behind, end, *read) != facts.crc)
    file.fail("has a damaged member " + in_quotes(facts.name) + ": its checksum is another one",
              "write it again with numpy.savez or io::save_npz");
}

Array rearranged(const Array& flat, const Opened& wanted, bool is_fortran) {
  std::vector<std::int64_t> extents(wanted.info.shape.begin(), wanted.info.shape.end());
  if (is_fortran) std::reverse(extents.begin(), extents.end());
  const Array in_order = reshape(flat, Shape(extents));
  const Array x = is_fortran ? transpose(in_order) : in_order;
  return wanted.committed ? device_put(x, wanted.sharding) : x;
}

}  // namespace

std::uint32_t crc_of(const void* data, std::int64_t bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, static_cast<const Bytef*>(data), static_cast<z_size_t>(bytes)));
}

std::vector<SummedPart> all_parts(const SummedPart& mine) {
  std::vector<SummedPart> parts(comm::world().size());
  comm::all_gather(comm::world(), &mine, sizeof mine, parts.data());
  return parts;
}

std::optional<std::uint32_t> combined_sum(std::vector<SummedPart> parts, std::uint32_t first) {
  std::erase_if(parts, [](const SummedPart& part) { return part.bytes == 0; });
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  uLong total = first;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].place == parts[i - 1].place) return std::nullopt;
    total = crc32_combine(total, static_cast<uLong>(parts[i].sum), static_cast<z_off_t>(parts[i].bytes));
  }
  return static_cast<std::uint32_t>(total);
}

Array load_stored(const Opened& opened, const std::string& what, bool is_fortran,
                  const std::function<StoredNpy()>& source) {
  const bool turns = is_fortran && opened.info.shape.ndim() > 1;
  const bool direct = !turns && reads_runs(opened.sharding, opened.info);
  const Opened to_read = direct ? opened : as_one_dim(opened);
  SummedPart mine;
  const Array read = read_blocks(to_read, what, [&](const Box& box, std::byte* out) {
    const StoredNpy npy = source();
    mine = read_part(npy, dense_of(npy, to_read.info.shape), box, out);
  });
  const auto parts = all_parts(mine);
  opened.team.once([&] { check_sum(source(), parts); });
  if (direct) return read;
  Array x = rearranged(read, opened, turns);
  opened.team.together([&] { eval({x}); });
  return x;
}

}  // namespace tessera::io
