#include "stream/recorder.hpp"

#include <tessera/array/index.hpp>
#include <tessera/device.hpp>
#include <tessera/ops.hpp>

#include <algorithm>

#include "base/call.hpp"
#include "base/thresholds.hpp"
#include "mesh/devices.hpp"
#include "ops/build.hpp"
#include "ops/collective/manual.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/index/remap_op.hpp"
#include "ops/index/update/addressed.hpp"
#include "ops/resized.hpp"
#include "ops/sort/cumulative.hpp"
#include "ops/sparse/sparse_params.hpp"
#include "stream/file_source.hpp"
#include "stream/passes.hpp"

namespace tessera::stream {
namespace {

// The shape with another extent along the dim; unchanged for dim -1.
Shape resized(Shape shape, int dim, std::int64_t extent) {
  if (dim >= 0) shape[static_cast<std::size_t>(dim)] = extent;
  return shape;
}

Array part_along(const Array& x, int dim, std::int64_t start, std::int64_t stop) {
  std::vector<IndexPart> parts(static_cast<std::size_t>(dim), slice());
  parts.emplace_back(slice(start, stop));
  return index(x, std::move(parts));
}

RemapParams shortened(RemapParams p, int dim, std::int64_t extent) {
  p.shape[static_cast<std::size_t>(dim)] = extent;
  for (auto& piece : p.pieces) piece.to[static_cast<std::size_t>(dim)] = {0, extent};
  return p;
}

}  // namespace

ParamsPtr params_for_part(const Node& node, int dim, std::int64_t extent) {
  if (node.op->name == "remap" && dim >= 0)
    return make_params(shortened(node.params->as<RemapParams>(), dim, extent));
  const auto other =
      params_with_shape(*node.op, *node.params, resized(node.outputs[0].type.shape, dim, extent));
  return other ? other : node.params;
}

Array combined(ReduceKind kind, const Array& a, const Array& b) {
  switch (kind) {
    case ReduceKind::sum: return a + b;
    case ReduceKind::prod: return a * b;
    case ReduceKind::max: return maximum(a, b);
    case ReduceKind::min: return minimum(a, b);
    case ReduceKind::any: return logical_or(a, b);
    case ReduceKind::all: return logical_and(a, b);
    case ReduceKind::logsumexp: return logaddexp(a, b);
    default: throw InternalError(std::string("stream: parts combine by ") + name(kind));
  }
}

Array combined_along_first(ReduceKind kind, const Array& parts) {
  switch (kind) {
    case ReduceKind::sum: return sum(parts, 0);
    case ReduceKind::prod: return prod(parts, 0);
    case ReduceKind::max: return max(parts, 0);
    case ReduceKind::min: return min(parts, 0);
    case ReduceKind::any: return any(parts, 0);
    case ReduceKind::all: return all(parts, 0);
    default: throw InternalError(std::string("stream: parts of ranks combine by ") + name(kind));
  }
}

bool has_parts_of_ranks(const Array& x) {
  constexpr std::int64_t large = 64 << 10;  // bytes; less is sent in the time of a few messages
  const Node& node = *x.node();
  return device_count() > 1 && !node.same_bits && x.nbytes() >= threshold(large) &&
         rule_of(*node.op) != nullptr && parts_combine_by(node) != ReduceKind::logsumexp;
}

Array WholeValues::of(const Array& x) {
  const auto id = id_of(x);
  if (const auto known = known_.find(id); known != known_.end()) return known->second;
  const Role& role = roles_.role(x);
  if (role.kind == Role::partial || role.kind == Role::slab)
    throw InternalError("stream: a value is asked for before its pass is over");
  Array value = x;
  if (role.kind == Role::whole && !is_parameter(*x.node())) {
    std::vector<Array> inputs;
    for (const auto& input : x.node()->inputs) inputs.push_back(of(input));
    value =
        record_again(*x.node(), x.node()->params, std::move(inputs))[static_cast<std::size_t>(x.output())];
  }
  recorded_.push_back(id);
  return known_[id] = value;
}

void WholeValues::compute_all(const std::function<std::vector<Array>(const std::vector<Array>&)>& compute) {
  std::vector<Array> values;
  for (const auto& id : recorded_) values.push_back(known_.at(id));
  if (!values.empty()) values = compute(values);
  for (std::size_t i = 0; i < recorded_.size(); ++i) known_[recorded_[i]] = values[i];
  recorded_.clear();
}

// Large operands that are made as they are used (a constant, a broadcast) are recorded by slabs.
bool SlabRecorder::follows(const Array& x) const {
  constexpr std::int64_t small = 1 << 16;
  const Node& node = *x.node();
  if (roles_.role(x).kind == Role::slab) return true;
  if (roles_.role(x).kind != Role::memory || node.is_evaluated() || is_parameter(node) || x.nbytes() < small)
    return false;
  const auto link = link_in(node, dims_, roles_.dim_class);
  return link && !link->is_reduced;
}

Array SlabRecorder::leaf(const Array& x, int dim) {
  return slabs_[id_of(x)] = cut_(is_file(*x.node()) ? x : wholes_.of(x), dim);
}

Array SlabRecorder::of(const Array& x) {
  const auto id = id_of(x);
  if (const auto known = slabs_.find(id); known != slabs_.end()) return known->second;
  const int dim = dims_.dim_in(roles_.dim_class, x);
  if (dim < 0) return wholes_.of(x);
  if (is_file(*x.node()) || !follows(x)) return leaf(x, dim);
  const auto results = recorded(*x.node(), false);
  for (std::size_t i = 0; i < results.size(); ++i) slabs_[{x.node().get(), static_cast<int>(i)}] = results[i];
  return results[static_cast<std::size_t>(x.output())];
}

Array SlabRecorder::part_of(const Array& x) {
  return recorded(*x.node(), true)[static_cast<std::size_t>(x.output())];
}

std::vector<Array> SlabRecorder::parts_in_order(const Array& x) {
  const Node& node = *x.node();
  const OnBehalfOf call(node.called());
  std::vector<Array> inputs;
  for (const auto& input : node.inputs) inputs.push_back(of(input));
  const auto whole = ordered_parts(node, std::move(inputs));
  const auto extent = whole.inputs[0].shape()[static_cast<std::size_t>(whole.dims[0])];
  std::vector<Array> parts;
  for (std::int64_t start = 0, stop = 0; start < extent; start = stop) {
    const auto next = (start / whole.at_a_time + 1) * whole.at_a_time;
    stop = std::min({start + whole.depth, next, extent});
    inputs = whole.inputs;
    for (std::size_t i = 0; i < inputs.size() && stop - start < extent; ++i)
      inputs[i] = part_along(inputs[i], whole.dims[i], start, stop);
    parts.push_back(record_again(node, whole.params, std::move(inputs))[0]);
  }
  return parts;
}

Array SlabRecorder::parts_of_ranks(const Array& x) {
  const Node& node = *x.node();
  const OnBehalfOf call(node.called());
  const auto link = *link_in(node, dims_, roles_.dim_class);
  const Mesh mesh = slab_layout(1, 0).mesh();
  const auto region = std::make_shared<const Region>(
      Region{mesh, {0}, false, false, std::max(0, mesh.position(own_device_id())), nullptr});
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    DimAxes axes(static_cast<std::size_t>(node.inputs[i].ndim()));
    if (link.in[i] >= 0) axes[static_cast<std::size_t>(link.in[i])] = {0};
    inputs.push_back(enter_region(of(node.inputs[i]), region, std::move(axes)));
  }
  const Array part = record_again(node, params_for_part(node, -1, 0),
                                  std::move(inputs))[static_cast<std::size_t>(x.output())];
  auto extents = x.shape().vector();
  extents.insert(extents.begin(), 1);
  const Array row = reshape(part, Shape(extents));
  extents[0] = static_cast<std::int64_t>(device_count());
  return exit_region(row, region, {{0}}, Shape(std::move(extents)));
}

