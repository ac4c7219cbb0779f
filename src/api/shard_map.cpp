// shard_map: the function is traced inline. Arguments pass through manual_enter, results through manual_exit;
// the nodes in between are ordinary nodes of the graph with the shapes of one rank's blocks.
#include <tessera/maps.hpp>

#include <algorithm>
#include <map>
#include <sstream>

#include "mesh/devices.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/collective/manual.hpp"
#include "ops/collective/prefix.hpp"
#include "ops/effect/effect.hpp"

namespace tessera {
namespace {

struct Leaf {
  PartitionSpec spec;
  DimAxes dims;
};

std::string text_of(const PartitionSpec& spec) {
  std::ostringstream text;
  text << spec;
  return text.str();
}
std::string text_of(const std::vector<std::int64_t>& sizes) { return field_text(sizes); }

// The results of one trace of the body.
struct Trace {
  int position;
  std::vector<Array> results;
  std::vector<LoggedShape> shapes;
  Array effects;  // their token; empty if there are none
};

class ShardMap final : public detail::MapRule {
 public:
  ShardMap(Mesh mesh, SpecTree in_specs, SpecTree out_specs, ShardMapOptions options,
           std::source_location where)
      : mesh_(std::move(mesh)),
        in_specs_(std::move(in_specs)),
        out_specs_(std::move(out_specs)),
        options_(std::move(options)),
        where_(where) {
    const Call here("shard_map", where_);
    for (const auto& name : options_.axis_names)
      if (mesh_.axis_number(name) < 0)
        refuse("axis_names names '" + name + "', which is no axis of " + field_text(mesh_));
  }

  std::vector<Array> apply(detail::MappedCall& call) const override {
    const Call here("shard_map", where_);
    const auto parent = current_region();
    const Region region = region_inside(parent);
    const auto in = leaves_of(in_specs_, call.args, "in_specs", "the arguments", region);
    bool uneven = false;
    for (std::size_t i = 0; i < in.size(); ++i) uneven |= check_argument(call.leaves[i], i, in[i]);
    const int me = std::max(0, mesh_.position(own_device_id()));
    std::vector<Trace> others;
    if (uneven) others = trace_all_shapes(call, in, region);
    Region own = region;
    own.uneven = uneven || (parent && parent->uneven);
    own.position = me;
    const auto shared = std::make_shared<const Region>(std::move(own));
    const auto traced = trace(call, call.leaves, in, shared);
    if (traced.effects.node())
      hand_on_effects(exit_region(brought_inside(traced.effects, shared), shared, {}, Shape{}));
    const auto out = leaves_of(out_specs_, call.result, "out_specs", "the result", region);
    std::vector<Array> results;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Array value = brought_inside(traced.results[i], shared);
      check_replication(value, i, out[i], *shared);
      results.push_back(exit_region(value, shared, out[i].dims, global_shape(value, i, out[i], others)));
    }
    return results;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw ShardingError(call_text() + ": " + why); }

  Region region_inside(const RegionPtr& parent) const {
    Region region{mesh_, {}, options_.check_vma, false, 0, parent};
    if (parent && !(parent->mesh == mesh_))
      refuse("inside a function that is mapped over " + field_text(parent->mesh) +
             ", a shard_map must be over the same mesh, with other axes as axis_names; it is over " +
             field_text(mesh_));
    std::vector<int> own;
    for (const auto& name : options_.axis_names) own.push_back(mesh_.axis_number(name));
    if (options_.axis_names.empty())
      for (int a = 0; a < mesh_.ndim(); ++a)
        if (!parent || !std::binary_search(parent->manual_axes.begin(), parent->manual_axes.end(), a))
          own.push_back(a);
    if (parent) {
      for (const int a : own)
        if (std::binary_search(parent->manual_axes.begin(), parent->manual_axes.end(), a))
          refuse("the axis '" + mesh_.axis_names()[a] +
                 "' is mapped already by the function around it; name other axes in axis_names");
      region.manual_axes = parent->manual_axes;
      region.position = parent->position;
    }
    region.manual_axes.insert(region.manual_axes.end(), own.begin(), own.end());
    std::sort(region.manual_axes.begin(), region.manual_axes.end());
    region.manual_axes.erase(std::unique(region.manual_axes.begin(), region.manual_axes.end()),
                             region.manual_axes.end());
    return region;
  }

