// Shapes: broadcasts, slices, joins, pads, constants.
#include <tessera/control/lax.hpp>
#include <tessera/ops.hpp>

#include "stablehlo/matrices/packed.hpp"
#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"
#include "types/extents.hpp"

namespace tessera::stablehlo {

Array part_along(const Array& x, int d, std::int64_t start, std::int64_t stop, std::int64_t step) {
  std::vector<IndexPart> parts(static_cast<std::size_t>(x.ndim()), slice());
  parts[static_cast<std::size_t>(d)] = slice(start, stop, step);
  return index(x, std::move(parts));
}

Array transposed(const Array& x, const std::vector<int>& order) {
  for (std::size_t d = 0; d < order.size(); ++d)
    if (order[d] != static_cast<int>(d)) return transpose(x, order);
  return x;
}

// gap elements of a value between neighbours along a dim.
static Array interior(const Array& x, int d, std::int64_t gap, const Array& value) {
  Shape extents = x.shape();
  const auto n = extents[static_cast<std::size_t>(d)];
  if (gap == 0 || n < 2) return x;
  const Array gaps = broadcast_to(value, with_dim(extents, d + 1, gap));
  const Array joined = concatenate({expand_dims(x, d + 1), gaps}, d + 1);
  extents[static_cast<std::size_t>(d)] = n * (gap + 1);
  return part_along(reshape(joined, extents), d, 0, n * (gap + 1) - gap);
}

Array padded(Array x, const Array& value, const std::vector<Padding>& dims) {
  for (int d = 0; d < x.ndim(); ++d) {
    const auto& [low, high, gap] = dims[static_cast<std::size_t>(d)];
    x = interior(x, d, gap, value);
    Shape extents = x.shape();
    auto& n = extents[static_cast<std::size_t>(d)];
    const auto start = std::max<std::int64_t>(-low, 0), stop = n - std::max<std::int64_t>(-high, 0);
    if (stop < start || stop < 0 || start > n) {  // more is cut off at one end than there is
      n = std::max<std::int64_t>(n + low + high, 0);
      x = broadcast_to(value, extents);
      continue;
    }
    if (start > 0 || stop < n) x = part_along(x, d, start, stop);
    const auto more = [&](std::int64_t extent) {
      n = extent;
      return broadcast_to(value, extents);
    };
    std::vector<Array> parts;
    if (low > 0) parts.push_back(more(low));
    parts.push_back(x);
    if (high > 0) parts.push_back(more(high));
    if (parts.size() > 1) x = concatenate(std::move(parts), d);
  }
  return x;
}

namespace {

Arrays constant(OpCall& s) {
  const Attribute* value = s.find("value");
  if (value == nullptr || value->kind != Attribute::Kind::dense) s.refuse("without its values");
  const Constant& dense = *value->dense;
  if (dense.is_splat)
    return {full_from_host(dense.type.shape, dense.values.bytes(), dense.type.dtype, dense.type.dtype,
                           "constant", {})};
  return {array(dense.values)};
}

Arrays broadcast_in_dim(OpCall& s) {
  s.want_operands(1);
  const Shape& shape = s.type().shape;
  std::vector<std::int64_t> extents(shape.size(), 1);
  const auto dims = s.dims(s.has("dims") ? "dims" : "broadcast_dimensions", shape.ndim());
  if (dims.size() != s.x[0].shape().size())
    s.refuse("dims has " + std::to_string(dims.size()) + " numbers for " + std::to_string(s.x[0].ndim()) +
             " dims");
  std::vector<int> order(dims.size());
  bool is_sorted = true;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    extents[static_cast<std::size_t>(dims[d])] = s.x[0].shape()[d];
    is_sorted = is_sorted && (d == 0 || dims[d] > dims[d - 1]);
  }
  if (!is_sorted) s.refuse("dims in another order: a transpose before it has a counterpart");
  const Array wide = Shape(extents) == s.x[0].shape() ? s.x[0] : reshape(s.x[0], Shape(extents));
  return {wide.shape() == shape ? wide : broadcast_to(wide, shape)};
}

Arrays reshaped(OpCall& s) {
  s.want_operands(1);
  return {reshape(s.x[0], s.type().shape)};
}

Arrays turned(OpCall& s) {
  s.want_operands(1);
  const auto order = s.dims(s.has("dims") ? "dims" : "permutation", s.x[0].ndim());
  if (order.size() != s.x[0].shape().size())
    s.refuse("an order of " + std::to_string(order.size()) + " dims");
  return {transposed(s.x[0], order)};
}

Arrays reversed(OpCall& s) {
  s.want_operands(1);
  const auto dims = s.dims(s.has("dims") ? "dims" : "dimensions", s.x[0].ndim());
  return {dims.empty() ? s.x[0] : flip(s.x[0], dims)};
}

Arrays sliced(OpCall& s) {
  s.want_operands(1);
  const auto ndim = s.x[0].shape().size();
  std::vector<IndexPart> parts;
  bool is_leading = true;
  const auto add = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    is_leading = is_leading && start == 0 && step == 1;
    const auto n = s.x[0].shape()[parts.size()];
    if (start < 0 || stop < start || stop > n || step < 1)
      s.refuse("dim " + std::to_string(parts.size()) + " has " + std::to_string(n) + " elements, and not " +
               std::to_string(start) + ":" + std::to_string(stop) + ":" + std::to_string(step));
    parts.emplace_back(slice(start, stop, step));
  };
  if (const Attribute* ranges = s.find("ranges")) {
    if (ranges->items.size() != ndim)
      s.refuse("ranges for " + std::to_string(ranges->items.size()) + " dims");
    for (const auto& range : ranges->items) {
      const auto bounds = integers_of(s, range);
      if (bounds.size() < 2 || bounds.size() > 3) s.refuse("a range is start:stop or start:stop:step");
      add(bounds[0], bounds[1], bounds.size() > 2 ? bounds[2] : 1);
    }
  } else {
    const auto start = s.integers("start_indices", 0, ndim), stop = s.integers("limit_indices", 0, ndim),
               step = s.integers("strides", 1, ndim);
    for (std::size_t d = 0; d < ndim; ++d) add(start[d], stop[d], step[d]);
  }
  if (parts.empty()) return {s.x[0]};
  const Array result = index(s.x[0], std::move(parts));
  if (is_leading) keep_packed(s, result);
  return {result};
}

