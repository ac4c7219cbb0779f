// Steps without communication: kernels, fused chains, aliases.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include <tessera/error.hpp>

#include "graph/elementwise_row.hpp"
#include "kernels/elementwise/fused.hpp"
#include "kernels/reduce/reduce.hpp"
#include "run/bound_chain.hpp"
#include "run/steps.hpp"
#include "run/viewed_value.hpp"

namespace tessera {
namespace {

void allocate(Frame& frame, int v, const LocalValue& local) {
  frame.slots[v] = Buffer::allocate(local.bytes);
}

class AliasStep final : public Step {
 public:
  AliasStep(int from, int to, bool holds) : from_(from), to_(to), holds_(holds) {}
  void run(Frame& frame) override {
    if (holds_) frame.slots[to_] = frame.slots[from_];
  }

 private:
  int from_, to_;
  bool holds_;
};

class KernelStep final : public Step {
 public:
  KernelStep(const BindContext& context, const Instruction& i, const KernelCall& call)
      : op_(i.op),
        kernel_(kernel_of(*i.op)),
        params_(call.params),
        inputs_(i.inputs),
        outputs_(i.outputs),
        called_{i.call != nullptr ? i.call : i.op->name.c_str(), i.where} {
    for (const int v : inputs_) in_.push_back(context.local(v).tile);
    for (const int v : outputs_) out_.push_back(context.local(v).tile), locals_.push_back(context.local(v));
    if (call.epilogue) epilogue_.emplace(context, i, *call.epilogue);
    holds_ = std::any_of(locals_.begin(), locals_.end(), [](const LocalValue& local) { return local.holds; });
  }
  void run(Frame& frame) override {
    if (!holds_) return;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (i > 0 || !reuse_first_input(frame)) allocate(frame, outputs_[i], locals_[i]);
      out_[i].data = frame.slots[outputs_[i]].data();
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) in_[i].data = frame.slots[inputs_[i]].data();
    try {
      const LastPass* const pass = epilogue_ ? epilogue_->begin(frame, out_[0].data) : nullptr;
      kernel_({*op_, *params_, in_, out_, pass});
      if (epilogue_) epilogue_->finish();
    } catch (const Error& error) {
      if (!op_->may_fail) throw;
      if (frame.failure.empty()) {
        frame.failure = call_text(called_) + ": " + error.what();
        frame.failure_kind =
            dynamic_cast<const LinAlgError*>(&error) != nullptr ? FailedValue::lin_alg : FailedValue::other;
      }
      for (std::size_t i = 0; i < outputs_.size(); ++i) std::memset(out_[i].data, 0xff, locals_[i].bytes);
    }
  }

 private:
  bool reuse_first_input(Frame& frame) const {
    if (!op_->works_in_place || in_[0].dtype != out_[0].dtype || in_[0].box != out_[0].box) return false;
    auto& slot = frame.slots[inputs_[0]];
    if (!slot.is_unique() || std::count(inputs_.begin(), inputs_.end(), inputs_[0]) != 1 ||
        std::find(frees.begin(), frees.end(), inputs_[0]) == frees.end())
      return false;
    frame.slots[outputs_[0]] = slot;
    return true;
  }

  const OpDef* op_;
  KernelFunction kernel_;
  ParamsPtr params_;
  std::vector<int> inputs_, outputs_;
  UserCall called_;
  std::vector<Tile> in_, out_;
  std::vector<LocalValue> locals_;
  bool holds_ = false;
  std::optional<BoundEpilogue> epilogue_;
};

class FusedStep final : public Step {
 public:
  FusedStep(const BindContext& context, const Instruction& i, const FusedChain& chain)
      : inputs_(i.inputs),
        output_(i.outputs[0]),
        local_(context.local(output_)),
        reduction_(chain.reduction) {
    const Tile& chain_tile = (reduction_ ? context.local(reduction_->value) : local_).tile;
    shape_ = chain_tile.shape();
    if (reduction_ && reduction_->tree && shape_.elements() > 0)
      first_of_line_ = chain_tile.box[reduction_->dims[0]].start;
    inputs_.resize(inputs_.size() - chain.sources);
    std::vector<Dtype> operands;
    for (const int v : inputs_) operands.push_back(add_input(context.local(v).tile));
    program_ = bound_program(chain, operands);
    add_views(context, chain);
  }

