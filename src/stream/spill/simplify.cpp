#include "stream/spill/simplify.hpp"

#include <algorithm>

#include "base/call.hpp"
#include "ops/fourier/fft_op.hpp"
#include "ops/functions.hpp"
#include "ops/sort/select.hpp"

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
Array from_sorted_vector(const Array& x, const SelectParams& p) {
  const Array sorted = sort(x, 0);
  std::vector<Array> found;
  for (const auto at : p.positions) found.push_back(sorted(slice(at, at + 1)));
  return concatenate(found, 0);
}

std::optional<std::vector<Array>> simpler(const Node& node, const std::vector<Array>& inputs,
                                          FileNumbers& numbers) {
  if (auto file = as_file(node, inputs, numbers)) return std::vector<Array>{*file};
  if (node.op->name == "elements_of_sorted" && inputs[0].ndim() == 1) {
    const OnBehalfOf call(node.called());
    return std::vector<Array>{from_sorted_vector(inputs[0], node.params->as<SelectParams>())};
  }
  if (node.op->name != "fft" || node.params->as<FftParams>().dims.size() < 2) return std::nullopt;
  const OnBehalfOf call(node.called());
  return std::vector<Array>{dim_by_dim(inputs[0], node.params->as<FftParams>())};
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

std::vector<Array> simplified(const std::vector<Array>& values, FileNumbers& numbers) {
  const Graph graph = collect(values, false);
  std::map<ValueId, Array> known;
  for (const auto& node : graph.nodes) {
    bool has_changed = false;
    auto inputs = mapped(node->inputs, known, has_changed);
    auto results = simpler(*node, inputs, numbers);
    if (!results && has_changed) results = record_again(*node, node->params, std::move(inputs));
    for (std::size_t i = 0; results && i < results->size(); ++i)
      known[{node.get(), static_cast<int>(i)}] = (*results)[i];
  }
  bool has_changed = false;
  return mapped(values, known, has_changed);
}

}  // namespace tessera::stream