  std::vector<Leaf> leaves_of(const SpecTree& specs, const detail::TreeShape& tree, const char* which,
                              const char* what, const Region& region) const {
    std::vector<PartitionSpec> spread;
    spread_prefix(specs, tree, call_text() + ": " + which, what, spread);
    const auto own = own_axes(region);
    std::vector<Leaf> leaves;
    for (const auto& spec : spread) {
      Leaf leaf{spec, {}};
      std::uint64_t used = 0;
      for (const auto& dim : spec.dims()) {
        leaf.dims.emplace_back();
        for (const auto& name : dim.names()) {
          const int a = mesh_.axis_number(name);
          const auto in_spec = std::string(which) + " has " + text_of(spec) + ", whose axis '" + name + "' ";
          if (a < 0) refuse(in_spec + "is no axis of " + field_text(mesh_));
          if (std::find(own.begin(), own.end(), a) == own.end())
            refuse(in_spec + "is not one that this shard_map maps (axis_names); leave it out of the spec");
          if ((used >> a & 1) != 0) refuse(in_spec + "stands there twice");
          used |= std::uint64_t{1} << a;
          leaf.dims.back().push_back(a);
        }
      }
      leaves.push_back(std::move(leaf));
    }
    return leaves;
  }

  // Returns whether some dim has blocks of different sizes.
  bool check_argument(const Array& x, std::size_t number, const Leaf& leaf) const {
    check_usable(x);
    check_length(x, "argument", number, leaf);
    bool uneven = false;
    for (std::size_t d = 0; d < leaf.dims.size(); ++d) {
      const auto n = x.shape()[d], parts = devices_along(mesh_, leaf.dims[d]);
      if (n % parts == 0) continue;
      uneven = true;
      if ((parts - 1) * block_size(n, parts) >= n)
        refuse("argument " + std::to_string(number) + ", " + describe(x) + ", with the spec " +
               text_of(leaf.spec) + ": dimension " + std::to_string(d) + " of " + std::to_string(n) + " in " +
               std::to_string(parts) + " blocks of " + std::to_string(block_size(n, parts)) +
               " leaves ranks without a block. Multiples of " + std::to_string(parts) +
               " always do; pad it to " + std::to_string((n + parts - 1) / parts * parts));
    }
    return uneven;
  }

  void check_length(const Array& x, const char* what, std::size_t number, const Leaf& leaf) const {
    if (leaf.dims.size() > x.shape().size())
      refuse(std::string(what) + " " + std::to_string(number) + ", " + describe(x) + ", has " +
             std::to_string(x.ndim()) + " dimensions, fewer than the entries of its spec " +
             text_of(leaf.spec));
  }

  std::vector<AxisBinding> bindings(const RegionPtr& region) const {
    std::vector<AxisBinding> bound;
    for (const int a : own_axes(*region)) {
      const auto axis = static_cast<std::size_t>(a);
      bound.push_back({mesh_.axis_names()[axis], mesh_.axis_sizes()[axis], call_text(), 0, {}, region, a});
    }
    return bound;
  }

  Trace trace(detail::MappedCall& call, const std::vector<Array>& arguments, const std::vector<Leaf>& in,
              const RegionPtr& region) const {
    Trace result{region->position, {}, {}, {}};
    ShapeLog log;
    std::vector<Array> blocks;
    for (std::size_t i = 0; i < in.size(); ++i)
      blocks.push_back(enter_region(arguments[i], region, in[i].dims));
    {
      const AxisScope scope(bindings(region));
      const EffectScope effects(effect_token());
      const UserCode users;
      result.results = call.body(blocks);
      if (effects.has_effects()) result.effects = effects.token();
    }
    for (const auto& x : result.results) check_usable(x);
    result.shapes = std::move(log.shapes);
    return result;
  }

  // For uneven blocks every rank traces every occurring block shape with placeholders, so that all ranks
  // reach the same verdict. Returns one trace per mesh position.
  std::vector<Trace> trace_all_shapes(detail::MappedCall& call, const std::vector<Leaf>& in,
                                      Region region) const {
    region.uneven = true;
    std::map<std::vector<std::int64_t>, std::size_t> known;
    std::vector<Trace> traces, by_position;
    for (int position = 0; position < mesh_.size(); ++position) {
      std::vector<std::int64_t> extents;
      for (std::size_t i = 0; i < in.size(); ++i) {
        auto dims = in[i].dims;
        const auto box = Sharding::from_dim_axes(mesh_, dims)
                             .local_box(call.leaves[i].shape(), mesh_.device_ids()[position]);
        for (const auto& range : box) extents.push_back(range.size());
      }
      const auto [found, is_new] = known.emplace(std::move(extents), traces.size());
      if (is_new) {
        region.position = position;
        std::vector<Array> placeholders;
        for (const auto& x : call.leaves)
          placeholders.push_back(
              make_placeholder(type_of(x), output_of(x).sharding, x.node()->region, output_of(x).varying));
        traces.push_back(trace(call, placeholders, in, std::make_shared<const Region>(region)));
        if (traces.size() > 1) check_alike(traces.front(), traces.back());
      }
      by_position.push_back(traces[found->second]);
    }
    return by_position;
  }

