#include "ops/contract/product_candidates.hpp"

#include <algorithm>
#include <bit>

#include "base/rates.hpp"
#include "base/text.hpp"

namespace tessera {
namespace {

constexpr std::int64_t not_worth_a_thought = std::int64_t{64} << 10;
constexpr std::int64_t least_width = 16;
constexpr double least_shared_flops = 2e8;  // below this a message costs as much as the work
// The terms of a small result are added at rendezvous that happen anyway. A rank whose own work is shorter
// than this gains nothing: the rendezvous costs as much (measured: 0.09 ms for 8 ranks on two cores).
constexpr double least_summed_s = 1.5e-4;
constexpr std::int64_t small_result_bytes = std::int64_t{4} << 10;
const char* name_of(Cut cut) {
  return cut == Cut::inner ? "inner dimension" : cut == Cut::rows ? "rows" : "columns";
}

// gemm passes over the result once per this many contracted indices, in pieces or not. (OpenBLAS, 3072^3 in
// float32: pieces of 192 and more take as long as one piece, of 128 5 % longer, of 64 8 %.)
constexpr std::int64_t inner_of_one_pass = 192;

std::int64_t passes_of_one_piece(const ProductQuestion& q, const ProductBlocks& blocks,
                                 const ProductPlan& plan) {
  if (plan.cut != Cut::inner) return 1;
  return (blocks.a.shard_shape(q.args.in[0].shape)[plan.dim_a] - 1) / inner_of_one_pass + 1;
}

// The extra work of several pieces against one: the inner cut reads and writes the sum again, the other cuts
// read and pack the fixed operand again.
double seconds_of_repeating(const ProductQuestion& q, const ProductBlocks& blocks, const ProductPlan& plan) {
  const auto more = std::max<std::int64_t>(0, plan.pieces - passes_of_one_piece(q, blocks, plan));
  const std::int64_t again = plan.cut == Cut::inner  ? bytes_of(blocks.c, q.args.out)
                             : plan.cut == Cut::rows ? blocks.operands[1].block_bytes
                                                     : blocks.operands[0].block_bytes;
  return static_cast<double>(more) * 2 * static_cast<double>(again) / rates().memory_bytes_per_s;
}

// The number of messages to add up terms over a tree and to return the sum.
std::int64_t messages_of_sum(const ProductQuestion& q, const ProductBlocks& blocks) {
  const auto ranks = static_cast<std::uint64_t>(devices_along(q.mesh, blocks.shared_axes));
  return 2 * std::bit_width(ranks - 1);
}

// The time to add up the terms. Over all layers, each rank reads and writes about one block.
double seconds_of_adding(const ProductQuestion& q, const ProductBlocks& blocks) {
  return 2 * static_cast<double>(bytes_of(blocks.c, q.args.out)) / rates().memory_bytes_per_s;
}

// The number of memory runs that a rank reads from others of its host. Each costs as much as a message;
// columns of another rank's rows are many runs.
std::int64_t runs_read_in_place(const ProductQuestion& q, const ProductBlocks& blocks,
                                const ProductPlan& plan) {
  if (q.panels_at_once > 1) return 0;  // messages are packed
  const Sharding* const needed[] = {&blocks.a, &blocks.b};
  const int dims[] = {plan.dim_a, plan.dim_b};
  std::int64_t runs = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!blocks.operands[i].moves) continue;
    const Shape& whole = q.args.in[i].shape;
    const Shape held = q.args.layouts[i].shard_shape(whole), block = needed[i]->shard_shape(whole);
    std::int64_t run = 1;
    for (int d = whole.ndim(); d-- > 0;) {
      const auto wanted = d == dims[i] ? std::min(block[d], plan.width) : block[d];
      run *= std::max<std::int64_t>(1, std::min(held[d], wanted));
      if (wanted < held[d]) break;
    }
    runs += blocks.operands[i].bytes / (q.item * run);
  }
  return runs;
}

