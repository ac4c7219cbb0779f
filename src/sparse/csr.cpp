// Sparse matrices: construction, and operations based on their products.
#include <tessera/sparse.hpp>

#include <tessera/ops/sized.hpp>

#include <algorithm>
#include <cstring>

#include "base/call.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "graph/op.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "mesh/devices.hpp"
#include "ops/build.hpp"
#include "sparse/assemble.hpp"

namespace tessera::sparse {

namespace {

std::vector<std::int64_t> local_places(const Array& x) {
  const auto own = local<std::int64_t>(x);
  return {own.begin(), own.end()};
}

void check_coordinates(const Array& rows, const Array& columns, const Array& values) {
  for (const Array* x : {&rows, &columns, &values}) {
    check_usable(*x);
    if (x->ndim() != 1 || x->size() != values.size())
      throw ShapeError(call_text() + ": rows, columns and values have the shapes " + to_string(rows.shape()) +
                       ", " + to_string(columns.shape()) + " and " + to_string(values.shape()) +
                       "; they must be vectors of one length");
  }
  for (const Array* x : {&rows, &columns})
    if (!is_integer(x->dtype()))
      throw DtypeError(call_text() + ": rows and columns have the dtypes " + name(rows.dtype()) + " and " +
                       name(columns.dtype()) + "; they must be integers");
}

std::vector<std::byte> converted(const HostArray& values, Dtype dtype) {
  std::vector<std::byte> result(static_cast<std::size_t>(values.size()) * itemsize(dtype));
  const void* from = values.bytes();
  if (values.size() == 0) return result;
  if (values.dtype() == dtype)
    std::memcpy(result.data(), from, result.size());
  else
    kernels::find_cast(values.dtype(), dtype)(&from, result.data(), values.size());
  return result;
}

// The error in the entries that a function returned for a range of rows; "" if there is none.
std::string wrong_entries(const Entries& e, Range rows) {
  const auto n = static_cast<std::int64_t>(e.rows.size());
  if (static_cast<std::int64_t>(e.columns.size()) != n || e.values.size() != n)
    return call_text() + ": the function gave " + std::to_string(n) + " rows, " +
           std::to_string(e.columns.size()) + " columns and " + std::to_string(e.values.size()) +
           " values; there must be as many of each";
  for (const auto row : e.rows)
    if (row < rows.start || row >= rows.stop)
      return call_text() + ": asked for the rows " + std::to_string(rows.start) + " to " +
             std::to_string(rows.stop) + " the function gave an entry of row " + std::to_string(row);
  return "";
}

template <class E> void raise_everywhere(const std::string& mine) {
  const auto text = comm::common_error(comm::world(), mine);
  if (!text.empty()) throw E(text);
}

std::string agreed_text(const Shape& shape, const Sharding& sharding) {
  std::ostringstream text;
  text << call_text() << " of " << to_string(shape) << ", " << sharding;
  return text.str();
}

// Values and vectors converted to one dtype.
std::pair<Array, Array> alike(const Array& values, const Array& x) {
  const auto both =
      promote(WeakDtype{values.dtype(), values.is_weakly_typed()}, WeakDtype{x.dtype(), x.is_weakly_typed()})
          .dtype;
  return {cast_to(values, both), cast_to(x, both)};
}

// An array with one number per stored entry, created on each rank for its own entries.
Array per_entry(const SparsePattern& p, const std::function<void(std::vector<std::int64_t>&)>& fill) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(p.width), -1);
  const bool holds = holds_rows(p.sharding);
  if (holds) fill(numbers);
  Buffer buffer = Buffer::allocate(holds ? numbers.size() * sizeof(std::int64_t) : 0);
  if (holds && !numbers.empty()) std::memcpy(buffer.data(), numbers.data(), buffer.bytes());
  const Shape shape{devices_along(p.sharding.mesh(), p.axes()), p.width};
  return make_leaf({shape, int64}, Sharding::from_dim_axes(p.sharding.mesh(), {p.axes(), {}}),
                   std::move(buffer), true);
}
Array stored_rows(const SparsePattern& p) {
  return per_entry(p, [&](std::vector<std::int64_t>& numbers) {
    const auto first = own_rows(p.sharding, p.rows).start;
    for (std::size_t r = 0; r < p.plan.split.size(); ++r)
      std::fill(numbers.begin() + p.plan.begin[r], numbers.begin() + p.plan.begin[r + 1],
                first + static_cast<std::int64_t>(r));
  });
}
Array stored_columns(const SparsePattern& p) {
  return per_entry(p, [&](std::vector<std::int64_t>& numbers) {
    const auto first = own_rows(p.sharding, p.columns).start;
    for (std::size_t r = 0; r < p.plan.split.size(); ++r) {
      for (auto e = p.plan.begin[r]; e < p.plan.split[r]; ++e) numbers[e] = first + p.plan.column[e];
      for (auto e = p.plan.split[r]; e < p.plan.begin[r + 1]; ++e)
        numbers[e] = p.plan.others[p.plan.column[e]];
    }
  });
}

}  // namespace

// ---- the handle ----

Csr::Csr(std::shared_ptr<const SparsePattern> pattern, Array values, bool is_transposed)
    : pattern_(std::move(pattern)), values_(std::move(values)), is_transposed_(is_transposed) {}