Arrays concatenated(OpCall& s) {
  if (s.x.empty()) s.refuse("nothing to join");
  for (const auto& x : s.x)
    if (x.dtype() != s.x[0].dtype())
      s.refuse("arrays of " + name(s.x[0].dtype()) + " and " + name(x.dtype()));
  return {concatenate(s.x, s.dim(s.has("dim") ? "dim" : "dimension", s.x[0].ndim()))};
}

Arrays iota(OpCall& s) {
  const TensorType& type = s.type();
  return {
      range_along(type.shape, s.dim(s.has("dim") ? "dim" : "iota_dimension", type.shape.ndim()), type.dtype)};
}

Arrays pad_rule(OpCall& s) {
  s.want_operands(2);
  if (s.x[1].ndim() != 0 || s.x[0].dtype() != s.x[1].dtype()) s.refuse("a value of another type");
  const auto ndim = s.x[0].shape().size();
  const bool is_short = s.has("low");
  const auto low = s.integers(is_short ? "low" : "edge_padding_low", 0, ndim),
             high = s.integers(is_short ? "high" : "edge_padding_high", 0, ndim),
             gap = s.integers(is_short ? "interior" : "interior_padding", 0, ndim);
  std::vector<Padding> dims;
  for (std::size_t d = 0; d < ndim; ++d) {
    if (gap[d] < 0) s.refuse("a negative gap");
    dims.push_back({low[d], high[d], gap[d]});
  }
  // The text's own extents bound what is made on the way.
  for (std::size_t d = 0; d < ndim; ++d) {
    const auto n = s.x[0].shape()[d];
    std::int64_t wide = 0;
    if (__builtin_mul_overflow(std::max<std::int64_t>(n - 1, 0), gap[d], &wide) ||
        __builtin_add_overflow(wide, n, &wide) || __builtin_add_overflow(wide, low[d], &wide) ||
        __builtin_add_overflow(wide, high[d], &wide) || wide != s.type().shape[d])
      s.refuse("dim " + std::to_string(d) + " does not become " + std::to_string(s.type().shape[d]) +
               " elements");
  }
  const Array result = padded(s.x[0], s.x[1], dims);
  bool adds_columns = true;
  for (std::size_t d = 0; d < ndim; ++d)
    adds_columns =
        adds_columns && low[d] == 0 && gap[d] == 0 && (d + 1 == ndim ? high[d] >= 0 : high[d] == 0);
  if (adds_columns) keep_packed(s, result);
  return {result};
}

// Starts as arrays without dims.
std::vector<Array> starts_of(const OpCall& s, std::size_t first) {
  std::vector<Array> starts;
  if (s.x.size() - first != s.x[0].shape().size())
    s.refuse(std::to_string(s.x.size() - first) + " starts for " + std::to_string(s.x[0].ndim()) + " dims");
  for (std::size_t i = first; i < s.x.size(); ++i) {
    if (s.x[i].ndim() != 0 || !is_integer(s.x[i].dtype()))
      s.refuse("a start that is no integer without dims");
    starts.push_back(as_index(s.x[i]));
  }
  return starts;
}

Arrays dynamic_slice_rule(OpCall& s) {
  if (s.x.empty()) s.refuse("has no operand");
  const auto sizes = s.integers(s.has("sizes") ? "sizes" : "slice_sizes");
  const auto starts = starts_of(s, 1);
  if (starts.empty()) return {s.x[0]};
  return {dynamic_slice(s.x[0], starts, Shape(sizes))};
}

Arrays dynamic_update_slice_rule(OpCall& s) {
  if (s.x.size() < 2) s.refuse("takes an array and its update");
  if (s.x[0].dtype() != s.x[1].dtype()) s.refuse("an update of another dtype");
  const auto starts = starts_of(s, 2);
  if (starts.empty()) return {s.x[1]};
  return {dynamic_update_slice(s.x[0], s.x[1], starts)};
}

Arrays same(OpCall& s) { return s.x; }
Arrays token(OpCall& s) { return Arrays(s.results()); }

}  // namespace

void add_shapes(Rules& rules) {
  rules["stablehlo.constant"] = constant;
  rules["stablehlo.broadcast_in_dim"] = broadcast_in_dim;
  rules["stablehlo.reshape"] = reshaped;
  rules["stablehlo.transpose"] = turned;
  rules["stablehlo.reverse"] = reversed;
  rules["stablehlo.slice"] = sliced;
  rules["stablehlo.concatenate"] = concatenated;
  rules["stablehlo.iota"] = iota;
  rules["stablehlo.pad"] = pad_rule;
  rules["stablehlo.dynamic_slice"] = dynamic_slice_rule;
  rules["stablehlo.dynamic_update_slice"] = dynamic_update_slice_rule;
  rules["stablehlo.optimization_barrier"] = same;
  rules["stablehlo.create_token"] = token;
  rules["stablehlo.after_all"] = token;
}

}  // namespace tessera::stablehlo
