#include "ops/contract/product_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "mesh/reshard.hpp"
#include "mesh/route.hpp"

namespace tessera {
namespace {

constexpr std::int64_t least_limit = std::int64_t{4} << 20;
constexpr std::int64_t simple_bytes = std::int64_t{8} << 20;  // an operand is moved whole for so little
constexpr std::int64_t not_worth_a_thought = std::int64_t{64} << 10;
constexpr std::int64_t least_width = 16;
constexpr double least_shared_flops = 2e8;  // below it a message costs as much as the work
constexpr double flop_seconds = byte_seconds / flops_per_moved_byte, local_byte_seconds = byte_seconds / 4;

// What is known before anything is chosen: the product in factors, and who holds what.
struct Question {
  const PieceArgs& args;
  const FactorRule& rule;
  const DotDims& dims;
  std::int64_t item;
  std::int64_t limit;
  std::int64_t panels_at_once;  // that a fetched operand takes: one where it is read in place; else one that
                                // is multiplied, one that arrives and one that leaves
  const Mesh& mesh;
};

bool lies_on_one_host(const Mesh& mesh) {
  if (mesh.is_abstract() || settings().collectives == "mpi") return false;
  const auto& devices = mesh.devices();
  return std::all_of(devices.begin(), devices.end(),
                     [&](const Device& d) { return d.host == devices[0].host; });
}

std::int64_t bytes_of(const Sharding& layout, const Type& type) {
  return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
}

Survey survey_of(const Question& q, const Sharding& from, const Sharding& to, const Shape& shape) {
  const Sharding list[] = {from};
  const Shape shapes[] = {shape};
  return survey_exchange(identity_remap(shape), list, shapes, to, shape, q.args.fixed_axes);
}

// What one operand costs.
struct Fetched {
  bool moves = false;
  std::int64_t bytes = 0, peers = 0, block_bytes = 0;
};
Fetched fetched(const Question& q, std::size_t i, const Sharding& needed) {
  const auto survey = survey_of(q, q.args.lie[i], needed, q.args.in[i].shape);
  return {survey.elements > 0, survey.elements * q.item, survey.peers, bytes_of(needed, q.args.in[i])};
}

// Where the blocks lie that each rank multiplies.
struct Blocks {
  Sharding a, b, c;
  std::array<Fetched, 2> operands;
  std::string shared_over = {};  // mesh axes over which ranks would compute the same otherwise
  MeshAxes shared_axes = {};
  std::int64_t gathered_bytes = 0;  // of the result
};
Blocks make_blocks(const Question& q, const Sharding& a, const Sharding& b, const Sharding& c) {
  return {a, b, c, {fetched(q, 0, a), fetched(q, 1, b)}};
}

double flops_of(const Question& q, const Blocks& blocks) {
  const Shape a = blocks.a.shard_shape(q.args.in[0].shape);
  double inner = 1;
  for (const int d : q.dims.contract_a) inner *= static_cast<double>(a[d]);
  return 2 * inner * static_cast<double>(blocks.c.shard_shape(q.args.out.shape).elements());
}

// ---- ranks that would compute the same ----

// Axes along which neither operands nor result differ from rank to rank.
MeshAxes idle_axes(const Question& q) {
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

FactorAxes factor_axes_of(const Question& q) {
  FactorAxes axes = factors_of(q.rule, q.args.out_layout, 0, true);
  for (int i = 0; i < 2; ++i) {
    const auto own = factors_of(q.rule, q.args.needed[i], i, false);
    for (std::size_t f = 0; f < axes.size(); ++f)
      if (axes[f].empty()) axes[f] = own[f];
  }
  return axes;
}

// The first dim of the result whose blocks the axes cut into parts that tile them.
//
//   rows of 10 in one block, 4 ranks: 3 3 3 1     in blocks of 5, 2 ranks each: 3 3 3 1 does not tile 5 5
std::optional<Blocks> shared_blocks(const Question& q) {
  const MeshAxes idle = idle_axes(q);
  if (idle.empty()) return std::nullopt;
  const auto ranks = devices_along(q.mesh, idle);
  const FactorAxes own = factor_axes_of(q);
  for (std::size_t d = 0; d < q.rule.outputs[0].size(); ++d) {
    if (q.rule.outputs[0][d].size() != 1) continue;
    const int f = q.rule.outputs[0][d][0];
    const auto n = q.args.out.shape[static_cast<int>(d)], parts = devices_along(q.mesh, own[f]);
    if (block_size(n, parts) == 1 || n == 0) continue;  // blocks in front of it would be pieces apart
    if (block_size(n, parts) < ranks) return std::nullopt;
    if (parts > 1 && block_size(n, parts * ranks) * ranks != block_size(n, parts)) return std::nullopt;
    FactorAxes axes = own;
    axes[f].insert(axes[f].end(), idle.begin(), idle.end());
    Blocks blocks =
        make_blocks(q, sharding_of(q.rule, axes, q.mesh, 0, false),
                    sharding_of(q.rule, axes, q.mesh, 1, false), sharding_of(q.rule, axes, q.mesh, 0, true));
    std::vector<std::string> names;
    for (const int a : idle) names.push_back(q.mesh.axis_names()[a]);
    blocks.shared_over = join(names, ",");
    blocks.shared_axes = idle;
    blocks.gathered_bytes = survey_of(q, blocks.c, q.args.out_layout, q.args.out.shape).elements * q.item;
    return blocks;
  }
  return std::nullopt;
}

// ---- pieces ----

std::vector<std::int64_t> boundaries(const Sharding& layout, const Shape& shape, int dim) {
  std::vector<std::int64_t> marks;
  const auto axes = layout.dim_axes(shape.ndim())[dim];
  const auto parts = devices_along(layout.mesh(), axes), block = block_size(shape[dim], parts);
  for (std::int64_t at = block; block > 0 && at < shape[dim]; at += block) marks.push_back(at);
  return marks;
}

std::vector<std::int64_t> merged(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

// The dim of a group along which a rank's block is cut. Of the result's dims only the first that is more
// than one index: what follows it then lies in one run.
int longest(const std::vector<int>& dims, const Shape& block) {
  int best = -1;
  for (const int d : dims)
    if (block[d] > 1 && (best < 0 || block[d] > block[best])) best = d;
  return best;
}
int first_long(const std::vector<int>& dims, const Shape& block) {
  const auto found = std::find_if(dims.begin(), dims.end(), [&](int d) { return block[d] > 1; });
  return found == dims.end() ? -1 : *found;
}

// The dims that a cut goes through; false: it has none.
bool find_dims(const Question& q, const Blocks& blocks, ProductPlan& plan) {
  const auto& p = q.dims;
  const Shape a = blocks.a.shard_shape(q.args.in[0].shape), b = blocks.b.shard_shape(q.args.in[1].shape);
  const auto free_a = free_dims(a.ndim(), p.contract_a, p.batch_a),
             free_b = free_dims(b.ndim(), p.contract_b, p.batch_b);
  const auto place_in = [](const std::vector<int>& dims, int d) {
    return static_cast<int>(std::find(dims.begin(), dims.end(), d) - dims.begin());
  };
  if (plan.cut == Cut::inner) {
    plan.dim_a = longest(p.contract_a, a);
    if (plan.dim_a >= 0) plan.dim_b = p.contract_b[place_in(p.contract_a, plan.dim_a)];
    return plan.dim_a >= 0;
  }
  const auto batch = static_cast<int>(p.batch_a.size());
  if (plan.cut == Cut::rows) {
    plan.dim_a = first_long(free_a, a);
    plan.dim_c = batch + place_in(free_a, plan.dim_a);
    return plan.dim_a >= 0;
  }
  plan.dim_b = first_long(free_b, b);
  plan.dim_c = batch + static_cast<int>(free_a.size()) + place_in(free_b, plan.dim_b);
  return plan.dim_b >= 0;
}

const char* name_of(Cut cut) {
  return cut == Cut::inner ? "inner dimension" : cut == Cut::rows ? "rows" : "columns";
}

struct Candidate {
  Blocks blocks;
  PlannedCandidate told = {};
  ProductAlgorithm algorithm = ProductAlgorithm::whole;
  std::optional<ProductPlan> plan = {};  // nothing: the operands are moved, then the kernel runs
};

void set_pieces(const Question& q, ProductPlan& plan, std::int64_t width) {
  const Sharding needed[] = {plan.a_needed, plan.b_needed};
  const int dims[] = {plan.dim_a, plan.dim_b};
  std::vector<std::int64_t> marks, hard;
  std::int64_t extent = 0;
  for (int i = 0; i < 2; ++i) {
    if (dims[i] < 0) continue;
    const Shape& shape = q.args.in[i].shape;
    extent = shape[dims[i]];
    marks = merged(std::move(marks), boundaries(q.args.lie[i], shape, dims[i]));
    hard = merged(std::move(hard), boundaries(needed[i], shape, dims[i]));
  }
  plan.ends = piece_ends(extent, merged(std::move(marks), hard), hard, width);
  plan.pieces = plan.width = 0;
  std::int64_t start = 0, count = 0;
  std::size_t next = 0;
  for (const auto end : plan.ends) {
    plan.width = std::max(plan.width, end - start);
    plan.pieces = std::max(plan.pieces, ++count);
    if (next < hard.size() && end == hard[next]) count = 0, ++next;
    start = end;
  }
}

// In one piece (width 0), or in pieces that keep to the limit, if any do.
std::optional<Candidate> in_pieces(const Question& q, const Blocks& blocks, Cut cut, bool in_one) {
  ProductPlan plan{
      .dims = q.dims, .a_needed = blocks.a, .b_needed = blocks.b, .c_computed = blocks.c, .cut = cut};
  if (!find_dims(q, blocks, plan)) return std::nullopt;
  plan.flops = flops_of(q, blocks);
  const auto& operands = blocks.operands;
  const int dims[] = {plan.dim_a, plan.dim_b};
  const Shape needed =
      (plan.dim_a >= 0 ? blocks.a.shard_shape(q.args.in[0].shape) : blocks.b.shard_shape(q.args.in[1].shape));
  const std::int64_t extent = needed[plan.dim_a >= 0 ? plan.dim_a : plan.dim_b];
  std::int64_t whole_bytes = 0, cut_bytes = 0;  // of blocks that are fetched at once, or in pieces
  for (int i = 0; i < 2; ++i)
    if (operands[i].moves) (dims[i] >= 0 ? cut_bytes : whole_bytes) += operands[i].block_bytes;
  if (!in_one && cut_bytes == 0) return std::nullopt;  // there is nothing to fetch in pieces
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
  auto& told = candidate.told;
  const double share = static_cast<double>(widest) / static_cast<double>(extent);
  told.temporary_bytes =
      at_once * (whole_bytes + static_cast<std::int64_t>(share * static_cast<double>(cut_bytes)));
  told.bytes = operands[0].bytes + operands[1].bytes + blocks.gathered_bytes;
  const std::int64_t messages = operands[0].peers + operands[1].peers + plan.pieces;
  const double reread = static_cast<double>(plan.pieces - 1) *
                        static_cast<double>(cut == Cut::inner  ? 2 * bytes_of(blocks.c, q.args.out)
                                            : cut == Cut::rows ? operands[1].block_bytes
                                                               : operands[0].block_bytes);
  told.seconds = plan.flops * flop_seconds + reread * local_byte_seconds +
                 static_cast<double>(told.bytes) * byte_seconds +
                 static_cast<double>(messages) * message_seconds;
  const bool fetches = operands[0].moves || operands[1].moves;
  told.strategy = in_one && fetches ? "operands fetched whole"
                  : in_one          ? "parts of the operands where they lie"
                                    : "panels of the " + std::string(name_of(cut)) + ", " +
                                 format_count(plan.pieces, "piece") + " of " + std::to_string(widest);
  if (!blocks.shared_over.empty()) told.strategy += ", work shared over " + blocks.shared_over;
  candidate.algorithm = in_one              ? ProductAlgorithm::whole
                        : cut == Cut::inner ? ProductAlgorithm::inner_panels
                        : cut == Cut::rows  ? ProductAlgorithm::row_panels
                                            : ProductAlgorithm::column_panels;
  candidate.plan = std::move(plan);
  return candidate;
}

// Along whichever dim there is.
std::optional<Candidate> in_one_piece(const Question& q, const Blocks& blocks) {
  for (const Cut cut : {Cut::inner, Cut::columns, Cut::rows})
    if (auto candidate = in_pieces(q, blocks, cut, true)) return candidate;
  return std::nullopt;
}

Candidate moved_whole(const Question& q, const Blocks& blocks) {
  Candidate candidate{blocks};
  auto& told = candidate.told;
  std::int64_t messages = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& type = q.args.in[i];
    const auto plan =
        plan_reshard(q.args.lie[i], q.args.needed[i], type.shape, type.dtype, q.args.fixed_axes);
    for (const auto& step : plan.steps) messages += step.messages;
    told.bytes += plan.bytes;
    if (!plan.steps.empty()) told.temporary_bytes += bytes_of(q.args.needed[i], type);
  }
  told.strategy = told.temporary_bytes == 0 ? "operands as they lie" : "operands moved whole";
  told.seconds = flops_of(q, blocks) * flop_seconds + static_cast<double>(told.bytes) * byte_seconds +
                 static_cast<double>(messages) * message_seconds;
  return candidate;
}

std::vector<Candidate> all_candidates(const Question& q) {
  const Blocks plain = make_blocks(q, q.args.needed[0], q.args.needed[1], q.args.out_layout);
  std::vector<Candidate> list{moved_whole(q, plain)};
  const bool may_share = flops_of(q, plain) >= least_shared_flops;
  if (list[0].told.temporary_bytes <= not_worth_a_thought && !may_share &&
      q.dims.options.algorithm == ProductAlgorithm::automatic)
    return list;
  const auto add = [&](std::optional<Candidate> candidate) {
    if (candidate) list.push_back(std::move(*candidate));
  };
  std::vector<Blocks> ways{plain};
  if (may_share)
    if (auto shared = shared_blocks(q)) ways.push_back(std::move(*shared));
  for (const auto& blocks : ways) {
    if (!blocks.shared_over.empty() || (list[0].told.bytes == 0 && list[0].told.temporary_bytes > 0))
      add(in_one_piece(q, blocks));
    for (const Cut cut : {Cut::inner, Cut::columns, Cut::rows}) add(in_pieces(q, blocks, cut, false));
  }
  return list;
}

// ---- the choice ----

bool fits(const Question& q, const Candidate& candidate) {
  const bool is_simple = !candidate.plan && q.dims.options.memory_limit_bytes == 0;
  return candidate.told.temporary_bytes <= (is_simple ? std::max(simple_bytes, q.limit) : q.limit);
}

// An operand that is moved whole may serve other consumers too: in doubt it is.
std::size_t cheapest(const Question& q, const std::vector<Candidate>& list) {
  const auto pinned = q.dims.options.algorithm;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].algorithm == pinned) open.push_back(i);
  if (open.empty())
    for (std::size_t i = 0; i < list.size(); ++i) open.push_back(i);
  if (open[0] == 0 && fits(q, list[0]))
    std::erase_if(open, [&](std::size_t i) { return i > 0 && list[i].blocks.shared_over.empty(); });
  return *std::min_element(open.begin(), open.end(), [&](std::size_t i, std::size_t j) {
    const bool i_fits = fits(q, list[i]), j_fits = fits(q, list[j]);
    const auto &a = list[i].told, &b = list[j].told;
    if (i_fits != j_fits) return i_fits;
    if (!i_fits && a.temporary_bytes != b.temporary_bytes) return a.temporary_bytes < b.temporary_bytes;
    return a.seconds < b.seconds;
  });
}

void explain_choice(const Question& q, std::vector<Candidate>& list, std::size_t chosen) {
  const bool pinned = q.dims.options.algorithm != ProductAlgorithm::automatic;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto& told = list[i].told;
    const bool fits_limit = fits(q, list[i]);
    told.chosen = i == chosen;
    if (told.chosen)
      told.why = pinned       ? "asked for"
                 : fits_limit ? "within the limit of " + format_bytes(q.limit)
                              : "the least memory; the limit is " + format_bytes(q.limit);
    else if (!fits_limit)
      told.why = "over the limit of " + format_bytes(q.limit);
    else if (pinned)
      told.why = "not asked for";
    else
      told.why = told.seconds >= list[chosen].told.seconds ? "slower" : "one operand moved once is simpler";
  }
}

