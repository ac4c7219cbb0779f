// einsum: any number of operands, contracted pairwise; each step takes the pair with the least predicted
// seconds.
#include <algorithm>
#include <map>

#include <tessera/ops/reproducible.hpp>
#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/contract/einsum_text.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using Labels = EinsumLabels;

struct LabelledTerm {
  Array x;
  Labels labels;
};

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

class Einsum {
 public:
  Einsum(const std::string& expression, const std::vector<Array>& operands) {
    std::vector<WeakDtype> types;
    std::vector<Shape> shapes;
    for (const auto& x : operands) {
      check_usable(x);
      types.push_back({x.dtype(), x.is_weakly_typed()});
      shapes.push_back(x.shape());
    }
    auto text = parse_einsum(expression, shapes);
    const Dtype dtype = promote(types).dtype;
    for (std::size_t i = 0; i < operands.size(); ++i)
      terms_.push_back({cast_to(operands[i], dtype), std::move(text.terms[i])});
    output_ = std::move(text.output);
    sizes_ = std::move(text.sizes);
  }

  Array run() {
    for (auto& term : terms_) {
      term = with_distinct_labels(std::move(term));
      drop_broadcast_dims(term);
    }
    while (terms_.size() > 1) {
      for (std::size_t i = 0; i < terms_.size(); ++i) sum_what_nobody_needs(i);
      contract_cheapest();
    }
    sum_what_nobody_needs(0);
    return in_output_order();
  }

 private:
  Array transposed(const Array& x, std::vector<int> permutation) const {
    return transpose(x, std::move(permutation));
  }

  // "ii": takes the diagonal, once per repetition.
  LabelledTerm with_distinct_labels(LabelledTerm term) const {
    for (std::size_t a = 0; a < term.labels.size(); ++a)
      for (std::size_t b = a + 1; b < term.labels.size(); ++b) {
        if (term.labels[a] != term.labels[b]) continue;
        const int label = term.labels[a];
        std::vector<int> permutation{static_cast<int>(a), static_cast<int>(b)};
        Labels rest;
        for (std::size_t d = 0; d < term.labels.size(); ++d)
          if (d != a && d != b) permutation.push_back(static_cast<int>(d)), rest.push_back(term.labels[d]);
        rest.push_back(label);
        return with_distinct_labels({diagonal(transposed(term.x, std::move(permutation))), std::move(rest)});
      }
    return term;
  }

  // A dim of size 1 whose label is larger elsewhere broadcasts and is dropped.
  void drop_broadcast_dims(LabelledTerm& term) {
    std::vector<int> dropped;
    Labels kept;
    for (std::size_t d = 0; d < term.labels.size(); ++d)
      if (term.x.shape()[d] == 1 && sizes_.at(term.labels[d]) != 1)
        dropped.push_back(static_cast<int>(d));
      else
        kept.push_back(term.labels[d]);
    if (dropped.empty()) return;
    term = {squeeze(term.x, Axes(dropped)), std::move(kept)};
  }

  bool is_needed_beyond(int label, std::size_t i, std::size_t j) const {
    if (has(output_, label)) return true;
    for (std::size_t t = 0; t < terms_.size(); ++t)
      if (t != i && t != j && has(terms_[t].labels, label)) return true;
    return false;
  }

  void sum_what_nobody_needs(std::size_t i) {
    LabelledTerm& term = terms_[i];
    std::vector<int> dims;
    Labels kept;
    for (std::size_t d = 0; d < term.labels.size(); ++d)
      if (is_needed_beyond(term.labels[d], i, i))
        kept.push_back(term.labels[d]);
      else
        dims.push_back(static_cast<int>(d));
    if (dims.empty()) return;
    const Dtype dtype = term.x.dtype();
    term = {astype(sum(term.x, Axes(dims)), dtype), std::move(kept)};
  }

