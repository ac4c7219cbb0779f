// The types and layouts of loop-carried values, which must not change from step to step. Found by tracing the
// body repeatedly until its results match its arguments:
//
//   init i32 (weak)   body returns f32          -> init becomes f32
//   init uncommitted  body returns P('x')       -> carried in P('x')
//   init P()          body returns P('x')       -> where the loop as a whole moves fewer bytes
//   init equal on all ranks of a mapped axis, body's result differs -> declared varying from the start
#include <algorithm>
#include <set>

#include "compile/pipeline.hpp"
#include "control/control_flow.hpp"
#include "graph/hooks.hpp"
#include "ops/build.hpp"
#include "types/extents.hpp"

namespace tessera {

void throw_type_mismatch(const LoopCall& call, std::size_t i, const Type& init, const std::string& described,
                         const Array& result) {
  const auto leaf = i < call.leaf_names.size() && !call.leaf_names[i].empty()
                        ? "carried value" + call.leaf_names[i]
                        : "carried value " + std::to_string(i);
  const bool same_shape = init.shape == result.shape();
  const std::string what = call_text() + ": the body must return what it is given, but " + leaf +
                           " goes in as " + to_string(init) + described + " and comes back as " +
                           to_string(type_of(result)) + " from " + site(result.node()->where) + ". ";
  if (same_shape)
    throw DtypeError(what + "Convert the result with astype(..., " + name(init.dtype) + "), or begin with " +
                     name(result.dtype()));
  throw ShapeError(what + "Reshape or reduce the result, or begin with an array of its shape");
}

namespace {

constexpr int most_rounds = 8;

std::string described(const Array& x) { return " (" + describe(x) + ")"; }
std::uint64_t missing_axes(const Array& x, std::uint64_t varying) { return varying & ~output_of(x).varying; }

class Settling {
 public:
  Settling(const LoopCall& call, std::vector<Array> init, const LeafFunction& body)
      : call_(call), init_(std::move(init)), body_(body) {
    for (const auto& x : init_) {
      const auto& output = output_of(x);
      kinds_.push_back({output.type, output.sharding, x.node()->region, output.varying});
    }
  }

  CarriedValues run() {
    for (int round = 0; round < most_rounds; ++round) {
      auto traced = trace();
      if (!adapt(traced)) return finished(std::move(traced));
    }
    throw InternalError(call_text() + ": the types of the carried values do not settle");
  }

 private:
  struct Kind {
    Type type;
    std::optional<Sharding> sharding;
    RegionPtr region;
    std::uint64_t varying;
  };

  CarriedValues trace() const {
    CarriedValues traced;
    traced.before = last_serial();
    for (const auto& kind : kinds_)
      traced.parameters.push_back(make_placeholder(kind.type, kind.sharding, kind.region, kind.varying));
    traced.results = body_(traced.parameters);
    for (const auto& x : traced.results) check_usable(x);
    if (traced.results.size() < init_.size())
      throw ArgumentError(call_text() +
                          ": the body must return what it is given: " + std::to_string(init_.size()) +
                          " arrays go in, " + std::to_string(traced.results.size()) + " come back");
    return traced;
  }

  // Adapts the kinds to the traced results; returns whether one changed, so that the body must be traced
  // again.
  bool adapt(CarriedValues& traced) {
    bool changed = false;
    for (std::size_t i = 0; i < init_.size(); ++i) {
      auto& kind = kinds_[i];
      Array& result = traced.results[i];
      if (result.shape() != init_[i].shape())
        throw_type_mismatch(call_, i, type_of(init_[i]), described(init_[i]), result);
      changed |= adapt_type(i, result);
      const auto& output = output_of(result);
      if (!kind.sharding && output.sharding) kind.sharding = output.sharding, changed = true;
      const auto& region = result.node()->region;
      if (region && kind.region != region && !is_outside_of(region, kind.region))
        kind.region = region, changed = true;
      if ((output.varying & ~kind.varying) != 0) kind.varying |= output.varying, changed = true;
    }
    return changed;
  }

  static bool is_outside_of(const RegionPtr& outer, const RegionPtr& inner) {
    for (RegionPtr r = inner; r; r = r->parent)
      if (r == outer) return true;
    return false;
  }

  bool adapt_type(std::size_t i, Array& result) {
    auto& type = kinds_[i].type;
    const Type given = type_of(result);
    if (given.dtype == type.dtype) {
      if (given.weak == type.weak || !type.weak) return false;
      type.weak = false;
      return true;
    }
    const auto both = promote({type.dtype, type.weak}, {given.dtype, given.weak}).dtype;
    if (given.weak && both == type.dtype) {
      result = cast_to(result, type.dtype);
      return false;
    }
    if (!type.weak || both != given.dtype)
      throw_type_mismatch(call_, i, type_of(init_[i]), described(init_[i]), result);
    init_[i] = cast_to(init_[i], given.dtype);
    type = {type.shape, given.dtype, false};
    return true;
  }

