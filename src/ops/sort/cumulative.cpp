#include "ops/sort/cumulative.hpp"

#include <cstring>
#include <limits>
#include <string_view>

#include "comm/collectives/point_to_point.hpp"
#include "comm/mpi/communicator.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/reduce/reduce.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/along.hpp"
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

// Records are named after their reduction kind: cumsum.
ReduceKind kind_of(const OpDef& op) { return *reduce_kind_named(std::string_view(op.name).substr(3)); }

void kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  kernels::cumulative(kind_of(a.op), p.reverse, a.in[0].dtype, a.in[0].data, a.in[0].shape(), p.dim,
                      a.out[0].data, nullptr, kernels::ScanOrder::by_vectors);
}
void kernel_in_order(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  kernels::cumulative(kind_of(a.op), p.reverse, a.in[0].dtype, a.in[0].data, a.in[0].shape(), p.dim,
                      a.out[0].data);
}

// Combines out (outer, extent, inner) with first (outer, inner) at every index of the extent.
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

// Whether a block's total is faster to compute separately than as the last of its running values.
bool is_reduced_alone(ReduceKind kind, Dtype dtype) {
  return kind != ReduceKind::logsumexp && kernels::reduce_result(kind, dtype) == dtype;
}

// block 0 [1 2 3]  block 1 [4 5]     totals 6, 9     before block 1: 6     [1 3 6] [10 15]
void communicate(const CommunicationArgs& args) {
  const auto& a = args.local;
  const auto& p = params_of(a.params);
  const auto kind = kind_of(a.op);
  const Tile &in = a.in[0], &out = a.out[0];
  const bool totals_first = is_reduced_alone(kind, out.dtype);
  if (!totals_first) kernel(a);
  const auto& comm = group_of_dim(args.out_layouts[0], p.dim, static_cast<int>(out.box.size()), args.me);
  const auto view = kernels::axis_view(out.shape(), p.dim);
  const auto lines = view.outer * view.inner;
  if (lines == 0) return;
  const auto item = static_cast<std::int64_t>(itemsize(out.dtype));
  const auto bytes = static_cast<std::size_t>(lines * item);
  Buffer total = Buffer::allocate(bytes), before = Buffer::allocate(bytes);
  kernels::fill_identity(kind, out.dtype, total.data(), lines);
  const auto last = p.reverse ? 0 : view.extent - 1;
  const bool is_last = comm.rank() == (p.reverse ? 0 : comm.size() - 1);  // its total is sent to no one
  if (view.extent > 0 && totals_first && !is_last)
    kernels::reduce(kind, in.dtype, in.data, in.shape(), {p.dim}, total.data());
  else if (view.extent > 0 && !totals_first)
    for (std::int64_t o = 0; o < view.outer; ++o)
      std::memcpy(total.data() + o * view.inner * item,
                  out.data + (o * view.extent + last) * view.inner * item, view.inner * item);
  const bool has_before = exclusive_scan(comm, p.reverse, total.data(), before.data(), bytes,
                                         [&](const std::byte* theirs, std::byte* inout) {
                                           kernels::combine(kind, out.dtype, theirs, inout, lines);
                                         });
  if (totals_first)
    kernels::cumulative(kind, p.reverse, in.dtype, in.data, in.shape(), p.dim, out.data,
                        has_before ? before.data() : nullptr, kernels::ScanOrder::by_vectors);
  else if (has_before && out.elements() > 0)
    combine_rows(kind, out.dtype, before.data(), out.data, view);
}

