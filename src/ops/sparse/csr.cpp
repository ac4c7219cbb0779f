// Products of a sparse matrix whose rows are split. The elements held by other ranks are exchanged while the
// entries of own columns are multiplied.
//
//   a x      takes elements of x        x ── given ──► others      y = own(x), then y += others(taken)
//   a^T y    sends terms of x back      x = own(y) ◄── terms ──    others(y)
#include "ops/sparse/pattern.hpp"

#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.hpp"
#include "comm/collectives/pending.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/sparse/sparse_params.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

using kernels::CsrPart, kernels::RowsWith;

// Records one op per example.
Batched batch_each(const BatchArgs& args) {
  std::vector<Array> each;
  for (std::int64_t i = 0; i < args.size; ++i) {
    std::vector<Array> in;
    for (std::size_t k = 0; k < args.in.size(); ++k)
      in.push_back(args.dims[k] == not_batched ? args.in[k] : batch_first(args.in[k], args.dims[k])(i));
    each.push_back(record(*args.node.op, args.node.params, std::move(in)));
  }
  return {{stack(std::move(each), 0)}, {0}};
}

}  // namespace

Sharding split_first(const SparsePattern& p, const std::optional<Sharding>& given, int ndim) {
  const auto axes = p.axes();
  DimAxes dims(static_cast<std::size_t>(ndim));
  if (given) dims = given->dim_axes(ndim);
  for (auto& dim : dims)
    std::erase_if(dim, [&](int a) { return std::count(axes.begin(), axes.end(), a) > 0; });
  dims[0] = axes;
  return Sharding::from_dim_axes(p.sharding.mesh(), dims);
}

void check_axes(const PlacementArgs& args, const SparsePattern& p) {
  for (const int a : p.axes())
    if (std::count(args.fixed_axes.begin(), args.fixed_axes.end(), a) > 0)
      throw ShardingError(call_text() +
                          ": the rows of the sparse matrix are split over an axis that the mapped function "
                          "has for itself; call it outside of shard_map");
}

// The trailing dims keep the vector's layout.
Placement place_product(const PlacementArgs& args, const SparsePattern& p) {
  check_axes(args, p);
  const auto vectors = split_first(p, args.shardings[1], args.in[1].shape.ndim());
  return {{split_first(p, {}, 2), vectors}, {vectors}, {}, ReduceKind::sum};
}

std::int64_t width_of(const Shape& block) {
  std::int64_t width = 1;
  for (std::size_t d = 1; d < block.size(); ++d) width *= block[d];
  return width;
}
// More vectors for one matrix become more columns.
Batched batch_columns(const BatchArgs& args) {
  if (args.dims[0] != not_batched) return batch_each(args);
  const int last = args.in[1].ndim() - 1;
  const Array columns = moveaxis(args.in[1], args.dims[1], last);
  return {{record(*args.node.op, args.node.params, {args.in[0], columns})}, {last}};
}

std::optional<Mesh> commit_to_pattern(const Params& p) { return pattern_of(p).sharding.mesh(); }

// Moves x to the pattern's mesh if its own has the same devices in the same order under other names.
Array on_pattern_mesh(const SparsePattern& p, const Array& x) {
  const auto& sharding = output_of(x).sharding;
  const Mesh mesh = p.sharding.mesh();
  if (!sharding || sharding->mesh() == mesh || sharding->mesh().device_ids() != mesh.device_ids()) return x;
  return device_put(x, split_first(p, {}, x.ndim()));
}