MeshAxes axes_between(const Sharding& from, const Sharding& to, int ndim) {
  MeshAxes axes;
  for (const auto& dim : from.dim_axes(ndim)) axes.insert(axes.end(), dim.begin(), dim.end());
  for (const auto& dim : to.dim_axes(ndim)) axes.insert(axes.end(), dim.begin(), dim.end());
  return axes;
}

std::vector<TalkCost> costs_of(const Question& q, const Candidate& candidate) {
  std::vector<TalkCost> costs;
  const Sharding needed[] = {candidate.blocks.a, candidate.blocks.b};
  TalkCost panels{"panels", {}, 0, 1};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& operand = candidate.blocks.operands[i];
    if (!operand.moves) continue;
    panels.bytes += operand.bytes;
    const auto axes = axes_between(q.args.lie[i], needed[i], q.args.in[i].shape.ndim());
    panels.axes.insert(panels.axes.end(), axes.begin(), axes.end());
  }
  std::sort(panels.axes.begin(), panels.axes.end());
  panels.axes.erase(std::unique(panels.axes.begin(), panels.axes.end()), panels.axes.end());
  if (panels.bytes > 0) costs.push_back(std::move(panels));
  if (candidate.blocks.gathered_bytes > 0)
    costs.push_back({"all-gather", candidate.blocks.shared_axes, candidate.blocks.gathered_bytes, 1});
  return costs;
}

