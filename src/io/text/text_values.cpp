#include "io/text/text_values.hpp"

#include <algorithm>
#include <array>

#include "base/call.hpp"
#include "comm/collectives/collectives.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t elements_at_once = 1 << 16;

// Calls use(text) with the block's text, piece by piece; returns its number of entries.
template <class Use> std::int64_t write_pieces(const TextWriter& writer, const OwnBlock& own, Use&& use) {
  const std::int64_t count = own.writes ? box_elements(own.box) : 0;
  std::int64_t entries = 0;
  for (std::int64_t first = 0; first < count; first += elements_at_once) {
    std::string text;
    entries += writer.write(own, first, std::min(first + elements_at_once, count), text);
    use(text);
  }
  return entries;
}

struct Selection {
  std::int64_t start, bytes, entries;  // of a rank's text; start: its offset in the file
};

// Every rank measures its text, then writes it at the end of the preceding ranks' texts.
void write_parts(const Team& team, const std::string& temporary, const Array& placed, int dim,
                 const TextWriter& writer) {
  const OwnBlock own = own_block(placed);
  Selection mine{0, 0, 0};
  team.together([&] {
    if (own.writes && !own.box.empty()) mine.start = own.box[dim].start;
    mine.entries = write_pieces(
        writer, own, [&](const std::string& text) { mine.bytes += static_cast<std::int64_t>(text.size()); });
  });
  std::vector<Selection> parts(comm::world().size());
  comm::all_gather(comm::world(), &mine, sizeof mine, parts.data());
  std::int64_t entries = 0, before = 0;
  for (const Selection& part : parts) {
    entries += part.entries;
    if (part.bytes > 0 && part.start < mine.start) before += part.bytes;
  }
  const std::string header = writer.header(entries);
  team.together([&] {
    if (mine.bytes == 0 && !team.is_first()) return;
    File file(call_text(), temporary, File::Mode::write);
    if (team.is_first()) file.write(header.data(), static_cast<std::int64_t>(header.size()), 0);
    std::int64_t at = static_cast<std::int64_t>(header.size()) + before;
    write_pieces(writer, own, [&](const std::string& text) {
      file.write(text.data(), static_cast<std::int64_t>(text.size()), at);
      at += static_cast<std::int64_t>(text.size());
    });
    file.sync();
    fault_point("written");
  });
}

}  // namespace

void save_text(const std::string& path, const std::string& details, const Array& x, int dim,
               const TextWriter& writer) {
  const Mesh mesh = x.sharding().mesh();
  std::vector<std::vector<int>> axes(x.ndim());
  for (int a = 0; a < mesh.ndim(); ++a) axes[dim].push_back(a);
  const Array placed = mesh.size() == 1 ? x : device_put(x, Sharding::from_dim_axes(mesh, axes));
  const std::string facts =
      details + " of " + name(x.dtype()) + to_string(x.shape()) + ", " + layout_text(x.sharding());
  save_many(path, facts, {},
            {[&](const std::string& temporary, const std::string&) {
               File(call_text(), temporary, File::Mode::create).sync();
               return std::vector<std::int64_t>{};
             },
             [&](const Team& team, const std::string& temporary, const std::vector<Array>&) {
               team.together([&] { eval({placed}); });
               write_parts(team, temporary, placed, dim, writer);
             },
             false});
}

}  // namespace tessera::io
