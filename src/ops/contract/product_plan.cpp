#include "ops/contract/product_plan.hpp"

#include <algorithm>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "ops/contract/product_candidates.hpp"
#include "program/hosts.hpp"

namespace tessera {
namespace {

constexpr std::int64_t part_of_blocks = 9;  // with BLAS's own buffers, less than 15 % of the blocks
constexpr std::int64_t least_limit = std::int64_t{4} << 20;
// Operands up to this size are moved in one piece.
constexpr std::int64_t simple_bytes = std::int64_t{8} << 20;

bool is_on_one_host(const Mesh& mesh) {
  if (mesh.is_abstract() || settings().collectives == "mpi") return false;
  const auto& devices = mesh.devices();
  return std::all_of(devices.begin(), devices.end(),
                     [&](const Device& d) { return d.host == devices[0].host; });
}

bool fits(const ProductQuestion& q, const Candidate& candidate) {
  const bool is_simple = !candidate.plan && q.dims.options.memory_limit_bytes == 0;
  return candidate.planned.temporary_bytes <= (is_simple ? std::max(simple_bytes, q.limit) : q.limit);
}

// The cheapest candidate. Moving an operand in one piece wins if it fits: other consumers may reuse it.
std::size_t cheapest(const ProductQuestion& q, const std::vector<Candidate>& list) {
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
    const auto &a = list[i].planned, &b = list[j].planned;
    if (i_fits != j_fits) return i_fits;
    if (!i_fits && a.temporary_bytes != b.temporary_bytes) return a.temporary_bytes < b.temporary_bytes;
    return a.seconds < b.seconds;
  });
}

void explain_choice(const ProductQuestion& q, std::vector<Candidate>& list, std::size_t chosen) {
  const bool pinned = q.dims.options.algorithm != ProductAlgorithm::automatic;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto& planned = list[i].planned;
    const bool fits_limit = fits(q, list[i]);
    planned.chosen = i == chosen;
    if (planned.chosen)
      planned.why = pinned       ? "asked for"
                    : fits_limit ? "within the limit of " + format_bytes(q.limit)
                                 : "the least memory; the limit is " + format_bytes(q.limit);
    else if (!fits_limit)
      planned.why = "over the limit of " + format_bytes(q.limit);
    else if (pinned)
      planned.why = "not asked for";
    else
      planned.why =
          planned.seconds >= list[chosen].planned.seconds ? "slower" : "one operand moved once is simpler";
  }
}

std::vector<CommunicationCost> costs_of(const ProductQuestion& q, const Candidate& candidate) {
  std::vector<CommunicationCost> costs;
  const Sharding needed[] = {candidate.blocks.a, candidate.blocks.b};
  CommunicationCost panels{"panels", {}, 0, 1};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& operand = candidate.blocks.operands[i];
    if (!operand.moves) continue;
    panels.bytes += operand.bytes;
    const auto axes = axes_between(q.args.layouts[i], needed[i], q.args.in[i].shape.ndim());
    panels.axes.insert(panels.axes.end(), axes.begin(), axes.end());
  }
  std::sort(panels.axes.begin(), panels.axes.end());
  panels.axes.erase(std::unique(panels.axes.begin(), panels.axes.end()), panels.axes.end());
  if (panels.bytes > 0) costs.push_back(std::move(panels));
  if (candidate.blocks.gathered_bytes > 0)
    costs.push_back({"all-gather", candidate.blocks.shared_axes, candidate.blocks.gathered_bytes, 1});
  if (candidate.blocks.summed_bytes > 0)
    costs.push_back({"all-reduce", candidate.blocks.shared_axes, candidate.blocks.summed_bytes, 1});
  return costs;
}

bool is_on_one_mesh(const AlgorithmArgs& args) {
  const Mesh mesh = args.out_layout.mesh();
  return std::all_of(args.layouts.begin(), args.layouts.end(),
                     [&](const Sharding& s) { return s.mesh() == mesh; }) &&
         std::all_of(args.needed.begin(), args.needed.end(),
                     [&](const Sharding& s) { return s.mesh() == mesh; });
}

}  // namespace

std::int64_t product_limit(const AlgorithmArgs& args) {
  const auto& options = args.params.as<DotDims>().options;
  if (options.memory_limit_bytes > 0) return options.memory_limit_bytes;
  std::int64_t blocks = bytes_of(args.kept != nullptr ? *args.kept : args.out_layout, args.out);
  for (std::size_t i = 0; i < 2; ++i) blocks += bytes_of(args.layouts[i], args.in[i]);
  return std::max(least_limit, blocks / part_of_blocks);
}

ChosenAlgorithm plan_product(const AlgorithmArgs& args, const FactorRule& rule) {
  const auto& dims = args.params.as<DotDims>();
  if (!is_on_one_mesh(args) || args.out.shape.elements() == 0) return {};
  const Mesh mesh = args.out_layout.mesh();
  const ProductQuestion q{args,
                          rule,
                          dims,
                          static_cast<std::int64_t>(itemsize(args.out.dtype)),
                          product_limit(args),
                          is_on_one_host(mesh) ? 1 : 3,
                          mesh,
                          ranks_of_a_host(mesh)};
  auto list = all_candidates(q);
  const std::size_t chosen = cheapest(q, list);
  if (list.size() > 1) explain_choice(q, list, chosen);
  ChosenAlgorithm answer;
  if (list.size() > 1)
    for (auto& candidate : list) answer.candidates.push_back(candidate.planned);
  const Candidate& best = list[chosen];
  if (!best.plan) return answer;
  answer.op = &product_op;
  answer.params = make_params(*best.plan);
  answer.costs = costs_of(q, best);
  answer.temporary_bytes = best.planned.temporary_bytes;
  return answer;
}

}  // namespace tessera