bool is_on_one_mesh(const PieceArgs& args) {
  const Mesh mesh = args.out_layout.mesh();
  return std::all_of(args.lie.begin(), args.lie.end(), [&](const Sharding& s) { return s.mesh() == mesh; }) &&
         std::all_of(args.needed.begin(), args.needed.end(),
                     [&](const Sharding& s) { return s.mesh() == mesh; });
}

}  // namespace

std::int64_t product_limit(const PieceArgs& args) {
  const auto& options = args.params.as<DotDims>().options;
  if (options.memory_limit_bytes > 0) return options.memory_limit_bytes;
  std::int64_t blocks = bytes_of(args.kept != nullptr ? *args.kept : args.out_layout, args.out);
  for (std::size_t i = 0; i < 2; ++i) blocks += bytes_of(args.lie[i], args.in[i]);
  return std::max(least_limit, blocks / 8);
}

double product_seconds(double flops, std::int64_t moved_bytes) {
  return flops * flop_seconds + static_cast<double>(moved_bytes) * byte_seconds;
}

std::vector<std::int64_t> piece_ends(std::int64_t extent, const std::vector<std::int64_t>& marks,
                                     const std::vector<std::int64_t>& hard, std::int64_t width) {
  std::vector<std::int64_t> ends;
  std::int64_t start = 0, joined_from = 0;  // of the part at hand; of those joined so far
  const auto close = [&](std::int64_t end) {
    if (end > joined_from) ends.push_back(end);
    joined_from = end;
  };
  for (std::size_t i = 0; i <= marks.size(); ++i) {
    const std::int64_t end = i < marks.size() ? marks[i] : extent;
    if (end - joined_from > width) close(start);
    if (const auto length = end - start; length > width) {
      const auto count = (length - 1) / width + 1;
      for (std::int64_t k = 1; k <= count; ++k) close(start + length * k / count);
    }
    if (std::binary_search(hard.begin(), hard.end(), end)) close(end);
    start = end;
  }
  close(extent);
  return ends;
}