  void run(Frame& frame) override {
    if (!local_.holds) return;
    auto& result = frame.slots[output_];
    for (std::size_t i = 0; i < inputs_.size() && !result; ++i) {
      auto& slot = frame.slots[inputs_[i]];
      // Reuses the memory of a dead operand for the result.
      if (reusable_[i] && slot.is_unique() &&
          std::find(frees.begin(), frees.end(), inputs_[i]) != frees.end())
        result = slot;
    }
    if (!result) allocate(frame, output_, local_);
    operands_.clear();
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      operands_.push_back({frame.slots[inputs_[i]].data(), strides_[i]});
    for (auto& view : views_) operands_[view.operand] = {.parts = view.value.parts(frame)};
    std::byte* out = result.data();
    if (!reduction_) return kernels::run_fused(program_, shape_, operands_, std::span(&out, 1));
    if (shape_.elements() == 0)
      return kernels::fill_identity(reduction_->kind, local_.tile.dtype, out, local_.tile.elements());
    if (reduction_->tree)
      return kernels::run_fused_tree(
          program_, shape_, operands_,
          {reduction_->kind, reduction_->dims[0], first_of_line_, *reduction_->tree}, out);
    kernels::run_fused_reduce(program_, shape_, operands_, reduction_->kind, reduction_->dims, out);
  }

 private:
  Dtype add_input(const Tile& tile) {
    // A dim of size 1 in the operand is broadcast, whatever the extent of this rank's block of the result.
    strides_.push_back(operand_strides(tile.shape(), shape_));
    reusable_.push_back(!reduction_ && tile.shape() == shape_ &&
                        itemsize(tile.dtype) == itemsize(local_.tile.dtype));
    return tile.dtype;
  }

  // A result may not reuse memory that a view reads, since a view reads other elements than are being
  // written.
  void add_views(const BindContext& context, const FusedChain& chain) {
    std::map<int, ViewedValue> views;
    for (const auto& view : chain.views) {
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i] == view.value || std::count(view.sources.begin(), view.sources.end(), inputs_[i]) > 0)
          reusable_[i] = false;
      views.emplace(view.value, ViewedValue(context, view, views));
    }
    for (std::size_t i = 0; i < inputs_.size() && shape_.elements() > 0; ++i)
      if (const auto view = views.find(inputs_[i]); view != views.end()) views_.push_back({i, view->second});
  }

  std::vector<int> inputs_;
  int output_;
  LocalValue local_;
  Shape shape_;  // shape of the chain's result
  kernels::FusedProgram program_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<bool> reusable_;
  std::vector<kernels::FusedOperand> operands_;
  struct View {
    std::size_t operand;
    ViewedValue value;
  };
  std::vector<View> views_;
  std::optional<FusedChain::Reduction> reduction_;
  std::int64_t first_of_line_ = 0;  // position of this rank's block in the dim of a tree
};

}  // namespace

StepPtr bind_alias(const BindContext& context, const Instruction& i) {
  return std::make_unique<AliasStep>(i.inputs[0], i.outputs[0], context.local(i.outputs[0]).holds);
}

StepPtr bind_chain(const BindContext& context, const Instruction& i, const FusedChain& chain) {
  return std::make_unique<FusedStep>(context, i, chain);
}

StepPtr bind_kernel(const BindContext& context, const Instruction& i, const KernelCall& call) {
  if (!is_elementwise(*i.op)) return std::make_unique<KernelStep>(context, i, call);
  std::vector<int> registers(i.inputs.size());
  std::iota(registers.begin(), registers.end(), 0);
  return bind_chain(
      context, i, {{{i.op, call.params, std::move(registers), context.value(i.outputs[0]).type.dtype}}, {}});
}

}  // namespace tessera