std::vector<Array> SlabRecorder::recorded(const Node& node, bool is_partial) {
  std::vector<Array> inputs;
  for (const auto& input : node.inputs) inputs.push_back(of(input));
  if (is_partial && is_top_k(node) && length_ < node.outputs[0].type.shape.back()) {  // the last slab
    const OnBehalfOf call(node.called());
    const auto [values, places] = top_k(inputs[0], static_cast<int>(length_));
    return {values, places};
  }
  const int dim = is_partial ? -1 : dims_.dim_in(roles_.dim_class, node, 0);
  const auto params = params_for_part(node, dim, length_);
  if (dim >= 0 && inputs.size() == 1) inputs[0] = continued(node, dim, inputs[0]);
  if (const int index = index_of_scatter(node, dim); index >= 0)
    return updated(node, index, std::move(inputs));
  if (is_sparse_product(node)) inputs[1] = on_pattern_mesh(pattern_of(*params), inputs[1]);
  auto results = record_again(node, params, std::move(inputs));
  if (is_sparse_product(node) && dim >= 0)
    results[0] = device_put(results[0], slab_layout(results[0].ndim(), dim));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int at = is_partial ? -1 : dims_.dim_in(roles_.dim_class, node, static_cast<int>(i));
    if (!(results[i].shape() == resized(node.outputs[i].type.shape, at, length_)))
      throw InternalError("stream: a slab of " + node.op->name + " has the shape " +
                          to_string(results[i].shape()));
  }
  if (dim >= 0) carry_on(node, dim, results[0]);
  return results;
}

// The operand of a running sum that goes on one element after the other: its first element has those before.
Array SlabRecorder::continued(const Node& node, int dim, const Array& slab) const {
  const auto running = running_of(node);
  const auto before = carries_.find(&node);
  if (!running || !running->is_in_order || running->dim != dim || before == carries_.end()) return slab;
  const OnBehalfOf call(node.called());
  return concatenate({combined(running->kind, before->second, part_along(slab, dim, 0, 1)),
                      part_along(slab, dim, 1, length_)},
                     dim);
}

// Places count from the slab's start; those of other slabs lie beyond its end, where nothing is written.
std::vector<Array> SlabRecorder::updated(const Node& node, int index, std::vector<Array> inputs) {
  const OnBehalfOf call(node.called());
  auto p = gather_params(*node.params);
  const auto extent = node.outputs[0].type.shape[static_cast<std::size_t>(p.first + index)];
  const auto before = carries_.find(&node);
  const Array start = before == carries_.end() ? zeros({}, int64) : before->second;
  Array& places = inputs[static_cast<std::size_t>(1 + index)];
  places = cast_to(places, int64);
  places = where(places < 0, places + extent, places);
  if (p.out_of_range == OutOfRange::clamp) places = clip(places, 0, extent - 1);
  places = where(places < start, length_, places - start);
  p.out_of_range = OutOfRange::drop;
  new_carries_.emplace_back(&node, start + length_);
  return record_again(node, make_params(p), std::move(inputs));
}

void SlabRecorder::carry_on(const Node& node, int dim, Array& result) {
  const auto running = running_of(node);
  if (!running || running->dim != dim) return;
  const OnBehalfOf call(node.called());
  if (const auto before = carries_.find(&node); before != carries_.end() && !running->is_in_order)
    result = combined(running->kind, before->second, result);
  new_carries_.emplace_back(&node, part_along(result, dim, length_ - 1, length_));
}

}  // namespace tessera::stream