namespace {

// ---- types and placements ----

Shape with_first(const Shape& shape, std::int64_t extent) {
  Shape result = shape;
  result[0] = extent;
  return result;
}
Shape values_shape(const SparsePattern& p) { return {devices_along(p.sharding.mesh(), p.axes()), p.width}; }

Placement place(const PlacementArgs& args) { return place_product(args, pattern_of(args.params)); }

// Each rank sums over the columns of which it has the elements of both operands.
Placement place_sample(const PlacementArgs& args) {
  const auto& p = pattern_of(args.params);
  check_axes(args, p);
  const int ndim = args.in[0].shape.ndim();
  const auto vectors = split_first(p, args.shardings[0] ? args.shardings[0] : args.shardings[1], ndim);
  Placement result{{vectors, vectors}, {split_first(p, {}, 2)}, {}, ReduceKind::sum};
  const auto dims = vectors.dim_axes(ndim);
  for (std::size_t d = 1; d < dims.size(); ++d)
    result.partial_axes.insert(result.partial_axes.end(), dims[d].begin(), dims[d].end());
  return result;
}

std::vector<CommunicationCost> cost_of(const PlacementArgs& args, const Placement& placement,
                                       std::size_t vector, std::int64_t elements) {
  if (elements == 0) return {};
  const auto width = width_of(placement.inputs[vector].shard_shape(args.in[vector].shape));
  const auto bytes = elements * width * static_cast<std::int64_t>(itemsize(args.in[vector].dtype));
  return {{"all-to-all", pattern_of(args.params).axes(), bytes}};
}
std::vector<CommunicationCost> cost_of_taking(const PlacementArgs& args, const Placement& placement) {
  return cost_of(args, placement, 1, pattern_of(args.params).most_taken);
}
std::vector<CommunicationCost> cost_of_giving(const PlacementArgs& args, const Placement& placement) {
  return cost_of(args, placement, 1, pattern_of(args.params).most_given);
}

double flops(std::span<const Type> in, const Params& params) {
  return 2.0 * static_cast<double>(pattern_of(params).entries) * static_cast<double>(width_of(in[1].shape));
}

// ---- exchange ----

// Both directions of one plan: elements that peers need and elements that peers have.
class Exchange {
 public:
  Exchange(const CommunicationArgs& args, std::int64_t element_bytes)
      : plan_(pattern_of(args.local.params).plan),
        comm_(group_of_dim(pattern_of(args.local.params).sharding, 0, 1, args.me)),
        label_(args.label),
        bytes_(element_bytes),
        inner_(Buffer::allocate(static_cast<std::size_t>(plan_.given * bytes_))),
        others_(Buffer::allocate(static_cast<std::size_t>(plan_.taken() * bytes_))) {}

  std::byte* others() const { return others_.data(); }

  // Sends own elements to the peers that need them; theirs are received in the part of other columns.
  comm::Pending take(const std::byte* own) {
    std::byte* to = inner_.data();
    for (const auto& peer : plan_.peers)
      for (const auto at : peer.given) {
        std::memcpy(to, own + at * bytes_, static_cast<std::size_t>(bytes_));
        to += bytes_;
      }
    return comm::start_exchange(
        comm_, given(), taken(), [](std::size_t) {}, label_.c_str());
  }
  // Sends the terms in the part of other columns to their owners, which add them in rank order.
  void return_terms(Dtype dtype, std::int64_t width, std::byte* own) {
    comm::exchange(
        comm_, taken(), given(), [](std::size_t) {}, label_.c_str());
    const std::byte* from = inner_.data();
    for (const auto& peer : plan_.peers)
      for (const auto at : peer.given) {
        add(dtype, width, from, own + at * bytes_);
        from += bytes_;
      }
  }

 private:
  static void add(Dtype dtype, std::int64_t width, const std::byte* from, std::byte* to) {
    const auto add_as = [&]<class T>(T) {
      for (std::int64_t k = 0; k < width; ++k)
        reinterpret_cast<T*>(to)[k] += reinterpret_cast<const T*>(from)[k];
    };
    const auto reals = is_complex(dtype) ? 2 * width : width;
    width = reals;
    if (dtype == float32 || dtype == complex64)
      add_as(float{});
    else
      add_as(double{});
  }
  std::vector<comm::Message> given() const {
    std::vector<comm::Message> messages;
    std::byte* at = inner_.data();
    for (const auto& peer : plan_.peers) {
      const auto bytes = static_cast<std::int64_t>(peer.given.size()) * bytes_;
      if (bytes > 0) messages.push_back({peer.device, at, bytes});
      at += bytes;
    }
    return messages;
  }
  std::vector<comm::Message> taken() const {
    std::vector<comm::Message> messages;
    std::byte* at = others_.data();
    for (const auto& peer : plan_.peers) {
      if (peer.taken > 0) messages.push_back({peer.device, at, peer.taken * bytes_});
      at += peer.taken * bytes_;
    }
    return messages;
  }

