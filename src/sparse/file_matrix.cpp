// Matrices that stay in their files: their entries are arrays in files, on which programs are streamed.
#include <tessera/runtime.hpp>

#include <algorithm>
#include <filesystem>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/team.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "ops/build.hpp"
#include "ops/index/gather.hpp"
#include "sparse/stored.hpp"
#include "stream/spill/spill_file.hpp"

namespace tessera::sparse {
namespace {

using stream::FileSource, stream::FileSourcePtr;

[[noreturn]] void fail(const std::string& call, const std::string& what, const std::string& facts) {
  throw IoError(call + ": " + what + " " + facts);
}

// An array of `count` integers in [0, most] as int64.
FileSourcePtr positions(const MatrixFile& m, const std::string& name, std::int64_t count, std::int64_t most) {
  const FileSourcePtr stored = m.arrays.at(name);
  const Dtype dtype = stored->info.dtype;
  if (stored->info.shape != Shape{count} || !is_integer(dtype))
    fail(call_text(), m.what,
         "has " + in_quotes(name) + " of shape " + to_string(stored->info.shape) + " and dtype " +
             tessera::name(dtype) + ", where " + m.format + " of shape " + to_string(m.shape) + " needs " +
             format_count(count, "integer"));
  auto source = std::make_shared<FileSource>(*stored);
  const auto width = static_cast<std::int64_t>(itemsize(dtype));
  source->info.dtype = int64, source->times = static_cast<double>(width) / 8, source->mapped = {};
  source->temporary_bytes = [stored, width](const Shape& box) {
    return stored->temporary_bytes(box) + box.elements() * width;
  };
  source->read = [stored, most, name, what = m.what](const std::string& call, const Box& box,
                                                     std::byte* out) {
    const auto n = box_elements(box);
    const Dtype dtype = stored->info.dtype;
    if (n == 0) return;
    if (dtype == int64) {
      stored->read(call, box, out);
    } else {
      std::vector<std::byte> raw(static_cast<std::size_t>(n) * itemsize(dtype));
      stored->read(call, box, raw.data());
      const void* from = raw.data();
      kernels::find_cast(dtype, int64)(&from, out, n);
    }
    const auto* found = reinterpret_cast<const std::int64_t*>(out);
    for (std::int64_t k = 0; k < n; ++k)
      if (found[k] < 0 || found[k] > most)
        fail(call, what,
             "has " + std::to_string(found[k]) + " as element " + std::to_string(box[0].start + k) + " of " +
                 in_quotes(name) + "; there are 0 to " + std::to_string(most));
  };
  return source;
}

// The row of each entry, from the first entries of the rows: a part is found by halving, then read on.
class RowsOfEntries {
 public:
  RowsOfEntries(FileSourcePtr firsts, std::string what)
      : firsts_(std::move(firsts)), what_(std::move(what)) {}
  void operator()(const std::string& call, const Range& entries, std::int64_t* out) const {
    constexpr std::int64_t at_a_time = 1 << 13;
    const auto rows = firsts_->info.shape[0] - 1;
    std::int64_t row = 0;
    for (std::int64_t after = rows; after - row > 1;) {
      const auto middle = row + (after - row) / 2;
      (read(call, {middle, middle + 1})[0] <= entries.start ? row : after) = middle;
    }
    auto entry = entries.start;
    while (entry < entries.stop) {
      if (row >= rows)
        fail(call, what_, "has fewer entries in 'indptr' than in 'data'; write the file again");
      for (const auto end : read(call, {row + 1, std::min(row + 1 + at_a_time, rows + 1)})) {
        for (; entry < std::min(end, entries.stop); ++entry) *out++ = row;
        ++row;
      }
    }
  }