  void contract_cheapest() {
    std::size_t best_i = 0, best_j = 1;
    double least = -1;
    for (std::size_t i = 0; terms_.size() > 2 && i < terms_.size(); ++i)
      for (std::size_t j = i + 1; j < terms_.size(); ++j)
        if (const double seconds = seconds_of(i, j); least < 0 || seconds < least)
          least = seconds, best_i = i, best_j = j;
    LabelledTerm result = contract(best_i, best_j);
    terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(best_j));
    terms_[best_i] = std::move(result);
  }

  struct Pair {
    DotDims dims;
    Labels labels;  // labels of the result
  };
  Pair pair_of(std::size_t i, std::size_t j) const {
    const LabelledTerm &a = terms_[i], &b = terms_[j];
    Pair pair;
    Labels free;
    for (std::size_t d = 0; d < a.labels.size(); ++d) {
      const auto in_b = std::find(b.labels.begin(), b.labels.end(), a.labels[d]);
      if (in_b == b.labels.end()) {
        free.push_back(a.labels[d]);
        continue;
      }
      const bool stays = is_needed_beyond(a.labels[d], i, j);
      (stays ? pair.dims.batch_a : pair.dims.contract_a).push_back(static_cast<int>(d));
      (stays ? pair.dims.batch_b : pair.dims.contract_b).push_back(static_cast<int>(in_b - b.labels.begin()));
      if (stays) pair.labels.push_back(a.labels[d]);
    }
    for (const int label : b.labels)
      if (!has(a.labels, label)) free.push_back(label);
    pair.labels.insert(pair.labels.end(), free.begin(), free.end());
    return pair;
  }

  // The cost of a pair in the terms' layouts: traffic and arithmetic.
  double seconds_of(std::size_t i, std::size_t j) const {
    if (is_reproducible()) return multiplications_of(i, j);
    return dot_seconds(terms_[i].x, terms_[j].x, pair_of(i, j).dims);
  }
  // In a ReproducibleScope: layouts must not decide what is added first.
  double multiplications_of(std::size_t i, std::size_t j) const {
    double count = 1;
    for (const auto& [label, size] : sizes_)
      if (has(terms_[i].labels, label) || has(terms_[j].labels, label)) count *= static_cast<double>(size);
    return count;
  }

  LabelledTerm contract(std::size_t i, std::size_t j) const {
    const LabelledTerm &a = terms_[i], &b = terms_[j];
    auto [dims, labels] = pair_of(i, j);
    if (!dims.contract_a.empty()) return {dot_general(a.x, b.x, std::move(dims)), std::move(labels)};
    return {multiply(aligned(a, labels), aligned(b, labels)), labels};  // elementwise: nothing is contracted
  }

  // The term with one dim per label, of size 1 for labels that it lacks.
  Array aligned(const LabelledTerm& term, const Labels& labels) const {
    std::vector<int> permutation;
    std::vector<std::int64_t> extents;
    for (const int label : labels) {
      const auto found = std::find(term.labels.begin(), term.labels.end(), label);
      extents.push_back(found == term.labels.end() ? 1 : term.x.shape()[found - term.labels.begin()]);
      if (found != term.labels.end()) permutation.push_back(static_cast<int>(found - term.labels.begin()));
    }
    return reshape(transposed(term.x, std::move(permutation)), Shape(std::move(extents)));
  }

  Array in_output_order() const {
    Array x = aligned(terms_[0], output_);
    std::vector<std::int64_t> extents;
    for (const int label : output_) extents.push_back(sizes_.at(label));
    return broadcast_to(x, Shape(std::move(extents)));
  }

  std::vector<LabelledTerm> terms_;
  Labels output_;
  std::map<int, std::int64_t> sizes_;
};

}  // namespace

Array einsum_of(const std::string& expression, std::vector<Array> operands, std::source_location where) {
  const Call call("einsum", where);
  return Einsum(expression, operands).run();
}

}  // namespace tessera
