#include <algorithm>

#include "base/rates.hpp"
#include "base/text.hpp"
#include "ops/contract/product_candidates.hpp"
#include "program/hosts.hpp"

namespace tessera {

std::int64_t bytes_of(const Sharding& layout, const Type& type) {
  return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
}

namespace {

Survey survey_of(const ProductQuestion& q, const Sharding& from, const Sharding& to, const Shape& shape) {
  const Sharding list[] = {from};
  const Shape shapes[] = {shape};
  return survey_exchange(identity_remap(shape), list, shapes, to, shape, q.args.fixed_axes);
}

Fetched fetched(const ProductQuestion& q, std::size_t i, const Sharding& needed) {
  const auto survey = survey_of(q, q.args.layouts[i], needed, q.args.in[i].shape);
  const auto axes = axes_between(q.args.layouts[i], needed, q.args.in[i].shape.ndim());
  return {survey.elements > 0, survey.elements * q.item, survey.peers, bytes_of(needed, q.args.in[i]),
          share_from_other_hosts(q.mesh, axes)};
}

}  // namespace

MeshAxes axes_between(const Sharding& from, const Sharding& to, int ndim) {
  MeshAxes axes;
  for (const auto& dim : from.dim_axes(ndim)) axes.insert(axes.end(), dim.begin(), dim.end());
  for (const auto& dim : to.dim_axes(ndim)) axes.insert(axes.end(), dim.begin(), dim.end());
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

ProductBlocks make_blocks(const ProductQuestion& q, const Sharding& a, const Sharding& b, const Sharding& c) {
  return {a, b, c, {fetched(q, 0, a), fetched(q, 1, b)}};
}

double seconds_of_flops(double flops, Dtype dtype) {
  return flops / rates().flops_per_s_of(real_dtype(dtype) == float32);
}

double seconds_of_bytes(std::int64_t bytes, double from_other_hosts, std::int64_t ranks_of_a_host) {
  const auto& links = rates();
  const auto crossing = from_other_hosts * static_cast<double>(bytes);
  return (static_cast<double>(bytes) - crossing) / links.inside.bytes_per_s +
         crossing * static_cast<double>(ranks_of_a_host) / links.between.bytes_per_s;
}

double seconds_of_messages(const ProductQuestion& q, const ProductBlocks& blocks, std::int64_t messages) {
  const auto& [a, b] = blocks.operands;
  const double of_result = share_from_other_hosts(q.mesh, blocks.shared_axes);
  const bool crosses = a.from_other_hosts + b.from_other_hosts + of_result > 0;
  const auto& links = rates();
  return seconds_of_bytes(a.bytes, a.from_other_hosts, q.ranks_of_a_host) +
         seconds_of_bytes(b.bytes, b.from_other_hosts, q.ranks_of_a_host) +
         seconds_of_bytes(blocks.gathered_bytes + blocks.summed_bytes, of_result, q.ranks_of_a_host) +
         static_cast<double>(messages) * (crosses ? links.between : links.inside).latency_s;
}

double flops_of(const ProductQuestion& q, const ProductBlocks& blocks) {
  const Shape a = blocks.a.shard_shape(q.args.in[0].shape);
  double inner = 1;
  for (const int d : q.dims.contract_a) inner *= static_cast<double>(a[d]);
  return 2 * inner * static_cast<double>(blocks.c.shard_shape(q.args.out.shape).elements());
}

double seconds_of_work(const ProductQuestion& q, const ProductBlocks& blocks) {
  const auto read =
      blocks.operands[0].block_bytes + blocks.operands[1].block_bytes + bytes_of(blocks.c, q.args.out);
  return std::max(seconds_of_flops(flops_of(q, blocks), q.args.out.dtype),
                  static_cast<double>(read) / rates().memory_bytes_per_s);
}

namespace {

// The mesh axes along which operands and result are all replicated.
MeshAxes idle_axes(const ProductQuestion& q) {
  std::vector<bool> used(q.mesh.ndim());
  const auto use = [&](const MeshAxes& axes) {
    for (const int a : axes) used[a] = true;
  };
  const auto use_layout = [&](const Sharding& layout, int ndim) {
    for (const auto& dim : layout.dim_axes(ndim)) use(dim);
  };
  for (std::size_t i = 0; i < 2; ++i) use_layout(q.args.needed[i], q.args.in[i].shape.ndim());
  use_layout(q.args.out_layout, q.args.out.shape.ndim());
  use(q.args.used_axes);
  use(q.args.fixed_axes);
  MeshAxes idle;
  for (int a = 0; a < q.mesh.ndim(); ++a)
    if (!used[a] && q.mesh.axis_sizes()[a] > 1) idle.push_back(a);
  return idle;
}

FactorAxes factor_axes_of(const ProductQuestion& q) {
  FactorAxes axes = factors_of(q.rule, q.args.out_layout, 0, true);
  for (int i = 0; i < 2; ++i) {
    const auto own = factors_of(q.rule, q.args.needed[i], i, false);
    for (std::size_t f = 0; f < axes.size(); ++f)
      if (axes[f].empty()) axes[f] = own[f];
  }
  return axes;
}

void note_shared(const ProductQuestion& q, const MeshAxes& idle, ProductBlocks& blocks) {
  std::vector<std::string> names;
  for (const int a : idle) names.push_back(q.mesh.axis_names()[a]);
  blocks.shared_over = join(names, ",");
  blocks.shared_axes = idle;
}

// The contracted dim with the longest blocks, as a factor; -1 if there is none to share.
int longest_inner(const ProductQuestion& q) {
  const Shape block = q.args.needed[0].shard_shape(q.args.in[0].shape);
  int found = -1;
  std::int64_t longest = 1;
  for (const int d : q.dims.contract_a) {
    const auto& factors = q.rule.inputs[0][static_cast<std::size_t>(d)];
    if (factors.size() == 1 && block[d] > longest) found = factors[0], longest = block[d];
  }
  return found;
}

}  // namespace

// The first dim of the result whose blocks can be split over the idle axes into parts that tile them.
//
//   rows of 10 in one block, 4 ranks: 3 3 3 1     in blocks of 5, 2 ranks each: 3 3 3 1 does not tile 5 5
std::optional<ProductBlocks> shared_blocks(const ProductQuestion& q) {
  const MeshAxes idle = idle_axes(q);
  if (idle.empty()) return std::nullopt;
  const auto ranks = devices_along(q.mesh, idle);
  const FactorAxes own = factor_axes_of(q);
  for (std::size_t d = 0; d < q.rule.outputs[0].size(); ++d) {
    if (q.rule.outputs[0][d].size() != 1) continue;
    const int f = q.rule.outputs[0][d][0];
    const auto n = q.args.out.shape[static_cast<int>(d)], parts = devices_along(q.mesh, own[f]);
    if (block_size(n, parts) == 1 || n == 0) continue;  // only dims of size 1 may precede the split one
    if (block_size(n, parts) < ranks) return std::nullopt;
    if (parts > 1 && block_size(n, parts * ranks) * ranks != block_size(n, parts)) return std::nullopt;
    FactorAxes axes = own;
    axes[f].insert(axes[f].end(), idle.begin(), idle.end());
    ProductBlocks blocks =
        make_blocks(q, sharding_of(q.rule, axes, q.mesh, 0, false),
                    sharding_of(q.rule, axes, q.mesh, 1, false), sharding_of(q.rule, axes, q.mesh, 0, true));
    note_shared(q, idle, blocks);
    blocks.gathered_bytes = survey_of(q, blocks.c, q.args.out_layout, q.args.out.shape).elements * q.item;
    return blocks;
  }
  return std::nullopt;
}

// Blocks that split the contracted dim over the idle axes. Parts need not be even, and some may be empty: the
// sum of the ranks' terms is the block in any case.
std::optional<ProductBlocks> summed_blocks(const ProductQuestion& q) {
  const MeshAxes idle = idle_axes(q);
  const int f = idle.empty() ? -1 : longest_inner(q);
  if (f < 0) return std::nullopt;
  FactorAxes axes = factor_axes_of(q);
  axes[f].insert(axes[f].end(), idle.begin(), idle.end());
  ProductBlocks blocks = make_blocks(q, sharding_of(q.rule, axes, q.mesh, 0, false),
                                     sharding_of(q.rule, axes, q.mesh, 1, false), q.args.out_layout);
  note_shared(q, idle, blocks);
  const auto ranks = devices_along(q.mesh, idle);
  blocks.summed_bytes = 2 * (ranks - 1) * bytes_of(blocks.c, q.args.out) / ranks;
  return blocks;
}

}  // namespace tessera
