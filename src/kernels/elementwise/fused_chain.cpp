#include "kernels/elementwise/fused_chain.hpp"

#include <algorithm>

namespace tessera::kernels {
namespace {

class ChainBuilder {
 public:
  ChainBuilder(const FusedProgram& program, const std::vector<bool>& one_element,
               const std::vector<int>& prefetched, int first, int last)
      : program_(program), one_element_(one_element), inputs_(static_cast<int>(program.inputs.size())) {
    chain_.first = first;
    chain_.last = last;
    chain_.dtype = program.steps[first].out;
    for (int i = 0; i < inputs_; ++i) {
      const int step = prefetched[i];
      if (step >= first && step < last) chain_.prefetched.push_back(i);
    }
  }

  FusedChain build() {
    for (const int i : chain_.prefetched) emit(StripOp::prefetch, i);
    for (int s = chain_.first; s < chain_.last; ++s) {
      const auto& step = program_.steps[s];
      const StripOp op = strip_op_of(step.fn, step.out);
      const int a = step.in[0], b = step.in[1];
      if (is_unary(op)) {
        bring(a);
        emit(op, -1);
      } else if (b == accumulator_ && a != b) {
        emit(op, a, true);
      } else {
        bring(a);
        emit(op, b);
      }
      accumulator_ = inputs_ + s;
      if (is_read_elsewhere(s)) emit(StripOp::store, accumulator_);
    }
    emit(StripOp::end, -1);
    return std::move(chain_);
  }

 private:
  void bring(int r) {
    if (r != accumulator_) emit(StripOp::load, r);
  }
  void emit(StripOp op, int r, bool reversed = false) {
    const bool scalar = r >= 0 && r < inputs_ && one_element_[r];
    chain_.code.push_back(
        {strip_function(chain_.dtype, op, scalar ? StripOperand::scalar : StripOperand::memory, reversed),
         nullptr});
    chain_.registers.push_back(r);
  }
  // Whether the result of step s is needed in memory: by anything but one operand of the chain's next step.
  bool is_read_elsewhere(int s) const {
    const int r = inputs_ + s;
    if (std::find(program_.outputs.begin(), program_.outputs.end(), r) != program_.outputs.end()) return true;
    for (int later = s + 1; later < static_cast<int>(program_.steps.size()); ++later) {
      const auto& step = program_.steps[later];
      const auto uses = std::count(step.in, step.in + step.n_in, r);
      if (uses > (later == s + 1 && later < chain_.last ? 1 : 0)) return true;
    }
    return false;
  }

  const FusedProgram& program_;
  const std::vector<bool>& one_element_;
  int inputs_, accumulator_ = -1;
  FusedChain chain_;
};

}  // namespace

std::vector<FusedChain> find_chains(const FusedProgram& program, const std::vector<bool>& one_element,
                                    const std::vector<int>& prefetched) {
  std::vector<FusedChain> chains;
  const auto steps = static_cast<int>(program.steps.size());
  const auto dtype_if_known = [&](int s) {
    const auto& step = program.steps[s];
    return strip_op_of(step.fn, step.out) != StripOp::none ? step.out : bool_;
  };
  for (int first = 0; first < steps;) {
    const Dtype dtype = dtype_if_known(first);
    int last = first + 1;
    while (last < steps && dtype_if_known(last) == dtype) ++last;
    if (dtype != bool_ && last - first > 1)
      chains.push_back(ChainBuilder(program, one_element, prefetched, first, last).build());
    first = last;
  }
  return chains;
}

}  // namespace tessera::kernels
