#include <tessera/error.hpp>
#include <tessera/mesh.hpp>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "base/call.hpp"
#include "base/text.hpp"
#include "mesh/devices.hpp"
#include "mesh/mesh_impl.hpp"
#include "mesh/text.hpp"

namespace tessera {
namespace {

const std::string abstract_host = "abstract";

// The beginning of an error's text: the call that the library serves, or this one. No scope is opened, as
// meshes may be made on any thread.
std::string beginning(const UserCall& call) { return call_text_or(call_text(call)); }

std::int64_t product(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1},
                         [](std::int64_t a, int b) { return a * b; });
}

std::vector<int> ids_of(const std::vector<Device>& devices, std::size_t count) {
  std::vector<int> ids(count);
  std::transform(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(count), ids.begin(),
                 [](const Device& d) { return d.id; });
  return ids;
}

constexpr std::int64_t most_devices = 1 << 24;  // a size that a laptop can plan for

void check_sizes(const UserCall& call, const std::vector<int>& sizes, const std::vector<std::string>& names) {
  if (sizes.size() != names.size())
    throw ShardingError(beginning(call) + ": " + counted(sizes.size(), "size") + " " + listed(sizes) +
                        " but " + counted(names.size(), "axis name") + " " + quoted_list(names) +
                        "; give one name for each");
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    if (names[a].empty())
      throw ShardingError(beginning(call) + ": axis " + std::to_string(a) + " has an empty name; name it");
    if (sizes[a] < 1)
      throw ShardingError(beginning(call) + ": axis " + in_quotes(names[a]) + " has size " +
                          std::to_string(sizes[a]) + "; sizes are 1 or more");
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(a), names[a]) !=
        names.begin() + static_cast<std::ptrdiff_t>(a))
      throw ShardingError(beginning(call) + ": two axes are named " + in_quotes(names[a]) + " in " +
                          quoted_list(names) + "; give each its own name");
  }
  std::int64_t devices = 1;
  for (const int size : sizes)
    if ((devices *= size) > most_devices)
      throw ShardingError(beginning(call) + ": sizes " + listed(sizes) + " hold more than " +
                          std::to_string(most_devices) + " devices, the most that a mesh may have");
}

// Positions by device id; empty if the ids are consecutive and ascending, the usual case.
std::vector<int> invert(const UserCall& call, const std::vector<int>& ids, int lowest, int highest) {
  std::vector<int> position(static_cast<std::size_t>(highest - lowest) + 1, -1);
  bool counts_up = true;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    int& slot = position[ids[i] - lowest];
    if (slot >= 0)
      throw ShardingError(beginning(call) + ": device " + std::to_string(ids[i]) + " stands at positions " +
                          std::to_string(slot) + " and " + std::to_string(i) +
                          " of the grid; a mesh holds each device once");
    slot = static_cast<int>(i);
    counts_up = counts_up && ids[i] == lowest + slot;
  }
  if (counts_up) position.clear();
  return position;
}

std::shared_ptr<Mesh::Impl> build(const UserCall& call, std::vector<int> sizes,
                                  std::vector<std::string> names, std::vector<int> ids, bool abstract) {
  auto impl = std::make_shared<Mesh::Impl>();
  const auto [low, high] = std::minmax_element(ids.begin(), ids.end());
  impl->lowest_id = *low;
  impl->position = invert(call, ids, *low, *high);
  impl->abstract = abstract;
  impl->ids_hash = mix_range(abstract, ids);
  impl->hash = mix_range(impl->ids_hash, sizes);
  for (const auto& name : names) impl->hash = hash_bytes(name.data(), name.size(), impl->hash);
  impl->strides.resize(sizes.size());
  int stride = 1;
  for (std::size_t a = sizes.size(); a-- > 0; stride *= sizes[a]) impl->strides[a] = stride;
  impl->sizes = std::move(sizes);
  impl->names = std::move(names);
  impl->ids = std::move(ids);
  return impl;
}

void check_devices_exist(const UserCall& call, const std::vector<int>& ids) {
  const int available = device_count();
  const int highest = *std::max_element(ids.begin(), ids.end()),
            lowest = *std::min_element(ids.begin(), ids.end());
  if (lowest < 0)
    throw ShardingError(beginning(call) + ": device " + std::to_string(lowest) +
                        " is negative; devices are numbered from 0");
  if (highest >= available)
    throw ShardingError(beginning(call) + ": the mesh needs device " + std::to_string(highest) +
                        ", the job has " + counted(available, "device") + ": start it with -n " +
                        std::to_string(highest + 1) +
                        " or more, or plan without processes with abstract_mesh");
}

}  // namespace