 private:
  std::vector<std::int64_t> read(const std::string& call, const Range& range) const {
    std::vector<std::int64_t> values(static_cast<std::size_t>(range.size()));
    firsts_->read(call, {range}, reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
  FileSourcePtr firsts_;
  std::string what_;
};

FileSourcePtr rows_of_entries(const MatrixFile& m, std::int64_t entries, std::int64_t lines) {
  const auto firsts = positions(m, "indptr", lines + 1, entries);
  auto source = std::make_shared<FileSource>();
  source->path = firsts->path, source->name = firsts->name;
  source->info = {Shape{entries}, int64, "rows of entries"};
  source->times = static_cast<double>(lines) * firsts->times / static_cast<double>(std::max(entries, lines));
  source->temporary_bytes = [firsts](const Shape&) {
    constexpr std::int64_t at_a_time = 1 << 13;
    return 8 * at_a_time + firsts->temporary_bytes({at_a_time});
  };
  source->read = [rows = RowsOfEntries(firsts, m.what)](const std::string& call, const Box& box,
                                                        std::byte* out) {
    if (!is_empty(box)) rows(call, box[0], reinterpret_cast<std::int64_t*>(out));
  };
  return source;
}

// The positions of entries from those of blocks: of each the first one, then those beside it.
FileSourcePtr within_blocks(FileSourcePtr blocks, const Shape& block, int dim) {
  const auto each = block.elements(), width = block[1], extent = block[static_cast<std::size_t>(dim)];
  if (each == 1) return blocks;
  const auto range_of = [each](std::int64_t first, std::int64_t last) {
    return Range{first / each, last / each + 1};
  };
  auto source = std::make_shared<FileSource>(*blocks);
  source->info.shape = {blocks->info.shape[0] * each};
  source->times = blocks->times / static_cast<double>(each);
  source->temporary_bytes = [blocks, range_of](const Shape& box) {
    const auto count = range_of(0, box[0]).size() + 1;
    return blocks->temporary_bytes({count}) + 8 * count;
  };
  source->read = [=](const std::string& call, const Box& box, std::byte* out) {
    if (is_empty(box)) return;
    const Range range = range_of(box[0].start, box[0].stop - 1);
    std::vector<std::int64_t> of_blocks(static_cast<std::size_t>(range.size()));
    blocks->read(call, {range}, reinterpret_cast<std::byte*>(of_blocks.data()));
    auto* to = reinterpret_cast<std::int64_t*>(out);
    for (auto k = box[0].start; k < box[0].stop; ++k) {
      const auto inside = dim == 0 ? k % each / width : k % width;
      *to++ = of_blocks[static_cast<std::size_t>(k / each - range.start)] * extent + inside;
    }
  };
  return source;
}

// Packed members of an archive, unpacked to temporary files, each by another rank.
UnpackedMembers unpacked(const io::Team& team, const std::string& path, const io::NpzArchive& archive) {
  std::vector<std::pair<const io::ZipMember*, std::shared_ptr<stream::SpillFile>>> packed;
  UnpackedMembers found;
  std::string facts = "packed members:";
  team.together([&] {
    for (const auto& name : arrays_of(in_quotes(path), format_of(archive)))
      if (const auto& member = archive.find(name); member.is_deflated) {
        facts += " " + name + " of " + format_bytes(member.bytes);
        packed.emplace_back(&member, std::make_shared<stream::SpillFile>(path, Shape{member.bytes}, uint8));
      }
  });
  team.same(call_text(), path, facts);
  const std::string folder = stream::spill_folder("");
  for (const auto& [member, spill] : packed) spill->open(team, call_text(), folder);
  team.together([&] {
    const auto ranks = static_cast<std::size_t>(device_count());
    for (auto k = static_cast<std::size_t>(process_index()); k < packed.size(); k += ranks) {
      const auto& [member, spill] = packed[k];
      std::int64_t at = 0;
      archive.inflate(*member, [&](std::string_view piece) {
        const Range range{at, at + std::ssize(piece)};
        spill->write({range}, reinterpret_cast<const std::byte*>(piece.data()));
        at = range.stop;
      });
    }
  });
  for (const auto& [member, spill] : packed)
    found[io::NpzArchive::array_name(member->name)] = {spill, &spill->file()};
  return found;
}

}  // namespace

FileMatrix FileMatrix::T() const { return {{shape[1], shape[0]}, columns, rows, values}; }

FileMatrix open(const std::string& path, const std::string& group, std::source_location where) {
  const Call call("sparse::open", where);
  const io::Team team(call_text() + " of " + in_quotes(path) + ", group " + in_quotes(group));
  MatrixFile m;
  FileSourcePtr rows, columns;
  std::shared_ptr<const io::NpzArchive> archive;
  team.together([&] {
    if (!group.empty() || std::filesystem::is_directory(path))
      m = stored_group(path, group);
    else
      archive = std::make_shared<const io::NpzArchive>(io::File(call_text(), path, io::File::Mode::read));
  });
  const auto members = archive ? unpacked(team, path, *archive) : UnpackedMembers();
  team.together([&] {
    if (archive) m = stored_npz(path, archive, members);
    const Shape block = checked_blocks(m);
    const auto entries = m.arrays.at("data")->info.shape[0];
    const bool by_columns = m.format == "csc";
    if (m.format == "coo") {
      rows = positions(m, "row", entries, m.shape[0] - 1),
      columns = positions(m, "col", entries, m.shape[1] - 1);
      return;
    }
    const auto lines = m.shape[by_columns ? 1 : 0] / block[0];
    check_share_of_ends(m, lines, process_index(), static_cast<std::int64_t>(device_count()));
    rows = rows_of_entries(m, entries, lines);
    columns = positions(m, "indices", entries, m.shape[by_columns ? 0 : 1] / block[1] - 1);
    if (by_columns) std::swap(rows, columns);
    rows = within_blocks(rows, block, 0), columns = within_blocks(columns, block, 1);
  });
  const auto& data = m.arrays.at("data");
  team.same(call_text(), path,
            m.format + " of " + to_string(m.shape) + ", entries " + to_string(data->info.shape) + " of " +
                name(data->info.dtype));
  const Array values = stream::record_opened(data);
  return {m.shape, stream::record_opened(rows), stream::record_opened(columns),
          values.ndim() == 1 ? values : reshape(values, {-1})};
}

Array matmul(const FileMatrix& a, const Operand& x) {
  const Call call("sparse::matmul", x.where);
  check_usable(x.array);
  if (x.array.ndim() == 0 || x.array.shape()[0] != a.shape[1])
    throw ShapeError(call_text() + ": a matrix of shape " + to_string(a.shape) +
                     " times an operand of shape " + to_string(x.array.shape()) +
                     "; its first dimension must be " + std::to_string(a.shape[1]));
  std::vector<std::int64_t> entries(static_cast<std::size_t>(x.array.ndim()), 1);
  entries[0] = -1;
  Shape result = x.array.shape();
  result[0] = a.shape[0];
  const Array terms = reshape(a.values, Shape(entries)) * gather(x.array, {a.columns}, 0, OutOfRange::clamp);
  return scatter_add_zeros(result, {a.rows}, terms, 0, OutOfRange::drop);
}

}  // namespace tessera::sparse
