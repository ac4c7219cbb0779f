// Permuting dims: the sharding is permuted too, nothing moves between ranks.
#include "ops/reshape/transpose.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "kernels/move/copy.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

struct TransposeParams {
  std::vector<int> permutation;  // dim i of the result is dim permutation[i] of the operand
  template <class V> void fields(V&& visit) const { visit("permutation", permutation); }
};

std::vector<int> inverse(const std::vector<int>& permutation) {
  std::vector<int> result(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) result[permutation[i]] = static_cast<int>(i);
  return result;
}

RuleReading read_permuted(const Params& p, std::span<const Shape>) {
  return {{}, {p.as<TransposeParams>().permutation}};
}

const OpDef transpose_op{
    .name = "transpose",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      std::vector<std::int64_t> extents;
      for (const int d : p.as<TransposeParams>().permutation) extents.push_back(in[0].shape[d]);
      return {{Shape(std::move(extents)), in[0].dtype, in[0].weak}};
    },
    .sharding = Rule("D.. -> D..", read_permuted),
    .runs = Kernel{[](const KernelArgs& a) {
      kernels::transpose(a.out[0].data, a.in[0].data, a.in[0].shape(),
                         a.params.as<TransposeParams>().permutation, itemsize(a.in[0].dtype));
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      return {transpose(v.cotangents[0], inverse(v.node.params->as<TransposeParams>().permutation))};
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = args.node.params->as<TransposeParams>();
      for (int& d : p.permutation) ++d;
      p.permutation.insert(p.permutation.begin(), 0);
      return {{record(*args.node.op, make_params(std::move(p)), {batch_first(args.in[0], args.dims[0])})},
              {0}};
    },
    .linear = Linear::in_first,
    .parts = Parts::all_dims,
};
const Registered registered_transpose(transpose_op);

}  // namespace

const std::vector<int>* pending_permutation(const Array& x) {
  const Node& node = *x.node();
  const bool is_pending = node.op == &transpose_op && !node.is_evaluated();
  return is_pending ? &node.params->as<TransposeParams>().permutation : nullptr;
}

Array transpose(const Operand& x, std::vector<int> permutation) {
  const Call call("transpose", x.where);
  check_usable(x.array);
  const int ndim = x.array.ndim();
  std::vector<int> places = permutation;
  for (int& d : places) d = checked_dim(d, ndim);
  const auto refuse = [&](const std::string& why) {
    throw ShapeError(call_text() + ": the permutation " + field_text(permutation) + why);
  };
  for (int d = 0; d < static_cast<int>(places.size()); ++d)
    if (std::count(places.begin(), places.end(), d) != 1 || static_cast<int>(places.size()) != ndim)
      refuse(" must name each of the " + std::to_string(ndim) + " axes of shape " +
             to_string(x.array.shape()) + " once");
  if (static_cast<int>(places.size()) != ndim)
    refuse(" has " + format_count(places.size(), "entry") + " for " + format_count(ndim, "axis"));
  if (std::is_sorted(places.begin(), places.end())) return x.array;
  return record(transpose_op, make_params(TransposeParams{std::move(places)}), {x.array});
}

Array transpose(const Operand& x) {
  const Call call("transpose", x.where);
  check_usable(x.array);
  std::vector<int> permutation;
  for (int d = x.array.ndim(); d-- > 0;) permutation.push_back(d);
  return transpose(x, std::move(permutation));
}

Array swapaxes(const Operand& x, int a, int b) {
  const Call call("swapaxes", x.where);
  check_usable(x.array);
  std::vector<int> permutation;
  for (int d = 0; d < x.array.ndim(); ++d) permutation.push_back(d);
  std::swap(permutation[checked_dim(a, x.array.ndim())], permutation[checked_dim(b, x.array.ndim())]);
  return transpose(x, std::move(permutation));
}

Array moveaxis(const Operand& x, int from, int to) {
  const Call call("moveaxis", x.where);
  check_usable(x.array);
  from = checked_dim(from, x.array.ndim());
  to = checked_dim(to, x.array.ndim());
  std::vector<int> permutation;
  for (int d = 0; d < x.array.ndim(); ++d)
    if (d != from) permutation.push_back(d);
  permutation.insert(permutation.begin() + to, from);
  return transpose(x, std::move(permutation));
}

}  // namespace tessera