NdDevices::NdDevices(std::initializer_list<int> ids) : sizes_{static_cast<int>(ids.size())}, ids_(ids) {}
NdDevices::NdDevices(std::initializer_list<NdDevices> rows)
    : NdDevices(stack_rows(std::vector<NdDevices>(rows))) {}
NdDevices::NdDevices(const Device& device) : ids_{device.id}, abstract_(device.host == abstract_host) {}
NdDevices::NdDevices(int id) : ids_{id} {}

NdDevices::NdDevices(std::vector<int> sizes, std::vector<int> ids)
    : sizes_(std::move(sizes)), ids_(std::move(ids)) {
  if (product(sizes_) != static_cast<std::int64_t>(ids_.size()))
    throw ShardingError("NdDevices: sizes " + listed(sizes_) + " hold " + std::to_string(product(sizes_)) +
                        " devices, but " + std::to_string(ids_.size()) + " are given");
}

NdDevices NdDevices::stack_rows(std::vector<NdDevices> rows) {
  NdDevices grid(std::vector<int>{0}, {});
  if (rows.empty()) return grid;
  grid.sizes_ = {static_cast<int>(rows.size())};
  grid.sizes_.insert(grid.sizes_.end(), rows[0].sizes_.begin(), rows[0].sizes_.end());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].sizes_ != rows[0].sizes_)
      throw ShardingError("NdDevices: ragged nesting: row 0 has sizes " + listed(rows[0].sizes_) + ", row " +
                          std::to_string(r) + " has " + listed(rows[r].sizes_) + "; all rows need the same");
    grid.ids_.insert(grid.ids_.end(), rows[r].ids_.begin(), rows[r].ids_.end());
    grid.abstract_ = grid.abstract_ || rows[r].abstract_;
  }
  return grid;
}

Mesh::Mesh(NdDevices devices, std::vector<std::string> axis_names, std::source_location where) {
  const UserCall call{"Mesh", where};
  if (devices.ids().empty())
    throw ShardingError(beginning(call) + ": the grid of devices is empty; a mesh needs at least one device");
  if (devices.sizes().size() != axis_names.size())
    throw ShardingError(beginning(call) + ": the grid of devices has " +
                        counted(devices.sizes().size(), "dimension") + " " + listed(devices.sizes()) +
                        " but there are " + counted(axis_names.size(), "axis name") + " " +
                        quoted_list(axis_names) + "; give one name for each");
  check_sizes(call, devices.sizes(), axis_names);
  if (!devices.is_abstract()) check_devices_exist(call, devices.ids());
  impl_ = build(call, devices.sizes(), std::move(axis_names), devices.ids(), devices.is_abstract());
}

std::vector<std::pair<std::string, int>> Mesh::shape() const {
  std::vector<std::pair<std::string, int>> axes;
  for (std::size_t a = 0; a < impl_->sizes.size(); ++a) axes.emplace_back(impl_->names[a], impl_->sizes[a]);
  return axes;
}
const std::vector<std::string>& Mesh::axis_names() const { return impl_->names; }
const std::vector<int>& Mesh::axis_sizes() const { return impl_->sizes; }
int Mesh::size() const { return static_cast<int>(impl_->ids.size()); }
int Mesh::ndim() const { return static_cast<int>(impl_->sizes.size()); }
const std::vector<int>& Mesh::device_ids() const { return impl_->ids; }
bool Mesh::is_abstract() const { return impl_->abstract; }
std::size_t Mesh::hash() const { return impl_->hash; }
bool Mesh::contains(const Device& device) const { return position(device.id) >= 0; }
int Mesh::position(int device_id) const { return impl_->position_of(device_id); }

int Mesh::axis_number(const std::string& name) const {
  for (std::size_t a = 0; a < impl_->names.size(); ++a)
    if (impl_->names[a] == name) return static_cast<int>(a);
  return -1;
}

int Mesh::axis_size(const std::string& name) const {
  const int axis = axis_number(name);
  if (axis < 0)
    throw ShardingError(to_text(*this) + ": no axis " + in_quotes(name) + "; " +
                        known_names(name, impl_->names, "axes"));
  return impl_->sizes[axis];
}

std::vector<Device> Mesh::devices() const {
  const auto& table = device_table();
  std::vector<Device> row_major;
  row_major.reserve(impl_->ids.size());
  for (int id : impl_->ids) {
    const bool known = !impl_->abstract && id < static_cast<int>(table.size());
    row_major.push_back(known ? table[id] : Device{id, id, abstract_host});
  }
  return row_major;
}

