// The entries of a stored matrix: a rank's share of its arrays, checked against each other; and those arrays
// in an .npz archive.
#include <algorithm>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/archive/npz_archive.hpp"
#include "io/npy_file.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "sparse/stored.hpp"

namespace tessera::sparse {
namespace {

using stream::FileSource, stream::FileSourcePtr;

[[noreturn]] void fail(const std::string& what, const std::string& facts) {
  throw IoError(call_text() + ": " + what + " " + facts);
}
// Arrays that contradict each other.
[[noreturn]] void fail(const MatrixFile& m, const std::string& facts) {
  fail(m.what, facts + "; write the file again");
}
const FileSource& array_of(const MatrixFile& m, const std::string& name, int ndim) {
  const FileSource& source = *m.arrays.at(name);
  if (source.info.shape.ndim() != ndim)
    fail(m, "has " + in_quotes(name) + " of shape " + to_string(source.info.shape) + "; " + m.format +
                " needs " + std::to_string(ndim) + " dims");
  return source;
}

std::vector<std::byte> read_as(const FileSource& source, const Box& box, Dtype dtype) {
  const Dtype stored = source.info.dtype;
  const auto elements = box_elements(box);
  std::vector<std::byte> raw(static_cast<std::size_t>(elements) * itemsize(stored));
  if (elements > 0) source.read(call_text(), box, raw.data());
  if (stored == dtype) return raw;
  std::vector<std::byte> values(static_cast<std::size_t>(elements) * itemsize(dtype));
  const void* from = raw.data();
  if (elements > 0) kernels::find_cast(stored, dtype)(&from, values.data(), elements);
  return values;
}
std::vector<std::int64_t> integers(const MatrixFile& m, const std::string& name, Range range) {
  const FileSource& source = array_of(m, name, 1);
  if (!is_integer(source.info.dtype))
    fail(m, "has " + in_quotes(name) + " of dtype " + tessera::name(source.info.dtype) +
                "; positions must be integers");
  const auto bytes = read_as(source, {range}, int64);
  const auto* first = reinterpret_cast<const std::int64_t*>(bytes.data());
  return {first, first + range.size()};
}
void check_within(const MatrixFile& m, const std::string& name, const std::vector<std::int64_t>& places,
                  std::int64_t extent) {
  for (const auto place : places)
    if (place < 0 || place >= extent)
      fail(m, "has the position " + std::to_string(place) + " in " + in_quotes(name) +
                  "; a matrix of shape " + to_string(m.shape) + " has 0 to " + std::to_string(extent - 1) +
                  " there");
}
// `more`: than expected, which may be the largest number.
void check_lengths(const MatrixFile& m, const std::string& name, std::int64_t expected, int more = 0) {
  const auto length = array_of(m, name, 1).info.shape[0];
  if (length - more != expected)
    fail(m, "has " + std::to_string(length) + " elements in " + in_quotes(name) + ", where " + m.format +
                " of shape " + to_string(m.shape) + " needs " +
                std::to_string(static_cast<std::uint64_t>(expected) + static_cast<unsigned>(more)));
}
Range share(std::int64_t n, std::int64_t part, std::int64_t parts) {
  const auto size = block_size(n, parts);
  return {std::min(part * size, n), std::min((part + 1) * size, n)};
}

LocalEntries coordinates(const MatrixFile& m, std::int64_t part, std::int64_t parts) {
  const FileSource& data = array_of(m, "data", 1);
  for (const char* name : {"row", "col"}) check_lengths(m, name, data.info.shape[0]);
  const Range mine = share(data.info.shape[0], part, parts);
  LocalEntries entries{integers(m, "row", mine), integers(m, "col", mine), kept_dtype(data.info.dtype), {}};
  check_within(m, "row", entries.rows, m.shape[0]);
  check_within(m, "col", entries.columns, m.shape[1]);
  entries.values = read_as(data, {mine}, entries.dtype);
  return entries;
}

// The ends of each row's entries for the rows (or columns, or rows of blocks) in `range`; in front of them
// the beginning of the first row's.
std::vector<std::int64_t> ends_of(const MatrixFile& m, Range range, std::int64_t stored) {
  const auto ends = integers(m, "indptr", {range.start, range.stop + 1});
  for (std::size_t k = 0; k < ends.size(); ++k)
    if (ends[k] < (k > 0 ? ends[k - 1] : 0) || ends[k] > stored || (range.start == 0 && ends[0] != 0))
      fail(m, "has " + std::to_string(ends[k]) + " as element " +
                  std::to_string(range.start + static_cast<std::int64_t>(k)) +
                  " of 'indptr'; it must begin with 0, never fall, and end with at most " +
                  std::to_string(stored));
  return ends;
}

LocalEntries compressed_share(const MatrixFile& m, Range own, std::int64_t part, std::int64_t parts) {
  const bool by_columns = m.format == "csc", in_blocks = m.format == "bsr";
  const Shape block = checked_blocks(m);
  const auto height = block[0], width = block[1];
  const FileSource& data = *m.arrays.at("data");
  const auto stored = data.info.shape[0];
  const auto lines = m.shape[by_columns ? 1 : 0] / height, across = m.shape[by_columns ? 0 : 1] / width;
  check_lengths(m, "indptr", lines, 1);
  check_lengths(m, "indices", stored);
  const Range mine = m.format == "csr" ? own : share(lines, part, parts);
  const auto ends = ends_of(m, mine, stored);
  const Range places{ends.front(), ends.back()};
  const auto indices = integers(m, "indices", places);
  check_within(m, "indices", indices, across);
  LocalEntries entries{{}, {}, kept_dtype(data.info.dtype), {}};
  Box box{places};
  if (in_blocks) box = {places, {0, height}, {0, width}};
  entries.values = read_as(data, box, entries.dtype);
  auto& majors = by_columns ? entries.columns : entries.rows;
  auto& minors = by_columns ? entries.rows : entries.columns;
  for (std::size_t line = 0; line + 1 < ends.size(); ++line)
    for (auto k = ends[line]; k < ends[line + 1]; ++k)
      for (std::int64_t e = 0; e < height * width; ++e) {
        majors.push_back((mine.start + static_cast<std::int64_t>(line)) * height + e / width);
        minors.push_back(indices[static_cast<std::size_t>(k - places.start)] * width + e % width);
      }
  return entries;
}

std::string member_bytes(const io::NpzArchive& archive, const io::ZipMember& member) {
  if (member.is_deflated) return archive.inflated(member);
  std::string bytes(static_cast<std::size_t>(member.bytes), '\0');
  archive.file().read(bytes.data(), member.bytes, archive.data_of(member));
  return bytes;
}
FileSourcePtr member_source(const std::shared_ptr<const io::NpzArchive>& archive, const std::string& path,
                            const std::string& name, const UnpackedMembers& known) {
  const io::ZipMember& member = archive->find(name);
  const auto found = known.find(name);
  const auto unpacked = found != known.end() ? found->second
                        : member.is_deflated
                            ? std::make_shared<const io::File>(call_text(), path, archive->inflated(member))
                            : nullptr;
  const io::File& file = unpacked ? *unpacked : archive->file();
  const auto header = io::read_npy_header(file, unpacked ? 0 : archive->data_of(member), member.bytes);
  auto source = std::make_shared<FileSource>();
  source->path = path, source->name = name, source->info = io::npy_file_info(header);
  source->temporary_bytes = [](const Shape&) { return 0; };
  source->read = [archive, unpacked, header](const std::string&, const Box& box, std::byte* out) {
    io::read_npy_box(unpacked ? *unpacked : archive->file(), header, box, out);
  };
  return source;
}

}  // namespace

Dtype kept_dtype(Dtype given) {
  if (is_half(given)) return float32;
  if (is_inexact(given)) return given;
  return itemsize(given) == 8 ? float64 : float32;
}

LocalEntries read_share(const MatrixFile& m, Range own, std::int64_t part, std::int64_t parts) {
  return m.format == "coo" ? coordinates(m, part, parts) : compressed_share(m, own, part, parts);
}

void check_share_of_ends(const MatrixFile& m, std::int64_t lines, std::int64_t part, std::int64_t parts) {
  constexpr std::int64_t at_a_time = 1 << 18;
  check_lengths(m, "indptr", lines, 1);
  const auto [start, stop] = share(lines, part, parts);
  for (auto at = start; at < stop; at += at_a_time)
    ends_of(m, {at, std::min(at + at_a_time, stop)}, m.arrays.at("data")->info.shape[0]);
}

std::vector<std::string> arrays_of(const std::string& what, const std::string& format) {
  if (format == "coo") return {"row", "col", "data"};
  if (format == "csr" || format == "csc" || format == "bsr") return {"indptr", "indices", "data"};
  fail(what, "holds a matrix in the format " + in_quotes(format) +
                 "; csr, csc, bsr and coo can be read: convert it by .tocsr() of SciPy");
}
Shape checked_blocks(const MatrixFile& m) {
  const bool in_blocks = m.format == "bsr";
  const Shape& data = array_of(m, "data", in_blocks ? 3 : 1).info.shape;
  if (!in_blocks) return {1, 1};
  const auto height = data[1], width = data[2];
  if (height < 1 || width < 1 || m.shape[0] % height != 0 || m.shape[1] % width != 0)
    fail(m, "has blocks of " + std::to_string(height) + " x " + std::to_string(width) +
                ", which do not divide a matrix of shape " + to_string(m.shape));
  return {height, width};
}
Shape checked_shape(const std::string& what, const std::vector<std::int64_t>& extents) {
  if (extents.size() != 2 || extents[0] < 0 || extents[1] < 0)
    fail(what, "has the shape " + to_string(extents) + "; a matrix has two extents");
  return Shape(extents);
}
std::string format_of(const io::NpzArchive& archive) {
  // A text of three bytes in a .npy file without dims ends the file.
  const std::string bytes = member_bytes(archive, archive.find("format"));
  return bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 3));
}
MatrixFile stored_npz(const std::string& path, const std::shared_ptr<const io::NpzArchive>& archive,
                      const UnpackedMembers& unpacked) {
  MatrixFile m{in_quotes(path), format_of(*archive), {}, {}};
  for (const auto& name : arrays_of(m.what, m.format))
    m.arrays[name] = member_source(archive, path, name, unpacked);
  m.arrays["shape"] = member_source(archive, path, "shape", unpacked);
  m.shape = checked_shape(m.what, integers(m, "shape", {0, array_of(m, "shape", 1).info.shape[0]}));
  return m;
}

}  // namespace tessera::sparse
