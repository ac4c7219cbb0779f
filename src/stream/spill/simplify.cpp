#include "stream/spill/simplify.hpp"

#include <tessera/array/index.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>

#include "base/call.hpp"
#include "graph/same_bits.hpp"
#include "ops/create/scalar.hpp"
#include "ops/factor/functions.hpp"
#include "ops/fourier/fft_op.hpp"
#include "ops/functions.hpp"
#include "ops/index/update/addressed.hpp"
#include "ops/reduce/arg_reduce.hpp"
#include "ops/sort/cumulative.hpp"
#include "ops/sort/select.hpp"
#include "ops/sort/select_by_rounds.hpp"
#include "ops/sort/sort_by_key.hpp"
#include "stream/plan.hpp"
#include "stream/spill/extremes.hpp"
#include "stream/spill/long_lines.hpp"
#include "stream/spill/selections.hpp"

namespace tessera::stream {
namespace {

using kernels::FftKind;

// An FFT of several dims, one after the other. The halved dim of a real one comes first, or last on the way
// back.
Array dim_by_dim(const Array& given, const FftParams& p) {
  Array x = given;
  const auto one = [&](int dim, FftKind kind, bool is_first) {
    FftParams step = p;
    step.kind = kind, step.dims = {dim}, step.scale = is_first ? p.scale : 1;
    step.length = kind == FftKind::c2r ? p.length : 0;
    x = record_fft(x, step);
  };
  const auto halved = p.dims.size() - 1;
  if (p.kind != FftKind::c2r) one(p.dims[halved], p.kind, true);
  for (std::size_t i = 0; i < halved; ++i) one(p.dims[i], FftKind::c2c, p.kind == FftKind::c2r && i == 0);
  if (p.kind == FftKind::c2r) one(p.dims[halved], p.kind, false);
  return x;
}

// The elements of a sorted vector, which is merged from sorted runs.
Array from_sorted_vector(const Array& x, const std::vector<std::int64_t>& positions) {
  const Array sorted = sort(x, 0);
  std::vector<Array> found;
  for (const auto at : positions) found.push_back(sorted(slice(at, at + 1)));
  return concatenate(found, 0);
}
bool selects_from_vector(const Node& node) {
  return node.op->name == "elements_of_sorted" && node.inputs[0].ndim() == 1;
}

// A vector divided around an element: its keys are the sides of its own elements. Sorted, which a merge of
// runs does, it is divided, too.
bool is_partition(const Node& node) {
  return node.op->name == "sort_by_key" && node.inputs[0].ndim() == 1 &&
         node.params->as<SortByKeyParams>().keys == Keys::sides;
}

// A running sum from the end is one from the start of the flipped array.
Array from_start(const Array& x, const Running& running) {
  return flip(cumulative(running.kind, flip(x, running.dim), running.dim, false), running.dim);
}

// The QR of a tall matrix by those of blocks of its rows. The first n rows stay on top of the blocks'
// triangles: Householder's signs follow from these rows, and so are those of the whole matrix.
//
//   x = [top; blocks]    qr(blocks[i]) = q_i, r_i    qr([top; r_0; r_1; ...]) = q', r
//   q = [q'_top; q_0 q'_0; q_1 q'_1; ...]
std::pair<Array, Array> tall_qr(const Array& x, std::int64_t room) {
  // A rank has its block, the next one that is read, LAPACK's copy, q_i and its product at a time.
  constexpr std::int64_t longest_block = 4 << 20, blocks_in_room = 16;
  const std::int64_t block_bytes = std::min(longest_block, room / blocks_in_room);
  const std::int64_t m = x.shape()[0], n = x.shape()[1], rest = m - n;
  const auto row_bytes = n * static_cast<std::int64_t>(itemsize(x.dtype()));
  const auto ranks = static_cast<std::int64_t>(device_count());
  const auto most = std::max<std::int64_t>(2 * n, (rest + 4 * ranks - 1) / (4 * ranks));
  const std::int64_t height = std::clamp(block_bytes / row_bytes, 2 * n, most);
  const std::int64_t count = (rest + height - 1) / height;
  const Array below = pad(x(slice(n, None)), {{0, count * height - rest}, {0, 0}});
  const auto [q_of, r_of] = factor::qr(reshape(below, {count, height, n}), false);
  const auto [q_top, r] = factor::qr(concatenate({x(slice(0, n)), reshape(r_of, {count * n, n})}, 0), false);
  const Array q_below = matmul(q_of, reshape(q_top(slice(n, None)), {count, n, n}));
  const Array rows = reshape(q_below, {count * height, n})(slice(0, rest));
  return {concatenate({q_top(slice(0, n)), rows}, 0), r};
}
// A reduced factorization of one matrix with at least 16 times as many rows as columns.
bool is_tall_factorization(const Node& node) {
  if (node.op->name != "qr" && node.op->name != "svd" && node.op->name != "svdvals") return false;
  const Shape& shape = node.inputs[0].shape();
  if (shape.ndim() != 2 || shape[1] == 0 || shape[0] < 16 * shape[1]) return false;
  return node.op->name == "svdvals" || node.outputs[0].type.shape[1] == shape[1];
}
std::vector<Array> tall_factors(const Node& node, const Array& x, std::int64_t room) {
  const auto [q, r] = tall_qr(x, room);
  if (node.op->name == "qr") return {q, r};
  if (node.op->name == "svdvals") return {factor::svdvals(r)};
  const auto [u, s, vh] = factor::svd(r, false);
  return {matmul(q, u), s, vh};
}

// The number that all elements of a value are; nullopt if it is not known to be one.
std::optional<ScalarValue> number_repeated(const Array& x) {
  if (const auto number = scalar_value(x)) return number;
  const Node& node = *x.node();
  if (node.inputs.size() != 1 || (!is_broadcast(*node.op) && node.op->name != "reshape")) return std::nullopt;
  return number_repeated(node.inputs[0]);
}

// A box of values put into an array of a file: the values, if the box is the whole array; a file that lacks
// the box, if they are one number; otherwise an update of a list, which passes through every dim.
std::optional<Array> box_as_update(const Node& node, const std::vector<Array>& inputs, FileNumbers& numbers) {
  if (node.op->name != "remap" || inputs.size() != 2) return std::nullopt;
  const auto& p = node.params->as<RemapParams>();
  if (p.pieces.empty()) return std::nullopt;  // a join of arrays without elements
  const RemapPiece& box = p.pieces.back();
  std::int64_t covered = 0;
  bool is_update =
      !p.layout && box.source == 1 && inputs[0].shape() == p.shape && inputs[1].shape() == box_shape(box.to);
  for (const auto& piece : p.pieces) {
    covered += box_elements(piece.to);
    if (&piece != &box)
      is_update &= piece.source == 0 && std::ranges::all_of(piece.offset, [](auto at) { return at == 0; }) &&
                   std::ranges::all_of(piece.step, [](auto step) { return step == 1; });
  }
  if (!is_update || covered != p.shape.elements() || !reads_files(collect({inputs[0]}, false)))
    return std::nullopt;
  std::vector<int> cut, turned;
  for (int d = 0; d < p.shape.ndim(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (box.to[at].size() < p.shape[at]) cut.push_back(d);
    if (box.step[at] < 0) turned.push_back(d);
  }
  const Array values = turned.empty() ? inputs[1] : flip(inputs[1], Axes(turned));
  if (cut.empty()) return values;
  if (const auto number = number_repeated(inputs[1]); number && is_file(*inputs[0].node())) {
    RemapParams beside = p;
    beside.pieces.pop_back(), beside.fill = *number;
    return as_file(*remap(std::move(beside), {inputs[0]}).node(), {inputs[0]}, numbers);
  }
  const int first = cut.front();
  const Shape list = box_shape(Box(box.to.begin() + first, box.to.begin() + cut.back() + 1));
  std::vector<Array> indices;
  for (int d = first; d <= cut.back(); ++d) {
    std::vector<std::int64_t> extents(list.size(), 1);
    const Range& range = box.to[static_cast<std::size_t>(d)];
    extents[static_cast<std::size_t>(d - first)] = range.size();
    indices.push_back(
        broadcast_to(reshape(arange(range.start, range.stop), Shape(std::move(extents))), list));
  }
  return scatter("set", inputs[0], std::move(indices), values, first, OutOfRange::drop);
}

// Results without elements, for which no file is read.
std::optional<std::vector<Array>> without_elements(const Node& node, const std::vector<Array>& inputs) {
  const bool is_empty =
      std::ranges::all_of(node.outputs, [](const auto& output) { return output.type.shape.elements() == 0; });
  if (!is_empty || node.op->is_value_dependent || !reads_files(collect(inputs, false))) return std::nullopt;
  std::vector<Array> results;
  for (const auto& output : node.outputs) results.push_back(zeros(output.type.shape, output.type.dtype));
  return results;
}

std::optional<std::vector<Array>> part_of_files(const Node& node, const std::vector<Array>& inputs,
                                                FileNumbers& numbers) {
  if (auto nothing = without_elements(node, inputs)) return nothing;
  if (auto file = as_file(node, inputs, numbers)) return std::vector<Array>{*file};
  if (auto part = selected(node, inputs, numbers)) return std::vector<Array>{*part};
  const OnBehalfOf call(node.called());
  if (auto updated = box_as_update(node, inputs, numbers)) return std::vector<Array>{*updated};
  return std::nullopt;
}

std::optional<std::vector<Array>> simpler(const Node& node, const std::vector<Array>& inputs,
                                          FileNumbers& numbers, const Simplifying& how, bool is_given) {
  if (auto part = part_of_files(node, inputs, numbers)) return part;
  if (selects_from_vector(node)) {
    const OnBehalfOf call(node.called());
    const auto select = how.selection == SelectBy::rounds ? elements_by_rounds : from_sorted_vector;
    return std::vector<Array>{select(inputs[0], node.params->as<SelectParams>().positions)};
  }
  if (is_partition(node)) {
    const OnBehalfOf call(node.called());
    return std::vector<Array>{inputs[0], sort(inputs[1], 0)};
  }
  if (const auto running = running_of(node); running && running->reverse) {
    const OnBehalfOf call(node.called());
    const AsRecorded bits(node);
    return std::vector<Array>{from_start(inputs[0], *running)};
  }
  const auto is_in_memory = [](const Node& leaf) { return leaf.inputs.empty() && !is_file(leaf); };
  if (node.op->name == "scatter" && gather_params(*node.params).op == "add" && !node.same_bits &&
      (is_in_memory(*inputs[0].node()) || reads_files(collect({inputs.begin() + 1, inputs.end()}, false)))) {
    const OnBehalfOf call(node.called());
    const auto& p = gather_params(*node.params);
    return std::vector<Array>{inputs[0] + scatter_add_zeros(inputs[0].shape(), index_inputs(inputs, p),
                                                            inputs.back(), p.first, p.out_of_range)};
  }
  if (is_given && is_tall_factorization(node) && !node.same_bits) {
    const OnBehalfOf call(node.called());
    return tall_factors(node, inputs[0], how.room);
  }
  if (is_given && (node.op->name == "argmax" || node.op->name == "argmin")) {
    const OnBehalfOf call(node.called());
    const auto& p = node.params->as<ArgParams>();
    const Array position = position_of_extreme(inputs[0], p.dim, p.max);
    return std::vector<Array>{astype(position, node.outputs[0].type.dtype)};
  }
  if (node.op->name != "fft") return std::nullopt;
  const auto& p = node.params->as<FftParams>();
  const OnBehalfOf call(node.called());
  if (p.dims.size() > 1) return std::vector<Array>{dim_by_dim(inputs[0], p)};
  if (inputs[0].ndim() > 1 || node.same_bits) return std::nullopt;
  if (auto line = long_line(inputs[0], p, how.room, numbers)) return std::vector<Array>{*line};
  return std::nullopt;
}

std::vector<Array> mapped(const std::vector<Array>& inputs, const std::map<ValueId, Array>& known,
                          bool& has_changed) {
  std::vector<Array> others;
  for (const auto& x : inputs) {
    const auto other = known.find(id_of(x));
    has_changed |= other != known.end();
    others.push_back(other == known.end() ? x : other->second);
  }
  return others;
}

// The values with what `rule(node, inputs, in the first round)` gives for the results of nodes.
template <class Rule> std::vector<Array> rewritten(std::vector<Array> values, Rule&& rule) {
  constexpr int most_rounds = 4;  // what stands for an op may hold ops that have simpler forms
  for (int round = 0; round < most_rounds; ++round) {
    const Graph graph = collect(values, false);
    std::map<ValueId, Array> known;
    for (const auto& node : graph.nodes) {
      bool has_changed = false;
      auto inputs = mapped(node->inputs, known, has_changed);
      std::optional<std::vector<Array>> results = rule(*node, inputs, round == 0);
      if (!results && has_changed) results = record_again(*node, node->params, std::move(inputs));
      for (std::size_t i = 0; results && i < results->size(); ++i)
        known[{node.get(), static_cast<int>(i)}] = (*results)[i];
    }
    bool has_changed = false;
    values = mapped(values, known, has_changed);
    if (!has_changed) break;
  }
  return values;
}

}  // namespace

Array Replaced::of(const Array& x) {
  for (const auto& node : graph_.nodes) {
    if (is_recorded_) break;
    bool has_changed = false;
    auto inputs = mapped(node->inputs, known_, has_changed);
    if (!has_changed || known_.contains({node.get(), 0})) continue;
    const auto results = record_again(*node, node->params, std::move(inputs));
    for (std::size_t i = 0; i < results.size(); ++i)
      known_.emplace(ValueId{node.get(), static_cast<int>(i)}, results[i]);
  }
  is_recorded_ = true;
  const auto known = known_.find(id_of(x));
  return known == known_.end() ? x : known->second;
}

bool has_selection(const std::vector<Array>& values) {
  return std::ranges::any_of(collect(values, false).nodes,
                             [](const auto& node) { return selects_from_vector(*node); });
}

std::vector<Array> with_parts_of_files(const std::vector<Array>& values, FileNumbers& numbers) {
  return rewritten(values, [&](const Node& node, const std::vector<Array>& inputs, bool) {
    return part_of_files(node, inputs, numbers);
  });
}

std::vector<Array> simplified(const std::vector<Array>& values, FileNumbers& numbers,
                              const Simplifying& how) {
  return rewritten(values, [&](const Node& node, const std::vector<Array>& inputs, bool is_first) {
    return simpler(node, inputs, numbers, how, how.is_recorded && is_first);
  });
}

}  // namespace tessera::stream
