#include "stablehlo/windows/starts.hpp"

#include <tessera/ops.hpp>

#include <algorithm>

#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "types/extents.hpp"

namespace tessera::stablehlo {

bool contains(const std::vector<int>& dims, int d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

std::vector<int> dims_of(const OpCall& s, const Attribute& numbers, const char* name, int ndim) {
  const Attribute* found = numbers.find(name);
  std::vector<int> dims;
  if (found == nullptr) return dims;
  for (const auto d : integers_of(s, *found)) {
    if (d < 0 || d >= ndim || contains(dims, static_cast<int>(d)))
      s.refuse(std::string(name) + " names dim " + std::to_string(d) + " of " + std::to_string(ndim) +
               " dims, or names it twice");
    dims.push_back(static_cast<int>(d));
  }
  return dims;
}

Starts::Starts(const OpCall& s, const Shape& x, const Array& given_indices, int vector_dim,
               Numbers window_sizes, std::vector<int> start_map, const std::vector<int>& batch_of_x,
               const std::vector<int>& batch_of_indices)
    : sizes(std::move(window_sizes)), given(std::move(start_map)), x_batch(batch_of_x) {
  if (!is_integer(given_indices.dtype())) s.refuse("indices of " + name(given_indices.dtype()));
  Array indices = as_index(given_indices);
  if (vector_dim < 0 || vector_dim > indices.ndim())
    s.refuse("index_vector_dim = " + std::to_string(vector_dim));
  if (vector_dim == indices.ndim()) indices = expand_dims(indices, vector_dim);
  if (indices.shape()[static_cast<std::size_t>(vector_dim)] != static_cast<std::int64_t>(given.size()))
    s.refuse("indices of " + std::to_string(indices.shape()[static_cast<std::size_t>(vector_dim)]) +
             " numbers for " + std::to_string(given.size()) + " dims");
  if (batch_of_x.size() != batch_of_indices.size()) s.refuse("batching dims of different numbers");
  if (vector_dim != indices.ndim() - 1) indices = moveaxis(indices, vector_dim, -1);
  batch = without_last(indices.shape(), 1);
  for (std::size_t n = 0; n < given.size(); ++n) {
    const int d = given[n];
    const auto at = static_cast<std::int64_t>(n);
    by_dim[d] = reshape(part_along(indices, indices.ndim() - 1, at, at + 1), batch);
    room[d] = x[static_cast<std::size_t>(d)] - sizes[static_cast<std::size_t>(d)];
  }
  for (std::size_t n = 0; n < batch_of_x.size(); ++n) {
    const int along = batch_of_indices[n] - (batch_of_indices[n] > vector_dim ? 1 : 0);
    if (along >= batch.ndim() ||
        batch[static_cast<std::size_t>(along)] != x[static_cast<std::size_t>(batch_of_x[n])])
      s.refuse("batching dims of different extents");
    if (by_dim.count(batch_of_x[n]) != 0) s.refuse("a dim that is batched and indexed");
    by_dim[batch_of_x[n]] = range_along(batch, along, indices.dtype());
  }
}

void Starts::clamp() {
  for (const int d : given) {
    Array& i = by_dim[d];
    i = clip(i, number_like(0, i), number_like(std::max<std::int64_t>(room[d], 0), i));
  }
}

Array Starts::inside() const {
  Array result = full(batch, true);
  for (const int d : given) {
    const Array& i = by_dim.at(d);
    result = result & greater_equal(i, number_like(0, i)) & less_equal(i, number_like(room.at(d), i));
  }
  return result;
}

std::vector<int> Starts::indexed(const Shape& x) const {
  std::vector<int> dims;
  for (int d = 0; d < x.ndim(); ++d) {
    const bool is_started = contains(given, d);
    const auto n = x[static_cast<std::size_t>(d)], size = sizes[static_cast<std::size_t>(d)];
    if (contains(x_batch, d) || (is_started && (size != n || (n == 1 && x.ndim() == 1)))) dims.push_back(d);
  }
  return dims;
}

std::vector<Array> Starts::with_window(const std::vector<int>& dims, std::vector<int>& wide) const {
  wide.clear();
  for (const int d : dims)
    if (sizes[static_cast<std::size_t>(d)] != 1) wide.push_back(d);
  Shape extents = batch;
  for (const int d : wide) extents.push_back(sizes[static_cast<std::size_t>(d)]);
  const Shape lone = with_ones(batch, extents.size());
  std::vector<Array> arrays;
  for (const int d : dims) {
    Array i = reshape(by_dim.at(d), lone);
    const auto place = std::find(wide.begin(), wide.end(), d);
    if (place != wide.end()) {
      const int along = batch.ndim() + static_cast<int>(place - wide.begin());
      std::vector<std::int64_t> line(extents.size(), 1);
      line[static_cast<std::size_t>(along)] = sizes[static_cast<std::size_t>(d)];
      i = add(i, range_along(Shape(line), along, i.dtype()));
    }
    arrays.push_back(i.shape() == extents ? i : broadcast_to(i, extents));
  }
  return arrays;
}

}  // namespace tessera::stablehlo
