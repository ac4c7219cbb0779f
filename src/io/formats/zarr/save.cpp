// save_zarr and Zarr.
#include <tessera/io/zarr.hpp>
#include <tessera/ops.hpp>

#include <filesystem>

#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/formats/zarr/chunk_write.hpp"
#include "io/formats/zarr/metadata/new_array.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "io/formats/zarr/store.hpp"
#include "io/save_target.hpp"

namespace tessera::io {
namespace {

using zarr::ArrayMeta;

std::string array_text(const Array& x) {
  return name(x.dtype()) + to_string(x.shape()) + ", " + layout_text(x.sharding());
}
void check_name(const std::string& name) {
  if (!zarr::is_good_name(name))
    throw ArgumentError(call_text() + ": " + in_quotes(name) +
                        " cannot be the name of an array or group; give one as in \"group/x\", without parts "
                        "that are empty or begin with \"__\" or \".z\"");
}

}  // namespace

void save_zarr(const std::string& path, const Array& x, const ZarrOptions& options,
               std::source_location where) {
  const Call call("save_zarr", where);
  check_usable(x);
  const std::string text = call_text();
  const ArrayMeta meta = zarr::new_array(text, x.shape(), x.dtype(), x.sharding(), options);
  const Team team("save_zarr to " + in_quotes(path) + zarr::options_text(options) + " of " + array_text(x));
  team.together([&] { eval({x}); });
  const NoSizeSignal size_is_an_error;
  std::optional<zarr::FolderPlace> place;  // on the first rank
  std::string folder;
  team.once([&] {
    place.emplace(text, path);
    folder = place->new_temporary();
    zarr::write_document(text, folder + "/zarr.json", zarr::array_document(meta));
    fault_point("prepared");
  });
  folder = team.from_first(folder);
  zarr::write_chunks(team, {text, meta, folder, zarr::ChunkIndex(meta.shape.size(), 0)}, x);
  team.once([&] {
    place->commit(place->target());
    place.reset();
    fault_point("saved");
  });
}

void save_zarr(const std::string& path, const std::map<std::string, Array>& arrays,
               const ZarrOptions& options, std::source_location where) {
  const Call call("save_zarr", where);
  Zarr out(path, {.mode = ZarrOpen::replace});
  for (const auto& [name, x] : arrays) out.write(name, x, options);
  out.close();
}

struct Zarr::State {
  explicit State(const std::string& path) : store(call_text(), path) {}
  zarr::Store store;
  bool is_open = true, is_broken = false;
};

namespace {

const char* name_of(ZarrOpen mode) {
  return mode == ZarrOpen::append ? "append" : mode == ZarrOpen::replace ? "replace" : "fail";
}

}  // namespace

Zarr::Zarr(const std::string& path, ZarrOpenOptions options, std::source_location where) {
  const Call call("Zarr", where);
  state_ = std::make_unique<State>(path);
  const Team team("Zarr of " + in_quotes(path) + ", mode " + name_of(options.mode));
  team.once([&] {
    if (options.mode == ZarrOpen::fail && std::filesystem::exists(path))
      throw IoError(
          call_text() + ": " + in_quotes(path) +
          " exists, and the mode is fail; open it with {.mode = io::ZarrOpen::append} or replace, or "
          "another one");
  });
  state_->store.open(team, options.mode == ZarrOpen::replace);
}
Zarr::~Zarr() = default;
Zarr::Zarr(Zarr&&) noexcept = default;

// The state for a write; throws if the writer cannot be written to.
Zarr::State& Zarr::open_state() const {
  if (!state_) throw ArgumentError(call_text() + ": the writer was moved to another one; use that");
  const std::string what = call_text() + ": the writer of " + in_quotes(state_->store.path());
  if (!state_->is_open) throw ArgumentError(what + " is closed; make a new one, which appends");
  if (state_->is_broken)
    throw IoError(what +
                  " failed in the midst of a write of a new store, which is given up; make a new writer");
  state_->store.set_call(call_text());
  return *state_;
}

namespace {

// Runs a change of the store. If it fails, a new store counts as broken, while an existing one is as it was
// before the call.
template <class Work> void guarded(bool is_new, bool& is_broken, Work work) {
  const NoSizeSignal size_is_an_error;
  try {
    work();
  } catch (...) {
    is_broken = is_new;
    throw;
  }
}

}  // namespace

void Zarr::write(const std::string& name, const Array& x, const ZarrOptions& options,
                 std::source_location where) {
  const Call call("Zarr::write", where);
  State& state = open_state();
  check_name(name);
  check_usable(x);
  const ArrayMeta meta = zarr::new_array(call_text(), x.shape(), x.dtype(), x.sharding(), options);
  const Team team("Zarr::write to " + in_quotes(state.store.path()) + ", array " + in_quotes(name) +
                  zarr::options_text(options) + " of " + array_text(x));
  team.together([&] { eval({x}); });
  guarded(state.store.is_new(), state.is_broken, [&] { state.store.make(team, name, meta, x); });
}

namespace {

void check_slab(const std::string& name, const ArrayMeta& meta, const Array& x) {
  const std::string what = call_text() + ": the array " + in_quotes(name);
  if (meta.dtype != x.dtype())
    throw DtypeError(what + " holds " + tessera::name(meta.dtype) + ", not " + tessera::name(x.dtype()) +
                     "; use astype");
  if (meta.shape.size() != x.shape().size())
    throw ShapeError(what + " has the shape " + to_string(meta.shape) + ", and what is to be written " +
                     to_string(x.shape()));
}
void check_append(const std::string& name, const ArrayMeta& meta, const Array& x, int dim) {
  check_slab(name, meta, x);
  for (std::size_t d = 0; d < meta.shape.size(); ++d)
    if (d != static_cast<std::size_t>(dim) && meta.shape[d] != x.shape()[d])
      throw ShapeError(call_text() + ": the array " + in_quotes(name) + " has the shape " +
                       to_string(meta.shape) + ", to which " + to_string(x.shape()) +
                       " cannot be added along dimension " + std::to_string(dim));
}
int checked_dim(const Array& x, int dim) {
  const int ndim = static_cast<int>(x.ndim());
  if (dim < -ndim || dim >= ndim)
    throw ShapeError(call_text() + ": dimension " + std::to_string(dim) + " of an array of shape " +
                     to_string(x.shape()) + " along which it would be appended");
  return dim < 0 ? dim + ndim : dim;
}

}  // namespace

void Zarr::append(const std::string& name, const Array& x, int dim, const ZarrOptions& options,
                  std::source_location where) {
  const Call call("Zarr::append", where);
  State& state = open_state();
  check_name(name);
  check_usable(x);
  const int along = checked_dim(x, dim);
  const ArrayMeta made = zarr::new_array(call_text(), x.shape(), x.dtype(), x.sharding(), options);
  const Team team("Zarr::append to " + in_quotes(state.store.path()) + ", array " + in_quotes(name) +
                  ", along " + std::to_string(along) + zarr::options_text(options) + " of " + array_text(x));
  team.together([&] { eval({x}); });
  const auto found = state.store.find(team, name);
  if (found) check_append(name, *found, x, along);
  guarded(state.store.is_new(), state.is_broken, [&] {
    if (found)
      state.store.append(team, name, *found, along, x);
    else
      state.store.make(team, name, made, x);
  });
}

void Zarr::overwrite(const std::string& name, const Array& x, const std::vector<std::int64_t>& start,
                     std::source_location where) {
  const Call call("Zarr::overwrite", where);
  State& state = open_state();
  check_name(name);
  check_usable(x);
  const Team team("Zarr::overwrite in " + in_quotes(state.store.path()) + ", array " + in_quotes(name) +
                  ", from " + to_string(Shape(start)) + " of " + array_text(x));
  team.together([&] { eval({x}); });
  const auto found = state.store.find(team, name);
  if (!found)
    throw IoError(call_text() + ": " + in_quotes(state.store.path()) + " has no array " + in_quotes(name) +
                  "; write it first");
  check_slab(name, *found, x);
  bool fits = start.size() == found->shape.size();
  for (std::size_t d = 0; fits && d < start.size(); ++d)
    fits = start[d] >= 0 && start[d] <= found->shape[d] - x.shape()[d];
  if (!fits)
    throw ShapeError(call_text() + ": " + to_string(x.shape()) + " from " + to_string(Shape(start)) +
                     " on is not within the array " + in_quotes(name) + " of shape " +
                     to_string(found->shape));
  guarded(state.store.is_new(), state.is_broken,
          [&] { state.store.overwrite(team, name, *found, start, x); });
}

void Zarr::group(const std::string& name, std::source_location where) {
  const Call call("Zarr::group", where);
  State& state = open_state();
  check_name(name);
  const Team team("Zarr::group " + in_quotes(name) + " in " + in_quotes(state.store.path()));
  state.store.make_group(team, name);
}

void Zarr::attribute(const std::string& name, const std::string& key, const Attribute& value,
                     std::source_location where) {
  const Call call("Zarr::attribute", where);
  State& state = open_state();
  if (!name.empty()) check_name(name);
  const zarr::Json json = zarr::json_of(value);
  const Team team("Zarr::attribute " + in_quotes(key) + " of " + in_quotes(name) + " in " +
                  in_quotes(state.store.path()) + ": " + zarr::value_text(json));
  state.store.set_attributes(team, name, [&](zarr::Json& all) { all[key] = json; });
}
void Zarr::attributes_json(const std::string& name, const std::string& json, std::source_location where) {
  const Call call("Zarr::attributes_json", where);
  State& state = open_state();
  if (!name.empty()) check_name(name);
  const Team team("Zarr::attributes_json of " + in_quotes(name) + " in " + in_quotes(state.store.path()) +
                  ": " + json);
  const auto value = [&] {
    try {
      return zarr::parse_document(json, "the attributes");
    } catch (const IoError& error) {
      throw ArgumentError(call_text() + ": " + error.what());
    }
  }();
  state.store.set_attributes(team, name, [&](zarr::Json& all) { all = value; });
}

void Zarr::flush(std::source_location where) {
  const Call call("Zarr::flush", where);
  State& state = open_state();
  const Team team("Zarr::flush of " + in_quotes(state.store.path()));
  guarded(state.store.is_new(), state.is_broken, [&] { state.store.commit(team); });
}
void Zarr::close(std::source_location where) {
  const Call call("Zarr::close", where);
  State& state = open_state();
  const Team team("Zarr::close of " + in_quotes(state.store.path()));
  guarded(state.store.is_new(), state.is_broken, [&] { state.store.commit(team); });
  state.store.release(team);
  state.is_open = false;
}

}  // namespace tessera::io