  CarriedValues finished(CarriedValues traced) const {
    traced.init = init_;
    for (std::size_t i = 0; i < init_.size(); ++i) {
      const auto& kind = kinds_[i];
      if (!kind.region || !kind.region->check_varying) continue;
      for (Array* x : {&traced.init[i], &traced.results[i]}) {
        if (x->node()->region != kind.region) *x = region_hooks().enter(*x, kind.region);
        if (const auto missing = missing_axes(*x, kind.varying); missing != 0)
          *x = region_hooks().vary(*x, missing);
      }
    }
    return traced;
  }

  const LoopCall& call_;
  std::vector<Array> init_;
  const LeafFunction& body_;
  std::vector<Kind> kinds_;
};

}  // namespace

CarriedValues settle_carried(const LoopCall& call, std::vector<Array> init, const LeafFunction& body) {
  for (const auto& x : init) check_usable(x);
  return Settling(call, std::move(init), body).run();
}

std::optional<Mesh> mesh_of(const std::vector<FunctionPtr>& functions) {
  std::vector<Mesh> meshes;
  std::set<int> devices;
  const auto add = [&](const std::optional<Sharding>& sharding) {
    if (!sharding) return;
    const Mesh mesh = sharding->mesh();
    if (std::any_of(meshes.begin(), meshes.end(), [&](const Mesh& m) { return m == mesh; })) return;
    meshes.push_back(mesh);
    const auto ids = mesh.device_ids();
    devices.insert(ids.begin(), ids.end());
  };
  for (const auto& f : functions) {
    for (const auto& x : f->parameters()) add(output_of(x).sharding);
    for (const auto& x : f->results()) add(output_of(x).sharding);
  }
  for (const auto& f : functions)
    for (const auto& node : f->graph().nodes)
      for (const auto& output : node->outputs) add(output.sharding);
  if (meshes.empty()) return std::nullopt;
  for (const auto& mesh : meshes)
    if (static_cast<std::size_t>(mesh.size()) == devices.size()) return mesh;
  return replicated_everywhere().mesh();
}

std::vector<Sharding> layouts_on(const Mesh& mesh, const std::vector<Array>& values) {
  std::vector<Sharding> layouts;
  for (const auto& x : values)
    layouts.push_back(output_of(x).sharding ? *output_of(x).sharding : Sharding::replicated(mesh));
  return layouts;
}

Program part_of(const ClosedFunction& f, std::vector<Sharding> results, std::vector<Sharding> operands) {
  return partition(f.graph(), {}, {results.begin(), results.end()}, {operands.begin(), operands.end()});
}

std::int64_t bytes_of_call(const ClosedFunction& f, const std::vector<std::optional<Sharding>>& results) {
  std::int64_t bytes = 0;
  for (const auto& i : partition(f.graph(), {}, results).instructions)
    for (const auto& t : traffic_of(i)) bytes += t.bytes;
  return bytes;
}

void add_expressions(const std::vector<FunctionPtr>& parts, Loop& loop) {
  std::unordered_map<std::pair<const Node*, int>, int, ArrayKeyHash> number;
  int next = 0;
  for (const auto& leaf : parts[0]->parameters()) number[key_of_array(leaf)] = next++;
  for (const auto& part : parts) {
    for (const auto& node : part->graph().nodes) {
      std::vector<int> reads;
      for (const auto& x : node->inputs) reads.push_back(number.at(key_of_array(x)));
      if (is_made_alias(*node)) {
        number[{node.get(), 0}] = reads[0];
        continue;
      }
      for (int o = 0; o < static_cast<int>(node->outputs.size()); ++o) {
        loop.expressions.push_back({node->op, node->params, o, reads});
        number[{node.get(), o}] = next++;
      }
    }
    for (const auto& root : part->results()) loop.results.push_back(number.at(key_of_array(root)));
  }
}

bool moves_anything(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(), [](const Instruction& i) {
    const auto* control = i.control();
    return !traffic_of(i).empty() ||
           (control != nullptr && std::any_of(control->parts.begin(), control->parts.end(), moves_anything));
  });
}

Sharding stacked(const Sharding& entry, int entry_ndim, const MeshAxes& steps_over) {
  auto dims = entry.dim_axes(entry_ndim);
  dims.insert(dims.begin(), steps_over);
  return Sharding::from_dim_axes(entry.mesh(), dims);
}
Type stacked(const Type& entry, std::int64_t length) {
  return {with_dim(entry.shape, 0, length), entry.dtype, false};
}
Sharding without_first_dim(const Sharding& stack, int stack_ndim) {
  auto dims = stack.dim_axes(stack_ndim);
  dims.erase(dims.begin());
  return Sharding::from_dim_axes(stack.mesh(), dims);
}

}  // namespace tessera
