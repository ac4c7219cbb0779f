#include "ops/contract/dot_general.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/rates.hpp"
#include "graph/elementwise_row.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/reduce/reduce.hpp"
#include "mesh/reshard.hpp"
#include "ops/build.hpp"
#include "ops/contract/product_plan.hpp"
#include "ops/contract/ring_sum.hpp"
#include "ops/functions.hpp"
#include "ops/reshape/transpose.hpp"
#include "types/buffer.hpp"

namespace tessera {

std::vector<int> free_dims(int ndim, const std::vector<int>& contract, const std::vector<int>& batch) {
  const auto has = [](const std::vector<int>& dims, int d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  std::vector<int> dims;
  for (int d = 0; d < ndim; ++d)
    if (!has(contract, d) && !has(batch, d)) dims.push_back(d);
  return dims;
}

int free_dims_of_b(const DotDims& p, const Shape& b) {
  return static_cast<int>(free_dims(b.ndim(), p.contract_b, p.batch_b).size());
}

namespace {

bool has(const std::vector<int>& dims, int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  const auto& p = params.as<DotDims>();
  std::vector<std::int64_t> extents;
  for (const int d : p.batch_a) extents.push_back(in[0].shape[d]);
  for (const int d : free_dims(in[0].shape.ndim(), p.contract_a, p.batch_a))
    extents.push_back(in[0].shape[d]);
  for (const int d : free_dims(in[1].shape.ndim(), p.contract_b, p.batch_b))
    extents.push_back(in[1].shape[d]);
  return {{Shape(std::move(extents)), in[0].dtype}};
}

// The order of an operand's batch, free and contracted dims is determined by the params.
RuleReading read_dims(const Params& params, std::span<const Shape> in) {
  const auto& p = params.as<DotDims>();
  std::vector<std::vector<int>> order(2);
  const auto add = [&](int operand, const std::vector<int>& dims) {
    order[operand].insert(order[operand].end(), dims.begin(), dims.end());
  };
  const auto add_free = [&](int operand, const std::vector<int>& contract, const std::vector<int>& batch) {
    for (int d = 0; d < in[operand].ndim(); ++d)
      if (!has(contract, d) && !has(batch, d)) order[operand].push_back(d);
  };
  order[0].reserve(in[0].size()), add(0, p.batch_a), add_free(0, p.contract_a, p.batch_a),
      add(0, p.contract_a);
  order[1].reserve(in[1].size()), add(1, p.batch_b), add(1, p.contract_b),
      add_free(1, p.contract_b, p.batch_b);
  return {{{{'B', std::ssize(p.batch_a)}, {'K', std::ssize(p.contract_a)}}}, std::move(order)};
}

std::int64_t extent_of(const Shape& shape, const std::vector<int>& dims) {
  std::int64_t product = 1;
  for (const int d : dims) product *= shape[d];
  return product;
}

// A matrix view (batch, rows, columns) or (batch, columns, rows) of an operand; if its dims have another
// order, a transposed copy.
struct MatrixView {
  const std::byte* data;
  bool transposed = false;
  Buffer copy;
};
MatrixView as_matrices(const Tile& tile, const std::vector<int>& batch, const std::vector<int>& rows,
                       const std::vector<int>& columns) {
  const Shape shape = tile.shape();
  const auto in_order = [&](const std::vector<int>& second, const std::vector<int>& third) {
    std::vector<int> order = batch;
    order.insert(order.end(), second.begin(), second.end());
    order.insert(order.end(), third.begin(), third.end());
    int last = -1;
    for (const int d : order) {
      if (shape[d] == 1) continue;  // its position does not matter
      if (d < last) return false;
      last = d;
    }
    return true;
  };
  if (in_order(rows, columns)) return {tile.data, false, {}};
  if (in_order(columns, rows)) return {tile.data, true, {}};
  std::vector<int> permutation = batch;
  permutation.insert(permutation.end(), rows.begin(), rows.end());
  permutation.insert(permutation.end(), columns.begin(), columns.end());
  Buffer copy = Buffer::allocate(tile.bytes());
  kernels::transpose(copy.data(), tile.data, shape, permutation, itemsize(tile.dtype));
  return {copy.data(), false, copy};
}

// The order of a ReproducibleScope. One summed dim is added up in parts of `depth`. Of several the first is
// taken `rows` indices at a time, of which all elements are added up in parts of `depth` of their own.
struct Order {
  std::int64_t rows, depth, at_a_time;
  Order(const Shape& a, const std::vector<int>& contract) {
    const auto first = contract.empty() ? 1 : std::max<std::int64_t>(a[contract[0]], 1),
               inner = std::max<std::int64_t>(extent_of(a, contract) / first, 1);
    if (contract.size() < 2) {
      rows = depth = kernels::product_depth(first), at_a_time = 0;
    } else {
      rows = std::max<std::int64_t>(kernels::deepest_part / inner, 1), at_a_time = rows * inner;
      depth = kernels::product_depth(at_a_time);
    }
  }
};

// `ordered`: sums in an order of their own, that of a ReproducibleScope.
template <bool ordered> void kernel(const KernelArgs& args) {
  const auto& p = args.params.as<DotDims>();
  const Tile &a = args.in[0], &b = args.in[1], &c = args.out[0];
  const auto free_a = free_dims(static_cast<int>(a.box.size()), p.contract_a, p.batch_a),
             free_b = free_dims(static_cast<int>(b.box.size()), p.contract_b, p.batch_b);
  const auto batch = extent_of(a.shape(), p.batch_a), m = extent_of(a.shape(), free_a),
             n = extent_of(b.shape(), free_b), k = extent_of(a.shape(), p.contract_a);
  if (c.elements() == 0) return;
  kernels::Beside beside;
  if (args.last_pass != nullptr) beside.last_pass = *args.last_pass;
  if (k == 0) {
    kernels::fill_identity(is_bool(c.dtype) ? ReduceKind::any : ReduceKind::sum, c.dtype, c.data,
                           c.elements());
    if (beside.last_pass) beside.last_pass(0, batch * m, 0, n);
    return;
  }
  const auto view_a = as_matrices(a, p.batch_a, free_a, p.contract_a);
  const auto view_b = as_matrices(b, p.batch_b, p.contract_b, free_b);
  const kernels::BatchedProduct product{c.dtype,
                                        batch,
                                        m,
                                        n,
                                        k,
                                        {view_a.data, m * k, view_a.transposed},
                                        {view_b.data, k * n, view_b.transposed},
                                        c.data,
                                        ordered ? Order(a.shape(), p.contract_a).at_a_time : 0};
  if (ordered)
    kernels::ordered_product_batched(product, beside);
  else
    kernels::gemm_batched(product, beside);
}

std::vector<int> range(int from, int count) {
  std::vector<int> dims(count);
  std::iota(dims.begin(), dims.end(), from);
  return dims;
}

// The cotangent of one operand: the result's cotangent times the other operand, contracted over the other's
// free dims. The factors are in the order that gives a plain matrix product's dims in the operand's order,
// without a transposition:
//   of a (batch, m, k):  g (batch, m, n) . b -> (batch, m, k)
//   of b (batch, k, n):  a . g (batch, m, n) -> (batch, k, n)
Array operand_cotangent(const Array& g, const Array& other, bool of_first, const DotDims& p, int ndim) {
  const auto& contract = of_first ? p.contract_a : p.contract_b;
  const auto& batch = of_first ? p.batch_a : p.batch_b;
  const auto& contract_other = of_first ? p.contract_b : p.contract_a;
  const auto& batch_other = of_first ? p.batch_b : p.batch_a;
  const auto free_own = free_dims(ndim, contract, batch),
             free_other = free_dims(other.ndim(), contract_other, batch_other);
  const int n_batch = static_cast<int>(batch.size()), n_own = static_cast<int>(free_own.size()),
            n_other = static_cast<int>(free_other.size()), n_contract = static_cast<int>(contract.size());
  const auto of_g = range(0, n_batch), summed_of_g = range(of_first ? n_batch + n_own : n_batch, n_other);
  const Array result = of_first
                           ? dot_general(g, other, {summed_of_g, free_other, of_g, batch_other, p.options})
                           : dot_general(other, g, {free_other, summed_of_g, batch_other, of_g, p.options});
  const int own_at = n_batch + (of_first ? 0 : n_contract), contract_at = n_batch + (of_first ? n_own : 0);
  std::vector<int> permutation(ndim);
  for (int i = 0; i < n_batch; ++i) permutation[batch[i]] = i;
  for (int i = 0; i < n_own; ++i) permutation[free_own[i]] = own_at + i;
  auto sorted = contract_other;  // the order in which the contracted dims remain
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < contract.size(); ++i) {
    const auto at = std::find(sorted.begin(), sorted.end(), contract_other[i]) - sorted.begin();
    permutation[contract[i]] = contract_at + static_cast<int>(at);
  }
  return transpose(result, std::move(permutation));
}

Cotangents vjp(const VjpArgs& v) {
  const auto& p = v.node.params->as<DotDims>();
  Cotangents result(2);
  if (v.wanted[0]) result[0] = operand_cotangent(v.cotangents[0], v.in[1], true, p, v.in[0].ndim());
  if (v.wanted[1]) result[1] = operand_cotangent(v.cotangents[0], v.in[0], false, p, v.in[1].ndim());
  return result;
}

// A dim batched in both operands is one more batch pair; one batched in a single operand is a free dim that
// moves to the front of the result.
Batched batch(const BatchArgs& args) {
  auto p = args.node.params->as<DotDims>();
  const auto shift = [](std::vector<int>& dims, int at) {
    for (int& d : dims)
      if (d >= at) ++d;
  };
  const int da = args.dims[0], db = args.dims[1];
  if (da != not_batched) shift(p.contract_a, da), shift(p.batch_a, da);
  if (db != not_batched) shift(p.contract_b, db), shift(p.batch_b, db);
  int out_dim = 0;
  if (da != not_batched && db != not_batched) {
    p.batch_a.insert(p.batch_a.begin(), da);
    p.batch_b.insert(p.batch_b.begin(), db);
  } else if (da != not_batched) {
    const auto free_a = free_dims(args.in[0].ndim(), p.contract_a, p.batch_a);
    out_dim = static_cast<int>(
        p.batch_a.size() +
        static_cast<std::size_t>(std::find(free_a.begin(), free_a.end(), da) - free_a.begin()));
  } else {
    const auto free_a = free_dims(args.in[0].ndim(), p.contract_a, p.batch_a),
               free_b = free_dims(args.in[1].ndim(), p.contract_b, p.batch_b);
    out_dim = static_cast<int>(
        p.batch_a.size() + free_a.size() +
        static_cast<std::size_t>(std::find(free_b.begin(), free_b.end(), db) - free_b.begin()));
  }
  return {{record(*args.node.op, make_params(std::move(p)), {args.in.begin(), args.in.end()})}, {out_dim}};
}

extern const OpDef ordered_dot_op;
std::vector<Array> ordered_dot(const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) {
  const Dtype dtype = in[0].dtype();
  if (!is_inexact(dtype)) return {};
  if (itemsize(dtype) > 2) return record_all(ordered_dot_op, params, in);
  const auto wide = record_all(ordered_dot_op, params, {astype(in[0], float32), astype(in[1], float32)});
  return {astype(wide[0], dtype)};
}

const OpDef dot_op{
    .name = "dot",
    .infer = infer,
    .sharding = Rule("B.. M.. K.., B.. K.. N.. -> B.. M.. N.. | sum K", read_dims),
    .runs = Kernel{kernel<false>},
    .vjp = vjp,
    .batch = batch,
    .linear = Linear::in_either,
    .parts = Parts::all_dims,
    .flops =
        [](std::span<const Type> in, std::span<const Type> out, const Params& params) {
          return 2.0 * static_cast<double>(out[0].shape.elements()) *
                 static_cast<double>(extent_of(in[0].shape, params.as<DotDims>().contract_a));
        },
    .columns_of_parts = [](std::span<const Shape> in,
                           const Params& params) { return free_dims_of_b(params.as<DotDims>(), in[1]); },
    .instead = ordered_dot,
};
const Registered registered_dot(dot_op);

// The record of a ReproducibleScope: the rank that adds holds all of the contracted dims.
OpDef ordered_record() {
  OpDef op = dot_op;
  op.runs = Kernel{kernel<true>};
  op.linear = Linear::no;
  op.parts = Parts::unreduced_dims;
  op.same_bits = SameBits::made_for_it;
  op.instead = nullptr;
  return op;
}
const OpDef ordered_dot_op = ordered_record();

ChosenAlgorithm dot_pieces(const AlgorithmArgs& args) {
  if (args.kept != nullptr) return plan_ring_sum(args);
  const Shape in[] = {args.in[0].shape, args.in[1].shape}, out[] = {args.out.shape};
  return plan_product(args, rule_of(dot_op)->on(in, out, args.params));
}
const CanWorkByPieces dot_by_pieces(dot_op, dot_pieces);

// The operand of a unary op that is not evaluated yet and whose operand still exists.
const Array* pending_operand(const Array& x) {
  const Node& node = *x.node();
  if (node.is_evaluated() || node.inputs.size() != 1) return nullptr;
  const Array& operand = node.inputs[0];
  return operand.node() == nullptr || output_of(operand).deleted ? nullptr : &operand;
}

// Maps dims of a transpose to dims of its operand, if a kernel can read them without a copy: batch dims
// first, then free and contracted dims, each group in order.
bool see_through(const std::vector<int>& permutation, std::vector<int>& contract, std::vector<int>& batch) {
  const auto at_operand = [&](std::vector<int> dims) {
    for (int& d : dims) d = permutation[static_cast<std::size_t>(d)];
    return dims;
  };
  const auto ndim = static_cast<int>(permutation.size());
  const auto contracted = at_operand(contract), batched = at_operand(batch),
             free = at_operand(free_dims(ndim, contract, batch));
  auto order = batched;
  const auto& first = !free.empty() && !contracted.empty() && contracted[0] < free[0] ? contracted : free;
  const auto& second = &first == &free ? contracted : free;
  order.insert(order.end(), first.begin(), first.end());
  order.insert(order.end(), second.begin(), second.end());
  if (!std::is_sorted(order.begin(), order.end())) return false;
  contract = contracted, batch = batched;
  return true;
}

// Whether x may be negated after conversion to the product's dtype: integers wrap around before they are
// converted.
bool negates_exactly(const Array& x, Dtype product) { return x.dtype() == product || is_inexact(x.dtype()); }

// Reads a pending transpose in its operand's order and turns a pending negation into a sign of the product,
// so that neither is materialised. Returns whether the sign changes.
bool without_copies(Array& x, Dtype product, std::vector<int>& contract, std::vector<int>& batch) {
  bool changes_sign = false;
  while (const Array* operand = pending_operand(x)) {
    const Array next = *operand;
    const auto* const permutation = pending_permutation(x);
    if (permutation != nullptr
            ? !see_through(*permutation, contract, batch)
            : !computes(*x.node()->op, kernels::map<"negative">) || !negates_exactly(x, product))
      break;
    changes_sign ^= permutation == nullptr;
    x = next;
  }
  return changes_sign;
}

}  // namespace

std::int64_t length_in_order(const Node& node) {
  if (node.op != &ordered_dot_op) return 0;
  const auto& contract = node.params->as<DotDims>().contract_a;
  return contract.empty() ? 0 : Order(node.inputs[0].shape(), contract).rows;
}

OrderedParts ordered_parts(const Node& node, std::vector<Array> inputs) {
  DotDims p = node.params->as<DotDims>();
  const Order order(node.inputs[0].shape(), p.contract_a);
  if (order.at_a_time == 0)
    return {node.params, std::move(inputs), {p.contract_a[0], p.contract_b[0]}, order.depth, order.depth};
  const auto with_summed_first = [](const Array& x, const std::vector<int>& contract,
                                    std::vector<int>& batch) {
    auto permutation = contract;
    std::vector<std::int64_t> extents{extent_of(x.shape(), contract)};
    std::vector<int> now(static_cast<std::size_t>(x.ndim()));
    for (int d = 0; d < x.ndim(); ++d) {
      if (has(contract, d)) continue;
      now[static_cast<std::size_t>(d)] = static_cast<int>(extents.size());
      permutation.push_back(d), extents.push_back(x.shape()[static_cast<std::size_t>(d)]);
    }
    for (int& d : batch) d = now[static_cast<std::size_t>(d)];
    return reshape(transpose(x, permutation), Shape(std::move(extents)));
  };
  inputs[0] = with_summed_first(inputs[0], p.contract_a, p.batch_a);
  inputs[1] = with_summed_first(inputs[1], p.contract_b, p.batch_b);
  p.contract_a = p.contract_b = {0};
  return {make_params(std::move(p)), std::move(inputs), {0, 0}, order.at_a_time, order.depth};
}

const DotDims* dims_of_product(const Node& node) {
  return node.op == &dot_op || node.op == &ordered_dot_op ? &node.params->as<DotDims>() : nullptr;
}

Array dot_general(const Array& a, const Array& b, DotDims dims) {
  check_usable(a), check_usable(b);
  const auto check_pairs = [&](const std::vector<int>& da, const std::vector<int>& db, const char* what) {
    for (std::size_t i = 0; i < da.size(); ++i) {
      const auto na = a.shape()[da[i]], nb = b.shape()[db[i]];
      if (na != nb)
        throw ShapeError(call_text() + ": the " + what + " sizes differ: dimension " + std::to_string(da[i]) +
                         " of " + to_string(a.shape()) + " is " + std::to_string(na) + ", dimension " +
                         std::to_string(db[i]) + " of " + to_string(b.shape()) + " is " + std::to_string(nb) +
                         ". Transpose or reshape one of them");
    }
  };
  check_pairs(dims.contract_a, dims.contract_b, "inner");
  check_pairs(dims.batch_a, dims.batch_b, "batch");
  const auto& asked = innermost_matmul_options();
  if (dims.options.algorithm == ProductAlgorithm::automatic) dims.options.algorithm = asked.algorithm;
  if (dims.options.memory_limit_bytes == 0) dims.options.memory_limit_bytes = asked.memory_limit_bytes;
  auto dtype =
      promote(WeakDtype{a.dtype(), a.is_weakly_typed()}, WeakDtype{b.dtype(), b.is_weakly_typed()}).dtype;
  auto result = std::exchange(dims.options.preferred_element_type, std::nullopt);
  if (!result) result = asked.preferred_element_type;
  if (result) dtype = promote(WeakDtype{dtype}, WeakDtype{*result}).dtype;
  Array left = a, right = b;
  const bool changes_sign = without_copies(left, dtype, dims.contract_a, dims.batch_a) !=
                            without_copies(right, dtype, dims.contract_b, dims.batch_b);
  Array product = record(dot_op, make_params(std::move(dims)), {cast_to(left, dtype), cast_to(right, dtype)});
  if (changes_sign) product = negative(product);
  return result ? cast_to(product, *result) : product;
}

double dot_seconds(const Array& a, const Array& b, const DotDims& dims) {
  const std::vector<Array> operands{a, b};
  const std::vector<Type> in{type_of(a), type_of(b)};
  const auto params = make_params(dims);
  const auto out = infer(in, *params);
  std::vector<std::optional<Sharding>> shardings{output_of(a).sharding, output_of(b).sharding};
  const auto mesh = unify_meshes(operands, shardings);
  double flops = dot_op.flops(in, out, *params);
  std::int64_t bytes = 0;
  if (mesh) {
    const auto placed = place_by(*rule_of(dot_op), {in, out, shardings, *params, *mesh, no_axes, {}}, &bytes);
    const std::vector<Type> in_blocks{{placed.inputs[0].shard_shape(in[0].shape), in[0].dtype},
                                      {placed.inputs[1].shard_shape(in[1].shape), in[1].dtype}},
        out_blocks{{placed.outputs[0].shard_shape(out[0].shape), out[0].dtype}};
    flops = dot_op.flops(in_blocks, out_blocks, *params);
  }
  return static_cast<double>(bytes) / rates().inside.bytes_per_s + seconds_of_flops(flops, out[0].dtype);
}

}  // namespace tessera