std::optional<std::vector<int>> Mesh::coords(const Device& device) const {
  const int at = position(device.id);
  if (at < 0) return std::nullopt;
  std::vector<int> coordinates(impl_->sizes.size());
  for (std::size_t a = 0; a < coordinates.size(); ++a)
    coordinates[a] = at / impl_->strides[a] % impl_->sizes[a];
  return coordinates;
}

bool Mesh::same_devices(const Mesh& other) const {
  const Impl &a = *impl_, &b = *other.impl_;
  return &a == &b || (a.ids_hash == b.ids_hash && a.abstract == b.abstract && a.ids == b.ids);
}

Mesh Mesh::with_axes(std::vector<int> sizes, std::vector<std::string> names,
                     std::source_location where) const {
  NdDevices grid(std::move(sizes), impl_->ids);
  grid.abstract_ = impl_->abstract;
  return Mesh(std::move(grid), std::move(names), where);
}

bool operator==(const Mesh& left, const Mesh& right) {
  const Mesh::Impl &a = *left.impl_, &b = *right.impl_;
  return &a == &b ||
         (a.hash == b.hash && a.sizes == b.sizes && a.names == b.names && left.same_devices(right));
}

std::string to_text(const Mesh& mesh) {
  std::string text = "Mesh(";
  for (int a = 0; a < mesh.ndim(); ++a) {
    const auto i = static_cast<std::size_t>(a);
    text += (a ? ", " : "") + in_quotes(mesh.axis_names()[i]) + ": " + std::to_string(mesh.axis_sizes()[i]);
  }
  return text + ")";
}
std::ostream& operator<<(std::ostream& out, const Mesh& mesh) { return out << to_text(mesh); }

namespace {
// The number of devices that a mesh of these sizes uses.
std::int64_t devices_needed(const UserCall& call, const std::vector<int>& sizes,
                            const std::vector<std::string>& names, std::size_t at_hand) {
  check_sizes(call, sizes, names);
  const std::int64_t needed = product(sizes), given = static_cast<std::int64_t>(at_hand);
  if (needed <= given) return needed;
  const bool whole_job = given == device_count();
  throw ShardingError(beginning(call) + ": a mesh of sizes " + listed(sizes) + " needs " +
                      std::to_string(needed) + " devices, " + (whole_job ? "the job has " : "the list has ") +
                      std::to_string(given) + ": " +
                      (whole_job ? "start it with -n " + std::to_string(needed) +
                                       ", or use smaller sizes, or abstract_mesh to plan without processes"
                                 : "use smaller sizes or more devices"));
}
}  // namespace

Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names, detail::CallLine call) {
  const std::source_location& where = call.line;
  const auto& all = device_table();
  const auto needed =
      static_cast<std::size_t>(devices_needed({"make_mesh", where}, sizes, names, all.size()));
  auto ids = arrange_by_hosts(sizes, std::span(all).first(needed));
  return Mesh(NdDevices(std::move(sizes), std::move(ids)), std::move(names), where);
}

Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names, std::vector<Device> devices,
               std::source_location where) {
  const std::int64_t needed = devices_needed({"make_mesh", where}, sizes, names, devices.size());
  NdDevices grid(std::move(sizes), ids_of(devices, needed));
  grid.abstract_ = !devices.empty() && devices[0].host == abstract_host;
  return Mesh(std::move(grid), std::move(names), where);
}

Mesh abstract_mesh(std::vector<int> sizes, std::vector<std::string> names, std::source_location where) {
  check_sizes({"abstract_mesh", where}, sizes, names);
  std::vector<int> ids(product(sizes));
  std::iota(ids.begin(), ids.end(), 0);
  NdDevices grid(std::move(sizes), std::move(ids));
  grid.abstract_ = true;
  return Mesh(std::move(grid), std::move(names), where);
}

NdDevices create_device_mesh(std::vector<int> sizes, std::source_location where) {
  const auto& all = device_table();
  if (product(sizes) != static_cast<std::int64_t>(all.size()))
    throw ShardingError(beginning({"create_device_mesh", where}) + ": sizes " + listed(sizes) + " hold " +
                        std::to_string(product(sizes)) + " devices, the job has " +
                        std::to_string(all.size()) + ": use sizes whose product is " +
                        std::to_string(all.size()) + ", or make_mesh for a mesh over the first devices");
  auto ids = arrange_by_hosts(sizes, all);
  return NdDevices(std::move(sizes), std::move(ids));
}

}  // namespace tessera
