// Functions of one device's blocks (shard_map), and the collectives in them: those of tessera, by the axes
// whose ranks the text lists.
#include <tessera/collectives.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>

#include <algorithm>

#include "stablehlo/layouts.hpp"
#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

PartitionSpec spec_of(const Attribute& sharding, const std::vector<std::string>& manual) {
  std::vector<DimSpec> spec;
  for (auto axes : axes_of(sharding)) {
    std::erase_if(axes, [&](const auto& axis) {
      return std::find(manual.begin(), manual.end(), axis) == manual.end();
    });
    spec.emplace_back(axes);
  }
  return PartitionSpec(std::move(spec));
}

Arrays manual_computation(OpCall& s) {
  const Attribute *in = s.find("in_shardings"), *out = s.find("out_shardings"),
                  *names = s.find("manual_axes");
  if (in == nullptr || out == nullptr || names == nullptr || s.op.regions.size() != 1)
    s.refuse("without its layouts");
  if (in->items.size() != s.x.size() || out->items.size() != s.results())
    s.refuse("layouts for another number of arrays");
  const Attribute* any = !in->items.empty() ? &in->items[0] : !out->items.empty() ? &out->items[0] : nullptr;
  if (any == nullptr) s.refuse("without arguments and results");
  if (s.run.manual.mesh != nullptr) s.refuse("inside of another one");
  const Mesh& mesh = mesh_of(s.run.module, s.run.layouts, *any);
  std::vector<std::string> axes;
  for (const auto& name : names->items) axes.push_back(name.text);
  std::vector<SpecTree> in_specs, out_specs;
  for (const auto& sharding : in->items) in_specs.emplace_back(spec_of(sharding, axes));
  for (const auto& sharding : out->items) out_specs.emplace_back(spec_of(sharding, axes));
  const RegionText& body = s.op.regions[0];
  const bool has_operands = !s.x.empty();
  if (!has_operands) in_specs.emplace_back(PartitionSpec());
  const auto blockwise = [&](const Arrays& blocks) {
    struct Within {
      Manual& now;
      ~Within() { now = {}; }
    } const scope{s.run.manual};
    s.run.manual = {&mesh, axes};
    return s.run.region(s.frame, body, has_operands ? blocks : Arrays{});
  };
  ShardMapOptions options;
  options.check_vma = false;
  if (axes.size() != mesh.axis_names().size()) options.axis_names = axes;
  const auto mapped = shard_map(blockwise, mesh, SpecTree(std::vector<SpecTree>{SpecTree(in_specs)}),
                                SpecTree(out_specs), options, s.run.line(s.op.place));
  return mapped(has_operands ? s.x : Arrays{full({}, 0)});
}

// ---- collectives ----

const Mesh& mesh_here(const OpCall& s) {
  if (s.run.manual.mesh == nullptr)
    s.refuse(
        "outside of a function of single devices (sdy.manual_computation): programs of several replicas "
        "(pmap) have no counterpart");
  return *s.run.manual.mesh;
}

// Lists of positions in the mesh, one for each group.
Groups groups_of(const OpCall& s, const char* attribute) {
  const Mesh& mesh = mesh_here(s);
  const Attribute* found = s.find(attribute);
  if (found == nullptr || found->kind != Attribute::Kind::dense || found->dense->type.shape.ndim() != 2)
    s.refuse(std::string(attribute) + ": lists of devices are expected");
  const auto ids = integers_of(s, *found);
  const auto width = static_cast<std::size_t>(found->dense->type.shape[1]);
  Groups groups;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const int position = ids[i] < 0 || ids[i] > 1 << 30 ? -1 : mesh.position(static_cast<int>(ids[i]));
    if (position < 0) s.refuse(std::string(attribute) + ": the mesh has no device " + std::to_string(ids[i]));
    if (i % width == 0) groups.emplace_back();
    groups.back().push_back(position);
  }
  return groups;
}

// The groups of ranks along the axes (numbers in this order, the first one major).
Groups groups_along(const Mesh& mesh, const std::vector<int>& axes) {
  const auto& sizes = mesh.axis_sizes();
  Groups groups;
  std::map<std::vector<int>, std::size_t> place;
  std::vector<std::pair<std::vector<int>, int>> order;
  for (int position = 0; position < mesh.size(); ++position) {
    std::vector<int> at(sizes.size());
    for (std::size_t d = sizes.size(), rest = static_cast<std::size_t>(position); d-- > 0;
         rest /= static_cast<std::size_t>(sizes[d]))
      at[d] = static_cast<int>(rest % static_cast<std::size_t>(sizes[d]));
    std::vector<int> along, outside;
    for (const int axis : axes) along.push_back(at[static_cast<std::size_t>(axis)]);
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(d)) == axes.end()) outside.push_back(at[d]);
    outside.insert(outside.end(), along.begin(), along.end());
    order.emplace_back(outside, position);
  }
  std::sort(order.begin(), order.end());
  std::size_t width = 1;
  for (const int axis : axes) width *= static_cast<std::size_t>(sizes[static_cast<std::size_t>(axis)]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % width == 0) groups.emplace_back();
    groups.back().push_back(order[i].second);
  }
  return groups;
}