// A candidate in one piece (width 0), or in pieces within the memory limit if possible.
std::optional<Candidate> in_pieces(const ProductQuestion& q, const ProductBlocks& blocks, Cut cut,
                                   bool in_one) {
  ProductPlan plan{
      .dims = q.dims, .a_needed = blocks.a, .b_needed = blocks.b, .c_computed = blocks.c, .cut = cut};
  if (!find_cut_dims(q, blocks, plan)) return std::nullopt;
  plan.flops = flops_of(q, blocks);
  const auto& operands = blocks.operands;
  const int dims[] = {plan.dim_a, plan.dim_b};
  const Shape needed =
      (plan.dim_a >= 0 ? blocks.a.shard_shape(q.args.in[0].shape) : blocks.b.shard_shape(q.args.in[1].shape));
  const std::int64_t extent = needed[plan.dim_a >= 0 ? plan.dim_a : plan.dim_b];
  std::int64_t whole_bytes = 0, cut_bytes = 0;  // bytes of blocks fetched in one piece, and in several pieces
  for (int i = 0; i < 2; ++i)
    if (operands[i].moves) (dims[i] >= 0 ? cut_bytes : whole_bytes) += operands[i].block_bytes;
  if (!in_one && cut_bytes == 0) return std::nullopt;  // no operand needs fetching in pieces
  const std::int64_t at_once = q.panels_at_once;
  std::int64_t width = extent;
  if (!in_one) {
    const double room = static_cast<double>(q.limit - at_once * whole_bytes);
    const double per_index = static_cast<double>(at_once * cut_bytes) / static_cast<double>(extent);
    width = std::clamp(static_cast<std::int64_t>(room / per_index), std::min(least_width, extent), extent);
  }
  set_pieces(q, plan, width);
  const auto widest = std::min(plan.width, extent);
  Candidate candidate{blocks};
  auto& planned = candidate.planned;
  const double share = static_cast<double>(widest) / static_cast<double>(extent);
  planned.temporary_bytes =
      at_once * (whole_bytes + static_cast<std::int64_t>(share * static_cast<double>(cut_bytes)));
  const bool adds = blocks.summed_bytes > 0;
  if (adds) {  // after the panels are freed
    plan.summed_over = blocks.shared_axes;
    planned.temporary_bytes =
        std::max(planned.temporary_bytes, std::min(bytes_of(blocks.c, q.args.out), most_summed_at_once));
  }
  planned.bytes = operands[0].bytes + operands[1].bytes + blocks.gathered_bytes + blocks.summed_bytes;
  const std::int64_t messages =
      operands[0].peers + operands[1].peers + plan.pieces + (adds ? messages_of_sum(q, blocks) : 0);
  planned.seconds = seconds_of_work(q, blocks) + seconds_of_repeating(q, blocks, plan) +
                    (adds ? seconds_of_adding(q, blocks) : 0) +
                    static_cast<double>(runs_read_in_place(q, blocks, plan)) * rates().inside.latency_s +
                    seconds_of_messages(q, blocks, messages);
  const bool fetches = operands[0].moves || operands[1].moves;
  planned.strategy = in_one && fetches ? "operands fetched whole"
                     : in_one          ? "parts of the operands in place"
                                       : "panels of the " + std::string(name_of(cut)) + ", " +
                                    format_count(plan.pieces, "piece") + " of " + std::to_string(widest);
  if (!blocks.shared_over.empty())
    planned.strategy +=
        (adds ? ", inner dimension shared over " : ", work shared over ") + blocks.shared_over;
  candidate.algorithm = adds                ? ProductAlgorithm::inner_shared
                        : in_one            ? ProductAlgorithm::whole
                        : cut == Cut::inner ? ProductAlgorithm::inner_panels
                        : cut == Cut::rows  ? ProductAlgorithm::row_panels
                                            : ProductAlgorithm::column_panels;
  candidate.plan = std::move(plan);
  return candidate;
}

// One piece, cut along any dim that can be cut.
std::optional<Candidate> in_one_piece(const ProductQuestion& q, const ProductBlocks& blocks) {
  for (const Cut cut : {Cut::inner, Cut::columns, Cut::rows})
    if (auto candidate = in_pieces(q, blocks, cut, true)) return candidate;
  return std::nullopt;
}

Candidate moved_whole(const ProductQuestion& q, const ProductBlocks& blocks) {
  Candidate candidate{blocks};
  auto& planned = candidate.planned;
  std::int64_t messages = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& type = q.args.in[i];
    const auto plan =
        plan_reshard(q.args.layouts[i], q.args.needed[i], type.shape, type.dtype, q.args.fixed_axes);
    for (const auto& step : plan.steps) messages += step.messages;
    planned.bytes += plan.bytes;
    if (!plan.steps.empty()) planned.temporary_bytes += bytes_of(q.args.needed[i], type);
  }
  planned.strategy = planned.temporary_bytes == 0 ? "operands in place" : "operands moved whole";
  const auto more_steps = planned.bytes - blocks.operands[0].bytes - blocks.operands[1].bytes;
  planned.seconds = seconds_of_work(q, blocks) + seconds_of_messages(q, blocks, messages) +
                    seconds_of_bytes(more_steps, 0, 1);
  return candidate;
}

// The candidate blocks: the layouts that the user placed, and those that share work over idle axes.
std::vector<ProductBlocks> ways_of(const ProductQuestion& q) {
  std::vector<ProductBlocks> ways{make_blocks(q, q.args.needed[0], q.args.needed[1], q.args.out_layout)};
  const bool is_asked = q.dims.options.algorithm == ProductAlgorithm::inner_shared;
  const bool is_large = flops_of(q, ways[0]) >= least_shared_flops;
  if (is_large)
    if (auto shared = shared_blocks(q)) ways.push_back(std::move(*shared));
  const bool is_long = bytes_of(q.args.out_layout, q.args.out) <= small_result_bytes &&
                       seconds_of_work(q, ways[0]) >= least_summed_s;
  if (is_asked || is_large || is_long)
    if (auto summed = summed_blocks(q)) ways.push_back(std::move(*summed));
  return ways;
}

}  // namespace

std::vector<Candidate> all_candidates(const ProductQuestion& q) {
  const auto ways = ways_of(q);
  std::vector<Candidate> list{moved_whole(q, ways[0])};
  if (list[0].planned.temporary_bytes <= not_worth_a_thought && ways.size() == 1 &&
      q.dims.options.algorithm == ProductAlgorithm::automatic)
    return list;
  const auto add = [&](std::optional<Candidate> candidate) {
    if (candidate) list.push_back(std::move(*candidate));
  };
  for (const auto& blocks : ways) {
    if (!blocks.shared_over.empty() || (list[0].planned.bytes == 0 && list[0].planned.temporary_bytes > 0))
      add(in_one_piece(q, blocks));
    for (const Cut cut : {Cut::inner, Cut::columns, Cut::rows}) add(in_pieces(q, blocks, cut, false));
  }
  return list;
}

}  // namespace tessera