// The kernel of a ReproducibleScope: each rank continues from the sum of the rank before it, so that lines
// are added from their first element to their last.
void talk_in_order(const CommunicationArgs& args) {
  const auto& a = args.local;
  const auto& p = params_of(a.params);
  const Tile &in = a.in[0], &out = a.out[0];
  const auto& comm = group_of_dim(args.out_layouts[0], p.dim, static_cast<int>(out.box.size()), args.me);
  const auto view = kernels::axis_view(out.shape(), p.dim);
  const auto item = static_cast<std::int64_t>(itemsize(out.dtype)), bytes = view.outer * view.inner * item;
  if (bytes == 0) return;
  const int place = p.reverse ? comm.size() - 1 - comm.rank() : comm.rank();
  const auto rank_at = [&](int at) { return p.reverse ? comm.size() - 1 - at : at; };
  Buffer before = Buffer::allocate(static_cast<std::size_t>(bytes));
  if (place > 0) comm::receive(comm, before.data(), bytes, rank_at(place - 1));
  if (view.extent > 0) {
    kernels::cumulative(kind_of(a.op), p.reverse, in.dtype, in.data, in.shape(), p.dim, out.data,
                        place > 0 ? before.data() : nullptr);
    const auto last = p.reverse ? 0 : view.extent - 1;
    for (std::int64_t o = 0; o < view.outer; ++o)
      std::memcpy(before.data() + o * view.inner * item,
                  out.data + (o * view.extent + last) * view.inner * item,
                  static_cast<std::size_t>(view.inner * item));
  } else if (place == 0) {
    kernels::fill_identity(kind_of(a.op), out.dtype, before.data(), view.outer * view.inner);
  }
  if (place + 1 < comm.size()) comm::start_send(comm, before.data(), bytes, rank_at(place + 1)).wait();
}

std::vector<CommunicationCost> cost_in_order(const PlacementArgs& args, const Placement& placement) {
  const int dim = params_of(args.params).dim;
  const auto& layout = placement.outputs[0];
  const auto axes = layout.dim_axes(args.out[0].shape.ndim())[dim];
  if (axes.empty()) return {};
  Shape line = layout.shard_shape(args.out[0].shape);
  line[dim] = 1;
  return {{"collective-permute", axes,
           line.elements() * static_cast<std::int64_t>(itemsize(args.out[0].dtype)), 1}};
}

std::vector<CommunicationCost> communication_cost(const PlacementArgs& args, const Placement& placement) {
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

// The derivative of a running product, valid at zeros too. Before a line's first zero it is (running sum of g
// * out from the end) / x; at the first zero the same without that zero; after it 0.
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
  op.runs = Communicating{.together = communicate, .cost = communication_cost, .alone = kernel};
  op.vjp = vjp;
  op.batch = [](const BatchArgs& args) -> Batched {
    auto p = params_of(*args.node.params);
    ++p.dim;
    return {{record(*args.node.op, make_params(p), {batch_first(args.in[0], args.dims[0])})}, {0}};
  };
  op.parts = Parts::beside_lines;
  return op;
}
// In a ReproducibleScope `other` replaces it.
template <const OpDef& other> OpDef with_order(OpDef op) {
  op.instead = [](const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) -> std::vector<Array> {
    if (!is_inexact(in[0].dtype())) return {};
    return record_all(other, params, in);
  };
  return op;
}
OpDef in_order(OpDef op) {
  op.runs = Communicating{.together = talk_in_order, .cost = cost_in_order, .alone = kernel_in_order};
  op.same_bits = SameBits::made_for_it;
  op.instead = nullptr;
  return op;
}
OpDef with_same_bits(OpDef op, SameBits how) {
  op.same_bits = how;
  return op;
}
extern const OpDef ordered_cumsum_op, ordered_cumprod_op;
const OpDef cumsum_op =
    with_order<ordered_cumsum_op>(cumulative_record("cumsum", [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      return {cumulative(ReduceKind::sum, v.cotangents[0], p.dim, !p.reverse)};
    }));
const OpDef cumprod_op =
    with_order<ordered_cumprod_op>(cumulative_record("cumprod", [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      return {cumprod_cotangent(v.in[0], v.out[0], v.cotangents[0], p.dim, p.reverse)};
    }));
