// Sparse matrices in Matrix Market files. The text is divided into as many parts as ranks share the rows; a
// line belongs to the part that contains its first byte.
#include <algorithm>

#include "base/call.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "graph/op.hpp"
#include "io/file.hpp"
#include "io/matrix_market_text.hpp"
#include "io/team.hpp"
#include "io/text/text_values.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/visit.hpp"
#include "mesh/devices.hpp"
#include "ops/groups.hpp"
#include "sparse/assemble.hpp"

namespace tessera::sparse {
namespace {

std::string text_at(const io::File& file, std::int64_t from, std::int64_t to) {
  std::string text(static_cast<std::size_t>(to - from), '\0');
  file.read(text.data(), to - from, from);
  return text;
}

// Reads more until the sizes are found, since comments may have any length.
io::MatrixMarketBanner banner_of(const io::File& file, const std::string& name) {
  for (std::int64_t bytes = 1 << 14;; bytes *= 4) {
    const auto head = text_at(file, 0, std::min(bytes, file.bytes()));
    try {
      const auto banner = io::matrix_market_banner(head, name);
      if (bytes < file.bytes() && banner.body >= bytes) continue;  // the last line may be incomplete
      return banner;
    } catch (const IoError&) {
      if (bytes >= file.bytes()) throw;
    }
  }
}

// The start of the first line that begins at or after `at`.
std::int64_t next_line_start(const io::File& file, std::int64_t at, std::int64_t body) {
  if (at <= body) return body;
  const auto size = file.bytes();
  for (auto from = at - 1; from < size;) {
    const auto to = std::min<std::int64_t>(from + 4096, size);
    const auto end = text_at(file, from, to).find('\n');
    if (end != std::string::npos) return from + static_cast<std::int64_t>(end) + 1;
    from = to;
  }
  return size;
}

struct Parsed {
  io::MatrixMarketBanner banner;
  io::MatrixMarketEntries entries;
};
Parsed parse_part(const std::string& path, std::int64_t part, std::int64_t parts) {
  const auto name = call_text() + ": " + in_quotes(path);
  const io::File file(call_text(), path, io::File::Mode::read);
  Parsed result{banner_of(file, name), {}};
  const auto& banner = result.banner;
  if (!banner.coordinate) throw IoError(name + ": holds a dense matrix; read it with io::load_matrix_market");
  const auto bytes = file.bytes() - banner.body;
  const auto from = next_line_start(file, banner.body + bytes / parts * part, banner.body);
  const auto to = part + 1 == parts
                      ? file.bytes()
                      : next_line_start(file, banner.body + bytes / parts * (part + 1), banner.body);
  if (from < to) result.entries = io::matrix_market_entries(text_at(file, from, to), banner, name, from);
  return result;
}

LocalEntries local_entries(Parsed parsed) {
  const Dtype read = parsed.banner.dtype, kept = is_integer(read) ? float64 : read;
  LocalEntries mine{std::move(parsed.entries.rows), std::move(parsed.entries.columns), kept, {}};
  if (kept == read) {
    mine.values = std::move(parsed.entries.values);
    return mine;
  }
  mine.values.resize(mine.rows.size() * itemsize(kept));
  const void* from = parsed.entries.values.data();
  if (!mine.rows.empty())
    kernels::find_cast(read, kept)(&from, mine.values.data(), static_cast<std::int64_t>(mine.rows.size()));
  return mine;
}

}  // namespace

Csr load_matrix_market(const std::string& path, const Sharding& sharding, std::source_location where) {
  const Call call("sparse::load_matrix_market", where);
  const io::Team team(call_text() + " of " + in_quotes(path) + " " + io::layout_text(sharding));
  const auto axes = sharding.dim_axes(2)[0];
  const bool takes_part = holds_rows(sharding);
  const int me = local_devices()[0].id;
  std::int64_t part = 0, parts = 1;
  if (takes_part) {
    const auto group = group_along(sharding.mesh(), axes, me);
    parts = static_cast<std::int64_t>(group.size());
    part = std::find(group.begin(), group.end(), me) - group.begin();
  }
  Parsed parsed;
  team.together([&] { parsed = parse_part(path, part, parts); });
  const auto& banner = parsed.banner;
  team.same(call_text(), path,
            std::to_string(banner.rows) + " x " + std::to_string(banner.columns) + ", " +
                std::to_string(banner.entries) + " entries");
  const Shape shape{banner.rows, banner.columns};
  const Sharding split = checked_rows(shape, sharding);
  // Checks the number of lines: ranks along the mesh axes that split the rows have together read each line of
  // the file exactly once.
  std::int64_t lines = takes_part ? parsed.entries.lines : 0;
  if (takes_part && parts > 1)
    comm::all_reduce(comm::group(group_along(split.mesh(), axes, me)), ReduceKind::sum, int64, &lines, &lines,
                     1);
  team.together([&] {
    if (takes_part && lines != banner.entries)
      throw IoError(call_text() + ": " + in_quotes(path) + " says that it holds " +
                    std::to_string(banner.entries) + " entries, and has " + std::to_string(lines) +
                    "; the file was cut off, or its second line is wrong");
  });
  if (!takes_part) parsed.entries = {};
  return assemble(shape, split, local_entries(std::move(parsed)));
}

void save_matrix_market(const std::string& path, const Csr& a, std::source_location where) {
  const Call call("sparse::save_matrix_market", where);
  const auto in_file_order = [&](const Array& x) {
    const Mesh mesh = x.sharding().mesh();
    std::vector<int> all;
    for (int axis = 0; axis < mesh.ndim(); ++axis) all.push_back(axis);
    return mesh.size() == 1 ? x : device_put(x, Sharding::from_dim_axes(mesh, {all, {}}));
  };
  const Array rows = in_file_order(a.entry_rows()), columns = in_file_order(a.entry_columns());
  eval({rows, columns});
  io::TextWriter writer;
  writer.header = [&](std::int64_t entries) {
    return std::string("%%MatrixMarket matrix coordinate ") + (is_complex(a.dtype()) ? "complex" : "real") +
           " general\n" + std::to_string(a.shape()[0]) + " " + std::to_string(a.shape()[1]) + " " +
           std::to_string(entries) + "\n";
  };
  writer.write = [&](const io::OwnBlock& own, std::int64_t first, std::int64_t last, std::string& out) {
    const auto r = local<std::int64_t>(rows), c = local<std::int64_t>(columns);
    std::int64_t entries = 0;
    kernels::visit(a.dtype(), [&]<class T>(T) {
      const auto* values = reinterpret_cast<const T*>(own.data);
      for (auto k = first; k < last; ++k) {
        if (r[k] < 0) continue;
        io::append_number(out, r[k] + 1);
        out += ' ';
        io::append_number(out, c[k] + 1);
        out += ' ';
        io::append_number(out, values[k]);
        out += '\n';
        ++entries;
      }
    });
    return entries;
  };
  io::save_text(path, ", coordinate", a.values(), 0, writer);
}

}  // namespace tessera::sparse
