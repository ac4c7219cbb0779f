// The type-erased recording between a function's arguments and its results: the implementation of grad.hpp.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {
class CheckpointPolicy;
}
namespace tessera::detail {

class Tape;

// One call of a function whose argument leaves are watched: the nodes recorded between them and the results.
class Recording {
 public:
  Recording(const char* call, std::source_location where);
  // The leaf as the function sees it. Integers and bools have no tangent space: refused (`strict`), or given
  // zero cotangents.
  Array watch(const Array& leaf, int argument, bool strict);
  std::size_t watched() const { return leaves_.size(); }

  // Called when the function has returned. `others` are leaves that it returned besides the results (aux).
  void finish(std::vector<Array> results, const std::vector<Array>& others = {});
  // The values of the recorded function that the policy keeps, in recording order; before finish.
  std::vector<Array> kept_values(const std::vector<Array>& results, const CheckpointPolicy&) const;
  // finish, where `kept`, the kept_values of an equal recording, stand for the values computed here.
  void finish_with(std::vector<Array> results, const CheckpointPolicy&, std::span<const Array> kept);
  // Error unless there is one result, a real scalar.
  void check_scalar() const;

  std::vector<Array> gradient() const;  // the gradient of the scalar: one array per watched leaf
  // One cotangent per result -> one per watched leaf: as gradients for the user, in the operands' layouts, or
  // as cotangents for a rule, where an Array without a node stands for zeros.
  enum Form { as_gradients, as_cotangents };
  std::vector<Array> pull_back(std::vector<Array> cotangents, Form form = as_gradients) const;
  std::vector<Array> push_forward(
      std::vector<Array> tangents) const;                 // one per watched leaf -> one per result
  std::vector<Array> jacobian(std::size_t result) const;  // (result shape + leaf shape) per watched leaf
  const std::vector<Array>& results() const { return results_; }

 private:
  std::vector<Array> aliases() const;
  const char* call_;
  std::source_location where_;
  // Leaves as passed in, as the function sees them, and its results.
  std::vector<Array> leaves_, watched_, results_;
  std::shared_ptr<const Tape> tape_;
};

Array stop_gradient_leaf(const Array&, std::source_location);
[[noreturn]] void throw_structure_mismatch(const char* call, std::source_location, const char* what,
                                           const std::string& expected, const std::string& given);

// (leaves of the arguments, cotangents of the results) -> cotangents of the arguments' leaves.
using BackwardRule =
    std::function<std::vector<Array>(std::span<const Array>, std::span<const Array>, std::source_location)>;
// The results, whose cotangents reach the arguments only through the rule.
std::vector<Array> with_backward_rule(const std::vector<Array>& arguments, const std::vector<Array>& results,
                                      BackwardRule, std::source_location);
// The results of checkpoint: `again` is the derivative of the recomputed function. Tangents pass as if
// checkpoint were absent.
std::vector<Array> with_second_computation(const std::vector<Array>& arguments,
                                           const std::vector<Array>& results, BackwardRule again,
                                           std::source_location);
// The same values, recomputed from here on and not before `after`.
std::vector<Array> computed_after(const std::vector<Array>& values, std::span<const Array> after,
                                  std::source_location);
std::vector<Array> checked_rule_result(std::vector<Array> cotangents, std::span<const Array> arguments,
                                       std::source_location);

}  // namespace tessera::detail