struct Along {
  AxisName axis;
  Groups groups;  // within the axis; empty: all
};

// The axes whose ranks the groups are, or all of them with groups.
Along along_of(const OpCall& s, Groups groups) {
  const Mesh& mesh = mesh_here(s);
  std::sort(groups.begin(), groups.end());
  std::vector<int> manual;
  for (const auto& axis : s.run.manual.axes) manual.push_back(mesh.axis_number(axis));
  std::sort(manual.begin(), manual.end());
  const auto n = manual.size();
  if (n > 5) s.refuse("a mesh of more than 5 axes");
  for (std::size_t subset = 1; subset < (std::size_t{1} << n); ++subset) {
    std::vector<int> axes;
    for (std::size_t i = 0; i < n; ++i)
      if ((subset >> i) & 1) axes.push_back(manual[i]);
    do {
      auto expected = groups_along(mesh, axes);
      std::sort(expected.begin(), expected.end());
      if (expected != groups) continue;
      std::vector<std::string> names;
      for (const int axis : axes) names.push_back(mesh.axis_names()[static_cast<std::size_t>(axis)]);
      return {AxisName(DimSpec(names)), {}};
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
  if (n != mesh.axis_names().size()) s.refuse("groups of ranks that are not those along axes of the mesh");
  return {AxisName(DimSpec(mesh.axis_names())), groups};
}

Along all_axes(const OpCall& s) {
  const Mesh& mesh = mesh_here(s);
  if (s.run.manual.axes.size() != mesh.axis_names().size())
    s.refuse("in a function of blocks along some axes of the mesh: only over all of them");
  return {AxisName(DimSpec(mesh.axis_names())), {}};
}

std::string body_of(const OpCall& s) {
  if (s.op.regions.size() != 1) s.refuse("without a function");
  const auto kind = simple_body(s.op.regions[0]);
  if (kind != "add" && kind != "maximum" && kind != "minimum" && kind != "or" && kind != "and")
    s.refuse("its function is none of add, maximum, minimum, or, and");
  return kind;
}

Arrays all_reduce(OpCall& s) {
  const auto along = along_of(s, groups_of(s, "replica_groups"));
  const auto kind = body_of(s);
  Arrays results;
  for (const auto& x : s.x) {
    const bool is_logical = is_bool(x.dtype());
    if ((kind == "or" || kind == "and") && !is_logical) s.refuse("of the bits of " + name(x.dtype()));
    const Array given = is_logical ? astype(x, int32) : x;
    const ReduceOptions options{along.groups};
    const bool is_largest = kind == "maximum" || kind == "or" || (kind == "add" && is_logical);
    const Array result = is_largest      ? pmax(given, along.axis, options)
                         : kind == "add" ? psum(given, along.axis, options)
                                         : pmin(given, along.axis, options);
    results.push_back(astype(result, x.dtype()));
  }
  return results;
}

Arrays gathered(OpCall& s) {
  const auto along = along_of(s, groups_of(s, "replica_groups"));
  Arrays results;
  for (const auto& x : s.x)
    results.push_back(all_gather(x, along.axis, {s.dim("all_gather_dim", x.ndim()), true, along.groups}));
  return results;
}

Arrays reduce_scatter(OpCall& s) {
  s.want_operands(1);
  const auto along = along_of(s, groups_of(s, "replica_groups"));
  if (body_of(s) != "add" || is_bool(s.x[0].dtype())) s.refuse("its function is not add");
  return {psum_scatter(s.x[0], along.axis, {s.dim("scatter_dimension", s.x[0].ndim()), true, along.groups})};
}

Arrays exchanged(OpCall& s) {
  const auto along = along_of(s, groups_of(s, "replica_groups"));
  Arrays results;
  for (const auto& x : s.x)
    results.push_back(all_to_all(x, along.axis, s.dim("split_dimension", x.ndim()),
                                 s.dim("concat_dimension", x.ndim()), {true, along.groups}));
  return results;
}

Arrays permuted(OpCall& s) {
  s.want_operands(1);
  const auto all = all_axes(s);
  std::vector<std::pair<int, int>> pairs;
  for (const auto& pair : groups_of(s, "source_target_pairs")) {
    if (pair.size() != 2) s.refuse("pairs of devices are expected");
    pairs.emplace_back(pair[0], pair[1]);
  }
  return {ppermute(s.x[0], all.axis, pairs)};
}

Arrays partition_id(OpCall& s) {
  s.want_operands(0);
  const Mesh& mesh = mesh_here(s);
  const Array position = axis_index(all_axes(s).axis);
  std::vector<std::uint32_t> ids(mesh.device_ids().begin(), mesh.device_ids().end());
  return {take(array(ids), position, 0)};
}

}  // namespace

void add_manual(Rules& rules) {
  rules["sdy.manual_computation"] = manual_computation;
  rules["stablehlo.all_reduce"] = all_reduce;
  rules["stablehlo.all_gather"] = gathered;
  rules["stablehlo.reduce_scatter"] = reduce_scatter;
  rules["stablehlo.all_to_all"] = exchanged;
  rules["stablehlo.collective_permute"] = permuted;
  rules["stablehlo.partition_id"] = partition_id;
}

}  // namespace tessera::stablehlo
