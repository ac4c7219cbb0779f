#include "io/blocks.hpp"

#include <tessera/runtime.hpp>

#include <locale>
#include <set>
#include <sstream>

#include "api/memory.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "io/save_target.hpp"
#include "io/team.hpp"
#include "types/checked.hpp"

namespace tessera::io {
namespace {

// The header read by the members, as text for the other ranks: dtype, extents, detail.
std::string travelling(const FileInfo& info) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << info.dtype.code << ' ' << info.shape.size();
  for (const auto extent : info.shape) text << ' ' << extent;
  text << '\n' << info.detail;
  return text.str();
}
FileInfo arrived(const std::string& words) {
  std::istringstream text(words);
  text.imbue(std::locale::classic());
  int code = 0;
  std::size_t ndim = 0;
  text >> code >> ndim;
  std::vector<std::int64_t> extents(ndim);
  for (auto& extent : extents) text >> extent;
  text.ignore();
  std::string detail;
  std::getline(text, detail, '\0');
  return {Shape(std::move(extents)), Dtype{code}, detail};
}

// Reads the header on the members and makes it known to all ranks.
FileInfo agreed_header(const Team& team, const std::string& call, const std::string& what,
                       const std::function<FileInfo()>& header) {
  FileInfo info{{}, float32, {}};
  team.members([&] {
    info = header();
    try {
      checked_bytes(info.shape, info.dtype, call);
    } catch (const ShapeError&) {
      throw IoError(call + ": " + what + " claims the shape " + to_string(info.shape) + " of " +
                    name(info.dtype) + ", whose bytes exceed 2^63; it is damaged: write it again");
    }
  });
  const auto found = team.from_first(travelling(info));
  if (!team.is_member()) info = arrived(found);
  team.same(call, what,
            "an array of shape " + to_string(info.shape) + ", " + name(info.dtype) + ", " + info.detail);
  return info;
}

}  // namespace

std::string layout_text(const Sharding& sharding) {
  std::ostringstream text;
  text << sharding;
  text << " on the devices " << format_ids(sharding.mesh().device_ids());
  return text.str();
}

Opened open_blocks(const std::string& what, const std::optional<Sharding>& wanted,
                   const std::function<FileInfo()>& header) {
  const std::string call = call_text();
  Team team(current_call().name + (" of " + what) + (wanted ? ", " + layout_text(*wanted) : std::string()));
  const Sharding sharding = wanted ? *wanted : replicated_everywhere();
  const Mesh mesh = sharding.mesh();
  if (mesh.is_abstract())
    throw ShardingError(call +
                        ": the sharding lies on an abstract mesh, which has no processes; make_mesh gives "
                        "one of this job's devices");
  team.set_members(mesh.device_ids());
  FileInfo info = agreed_header(team, call, what, header);
  sharding.check_fits(info.shape, (call + " of " + what).c_str());
  return {team, sharding, std::move(info), wanted.has_value()};
}

Array read_blocks(const Opened& opened, const std::string& what,
                  const std::function<void(const Box&, std::byte* out)>& block) {
  const std::string call = call_text();
  const Sharding& sharding = opened.sharding;
  const FileInfo& info = opened.info;
  Buffer buffer;
  opened.team.members([&] {
    check_memory(checked_bytes(sharding.shard_shape(info.shape), info.dtype, call), call + " of " + what);
    const Box box = sharding.local_box(info.shape, process_index());
    buffer = Buffer::allocate(checked_bytes(box_shape(box), info.dtype, call));
    block(box, buffer.data());
  });
  return make_leaf({info.shape, info.dtype}, sharding, std::move(buffer), opened.committed);
}

Array load_blocks(const std::string& what, const std::optional<Sharding>& wanted, const Reader& reader) {
  return read_blocks(open_blocks(what, wanted, reader.header), what, reader.block);
}