std::vector<Range> pieces_in_order(const ProductPlan& plan, std::span<const Sharding> lie,
                                   std::span<const Shape> shapes, int device) {
  const int dims[] = {plan.dim_a, plan.dim_b};
  const Sharding* needed[] = {&plan.a_needed, &plan.b_needed};
  const int owner = dims[0] >= 0 ? 0 : 1;
  const Range mine = needed[owner]->local_box(shapes[owner], device)[dims[owner]];
  // Ranks that compute the same begin with the same piece: their results must not differ by rounding.
  MeshAxes alike;
  const Mesh mesh = plan.c_computed.mesh();
  std::vector<bool> differ(mesh.ndim());
  const auto note = [&](const Sharding& layout, const Shape& shape) {
    for (const auto& dim : layout.dim_axes(shape.ndim()))
      for (const int a : dim) differ[a] = true;
  };
  note(plan.a_needed, shapes[0]), note(plan.b_needed, shapes[1]);
  for (int a = 0; a < mesh.ndim(); ++a)
    if (!differ[a]) alike.push_back(a);
  const int first = group_along(mesh, alike, device)[0];
  const auto extent = shapes[owner][dims[owner]];
  std::int64_t start = 0;
  for (int i = 0; i < 2; ++i)
    if (dims[i] >= 0) start += lie[i].local_box(shapes[i], first)[dims[i]].start;
  if (extent > 0) start %= extent;
  std::vector<Range> pieces;
  std::size_t begin = 0;
  std::int64_t from = 0;
  for (const auto end : plan.ends) {
    const Range piece{std::max(from, mine.start), std::min(end, mine.stop)};
    from = end;
    if (piece.start >= piece.stop) continue;
    if (piece.start <= start) begin = pieces.size();
    pieces.push_back(piece);
  }
  if (begin < pieces.size()) std::rotate(pieces.begin(), pieces.begin() + begin, pieces.end());
  return pieces;
}

Pieces plan_product(const PieceArgs& args, const FactorRule& rule) {
  const auto& dims = args.params.as<DotDims>();
  if (!is_on_one_mesh(args) || args.out.shape.elements() == 0) return {};
  const Mesh mesh = args.out_layout.mesh();
  const Question q{args,
                   rule,
                   dims,
                   static_cast<std::int64_t>(itemsize(args.out.dtype)),
                   product_limit(args),
                   lies_on_one_host(mesh) ? 1 : 3,
                   mesh};
  auto list = all_candidates(q);
  const std::size_t chosen = cheapest(q, list);
  if (list.size() > 1) explain_choice(q, list, chosen);
  Pieces answer;
  if (list.size() > 1)
    for (auto& candidate : list) answer.candidates.push_back(candidate.told);
  const Candidate& best = list[chosen];
  if (!best.plan) return answer;
  answer.op = &product_op;
  answer.params = make_params(*best.plan);
  answer.costs = costs_of(q, best);
  answer.temporary_bytes = best.told.temporary_bytes;
  return answer;
}

}  // namespace tessera
