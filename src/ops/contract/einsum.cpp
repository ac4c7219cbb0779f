// einsum: any number of operands, contracted two at a time in the order that costs the fewest
// multiplications at each step.
#include <algorithm>
#include <cctype>
#include <map>

#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using Labels = std::vector<int>;  // letters; what an ellipsis stands for is numbered from the last dim
constexpr int ellipsis_label = -1, first_ellipsis_dim = 1000;

struct Term {
  Array x;
  Labels labels;
};

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

class Einsum {
 public:
  Einsum(const std::string& expression, std::vector<Array> operands) : expression_(expression) {
    for (auto& x : operands) check_usable(x);
    parse(std::move(operands));
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
  [[noreturn]] void refuse(const std::string& why) const {
    throw ArgumentError(call_text() + ": '" + expression_ + "': " + why);
  }

  Labels parse_labels(const std::string& text) const {
    Labels labels;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '.') {
        if (text.compare(i, 3, "...") != 0 || has(labels, ellipsis_label))
          refuse("an ellipsis is three dots, at most once in a term");
        labels.push_back(ellipsis_label);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        labels.push_back(text[i]);
      } else {
        refuse(std::string("the character '") + text[i] +
               "' means nothing here; dimensions are named by letters");
      }
    }
    return labels;
  }

  void parse(std::vector<Array> operands) {
    std::string text;
    for (const char c : expression_)
      if (!std::isspace(static_cast<unsigned char>(c))) text += c;
    const auto arrow = text.find("->");
    const bool is_explicit = arrow != std::string::npos;
    std::vector<std::string> inputs{""};
    for (const char c : text.substr(0, arrow)) c == ',' ? inputs.push_back("") : inputs.back().push_back(c);
    if (inputs.size() != operands.size())
      refuse(std::to_string(inputs.size()) + " terms for " + std::to_string(operands.size()) + " operands");
    std::vector<WeakDtype> types;
    for (const auto& x : operands) types.push_back({x.dtype(), x.is_weakly_typed()});
    const Dtype dtype = promote(types).dtype;
    int ellipsis_dims = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Term term{cast_to(operands[i], dtype), {}};
      const Labels written = parse_labels(inputs[i]);
      const int ndim = term.x.ndim(), named = static_cast<int>(written.size()) - has(written, ellipsis_label);
      const int open = ndim - named;
      if (open < 0 || (open > 0 && !has(written, ellipsis_label)))
        refuse("the term '" + inputs[i] + "' names " + std::to_string(named) + " dimensions, operand " +
               std::to_string(i) + " has shape " + to_string(term.x.shape()));
      for (const int label : written) {
        if (label != ellipsis_label)
          term.labels.push_back(label);
        else
          for (int k = open; k-- > 0;) term.labels.push_back(first_ellipsis_dim + k);
      }
      ellipsis_dims = std::max(ellipsis_dims, open);
      note_sizes(term, i);
      terms_.push_back(std::move(term));
    }
    for (int k = ellipsis_dims; k-- > 0;) output_.push_back(first_ellipsis_dim + k);
    const Labels ellipsis_labels = output_;
    if (is_explicit) {
      output_.clear();
      for (const int label : parse_labels(text.substr(arrow + 2))) {
        if (label == ellipsis_label)
          output_.insert(output_.end(), ellipsis_labels.begin(), ellipsis_labels.end());
        else if (has(output_, label))
          refuse(std::string("'") + static_cast<char>(label) + "' stands twice in the result");
        else if (!sizes_.contains(label))
          refuse(std::string("'") + static_cast<char>(label) + "' of the result stands in no operand");
        else
          output_.push_back(label);
      }
      return;
    }
    std::map<int, int> count;  // without "->": what stands once, in alphabetical order
    for (const auto& term : terms_)
      for (const int label : term.labels) ++count[label];
    for (const auto& [label, n] : count)
      if (n == 1 && label < first_ellipsis_dim) output_.push_back(label);
  }

  void note_sizes(const Term& term, std::size_t operand) {
    for (std::size_t d = 0; d < term.labels.size(); ++d) {
      const auto n = term.x.shape()[d];
      auto& size = sizes_.try_emplace(term.labels[d], n).first->second;
      if (size == n || n == 1) continue;
      if (size != 1) {
        const std::string what = term.labels[d] < first_ellipsis_dim
                                     ? std::string("'") + static_cast<char>(term.labels[d]) + "'"
                                     : "a dimension of the ellipsis";
        throw ShapeError(call_text() + ": '" + expression_ + "': " + what + " is " + std::to_string(size) +
                         " in one operand and " + std::to_string(n) + " in operand " +
                         std::to_string(operand) + " of shape " + to_string(term.x.shape()));
      }
      size = n;
    }
  }

  Array transposed(const Array& x, std::vector<int> permutation) const {
    return transpose(x, std::move(permutation));
  }

  // "ii": the diagonal, once for every repetition.
  Term with_distinct_labels(Term term) const {
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

  // A dim of size 1 whose label is larger elsewhere broadcasts: it needs no dim at all.
  void drop_broadcast_dims(Term& term) {
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
    Term& term = terms_[i];
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
    double best_cost = -1;
    for (std::size_t i = 0; i < terms_.size(); ++i)
      for (std::size_t j = i + 1; j < terms_.size(); ++j) {
        double cost = 1;
        for (const int label : terms_[i].labels) cost *= static_cast<double>(sizes_.at(label));
        for (const int label : terms_[j].labels)
          if (!has(terms_[i].labels, label)) cost *= static_cast<double>(sizes_.at(label));
        if (best_cost < 0 || cost < best_cost) best_cost = cost, best_i = i, best_j = j;
      }
    Term result = contract(best_i, best_j);
    terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(best_j));
    terms_[best_i] = std::move(result);
  }

  Term contract(std::size_t i, std::size_t j) const {
    const Term &a = terms_[i], &b = terms_[j];
    DotDims dims;
    Labels batch, free;
    for (std::size_t d = 0; d < a.labels.size(); ++d) {
      const auto in_b = std::find(b.labels.begin(), b.labels.end(), a.labels[d]);
      if (in_b == b.labels.end()) {
        free.push_back(a.labels[d]);
        continue;
      }
      const bool stays = is_needed_beyond(a.labels[d], i, j);
      (stays ? dims.batch_a : dims.contract_a).push_back(static_cast<int>(d));
      (stays ? dims.batch_b : dims.contract_b).push_back(static_cast<int>(in_b - b.labels.begin()));
      if (stays) batch.push_back(a.labels[d]);
    }
    for (const int label : b.labels)
      if (!has(a.labels, label)) free.push_back(label);
    Labels labels = batch;
    labels.insert(labels.end(), free.begin(), free.end());
    if (!dims.contract_a.empty()) return {dot_general(a.x, b.x, std::move(dims)), std::move(labels)};
    return {multiply(aligned(a, labels), aligned(b, labels)), labels};  // nothing is summed
  }

  // The term with a dim for each label, of size 1 where it has none.
  Array aligned(const Term& term, const Labels& labels) const {
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

  std::string expression_;
  std::vector<Term> terms_;
  Labels output_;
  std::map<int, std::int64_t> sizes_;
};

}  // namespace

Array einsum_of(const std::string& expression, std::vector<Array> operands, std::source_location where) {
  const Call call("einsum", where);
  return Einsum(expression, std::move(operands)).run();
}

}  // namespace tessera