const OpDef ordered_cumsum_op = in_order(cumsum_op), ordered_cumprod_op = in_order(cumprod_op);
// The position along dim at which the running extremum was first reached.
Array first_attained(const Array& out, int dim, bool reverse) {
  const auto n = out.shape()[dim];
  const auto part = [&](const Slice& s) {
    std::vector<IndexPart> parts(dim, IndexPart(slice()));
    parts.emplace_back(s);
    return index(out, std::move(parts));
  };
  const Array moves = not_equal(part(slice(1, None)), part(slice(None, -1)));
  Shape end = out.shape();
  end[dim] = 1;
  const Array starts = ones(end, bool_);
  const Array is_new = reverse ? concatenate({moves, starts}, dim) : concatenate({starts, moves}, dim);
  std::vector<std::int64_t> column(out.shape().size(), 1);
  column[dim] = n;
  const Array places = reshape(arange(n), Shape(std::move(column)));
  return reverse ? cumulative(ReduceKind::min, where(is_new, places, static_cast<int>(n - 1)), dim, true)
                 : cumulative(ReduceKind::max, where(is_new, places, 0), dim, false);
}
Cotangents extremum_vjp(const VjpArgs& v) {
  const auto& p = params_of(*v.node.params);
  const auto n = v.in[0].shape()[p.dim];
  if (n == 0) return {zeros_like(v.in[0])};
  return {scatter_add_along(n, first_attained(v.out[0], p.dim, p.reverse), v.cotangents[0], p.dim)};
}
const OpDef cummax_op = with_same_bits(cumulative_record("cummax", extremum_vjp), SameBits::always);
const OpDef cummin_op = with_same_bits(cumulative_record("cummin", extremum_vjp), SameBits::always);

// sum of g_i exp(y_j - y_i) over all i >= j, computed from spans of 1, 2, 4, ... elements, each composed of
// two. No factor exceeds 1, while sums of g exp(-y) would overflow; and the result is linear in g, as jvp
// requires.
Array weighed_behind(const Array& y, Array sums, int dim, bool reverse) {
  const auto n = y.shape()[dim];
  const auto part = [&](const Array& a, const Slice& s) {
    std::vector<IndexPart> parts(dim, IndexPart(slice()));
    parts.emplace_back(s);
    return index(a, std::move(parts));
  };
  for (std::int64_t span = 1; span < n; span *= 2) {
    const auto near = [&](const Array& a) {
      return part(a, reverse ? slice(span, None) : slice(0, n - span));
    };
    const auto far = [&](const Array& a) {
      return part(a, reverse ? slice(0, n - span) : slice(span, None));
    };
    const Array weights = where(isfinite(near(y)), exp(near(y) - far(y)), 0);
    std::vector<std::pair<int, int>> widths(y.shape().size());
    (reverse ? widths[dim].first : widths[dim].second) = static_cast<int>(span);
    sums = sums + pad(weights * far(sums), std::move(widths));
  }
  return sums;
}
const OpDef cumlogsumexp_op =
    with_same_bits(cumulative_record("cumlogsumexp",
                                     [](const VjpArgs& v) -> Cotangents {
                                       const auto& p = params_of(*v.node.params);
                                       const Array &x = v.in[0], &y = v.out[0];
                                       return {where(isfinite(y), exp(x - y), 0) *
                                               weighed_behind(y, v.cotangents[0], p.dim, p.reverse)};
                                     }),
                   SameBits::never);
const Registered registered[] = {Registered(cumsum_op), Registered(cumprod_op), Registered(cummax_op),
                                 Registered(cummin_op), Registered(cumlogsumexp_op)};

const OpDef& record_of(ReduceKind kind) {
  for (const OpDef* op : {&cumsum_op, &cumprod_op, &cummax_op, &cummin_op})
    if (kind_of(*op) == kind) return *op;
  return cumlogsumexp_op;
}

