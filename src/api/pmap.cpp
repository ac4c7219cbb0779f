// pmap: shard_map with one example per device, over a mesh of the first devices (or of given ones).
//
//   x[4, 3] over 4 devices      manual_enter P('i') at the mapped dim: [1, 3]      the function sees [3]
//
// A pmap inside the function maps over further devices, so the mesh must be known in advance: the function is
// traced first with placeholders, where pmaps are vmaps that record their sizes, then a second time over the
// product mesh ('outer': 2, 'inner': 3).
#include <tessera/maps.hpp>

#include <algorithm>
#include <map>

#include "base/session.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/collective/manual.hpp"
#include "ops/functions.hpp"
#include "transforms/vmap.hpp"

namespace tessera {
namespace {

// The size and name of the pmap at one depth of a call.
struct Level {
  std::int64_t size = 1;
  std::string name;
};
using Levels = std::vector<Level>;

// State of the first trace: the levels found so far, and the current depth.
struct Discovery {
  Levels levels;
  std::size_t depth = 0;
};

// State of the second trace: the product mesh, and the axis of the next inner pmap.
struct Product {
  Mesh mesh;
  int next_axis;
  RegionPtr region;
};

struct OpenPmaps {
  Discovery* discovery = nullptr;
  const Product* product = nullptr;
};
OpenPmaps& open_pmaps() { return state<OpenPmaps>(); }

template <class T> class Restore {
 public:
  Restore(T& variable, T value) : variable_(variable), before_(variable) { variable = value; }
  ~Restore() { variable_ = before_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T before_;
};

class Pmap final : public detail::MapRule {
 public:
  Pmap(PmapOptions options, std::source_location where)
      : options_(std::move(options)), where_(where), call_text_(call_text(UserCall{"pmap", where})) {}

  std::vector<Array> apply(detail::MappedCall& call) const override {
    const Call here("pmap", where_);
    VmapRequest request{{}, options_.out_axes, options_.axis_name, 1, call_text_};
    request.in_dims = leaf_axes(options_.in_axes, call, call_text_ + ": in_axes");
    request.size = mapped_size(request.in_dims, call.leaves, std::nullopt, call_text_);
    if (request.size < 1)
      throw ArgumentError(call_text_ +
                          ": the mapped axes have the size 0; there must be at least one example");
    if (open_pmaps().discovery != nullptr) return discover(call, request);
    const Product* product = open_pmaps().product;
    const auto around = current_region();
    if (product != nullptr && around == product->region && product->next_axis < product->mesh.ndim() &&
        product->mesh.axis_sizes()[product->next_axis] == request.size)
      return run(call, request, product->mesh, product->next_axis, around);
    // No devices are left inside a shard_map, or beside a pmap of another size: each rank computes all
    // examples.
    if (around) return apply_vmap(call, request);
    auto results = run(call, request, mesh_for(call, request), 0, nullptr);
    donate(call, results);
    return results;
  }

 private:
  std::vector<Array> discover(detail::MappedCall& call, const VmapRequest& request) const {
    auto& found = *open_pmaps().discovery;
    if (found.levels.size() <= found.depth) found.levels.emplace_back();
    auto& level = found.levels[found.depth];
    if (request.size > level.size) level = {request.size, options_.axis_name};
    const Restore<std::size_t> deeper(found.depth, found.depth + 1);
    return apply_vmap(call, request);
  }

  Mesh mesh_for(detail::MappedCall& call, const VmapRequest& request) const {
    Discovery found;
    {
      const Restore<Discovery*> looking(open_pmaps().discovery, &found);
      const auto key = key_of(call);
      const auto known = levels_.find(key);
      if (known == levels_.end()) {
        discover(call, request);
        if (levels_.size() > 256) levels_.clear();
        levels_.emplace(key, found.levels);
      } else {
        found.levels = known->second;
      }
    }
    std::vector<int> sizes{static_cast<int>(request.size)};
    std::vector<std::string> names{options_.axis_name};
    for (std::size_t i = 1; i < found.levels.size(); ++i) {
      sizes.push_back(static_cast<int>(found.levels[i].size));
      names.push_back(found.levels[i].name);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {  // gives every axis a distinct name
      if (names[i].empty()) names[i] = "pmap" + std::to_string(i);
      while (std::count(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) != 0)
        names[i] += "'";
    }
    std::int64_t needed = 1;
    for (const int n : sizes) needed *= n;
    auto devices = options_.devices.empty() ? tessera::devices() : options_.devices;
    if (needed > static_cast<std::int64_t>(devices.size()))
      throw ShardingError(call_text_ + ": " + std::to_string(needed) + " examples" +
                          (sizes.size() > 1 ? " (the sizes of the nested pmaps are " + field_text(sizes) + ")"
                                            : std::string()) +
                          " need as many devices, but " +
                          (options_.devices.empty() ? "the job has " : "the option devices names ") +
                          std::to_string(devices.size()) +
                          ". Start more ranks, or use vmap for a part of the examples");
    if (!options_.devices.empty() && static_cast<std::int64_t>(devices.size()) != needed)
      throw ShardingError(call_text_ + ": the option devices names " + std::to_string(devices.size()) +
                          " devices for " + std::to_string(needed) + " examples; name one per example");
    return make_mesh(std::move(sizes), std::move(names), std::move(devices));
  }

  static std::string key_of(const detail::MappedCall& call) {
    std::string key = call.structure;
    for (const auto& x : call.leaves) key += ";" + to_string(type_of(x));
    return key;
  }

  std::vector<Array> run(detail::MappedCall& call, const VmapRequest& request, const Mesh& mesh, int axis,
                         const RegionPtr& around) const {
    Region region{mesh, {}, false, false, around ? around->position : 0, around};
    if (!around) region.position = std::max(0, mesh.position(local_devices()[0].id));
    for (int a = 0; a <= axis; ++a) region.manual_axes.push_back(a);
    if (around) region.uneven = around->uneven;
    const auto inside = std::make_shared<const Region>(std::move(region));
    std::vector<Array> blocks;
    for (std::size_t i = 0; i < call.leaves.size(); ++i)
      blocks.push_back(block_of(call.leaves[i], request.in_dims[i], inside, axis));
    const Product inner{mesh, axis + 1, inside};
    std::vector<Array> results;
    {
      const Restore<const Product*> product_scope(open_pmaps().product, &inner);
      const AxisScope scope({{options_.axis_name, request.size, call_text_, 0, {}, inside, axis}});
      const UserCode users;
      results = call.body(blocks);
    }
    const auto out = result_axes(options_.out_axes, call.result, results, call_text_ + ": out_axes");
    std::vector<Array> mapped;
    for (std::size_t i = 0; i < results.size(); ++i) {
      DimAxes dims;
      Shape global = results[i].shape();
      Array value = brought_inside(results[i], inside);
      if (out[i]) {
        value = expand_dims(value, *out[i]);
        dims.resize(static_cast<std::size_t>(*out[i]) + 1);
        dims.back() = {axis};
        Shape extents = value.shape();
        extents[*out[i]] = request.size;
        global = extents;
      } else if ((output_of(value).varying >> axis & 1) != 0) {
        throw ArgumentError(
            call_text_ + ": result " + std::to_string(i) +
            " may differ between the examples, but its out_axes is None, which promises " +
            "one value for all; give it an axis, or reduce it inside (psum over the axis name)");
      }
      mapped.push_back(exit_region(value, inside, std::move(dims), std::move(global)));
    }
    return mapped;
  }

  // Moves an argument from any layout to the devices of the mesh.
  Array block_of(const Array& x, std::optional<int> dim, const RegionPtr& region, int axis) const {
    DimAxes dims;
    if (dim) {
      dims.resize(static_cast<std::size_t>(*dim) + 1);
      dims.back() = {axis};
    }
    Array moved = x;
    const auto& sharding = output_of(x).sharding;
    if (!region->parent && sharding && !(sharding->mesh().device_ids() == region->mesh.device_ids()))
      moved = device_put(x, Sharding::from_dim_axes(region->mesh, dims));
    const Array block = enter_region(moved, region, std::move(dims));
    return dim ? squeeze(block, Axes(*dim)) : block;
  }

  void donate(const detail::MappedCall& call, const std::vector<Array>& results) const {
    if (options_.donate_argnums.empty()) return;
    std::vector<std::size_t> first{0};
    for (const auto& argument : call.args.children) first.push_back(first.back() + count(argument));
    std::vector<Array> given;
    for (int n : options_.donate_argnums) {
      const int arguments = static_cast<int>(call.args.children.size());
      if (n < -arguments || n >= arguments)
        throw ArgumentError(call_text_ + ": donate_argnums names argument " + std::to_string(n) +
                            ", but the call has " + std::to_string(arguments));
      if (n < 0) n += arguments;
      for (std::size_t i = first[n]; i < first[n + 1]; ++i)
        if (!call.leaves[i].node()->traced) given.push_back(call.leaves[i]);
    }
    if (given.empty()) return;
    for (const auto& x : results)
      if (x.node()->has_placeholder) return;  // inside another trace nothing is computed yet
    eval(results);                            // the last read of the donated values
    for (auto& x : given)
      if (!x.is_deleted()) x.delete_();
  }

  static std::size_t count(const detail::TreeShape& tree) {
    std::size_t n = tree.is_leaf ? 1 : 0;
    for (const auto& child : tree.children) n += count(child);
    return n;
  }

  PmapOptions options_;
  std::source_location where_;
  std::string call_text_;
  mutable std::map<std::string, Levels> levels_;
};

}  // namespace

std::shared_ptr<const detail::MapRule> detail::pmap_rule(PmapOptions options, std::source_location where) {
  return std::make_shared<const Pmap>(std::move(options), where);
}

}  // namespace tessera