// Narrow columns would be written in runs of a few bytes: reshards such an array to rows, so that each rank
// writes one run.
Array with_long_runs(const Array& x) {
  constexpr std::int64_t long_enough = 4096;
  const Sharding sharding = x.sharding();
  if (x.ndim() < 2 || sharding.mesh().size() == 1 || x.shape()[0] < sharding.mesh().size()) return x;
  const DenseInFile dense{x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), 0};
  return run_bytes(dense, whole_box(sharding.shard_shape(x.shape()))) >= long_enough ? x : in_rows(x);
}

namespace {

void write_own_box(const std::string& call, const std::string& file_name, const Array& x,
                   std::int64_t offset) {
  const OwnBlock own = own_block(x);
  if (own.writes) {
    File file(call, file_name, File::Mode::write);
    write_box(file, {x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), offset}, own.box, own.data);
    file.sync();
  }
  fault_point("written");
}

void check_length(const std::string& call, const std::string& file_name, std::int64_t needed) {
  const auto bytes = File(call, file_name, File::Mode::read).bytes();
  if (bytes < needed)
    throw IoError(call + ": " + in_quotes(file_name) + " has " + std::to_string(bytes) +
                  " bytes after all ranks wrote " + std::to_string(needed) + "; check the file system");
}

// The devices of all the arrays' meshes, ascending.
std::vector<int> devices_of(const std::vector<Array>& arrays) {
  std::set<int> ids;
  for (const Array& x : arrays)
    for (const int id : output_of(x).stored->layout.mesh().device_ids()) ids.insert(id);
  if (ids.empty()) ids.insert(0);
  return {ids.begin(), ids.end()};
}

}  // namespace

Array in_rows(const Array& x) {
  const Mesh mesh = x.sharding().mesh();
  if (x.ndim() == 0 || mesh.size() == 1) return x;
  std::vector<std::vector<int>> rows(x.ndim());
  for (int a = 0; a < mesh.ndim(); ++a) rows[0].push_back(a);
  return device_put(x, Sharding::from_dim_axes(mesh, rows));
}

OwnBlock own_block(const Array& x) {
  const auto& stored = *output_of(x).stored;
  if (stored.layout.mesh().position(process_index()) < 0) return {};
  return {stored.layout.local_box(x.shape(), process_index()), stored.buffer.data(),
          stored.layout.replica_id(x.shape(), local_devices()[0]) == 0};
}

void save_many(const std::string& path, const std::string& details, const std::vector<Array>& arrays,
               const ManyWriter& writer) {
  const std::string call = call_text();
  std::string common = current_call().name + (" to " + in_quotes(path)) + details;
  for (const Array& x : arrays) {
    check_usable(x);
    common += " of " + name(x.dtype()) + to_string(x.shape()) + ", " + layout_text(x.sharding());
  }
  Team team(common);
  std::vector<Array> placed;
  team.together([&] {
    for (const Array& x : arrays) placed.push_back(writer.by_rows ? in_rows(x) : with_long_runs(x));
    eval(placed);
  });
  team.set_members(devices_of(placed));
  const NoSizeSignal size_is_an_error;
  std::optional<SaveTarget> place;  // on the first rank
  std::string temporary;
  std::vector<std::int64_t> offsets(arrays.size());
  team.once([&] {
    place.emplace(call, path);
    temporary = place->temporary();
    offsets = writer.prepare(temporary, place->target());
    fault_point("prepared");
  });
  temporary = team.from_first(temporary);
  for (auto& offset : offsets) offset = team.from_first(offset);
  team.members([&] {
    for (std::size_t i = 0; i < placed.size(); ++i) write_own_box(call, temporary, placed[i], offsets[i]);
  });
  if (writer.finish) writer.finish(team, temporary, placed);
  team.once([&] {
    for (std::size_t i = 0; i < placed.size(); ++i)
      check_length(call, temporary, offsets[i] + placed[i].nbytes());
    place->commit();
    place.reset();
    fault_point("saved");
  });
}

void save_blocks(const std::string& path, const std::string& details, const Array& x,
                 const Prepare& prepare) {
  save_many(path, details, {x},
            {[&](const std::string& temporary, const std::string& target) {
               return std::vector<std::int64_t>{prepare(temporary, target)};
             },
             nullptr, false});
}

}  // namespace tessera::io