  void check_alike(const Trace& a, const Trace& b) const {
    const auto devices = [&] {
      return "the blocks of device " + std::to_string(mesh_.device_ids()[a.position]) + " and of device " +
             std::to_string(mesh_.device_ids()[b.position]);
    };
    const std::string mend = ". Pad the arguments to sizes that their axes divide";
    for (std::size_t i = 0; i < std::min(a.shapes.size(), b.shapes.size()); ++i) {
      if (a.shapes[i].call != b.shapes[i].call)
        refuse("with blocks of different sizes the function takes another way on some ranks: for " +
               devices() + " it calls " + a.shapes[i].call + " and " + b.shapes[i].call + mend);
      if (!(a.shapes[i].shape == b.shapes[i].shape))
        refuse(a.shapes[i].call + " meets the shapes " + to_string(a.shapes[i].shape) + " and " +
               to_string(b.shapes[i].shape) + " for " + devices() +
               ", but a collective needs the same shape on all ranks" + mend);
    }
    if (a.shapes.size() != b.shapes.size() || a.results.size() != b.results.size())
      refuse("with blocks of different sizes the function takes another way on some ranks: " +
             std::to_string(a.shapes.size()) + " and " + std::to_string(b.shapes.size()) +
             " collectives for " + devices() + mend);
  }

  void check_replication(const Array& value, std::size_t number, const Leaf& leaf,
                         const Region& region) const {
    check_length(value, "result", number, leaf);
    if (!region.check_varying) return;
    std::uint64_t named = 0;
    for (const auto& dim : leaf.dims) named |= axes_mask(dim);
    std::string axes;
    for (const int a : own_axes(region))
      if ((output_of(value).varying & ~named) >> a & 1)
        axes += (axes.empty() ? "'" : ", '") + mesh_.axis_names()[a] + "'";
    if (axes.empty()) return;
    refuse("result " + std::to_string(number) + ", " + to_string(type_of(value)) + " from " +
           site(value.node()->where) + ", may differ between the ranks along " + axes + ", but its spec " +
           text_of(leaf.spec) +
           " does not name it and so promises one value. Combine it (psum, pmean, all_gather), name the axis "
           "in out_specs, or pass "
           "check_vma = false if you know that it is the same");
  }

  Shape global_shape(const Array& value, std::size_t number, const Leaf& leaf,
                     const std::vector<Trace>& traces) const {
    Shape extents = value.shape();
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const auto axes = d < leaf.dims.size() ? leaf.dims[d] : std::vector<int>{};
      const auto parts = devices_along(mesh_, axes);
      if (traces.empty())
        extents[d] *= parts;
      else
        extents[d] = uneven_extent(number, d, axes, parts, traces);
    }
    return extents;
  }

  // The extent of a result; the ranks' results must be the blocks of an array with that many elements.
  std::int64_t uneven_extent(std::size_t number, std::size_t d, const std::vector<int>& axes,
                             std::int64_t parts, const std::vector<Trace>& traces) const {
    std::vector<std::int64_t> sizes(parts, -1);
    // Finds the block number of each mesh position: the start of its box in an array with one element per
    // block.
    const auto sharding = Sharding::from_dim_axes(mesh_, {axes});
    bool fits = true;
    std::int64_t total = 0;
    for (int position = 0; position < mesh_.size(); ++position) {
      const auto part =
          static_cast<std::size_t>(sharding.local_box(Shape{parts}, mesh_.device_ids()[position])[0].start);
      const auto& shape = traces[position].results[number].shape();
      const auto n = d < shape.size() ? shape[d] : -1;
      if (sizes[part] < 0) sizes[part] = n, total += n;
      fits &= sizes[part] == n;
    }
    for (std::int64_t i = 0; i < parts; ++i) fits &= sizes[i] == block_range(total, parts, i).size();
    if (!fits)
      refuse("result " + std::to_string(number) + ": along dimension " + std::to_string(d) +
             " the ranks' results have the sizes " + text_of(sizes) +
             ", which are not the blocks of an array of " + std::to_string(total) + " elements over " +
             std::to_string(parts) + " ranks (blocks of " + std::to_string(block_size(total, parts)) +
             "). Arguments whose sizes are multiples of the axis sizes always do; pad them");
    return total;
  }

  Mesh mesh_;
  SpecTree in_specs_, out_specs_;
  ShardMapOptions options_;
  std::source_location where_;
};

}  // namespace

std::shared_ptr<const detail::MapRule> detail::shard_map_rule(Mesh mesh, SpecTree in_specs,
                                                              SpecTree out_specs, ShardMapOptions options,
                                                              std::source_location where) {
  return std::make_shared<const ShardMap>(std::move(mesh), std::move(in_specs), std::move(out_specs),
                                          std::move(options), where);
}

}  // namespace tessera