  const SparsePlan& plan_;
  const comm::Communicator& comm_;
  const std::string& label_;
  std::int64_t bytes_;
  Buffer inner_, others_;
};

std::int64_t element_bytes(const Tile& vector) {
  return width_of(vector.shape()) * static_cast<std::int64_t>(itemsize(vector.dtype));
}

// ---- y = a x ----

void dot_own(const KernelArgs& a) {
  const auto rows = pattern_of(a.params).plan.view();
  kernels::csr_multiply(a.in[0].dtype, CsrPart::own, rows, a.in[0].data, a.in[1].data,
                        width_of(a.in[1].shape()), a.out[0].data);
}
void dot_together(const CommunicationArgs& args) {
  const KernelArgs& a = args.local;
  Exchange exchange(args, element_bytes(a.in[1]));
  auto arriving = exchange.take(a.in[1].data);
  dot_own(a);
  arriving.wait();
  kernels::csr_multiply(a.in[0].dtype, CsrPart::others, pattern_of(a.params).plan.view(), a.in[0].data,
                        exchange.others(), width_of(a.in[1].shape()), a.out[0].data);
}

// The product of a ReproducibleScope: adds a row in the order of its columns, whichever rank holds them.
void dot_in_order(const KernelArgs& a, RowsWith which, const std::byte* others) {
  const auto& plan = pattern_of(a.params).plan;
  const auto& x = a.in[1];
  const auto before =
      std::lower_bound(plan.others.begin(), plan.others.end(), x.box[0].start) - plan.others.begin();
  kernels::csr_multiply_in_order(a.in[0].dtype, plan.view(), which, a.in[0].data, x.data, others, before,
                                 width_of(x.shape()), a.out[0].data);
}
void dot_own_in_order(const KernelArgs& a) { dot_in_order(a, RowsWith::own_columns, nullptr); }
void dot_together_in_order(const CommunicationArgs& args) {
  Exchange exchange(args, element_bytes(args.local.in[1]));
  auto arriving = exchange.take(args.local.in[1].data);
  dot_own_in_order(args.local);
  arriving.wait();
  dot_in_order(args.local, RowsWith::received_columns, exchange.others());
}

// ---- x = a^T y ----

void transposed_own(const KernelArgs& a) {
  std::memset(a.out[0].data, 0, static_cast<std::size_t>(a.out[0].bytes()));
  kernels::csr_multiply_transposed(a.in[0].dtype, CsrPart::own, pattern_of(a.params).plan.view(),
                                   a.in[0].data, a.in[1].data, width_of(a.in[1].shape()), a.out[0].data);
}
void transposed_together(const CommunicationArgs& args) {
  const KernelArgs& a = args.local;
  const auto width = width_of(a.in[1].shape());
  const auto& plan = pattern_of(a.params).plan;
  Exchange exchange(args, element_bytes(a.in[1]));
  transposed_own(a);
  std::memset(exchange.others(), 0, static_cast<std::size_t>(plan.taken() * element_bytes(a.in[1])));
  kernels::csr_multiply_transposed(a.in[0].dtype, CsrPart::others, plan.view(), a.in[0].data, a.in[1].data,
                                   width, exchange.others());
  exchange.return_terms(a.in[1].dtype, width, a.out[0].data);
}

// ---- values = y x^T at the matrix' entries ----

void sample_own(const KernelArgs& a) {
  const auto& plan = pattern_of(a.params).plan;
  const auto item = static_cast<std::int64_t>(itemsize(a.out[0].dtype));
  std::memset(a.out[0].data + plan.entries() * item, 0,
              static_cast<std::size_t>(a.out[0].bytes() - plan.entries() * item));
  kernels::csr_sample(a.in[0].dtype, CsrPart::own, plan.view(), a.in[0].data, a.in[1].data,
                      width_of(a.in[0].shape()), a.out[0].data);
}
void sample_together(const CommunicationArgs& args) {
  const KernelArgs& a = args.local;
  Exchange exchange(args, element_bytes(a.in[1]));
  auto arriving = exchange.take(a.in[1].data);
  sample_own(a);
  arriving.wait();
  kernels::csr_sample(a.in[0].dtype, CsrPart::others, pattern_of(a.params).plan.view(), a.in[0].data,
                      exchange.others(), width_of(a.in[0].shape()), a.out[0].data);
}

// ---- derivatives and batches ----

const PatternPtr& shared(const Node& node) { return node.params->as<SparseParams>().pattern; }

Cotangents vjp_dot(const VjpArgs& v) {
  const auto& p = shared(v.node);
  const Array& g = v.cotangents[0];
  Cotangents result(2);
  if (v.wanted[0]) result[0] = sparse_sample(p, g, v.in[1]);
  if (v.wanted[1]) result[1] = sparse_dot_transposed(p, v.in[0], g);
  return result;
}
Cotangents vjp_transposed(const VjpArgs& v) {
  const auto& p = shared(v.node);
  const Array& g = v.cotangents[0];
  Cotangents result(2);
  if (v.wanted[0]) result[0] = sparse_sample(p, v.in[1], g);
  if (v.wanted[1]) result[1] = sparse_dot(p, v.in[0], g);
  return result;
}
Cotangents vjp_sample(const VjpArgs& v) {
  const auto& p = shared(v.node);
  const Array& g = v.cotangents[0];
  Cotangents result(2);
  if (v.wanted[0]) result[0] = sparse_dot(p, g, v.in[1]);
  if (v.wanted[1]) result[1] = sparse_dot_transposed(p, g, v.in[0]);
  return result;
}

extern const OpDef ordered_dot_op;
const OpDef dot_op{
    .name = "sparse_dot",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{with_first(in[1].shape, pattern_of(p).rows), in[1].dtype}};
    },
    .sharding = PlacementRule{place},
    .runs = Communicating{.together = dot_together, .cost = cost_of_taking, .alone = dot_own},
    .vjp = vjp_dot,
    .batch = batch_columns,
    .flops = [](std::span<const Type> in, std::span<const Type>, const Params& p) { return flops(in, p); },
    .commit = commit_to_pattern,
    .instead = [](const OpDef&, const ParamsPtr& params,
                  const std::vector<Array>& in) { return record_all(ordered_dot_op, params, in); },
};
OpDef ordered_record() {
  OpDef op = dot_op;
  op.runs =
      Communicating{.together = dot_together_in_order, .cost = cost_of_taking, .alone = dot_own_in_order};
  op.same_bits = SameBits::made_for_it;
  op.instead = nullptr;
  return op;
}
const OpDef ordered_dot_op = ordered_record();
const OpDef transposed_op{
    .name = "sparse_dot_transposed",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{with_first(in[1].shape, pattern_of(p).columns), in[1].dtype}};
    },
    .sharding = PlacementRule{place},
    .runs = Communicating{.together = transposed_together, .cost = cost_of_giving, .alone = transposed_own},
    .vjp = vjp_transposed,
    .batch = batch_columns,
    .flops = [](std::span<const Type> in, std::span<const Type>, const Params& p) { return flops(in, p); },
    .commit = commit_to_pattern,
    .same_bits = SameBits::never,
};
const OpDef sample_op{
    .name = "sparse_sample",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{values_shape(pattern_of(p)), in[0].dtype}};
    },
    .sharding = PlacementRule{place_sample},
    .runs = Communicating{.together = sample_together, .cost = cost_of_taking, .alone = sample_own},
    .vjp = vjp_sample,
    .batch = batch_each,
    .flops = [](std::span<const Type> in, std::span<const Type>, const Params& p) { return flops(in, p); },
    .commit = commit_to_pattern,
    .same_bits = SameBits::never,
};
const Registered registered[] = {Registered(dot_op), Registered(transposed_op), Registered(sample_op)};

Array recorded(const OpDef& op, const PatternPtr& p, const Array& a, const Array& b) {
  return record(op, make_params(SparseParams{p}), {on_pattern_mesh(*p, a), on_pattern_mesh(*p, b)});
}

}  // namespace

Array sparse_dot(const PatternPtr& p, const Array& values, const Array& x) {
  return recorded(dot_op, p, values, x);
}
Array sparse_dot_transposed(const PatternPtr& p, const Array& values, const Array& y) {
  return recorded(transposed_op, p, values, y);
}
Array sparse_sample(const PatternPtr& p, const Array& y, const Array& x) {
  return recorded(sample_op, p, y, x);
}

}  // namespace tessera