Shape Csr::shape() const {
  return is_transposed_ ? Shape{pattern_->columns, pattern_->rows} : Shape{pattern_->rows, pattern_->columns};
}
Dtype Csr::dtype() const { return values_.dtype(); }
std::int64_t Csr::entries() const { return pattern_->entries; }
Sharding Csr::sharding() const { return pattern_->sharding; }
Csr Csr::T() const { return {pattern_, values_, !is_transposed_}; }
std::int64_t Csr::exchanged() const { return is_transposed_ ? pattern_->most_given : pattern_->most_taken; }
Array Csr::entry_rows() const { return is_transposed_ ? stored_columns(*pattern_) : stored_rows(*pattern_); }
Array Csr::entry_columns() const {
  return is_transposed_ ? stored_rows(*pattern_) : stored_columns(*pattern_);
}

Csr Csr::with_values(const Operand& values) const {
  const Call call("with_values", values.where);
  check_usable(values.array);
  if (values.array.shape() != values_.shape())
    throw ShapeError(call_text() + ": the values have the shape " + to_string(values.array.shape()) +
                     "; the matrix stores " + to_string(values_.shape()));
  return {pattern_, cast_to(values.array, kept_dtype(values.array.dtype())), is_transposed_};
}

// ---- construction ----

Csr from_coordinates(Shape shape, const Operand& rows, const Operand& columns, const Operand& values,
                     const Sharding& sharding) {
  const Call call("from_coordinates", rows.where);
  comm::agree_on_call(comm::world(), agreed_text(shape, sharding));
  const Sharding split = checked_rows(shape, sharding);
  check_coordinates(rows.array, columns.array, values.array);
  const Dtype dtype = kept_dtype(values.array.dtype());
  std::vector<Array> parts;
  for (const Array& x :
       {astype(rows.array, int64), astype(columns.array, int64), cast_to(values.array, dtype)})
    parts.push_back(device_put(x, split));
  eval(parts);
  LocalEntries mine{{}, {}, dtype, {}};
  if (holds_rows(split)) {
    mine.rows = local_places(parts[0]);
    mine.columns = local_places(parts[1]);
    std::int64_t elements = 0;
    const auto* bytes = detail::local_bytes(parts[2], dtype, elements, rows.where);
    mine.values.assign(bytes, bytes + elements * static_cast<std::int64_t>(itemsize(dtype)));
  }
  return assemble(shape, split, std::move(mine));
}

Csr from_rows(Shape shape, const Sharding& sharding, std::function<Entries(Range)> entries,
              std::source_location where) {
  const Call call("from_rows", where);
  comm::agree_on_call(comm::world(), agreed_text(shape, sharding));
  const Sharding split = checked_rows(shape, sharding);
  Entries given;
  std::string failed, wrong;
  if (holds_rows(split)) {
    const Range own = own_rows(split, shape[0]);
    try {
      const UserCode users;
      given = entries(own);
    } catch (const std::exception& error) {
      failed = std::string(": the function failed: ") + error.what();
    }
    if (!failed.empty()) failed = call_text() + failed;
    if (failed.empty()) wrong = wrong_entries(given, own);
  }
  raise_everywhere<ArgumentError>(failed);
  raise_everywhere<IndexError>(wrong);
  // One dtype on all ranks: the largest dtype code that any rank contributes.
  std::int64_t code = holds_rows(split) ? kept_dtype(given.values.dtype()).code : 0;
  comm::all_reduce(comm::world(), ReduceKind::max, int64, &code, &code, 1);
  const Dtype dtype{static_cast<int>(code)};
  LocalEntries mine{std::move(given.rows), std::move(given.columns), dtype, {}};
  if (holds_rows(split)) mine.values = converted(given.values, dtype);
  return assemble(shape, split, std::move(mine));
}

Csr from_dense(const Operand& x, const Sharding& sharding) {
  const Call call("from_dense", x.where);
  check_usable(x.array);
  if (x.array.ndim() != 2)
    throw ShapeError(call_text() + ": the array has the shape " + to_string(x.array.shape()) +
                     "; a matrix has two dims");
  const auto at = nonzero(x.array);
  const auto columns = x.array.shape()[1];
  const Array values = take(reshape(x.array, {-1}), at[0] * columns + at[1], 0);
  return from_coordinates(x.array.shape(), at[0], at[1], values, sharding);
}

// ---- use ----

Array matmul(const Csr& a, const Operand& x) {
  const Call call("sparse::matmul", x.where);
  check_usable(x.array);
  const Shape shape = a.shape();
  if (x.array.ndim() == 0 || x.array.shape()[0] != shape[1])
    throw ShapeError(call_text() + ": the matrix has the shape " + to_string(shape) + ", x " +
                     to_string(x.array.shape()) + "; the first dim of x must be the " +
                     std::to_string(shape[1]) + " columns");
  const auto [values, vectors] = alike(a.values(), x.array);
  return a.is_transposed() ? sparse_dot_transposed(a.pattern(), values, vectors)
                           : sparse_dot(a.pattern(), values, vectors);
}

Array diagonal(const Csr& a, std::source_location where) {
  const Call call("sparse::diagonal", where);
  const auto& p = *a.pattern();
  const Array is_diagonal = stored_rows(p) == stored_columns(p);
  const Array kept = tessera::where(is_diagonal & (stored_rows(p) >= 0), a.values(), zeros_like(a.values()));
  const Array sums = sparse_dot(a.pattern(), kept, ones({p.columns}, a.dtype()));
  return p.rows > p.columns ? sums(slice(0, p.columns)) : sums;
}

Array to_dense(const Csr& a, std::source_location where) {
  const Call call("sparse::to_dense", where);
  return matmul(a, eye(a.shape()[1], a.dtype()));
}

}  // namespace tessera::sparse
