#include "ops/contract/einsum_text.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cctype>

#include "base/call.hpp"
#include "base/text.hpp"

namespace tessera {
namespace {

constexpr int ellipsis_label = -1;

bool contains(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
std::string shown(const std::string& text) {
  constexpr std::size_t longest = 300;
  return in_quotes(text.substr(0, longest)) + (text.size() > longest ? " ..." : "");
}
std::string letter(int label) { return in_quotes(std::string(1, static_cast<char>(label))); }

class Parser {
 public:
  Parser(const std::string& expression, std::span<const Shape> operands)
      : expression_(expression), operands_(operands) {}

  EinsumText run() {
    std::string text;
    for (const char c : expression_)
      if (!std::isspace(static_cast<unsigned char>(c))) text += c;
    const auto arrow = text.find("->");
    read_inputs(text.substr(0, arrow));
    EinsumLabels ellipsis_dims;
    for (int k = ellipsis_dims_; k-- > 0;) ellipsis_dims.push_back(first_ellipsis_dim + k);
    if (arrow == std::string::npos)
      result_.output = implied_output(ellipsis_dims);
    else
      read_output(text.substr(arrow + 2), ellipsis_dims);
    return std::move(result_);
  }

 private:
  std::string place() const { return call_text() + ": " + shown(expression_) + ": "; }
  [[noreturn]] void refuse(const std::string& why) const { throw ArgumentError(place() + why); }

  EinsumLabels read_labels(const std::string& text) const {
    EinsumLabels labels;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '.') {
        if (text.compare(i, 3, "...") != 0 || contains(labels, ellipsis_label))
          refuse("an ellipsis is three dots, at most once in a term");
        labels.push_back(ellipsis_label);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        labels.push_back(text[i]);
      } else {
        refuse("the character " + letter(text[i]) + " means nothing here; dimensions are named by letters");
      }
    }
    return labels;
  }

  void read_inputs(const std::string& text) {
    std::vector<std::string> inputs{""};
    for (const char c : text) c == ',' ? inputs.push_back("") : inputs.back().push_back(c);
    if (inputs.size() != operands_.size())
      refuse(std::to_string(inputs.size()) + " terms for " + std::to_string(operands_.size()) + " operands");
    for (std::size_t i = 0; i < operands_.size(); ++i) read_input(inputs[i], i);
  }

  void read_input(const std::string& text, std::size_t operand) {
    const EinsumLabels written = read_labels(text);
    const Shape& shape = operands_[operand];
    const int named = static_cast<int>(written.size()) - contains(written, ellipsis_label),
              open = shape.ndim() - named;
    if (open < 0 || (open > 0 && !contains(written, ellipsis_label)))
      refuse("the term " + shown(text) + " names " + std::to_string(named) + " dimensions, operand " +
             std::to_string(operand) + " has shape " + to_string(shape));
    EinsumLabels labels;
    for (const int label : written) {
      if (label != ellipsis_label)
        labels.push_back(label);
      else
        for (int k = open; k-- > 0;) labels.push_back(first_ellipsis_dim + k);
    }
    ellipsis_dims_ = std::max(ellipsis_dims_, open);
    for (std::size_t d = 0; d < labels.size(); ++d) note_size(labels[d], shape[d], operand);
    result_.terms.push_back(std::move(labels));
  }

  void note_size(int label, std::int64_t extent, std::size_t operand) {
    auto& size = result_.sizes.try_emplace(label, extent).first->second;
    if (size == extent || extent == 1) return;
    if (size != 1)
      throw ShapeError(
          place() + (label < first_ellipsis_dim ? letter(label) : "a dimension of the ellipsis") + " is " +
          std::to_string(size) + " in one operand and " + std::to_string(extent) + " in operand " +
          std::to_string(operand) + " of shape " + to_string(operands_[operand]));
    size = extent;
  }

  void read_output(const std::string& text, const EinsumLabels& ellipsis_dims) {
    auto& output = result_.output;
    for (const int label : read_labels(text)) {
      if (label == ellipsis_label)
        output.insert(output.end(), ellipsis_dims.begin(), ellipsis_dims.end());
      else if (contains(output, label))
        refuse(letter(label) + " stands twice in the result");
      else if (!result_.sizes.contains(label))
        refuse(letter(label) + " of the result stands in no operand");
      else
        output.push_back(label);
    }
  }

  // Without "->" the output has the labels that occur once, in alphabetical order.
  EinsumLabels implied_output(EinsumLabels output) const {
    std::map<int, int> count;
    for (const auto& term : result_.terms)
      for (const int label : term) ++count[label];
    for (const auto& [label, n] : count)
      if (n == 1 && label < first_ellipsis_dim) output.push_back(label);
    return output;
  }

  const std::string& expression_;
  const std::span<const Shape> operands_;
  EinsumText result_;
  int ellipsis_dims_ = 0;
};

}  // namespace

EinsumText parse_einsum(const std::string& expression, std::span<const Shape> operands) {
  return Parser(expression, operands).run();
}

}  // namespace tessera
