// gather, as index expressions: windows of an array at starts that are values. Starts are clamped.
#include <tessera/control/lax.hpp>
#include <tessera/ops.hpp>

#include <algorithm>

#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"
#include "stablehlo/windows/starts.hpp"
#include "types/extents.hpp"

namespace tessera::stablehlo {
namespace {

// One dim is read by one index array, element by element.
Array taken_along(const Array& x, const Starts& starts, int d) {
  Array taken = take(x, starts.by_dim.at(d), d);
  const int nb = starts.batch.ndim();
  std::vector<int> order;
  for (int i = 0; i < nb; ++i) order.push_back(d + i);
  for (int i = 0; i < taken.ndim(); ++i)
    if (i < d || i >= d + nb) order.push_back(i);
  return reshape(transposed(taken, order), join(starts.batch, starts.sizes));
}

// (batch..., window...) with all dims of the window in x's order.
Array windows(Array x, const Starts& starts) {
  const auto indexed = starts.indexed(x.shape());
  std::vector<int> whole;
  for (int d = 0; d < x.ndim(); ++d) {
    if (contains(indexed, d)) continue;
    whole.push_back(d);
    x = part_along(x, d, 0, starts.sizes[static_cast<std::size_t>(d)]);
  }
  const Shape shape = join(starts.batch, starts.sizes);
  if (indexed.empty()) return x.shape() == shape ? x : broadcast_to(x, shape);
  if (starts.batch.ndim() == 0 && starts.x_batch.empty()) {
    std::vector<Array> begin;
    for (int d = 0; d < x.ndim(); ++d)
      begin.push_back(starts.by_dim.count(d) != 0 ? starts.by_dim.at(d) : full({}, 0));
    return dynamic_slice(x, begin, Shape(starts.sizes));
  }
  if (indexed.size() == 1 && starts.sizes[static_cast<std::size_t>(indexed[0])] == 1)
    return taken_along(x, starts, indexed[0]);
  std::vector<int> wide;
  const auto arrays = starts.with_window(indexed, wide);
  auto front = indexed;
  front.insert(front.end(), whole.begin(), whole.end());
  std::vector<IndexPart> parts(arrays.begin(), arrays.end());
  Array taken = index(transposed(x, front), std::move(parts));
  // batch, wide..., whole... -> batch and the window's dims in order, those of one element put in.
  auto places = wide;
  places.insert(places.end(), whole.begin(), whole.end());
  auto sorted = places;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> order;
  for (int d = 0; d < starts.batch.ndim(); ++d) order.push_back(d);
  for (const int d : sorted)
    order.push_back(starts.batch.ndim() +
                    static_cast<int>(std::find(places.begin(), places.end(), d) - places.begin()));
  return reshape(transposed(taken, order), shape);
}

Arrays gather(OpCall& s) {
  s.want_operands(2);
  const Attribute* numbers = s.find("dimension_numbers");
  if (numbers == nullptr) s.refuse("has no dimension_numbers");
  const Array &x = s.x[0], &indices = s.x[1];
  const int ndim = x.ndim(), out_ndim = s.type().shape.ndim();
  const auto offset = dims_of(s, *numbers, "offset_dims", out_ndim);
  const auto collapsed = dims_of(s, *numbers, "collapsed_slice_dims", ndim);
  const auto x_batch = dims_of(s, *numbers, "operand_batching_dims", ndim);
  const auto i_batch = dims_of(s, *numbers, "start_indices_batching_dims", indices.ndim());
  const auto start_map = dims_of(s, *numbers, "start_index_map", ndim);
  const Attribute* vector = numbers->find("index_vector_dim");
  const auto vector_dim = vector == nullptr ? 0 : integers_of(s, *vector).at(0);
  const auto sizes = s.integers("slice_sizes", 1, x.shape().size());
  Numbers kept;
  for (int d = 0; d < ndim; ++d) {
    const auto size = sizes[static_cast<std::size_t>(d)];
    if (size < 0 || size > x.shape()[static_cast<std::size_t>(d)])
      s.refuse("a window of " + std::to_string(size) + " along dim " + std::to_string(d));
    const bool is_gone = contains(collapsed, d) || contains(x_batch, d);
    if (is_gone && size > 1) s.refuse("a dim that is left out has a window of " + std::to_string(size));
    if (!is_gone) kept.push_back(size);
  }
  Starts starts(s, x.shape(), indices, static_cast<int>(std::clamp<std::int64_t>(vector_dim, -1, 1000)),
                sizes, start_map, x_batch, i_batch);
  if (kept.size() != offset.size() || out_ndim != starts.batch.ndim() + static_cast<int>(kept.size()))
    s.refuse("offset_dims for another number of dims");
  if (s.type().shape.elements() == 0 || x.size() == 0) return {zeros(s.type().shape, x.dtype())};
  starts.clamp();
  const Array result = reshape(windows(x, starts), join(starts.batch, kept));
  // The window's dims stand where offset_dims says, the batch's between them.
  std::vector<int> order;
  int batch = 0, window = starts.batch.ndim();
  for (int d = 0; d < out_ndim; ++d) order.push_back(contains(offset, d) ? window++ : batch++);
  return {transposed(result, order)};
}

}  // namespace

void add_indexing(Rules& rules) { rules["stablehlo.gather"] = gather; }

}  // namespace tessera::stablehlo
