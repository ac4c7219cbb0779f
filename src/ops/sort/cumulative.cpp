#include "ops/sort/cumulative.hpp"

#include <cstring>

#include "comm/mpi/communicator.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/reduce/reduce.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/sort/exclusive_scan.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

struct CumulativeParams {
  int dim;
  bool reverse;
  template <class V> void fields(V&& visit) const {
    visit("dim", dim);
    visit("reverse", reverse);
  }
};
const CumulativeParams& params_of(const Params& p) { return p.as<CumulativeParams>(); }

ReduceKind kind_of(const OpDef& op) { return op.name == "cumsum" ? ReduceKind::sum : ReduceKind::prod; }

void kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  kernels::cumulative(kind_of(a.op), p.reverse, a.in[0].dtype, a.in[0].data, a.in[0].shape(), p.dim,
                      a.out[0].data);
}

// out (outer, extent, inner) combined with first (outer, inner) at every place of the extent.
void combine_rows(ReduceKind kind, Dtype dtype, const std::byte* first, std::byte* out,
                  kernels::AxisView view) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  Buffer line = Buffer::allocate(view.extent * item);
  for (std::int64_t o = 0; o < view.outer; ++o) {
    std::byte* block = out + o * view.extent * view.inner * item;
    if (view.inner == 1) {
      kernels::fill(line.data(), first + o * item, item, view.extent);
      kernels::combine(kind, dtype, line.data(), block, view.extent);
    } else {
      for (std::int64_t i = 0; i < view.extent; ++i)
        kernels::combine(kind, dtype, first + o * view.inner * item, block + i * view.inner * item,
                         view.inner);
    }
  }
}

// block 0 [1 2 3]  block 1 [4 5]  ->  [1 3 6] [4 9]; totals 6, 9; before block 1: 6  ->  [1 3 6] [10 15]
void talk(const TalkArgs& args) {
  const auto& a = args.local;
  const auto& p = params_of(a.params);
  const auto kind = kind_of(a.op);
  const Tile& out = a.out[0];
  kernel(a);
  const auto& comm = group_of_dim(args.out_layouts[0], p.dim, static_cast<int>(out.box.size()), args.me);
  const auto view = kernels::axis_view(out.shape(), p.dim);
  const auto lines = view.outer * view.inner;
  if (lines == 0) return;
  const auto item = static_cast<std::int64_t>(itemsize(out.dtype));
  const auto bytes = static_cast<std::size_t>(lines * item);
  Buffer total = Buffer::allocate(bytes), before = Buffer::allocate(bytes);
  kernels::fill_identity(kind, out.dtype, total.data(), lines);
  const auto last = p.reverse ? 0 : view.extent - 1;
  if (view.extent > 0)
    for (std::int64_t o = 0; o < view.outer; ++o)
      std::memcpy(total.data() + o * view.inner * item,
                  out.data + (o * view.extent + last) * view.inner * item, view.inner * item);
  const bool has_before = exclusive_scan(
      comm, p.reverse, total.data(), before.data(), bytes,
      [&](const std::byte* in, std::byte* inout) { kernels::combine(kind, out.dtype, in, inout, lines); });
  if (has_before && out.elements() > 0) combine_rows(kind, out.dtype, before.data(), out.data, view);
}

std::vector<TalkCost> talk_cost(const PlaceArgs& args, const Placement& placement) {
  const auto& p = params_of(args.params);
  const auto& type = args.out[0];
  const int ndim = type.shape.ndim();
  const auto& layout = placement.outputs[0];
  const auto axes = layout.dim_axes(ndim)[p.dim];
  if (axes.empty()) return {};
  const auto steps = scan_steps(devices_along(layout.mesh(), axes));
  Shape line = layout.shard_shape(type.shape);
  line[p.dim] = 1;
  return {{"collective-permute", axes,
           steps * line.elements() * static_cast<std::int64_t>(itemsize(type.dtype)), steps}};
}

// The derivative of a running product, right at zeros too. Before a line's first zero it is (running sum of
// g * out from the end) / x; at the first zero the same with that zero left out; after it nothing.
Array cumprod_cotangent(const Array& x, const Array& out, const Array& g, int dim, bool reverse) {
  const Array is_zero = x == 0;
  const Array zeros_so_far = cumulative(ReduceKind::sum, astype(is_zero, int32), dim, reverse);
  const Array is_first = is_zero & (zeros_so_far == 1);
  const Array without = where(is_first, ones_like(x), x);
  const Array beyond = cumulative(ReduceKind::sum, g * out, dim, !reverse);
  const Array beyond_without =
      cumulative(ReduceKind::sum, g * cumulative(ReduceKind::prod, without, dim, reverse), dim, !reverse);
  return where(zeros_so_far == 0, beyond / where(is_zero, ones_like(x), x),
               where(is_first, beyond_without, zeros_like(x)));
}

OpDef cumulative_record(const char* name, Cotangents (*vjp)(const VjpArgs&)) {
  OpDef op;
  op.name = name;
  op.infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
    return {{in[0].shape, in[0].dtype}};
  };
  op.sharding = Rule("{D..} -> {D..}");
  op.runs = Talk{.together = talk, .cost = talk_cost, .alone = kernel};
  op.vjp = vjp;
  op.batch = [](const BatchArgs& args) -> Batched {
    auto p = params_of(*args.node.params);
    ++p.dim;
    return {{record(*args.node.op, make_params(p), {batch_first(args.in[0], args.dims[0])})}, {0}};
  };
  return op;
}
const OpDef cumsum_op = cumulative_record("cumsum", [](const VjpArgs& v) -> Cotangents {
  const auto& p = params_of(*v.node.params);
  return {cumulative(ReduceKind::sum, v.cotangents[0], p.dim, !p.reverse)};
});
const OpDef cumprod_op = cumulative_record("cumprod", [](const VjpArgs& v) -> Cotangents {
  const auto& p = params_of(*v.node.params);
  return {cumprod_cotangent(v.in[0], v.out[0], v.cotangents[0], p.dim, p.reverse)};
});
const Registered registered[] = {Registered(cumsum_op), Registered(cumprod_op)};

// As sum: bool counts, small integers are summed in 32 bits.
Array accumulable(const Operand& x) {
  const Dtype d = x.array.dtype();
  if (is_bool(d) || d == int8 || d == int16) return astype(x, int32);
  if (d == uint8 || d == uint16) return astype(x, uint32);
  return x.array;
}

}  // namespace

Array cumulative(ReduceKind kind, const Array& x, int dim, bool reverse) {
  return record(kind == ReduceKind::sum ? cumsum_op : cumprod_op, make_params(CumulativeParams{dim, reverse}),
                {x});
}

Array cumsum(const Operand& x, int axis) {
  const Call call("cumsum", x.where);
  check_usable(x.array);
  return cumulative(ReduceKind::sum, accumulable(x), checked_dim(axis, x.array.ndim()), false);
}
Array cumprod(const Operand& x, int axis) {
  const Call call("cumprod", x.where);
  check_usable(x.array);
  return cumulative(ReduceKind::prod, accumulable(x), checked_dim(axis, x.array.ndim()), false);
}

}  // namespace tessera