// Like sum: bool is counted, small integers are summed in 32 bits.
Array accumulable(const Operand& x) {
  const Dtype d = x.array.dtype();
  if (is_bool(d) || d == int8 || d == int16) return astype(x, int32);
  if (d == uint8 || d == uint16) return astype(x, uint32);
  return x.array;
}

// Without an axis, of all elements in a row.
Array cumulative_of(const char* name, ReduceKind kind, const Operand& x, std::optional<int> axis,
                    const CumulativeOptions& options) {
  const Call call(name, x.where);
  check_usable(x.array);
  if (!axis) return cumulative_of(name, kind, reshape(x, Shape{-1}), 0, options);
  const int dim = checked_dim(*axis, x.array.ndim());
  const Array values = options.dtype ? astype(x, *options.dtype) : accumulable(x);
  const Array result = cumulative(kind, values, dim, options.reverse);
  if (!options.include_initial) return result;
  Shape one = result.shape();
  one[dim] = 1;
  const Array initial = full(one, kind == ReduceKind::sum ? 0 : 1, result.dtype());
  return options.reverse ? concatenate({result, initial}, dim) : concatenate({initial, result}, dim);
}

int checked_dim_of_real(const Operand& x, int axis) {
  check_usable(x.array);
  if (is_complex(x.array.dtype()))
    throw DtypeError(call_text() + ": complex numbers have no order; take it of abs(x)");
  return checked_dim(axis, x.array.ndim());
}

// bool is ordered as 0 and 1.
Array running_extremum(const char* name, ReduceKind kind, const Operand& x, int axis, bool reverse) {
  const Call call(name, x.where);
  const int dim = checked_dim_of_real(x, axis);
  if (!is_bool(x.array.dtype())) return cumulative(kind, x.array, dim, reverse);
  return astype(cumulative(kind, astype(x, uint8), dim, reverse), bool_);
}

}  // namespace

std::optional<Running> running_of(const Node& node) {
  for (const OpDef* op : {&cumsum_op, &cumprod_op, &cummax_op, &cummin_op, &cumlogsumexp_op,
                          &ordered_cumsum_op, &ordered_cumprod_op})
    if (node.op == op)
      return Running{kind_of(*op), params_of(*node.params).dim, params_of(*node.params).reverse,
                     op->same_bits == SameBits::made_for_it};
  return std::nullopt;
}

Array cumulative(ReduceKind kind, const Array& x, int dim, bool reverse) {
  return record(record_of(kind), make_params(CumulativeParams{dim, reverse}), {x});
}

Array cumsum(const Operand& x, int axis, CumulativeOptions options) {
  return cumulative_of("cumsum", ReduceKind::sum, x, axis, options);
}
Array cumsum(const Operand& x, int axis) { return cumulative_of("cumsum", ReduceKind::sum, x, axis, {}); }
Array cumsum(const Operand& x) { return cumulative_of("cumsum", ReduceKind::sum, x, std::nullopt, {}); }
Array cumprod(const Operand& x, int axis, CumulativeOptions options) {
  return cumulative_of("cumprod", ReduceKind::prod, x, axis, options);
}
Array cumprod(const Operand& x, int axis) { return cumulative_of("cumprod", ReduceKind::prod, x, axis, {}); }
Array cumprod(const Operand& x) { return cumulative_of("cumprod", ReduceKind::prod, x, std::nullopt, {}); }
Array cummax(const Operand& x, int axis, bool reverse) {
  return running_extremum("cummax", ReduceKind::max, x, axis, reverse);
}
Array cummin(const Operand& x, int axis, bool reverse) {
  return running_extremum("cummin", ReduceKind::min, x, axis, reverse);
}
Array cumlogsumexp(const Operand& x, int axis, bool reverse) {
  const Call call("cumlogsumexp", x.where);
  const int dim = checked_dim_of_real(x, axis);
  return cumulative(ReduceKind::logsumexp, cast_to(x.array, to_inexact(x.array.dtype())), dim, reverse);
}

}  // namespace tessera
