// The k largest of each line along the last dim. Over a split dim every rank sends only its own k largest,
// and each rank merges them.
#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/along.hpp"
#include "ops/position_dtype.hpp"
#include "ops/sort/lines.hpp"
#include "program/builder.hpp"

namespace tessera {
namespace {

struct TopParams {
  std::int64_t k;
  template <class V> void fields(V&& visit) const { visit("k", k); }
};

// The block's k largest, with positions in the complete line; a block shorter than k is padded with the least
// value and position -1. Only the last blocks are short, so the padding comes after all equals.
void find_candidates(const KernelArgs& a) {
  const Tile &x = a.in[0], &values = a.out[0], &places = a.out[1];
  const auto lines = line_count(x), own = x.box.back().size(), k = values.box.back().size(),
             kept = std::min(k, own);
  const auto item = static_cast<std::int64_t>(itemsize(x.dtype));
  if (values.elements() == 0) return;
  std::vector<std::int64_t> found(lines * kept);
  std::vector<std::byte> best(lines * kept * item);
  kernels::top_k_rows(x.dtype, x.data, lines, own, kept, best.data(), found.data());
  kernels::visit(x.dtype, [&]<class T>(T) {
    T* const to = values.as<T>();
    for (std::int64_t l = 0; l < lines; ++l)
      for (std::int64_t i = 0; i < k; ++i) {
        const bool is_real = i < kept;
        const auto from = static_cast<std::size_t>(l * kept + i);
        if (is_real)
          std::memcpy(to + l * k + i, best.data() + from * sizeof(T), sizeof(T));
        else
          to[l * k + i] = kernels::lowest<T>();
        const auto place = is_real ? x.box.back().start + found[from] : -1;
        places.dtype == int32 ? void(places.as<std::int32_t>()[l * k + i] = static_cast<std::int32_t>(place))
                              : void(places.as<std::int64_t>()[l * k + i] = place);
      }
  });
}
const OpDef candidates_op{.name = "top_k_candidates", .runs = Kernel{find_candidates}};

// Selects the largest of the candidates, which are in the order of the line.
const OpDef choose_op{
    .name = "top_k_choose",
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile &values = a.in[0], &places = a.in[1], &out = a.out[0];
      const auto lines = line_count(out), k = out.box.back().size(), n = values.box.back().size();
      if (out.elements() == 0) return;
      std::vector<std::int64_t> found(lines * k);
      kernels::top_k_rows(values.dtype, values.data, lines, n, k, out.data, found.data());
      kernels::gather_along(a.out[1].data, places.data, {lines, n, 1},
                            {int64, found.data(), {n, false, 0, n}}, k, itemsize(places.dtype));
    }},
};

std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto k = node.params->as<TopParams>().k;
  const Type x = builder.value(in[0]).type;
  const Sharding layout = builder.value(in[0]).layout, out = builder.placement().outputs[0];
  const auto axes = layout.dim_axes(x.shape.ndim()).back();
  const std::vector<Type> types = {node.outputs[0].type, node.outputs[1].type};
  if (axes.empty()) return builder.kernel(*node.op, node.params, {in[0]}, types, {out, out});
  const auto parts = devices_along(layout.mesh(), axes);
  std::vector<Type> candidates = types;
  for (auto& type : candidates)
    type.shape[type.shape.size() - 1] = parts * std::min(k, block_size(x.shape.back(), parts));
  const auto own = builder.kernel(candidates_op, no_params(), {in[0]}, candidates, {layout, layout});
  return builder.kernel(choose_op, no_params(), {builder.reshard(own[0], out), builder.reshard(own[1], out)},
                        types, {out, out});
}

const OpDef top_k_op{
    .name = "top_k",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      Shape shape = in[0].shape;
      shape[shape.size() - 1] = params.as<TopParams>().k;
      return {{shape, in[0].dtype}, {shape, position_dtype(in[0].shape.back())}};
    },
    .sharding = PlacementRule{place_selected},
    .runs = Lower{.write = lower, .kernel = find_candidates},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      if (!v.cotangents[0].node()) return {Array()};
      return {scatter_add_along(v.in[0].shape().back(), v.out[1], v.cotangents[0], v.in[0].ndim() - 1)};
    },
    .batch = batch_leading,
    .parts = Parts::beside_lines,
    .same_bits = SameBits::always,
};
const Registered registered(top_k_op);

}  // namespace

std::pair<Array, Array> top_k(const Operand& x, int k) {
  const Call call("top_k", x.where);
  check_usable(x.array);
  if (x.array.ndim() == 0) throw ShapeError(call_text() + ": a scalar has no axis to choose from");
  const auto n = x.array.shape().back();
  if (k < 0 || k > n)
    throw ArgumentError(call_text() + ": k is " + std::to_string(k) + ", but the last dimension of shape " +
                        to_string(x.array.shape()) + " has " + format_count(n, "element"));
  auto results = record_all(top_k_op, make_params(TopParams{k}), {x.array});
  return {results[0], results[1]};
}

}  // namespace tessera
