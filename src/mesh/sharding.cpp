#include <tessera/error.hpp>
#include <tessera/sharding.hpp>

#include <algorithm>
#include <ostream>
#include <sstream>

#include "base/call.hpp"
#include "base/text.hpp"
#include "mesh/devices.hpp"
#include "mesh/sharding_impl.hpp"
#include "mesh/text.hpp"

namespace tessera {
namespace {

std::vector<Term> canonical_terms(const Mesh& mesh, const DimAxes& dim_axes) {
  struct Role {
    int dim = -1, weight = 0;
  };
  std::vector<Role> roles(mesh.ndim());
  for (std::size_t d = 0; d < dim_axes.size(); ++d) {
    int weight = 1;
    for (auto axis = dim_axes[d].rbegin(); axis != dim_axes[d].rend(); ++axis) {
      roles[*axis] = {static_cast<int>(d), weight};
      weight *= mesh.axis_sizes()[*axis];
    }
  }
  std::vector<Term> terms;
  for (std::size_t a = 0; a < roles.size(); ++a) {
    const int size = mesh.axis_sizes()[a];
    if (size == 1) continue;
    const Role& role = roles[a];
    if (!terms.empty() && terms.back().dim == role.dim && terms.back().weight == role.weight * size)
      terms.back() = {terms.back().size * size, role.dim, role.weight};
    else
      terms.push_back({size, role.dim, role.weight});
  }
  return terms;
}

// dim_axes: no axis may occur twice; axes of size 1 are allowed.
std::shared_ptr<Sharding::Impl> build(Mesh mesh, PartitionSpec spec, DimAxes dim_axes) {
  const auto& sizes = mesh.axis_sizes();
  for (auto& axes : dim_axes) std::erase_if(axes, [&](int axis) { return sizes[axis] == 1; });
  while (!dim_axes.empty() && dim_axes.back().empty()) dim_axes.pop_back();
  auto impl = std::make_shared<Sharding::Impl>(
      Sharding::Impl{std::move(mesh), std::move(spec), {}, false, {}, {}, {}, {}, {}, 0});
  std::vector<bool> used(sizes.size());
  const auto& strides = impl->mesh.identity()->strides;
  for (const auto& axes : dim_axes) {
    impl->first.push_back(static_cast<int>(impl->digits.size()));
    for (const int a : axes) {
      used[a] = true;
      impl->digits.push_back({strides[a], sizes[a], a});
    }
    impl->parts.push_back(static_cast<int>(devices_along(impl->mesh, axes)));
  }
  impl->first.push_back(static_cast<int>(impl->digits.size()));
  for (std::size_t a = 0; a < sizes.size(); ++a)
    if (!used[a] && sizes[a] > 1) impl->replicas.push_back({strides[a], sizes[a], static_cast<int>(a)});
  impl->terms = canonical_terms(impl->mesh, dim_axes);
  impl->hash = impl->mesh.identity()->ids_hash + (impl->spec.is_automatic() ? 1 : 0);
  for (const auto& term : impl->terms)
    for (const int part : {term.size, term.dim, term.weight})
      impl->hash = mix(impl->hash, static_cast<std::uint64_t>(part));
  return impl;
}

DimAxes resolve(const Mesh& mesh, const PartitionSpec& spec, const std::source_location& site) {
  if (spec.is_automatic()) return {};
  DimAxes dim_axes(spec.dims().size());
  std::vector<int> dim_of_axis(mesh.ndim(), -1);
  for (std::size_t d = 0; d < dim_axes.size(); ++d) {
    for (const auto& name : spec.dims()[d].names()) {
      const int axis = mesh.axis_number(name);
      const auto where = [&] {
        return call_text_or(call_text({"NamedSharding", site})) + ": " + to_text(spec) + " over " +
               to_text(mesh) + ": ";
      };
      if (axis < 0)
        throw ShardingError(where() + "entry " + std::to_string(d) + " names axis " + in_quotes(name) +
                            ", which the mesh does not have; " +
                            known_names(name, mesh.axis_names(), "axes"));
      int& taken_by = dim_of_axis[axis];
      if (taken_by >= 0)
        throw ShardingError(where() + "axis " + in_quotes(name) + " is used twice, in " +
                            (taken_by == static_cast<int>(d)
                                 ? "entry " + std::to_string(d)
                                 : "entries " + std::to_string(taken_by) + " and " + std::to_string(d)) +
                            "; one mesh axis can split only one dimension, once");
      taken_by = static_cast<int>(d);
      dim_axes[d].push_back(axis);
    }
  }
  return dim_axes;
}

int position_of(const Sharding::Impl& impl, const Device& device, const char* call) {
  const int position = impl.mesh.position(device.id);
  if (position < 0) {
    std::ostringstream text;
    text << call << ": " << device << " is not in " << impl.mesh << ", which has "
         << counted(impl.mesh.size(), "device") << "; ask for one of mesh().devices()";
    throw ShardingError(text.str());
  }
  return position;
}

Index box_at(const Sharding::Impl& impl, const Shape& global, int position) {
  Index box(global.size());
  for (std::size_t d = 0; d < box.size(); ++d) box[d] = impl.range(d, global[d], position);
  return box;
}

}  // namespace

DimSpec::DimSpec(const char* name) {
  if (name == nullptr)
    throw ShardingError(call_text_or("P") +
                        ": the name of an axis is a null pointer; write None for a dim that is not split");
  names_.emplace_back(name);
}

bool PartitionSpec::is_automatic() const {
  return dims_.size() == 1 && dims_[0].names() == std::vector<std::string>{"", ""};
}

bool operator==(const PartitionSpec& left, const PartitionSpec& right) {
  if (left.is_automatic() != right.is_automatic()) return false;
  const auto &a = left.dims(), &b = right.dims();
  for (std::size_t d = 0; d < std::max(a.size(), b.size()); ++d) {
    const bool split_a = d < a.size() && !a[d].names().empty(),
               split_b = d < b.size() && !b[d].names().empty();
    if (split_a != split_b || (split_a && a[d] != b[d])) return false;
  }
  return true;
}

std::string to_text(const PartitionSpec& spec) {
  if (spec.is_automatic()) return "P.automatic";
  std::string text = "P(";
  for (std::size_t d = 0; d < spec.dims().size(); ++d) {
    const auto& names = spec.dims()[d].names();
    text += d ? ", " : "";
    text += names.empty() ? "None" : names.size() == 1 ? in_quotes(names[0]) : quoted_list(names);
  }
  return text + ")";
}
std::ostream& operator<<(std::ostream& out, const PartitionSpec& spec) { return out << to_text(spec); }

static std::shared_ptr<const Sharding::Impl> build_named(Mesh mesh, PartitionSpec spec,
                                                         const std::source_location& where) {
  auto dim_axes = resolve(mesh, spec, where);
  return build(std::move(mesh), std::move(spec), std::move(dim_axes));
}
Sharding::Sharding(Mesh mesh, PartitionSpec spec, std::source_location where)
    : Sharding(build_named(std::move(mesh), std::move(spec), where)) {}

Sharding SingleDeviceSharding(Device device, std::source_location where) {
  auto impl = build(Mesh(NdDevices(device), {}, where), {}, {});
  impl->single_device = true;
  return Sharding(impl);
}

Sharding Sharding::from_dim_axes(const Mesh& mesh, const std::vector<std::vector<int>>& dim_axes) {
  std::vector<DimSpec> dims;
  dims.reserve(dim_axes.size());
  for (const auto& axes : dim_axes) {
    std::vector<std::string> names;
    for (int axis : axes) names.push_back(mesh.axis_names()[axis]);
    dims.emplace_back(std::move(names));
  }
  return Sharding(build(mesh, PartitionSpec(std::move(dims)), dim_axes));
}

Sharding Sharding::replicated(const Mesh& mesh) { return Sharding(build(mesh, {}, {})); }

Sharding Sharding::automatic() {
  static const auto impl = build(abstract_mesh({1}, {"of the arrays"}), P::automatic, {});
  return Sharding(impl);
}
bool Sharding::is_automatic() const { return impl_->spec.is_automatic(); }
bool Sharding::has_mesh_to_find() const { return impl_ == automatic().impl_; }

Sharding::Sharding(const PositionalSharding& positional) {
  auto [mesh, dim_axes] = positional.as_mesh();
  auto impl = std::const_pointer_cast<Impl>(from_dim_axes(mesh, dim_axes).impl_);
  impl->positional = std::make_shared<PositionalSharding>(positional);
  impl_ = std::move(impl);
}

void Sharding::check_fits(const Shape& global, const char* call) const {
  const std::size_t entries = impl_->spec.dims().size();
  if (is_automatic())
    throw ShardingError(
        std::string(call) +
        ": P::automatic stands for a layout that the planner of jit chooses, for in_shardings, "
        "out_shardings and with_sharding_constraint inside jit; name the axes here, as P('x'), "
        "or let advise choose them");
  if (impl_->positional && !is_fully_replicated() && impl_->positional->ndim() < global.ndim())
    throw ShardingError(std::string(call) + ": " + to_text(*this) + " has " +
                        counted(static_cast<std::size_t>(impl_->positional->ndim()), "dimension") +
                        ", fewer than the " + counted(global.size(), "dimension") + " of an array of shape " +
                        to_string(global) + "; reshape it to one entry for each, 1 where nothing is split");
  if (entries <= global.size() || (impl_->positional && is_fully_replicated())) return;
  throw ShardingError(std::string(call) + ": " + to_text(*this) + " has " + counted(entries, "entry") +
                      ", more than the " + counted(global.size(), "dimension") + " of an array of shape " +
                      to_string(global) + "; leave out the last " +
                      (entries - global.size() == 1 ? "one" : std::to_string(entries - global.size())));
}

Sharding Sharding::for_ndim(int ndim) const {
  if (!impl_->positional || is_fully_replicated()) return *this;
  const Shape grid = impl_->positional->shape();
  const int extra = grid.ndim() - ndim;
  if (extra <= 0) return *this;
  std::vector<int> trailing;
  for (int d = 0; d < grid.ndim(); ++d) {
    const auto size = static_cast<int>(grid[d]);
    if (d >= extra)
      trailing.push_back(size);
    else if (size != 1)
      return *this;
  }
  return Sharding(impl_->positional->reshape(trailing));
}

Shape Sharding::shard_shape(const Shape& global) const {
  check_fits(global, "shard_shape");
  Shape shard = global;
  for (std::size_t d = 0; d < shard.size(); ++d) shard[d] = block_size(global[d], impl_->parts_of(d));
  return shard;
}

Shape Sharding::local_shape(const Shape& global, const Device& device) const {
  check_fits(global, "local_shape");
  const int position = position_of(*impl_, device, "local_shape");
  Shape local = global;
  for (std::size_t d = 0; d < local.size(); ++d) local[d] = impl_->range(d, global[d], position).size();
  return local;
}

Index Sharding::local_box(const Shape& global, int device_id) const {
  const int position = impl_->mesh.position(device_id);
  if (position < 0) return Index(global.size());
  return box_at(*impl_, global, position);
}

std::vector<std::pair<Device, Index>> Sharding::devices_indices_map(const Shape& global) const {
  check_fits(global, "devices_indices_map");
  std::vector<std::pair<Device, Index>> map;
  map.reserve(num_devices());
  int position = 0;
  for (auto& device : impl_->mesh.devices())
    map.emplace_back(std::move(device), box_at(*impl_, global, position++));
  return map;
}

int Sharding::replica_id(const Shape& global, const Device& device) const {
  check_fits(global, "replica_id");
  const int position = position_of(*impl_, device, "replica_id");
  int replica = 0;
  for (const auto& axis : impl_->replicas) replica = replica * axis.size + axis.coordinate(position);
  return replica;
}

std::set<Device> Sharding::device_set() const {
  const auto in_order = impl_->mesh.devices();
  return {in_order.begin(), in_order.end()};
}
int Sharding::num_devices() const { return impl_->mesh.size(); }
bool Sharding::is_fully_replicated() const { return impl_->parts.empty(); }

bool Sharding::is_equivalent_to(const Sharding& other, int ndim) const {
  const Shape any_of_ndim(std::vector<std::int64_t>(std::max(ndim, 0), 1));
  check_fits(any_of_ndim, "is_equivalent_to");
  other.check_fits(any_of_ndim, "is_equivalent_to");
  return *this == other;
}

std::int64_t Sharding::memory_bytes(const Shape& global, Dtype dtype, const Device& device) const {
  return checked_bytes(local_shape(global, device), itemsize(dtype), "memory_bytes");
}

PartitionSpec Sharding::spec() const { return impl_->spec; }
Mesh Sharding::mesh() const { return impl_->mesh; }
std::size_t Sharding::hash() const { return impl_->hash; }

bool operator==(const Sharding& left, const Sharding& right) {
  const Sharding::Impl &a = *left.impl_, &b = *right.impl_;
  return &a == &b || (a.hash == b.hash && a.terms == b.terms && a.mesh.same_devices(b.mesh) &&
                      a.spec.is_automatic() == b.spec.is_automatic());
}

std::vector<std::vector<int>> Sharding::dim_axes(int ndim) const {
  DimAxes dim_axes(ndim);
  for (std::size_t d = 0; d < std::min(dim_axes.size(), impl_->parts.size()); ++d)
    for (int k = impl_->first[d]; k < impl_->first[d + 1]; ++k) dim_axes[d].push_back(impl_->digits[k].axis);
  return dim_axes;
}

std::string to_text(const Sharding& sharding) {
  const auto& impl = *sharding.identity();
  if (impl.positional) return "PositionalSharding(" + to_text(*impl.positional) + ")";
  if (impl.single_device)
    return "SingleDeviceSharding(CpuDevice(id=" + std::to_string(impl.mesh.device_ids()[0]) + "))";
  return "NamedSharding(" + to_text(impl.mesh) + ", " + to_text(impl.spec) + ")";
}
std::ostream& operator<<(std::ostream& out, const Sharding& sharding) { return out << to_text(sharding); }

}  // namespace tessera
