// scatter, as updates of parts: x.at(...).set, add, multiply, min, max. A window that is not inside as a
// whole is dropped.
#include <tessera/control.hpp>
#include <tessera/control/lax.hpp>
#include <tessera/ops.hpp>

#include <algorithm>

#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"
#include "stablehlo/windows/starts.hpp"
#include "types/extents.hpp"

namespace tessera::stablehlo {
namespace {

using Change = Array (*)(const At&, const Array&);
Array set(const At& part, const Array& v) { return part.set(v); }
Array subtract_from(const At& part, const Array& v) { return part.subtract(v); }
Array add_to(const At& part, const Array& v) { return part.add(v); }
Array multiply_by(const At& part, const Array& v) { return part.multiply(v); }
Array largest(const At& part, const Array& v) { return part.max(v); }
Array smallest(const At& part, const Array& v) { return part.min(v); }

Array changed(Change change, const Array& x, std::vector<IndexPart> parts, const Array& values) {
  if (!is_bool(x.dtype()) || change == set) return change(At(x, std::move(parts)), values);
  return astype(change(At(astype(x, int32), std::move(parts)), astype(values, int32)), bool_);
}

// Every window is all of x.
Array whole_update(const Array& x, const Array& updates, const Array& inside, const Starts& starts,
                   Change change) {
  const auto n = starts.batch.elements();
  Array where_to = where(reshape(inside, Shape{n}), zeros(Shape{n}, int32), full({}, 1));
  return squeeze(changed(change, expand_dims(x, 0), {where_to}, reshape(updates, with_dim(x.shape(), 0, n))),
                 {0});
}

// No batch: the part is read, changed and put back.
Array one_window(const Array& x, const Starts& starts, const Array& updates, const Array& inside,
                 Change change) {
  std::vector<Array> begin;
  for (int d = 0; d < x.ndim(); ++d)
    begin.push_back(starts.by_dim.count(d) != 0 ? starts.by_dim.at(d) : full({}, 0));
  Array part = updates;
  if (change != set) {
    const Array before = dynamic_slice(x, begin, Shape(starts.sizes));
    part = squeeze(changed(change, expand_dims(before, 0), {zeros(Shape{1}, int32)}, expand_dims(updates, 0)),
                   {0});
  }
  return where(inside, dynamic_update_slice(x, part, begin), x);
}

// updates: (batch..., window... in x's order).
Array updated(const Array& x, Starts starts, const Array& updates, Change change) {
  const Array inside = starts.inside();
  auto indexed = starts.indexed(x.shape());
  for (int d = 0; d < x.ndim(); ++d)
    if (!contains(indexed, d) &&
        starts.sizes[static_cast<std::size_t>(d)] != x.shape()[static_cast<std::size_t>(d)]) {
      starts.by_dim[d] = zeros(starts.batch, int32);  // a window at the start of a dim that has no index
      indexed.push_back(d);
    }
  if (indexed.empty()) return whole_update(x, updates, inside, starts, change);
  std::sort(indexed.begin(), indexed.end());
  std::vector<int> whole, wide;
  for (int d = 0; d < x.ndim(); ++d)
    if (!contains(indexed, d)) whole.push_back(d);
  const int nb = starts.batch.ndim();
  if (nb == 0) return one_window(x, starts, updates, inside, change);
  auto arrays = starts.with_window(indexed, wide);
  // Windows that lie outside are sent past the end, where they are dropped.
  const Shape lone = with_ones(starts.batch, starts.batch.size() + wide.size());
  arrays[0] = where(reshape(inside, lone), arrays[0],
                    number_like(x.shape()[static_cast<std::size_t>(indexed[0])], arrays[0]));
  auto front = indexed;
  front.insert(front.end(), whole.begin(), whole.end());
  // The updates without window dims of one element, those that index arrays read first.
  Shape extents = starts.batch;
  std::vector<int> kept, order;
  for (int d = 0; d < x.ndim(); ++d)
    if (contains(wide, d) || contains(whole, d))
      kept.push_back(d), extents.push_back(starts.sizes[static_cast<std::size_t>(d)]);
  for (int d = 0; d < nb; ++d) order.push_back(d);
  for (const auto* dims : {&wide, &whole})
    for (const int d : *dims)
      order.push_back(nb + static_cast<int>(std::find(kept.begin(), kept.end(), d) - kept.begin()));
  std::vector<IndexPart> parts(arrays.begin(), arrays.end());
  const Array result =
      changed(change, transposed(x, front), std::move(parts), transposed(reshape(updates, extents), order));
  std::vector<int> back(front.size());
  for (std::size_t n = 0; n < front.size(); ++n)
    back[static_cast<std::size_t>(front[n])] = static_cast<int>(n);
  return transposed(result, back);
}

// Whether the function is b subtracted from a.
bool is_difference(const RegionText& body) {
  if (body.arguments.size() != 2 || body.operations.size() != 2) return false;
  const auto& op = body.operations[0];
  return op.name == "stablehlo.subtract" && op.operands == body.arguments &&
         body.operations[1].operands == op.results;
}

bool reads(const RegionText& region, int value) {
  for (const auto& op : region.operations) {
    if (std::find(op.operands.begin(), op.operands.end(), value) != op.operands.end()) return true;
    for (const auto& inner : op.regions)
      if (reads(inner, value)) return true;
  }
  return false;
}

// The method of x.at(...) that does what the body computes; null: none does, the body itself is applied.
Change change_of(const RegionText& body) {
  if (body.arguments.size() == 2 && body.operations.size() == 1 &&
      body.operations[0].operands == std::vector<int>{body.arguments[1]})
    return set;
  if (is_difference(body)) return subtract_from;
  const auto kind = simple_body(body);
  if (kind == "add" || kind == "or") return add_to;
  if (kind == "multiply") return multiply_by;
  if (kind == "maximum") return largest;
  return kind == "minimum" ? smallest : nullptr;
}

// x.at(...).apply(f): f of the element, as often as a place is named.
Array applied(OpCall& s, const Array& x, const Starts& starts, const Shape& updates) {
  const Array times = updated(zeros(x.shape(), int32), starts, full(updates, 1), add_to), most = max(times);
  const detail::LoopSite site{"stablehlo.scatter", s.run.line(s.op.place), {"[0]", "[1]"}};
  const auto goes_on = [&](const Arrays& state) { return Arrays{less(state[0], most)}; };
  const auto once_more = [&](const Arrays& state) {
    const Array changed_once = s.run.elementwise(s.frame, s.op.regions[0], {state[1], state[1]})[0];
    return Arrays{add(state[0], full({}, 1)), where(less(state[0], times), changed_once, state[1])};
  };
  return detail::compiled_while(site, goes_on, once_more, {full({}, 0), x})[1];
}

Arrays scatter(OpCall& s) {
  const Attribute* numbers = s.find("scatter_dimension_numbers");
  if (numbers == nullptr || s.op.regions.size() != 1)
    s.refuse("has no scatter_dimension_numbers, or no function");
  s.want_operands(3);
  const Array &x = s.x[0], &indices = s.x[1], &updates = s.x[2];
  if (x.dtype() != updates.dtype()) s.refuse("updates of another dtype");
  const int ndim = x.ndim();
  const auto window = dims_of(s, *numbers, "update_window_dims", updates.ndim());
  const auto inserted = dims_of(s, *numbers, "inserted_window_dims", ndim);
  const auto x_batch = dims_of(s, *numbers, "input_batching_dims", ndim);
  const auto i_batch = dims_of(s, *numbers, "scatter_indices_batching_dims", indices.ndim());
  const auto start_map = dims_of(s, *numbers, "scatter_dims_to_operand_dims", ndim);
  const Attribute* vector = numbers->find("index_vector_dim");
  const auto vector_dim = vector == nullptr ? 0 : integers_of(s, *vector).at(0);
  Change change = change_of(s.op.regions[0]);
  if (simple_body(s.op.regions[0]) == "or" && !is_bool(x.dtype())) change = nullptr;
  const RegionText& body = s.op.regions[0];
  const bool applies = change == nullptr && body.arguments.size() == 2 && !reads(body, body.arguments[1]);
  if (change == nullptr && !applies)
    s.refuse(
        "its function is none of x -> update, add, subtract, multiply, maximum and minimum, nor one of the "
        "element alone");
  auto ordered = window;
  std::sort(ordered.begin(), ordered.end());
  Numbers sizes;
  std::size_t next = 0;
  for (int d = 0; d < ndim; ++d) {
    const bool is_gone = contains(inserted, d) || contains(x_batch, d);
    if (!is_gone && next >= ordered.size()) s.refuse("too few update_window_dims");
    sizes.push_back(is_gone ? 1 : updates.shape()[static_cast<std::size_t>(ordered[next++])]);
    if (sizes.back() > x.shape()[static_cast<std::size_t>(d)])
      s.refuse("a window of " + std::to_string(sizes.back()) + " along dim " + std::to_string(d));
  }
  if (next != ordered.size()) s.refuse("too many update_window_dims");
  Starts starts(s, x.shape(), indices, static_cast<int>(std::clamp<std::int64_t>(vector_dim, -1, 1000)),
                sizes, start_map, x_batch, i_batch);
  if (updates.size() == 0 || x.size() == 0) return {x};
  // updates as (batch..., window... in x's order)
  std::vector<int> order;
  for (int d = 0; d < updates.ndim(); ++d)
    if (!contains(window, d)) order.push_back(d);
  order.insert(order.end(), ordered.begin(), ordered.end());
  const Shape extents = join(starts.batch, sizes);
  if (extents.elements() != updates.size())
    s.refuse("updates of " + tessera::to_string(updates.shape()) + " for windows of " +
             tessera::to_string(extents));
  if (applies) return {applied(s, x, starts, extents)};
  return {updated(x, std::move(starts), reshape(transposed(updates, order), extents), change)};
}

}  // namespace

void add_scatter(Rules& rules) { rules["stablehlo.scatter"] = scatter; }

}  // namespace tessera::stablehlo
