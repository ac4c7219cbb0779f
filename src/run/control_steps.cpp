// Branches and loops: steps that run other programs.
//
//   counted loop of 3 steps, one carried value, a stack read, a stack made:
//     carried    c0 ──body──> c1 ──body──> c2 ──body──> result        handed on, never copied; c0's memory
//       is reused when nobody keeps it
//     read         x[0]         x[1]         x[2]                     views of the stack
//     made         y[0]         y[1]         y[2]                     copied into their places
#include <algorithm>
#include <cstring>
#include <set>

#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/waiting.hpp"
#include "run/steps.hpp"

namespace tessera {
namespace {

Buffer& slot_of(Frame& frame, int v) { return frame.slots[v]; }

// A part of another buffer, which it keeps alive.
Buffer view_of(const Buffer& whole, std::size_t offset, std::size_t bytes) {
  return Buffer::wrap(whole.data() + offset, bytes, [whole] {});
}

// The value for a part to read: given away where nobody reads it any more, so that the part may write over
// it.
Buffer taken(Frame& frame, const std::vector<int>& inputs, int v, const std::vector<int>& frees) {
  const bool is_last_use = std::count(inputs.begin(), inputs.end(), v) == 1 &&
                           std::find(frees.begin(), frees.end(), v) != frees.end();
  return is_last_use ? std::move(slot_of(frame, v)) : slot_of(frame, v);
}

// Whether ranks wait for each other in it.
bool communicates(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(), [](const Instruction& i) {
    const auto* control = i.control();
    if (control == nullptr) return i.is<TalkCall>() || !traffic_of(i).empty();
    return std::any_of(control->parts.begin(), control->parts.end(), communicates);
  });
}

bool is_true(const Buffer& verdict) { return verdict.data() != nullptr && *verdict.data() != std::byte{0}; }

class BranchStep final : public ControlStep {
 public:
  BranchStep(const BindContext& context, const Instruction& i, const Control& control)
      : ControlStep(context, control), inputs_(i.inputs), outputs_(i.outputs) {
    decide_together(context, context.value(inputs_[0]));
  }
  void run(Frame& frame) override {
    if (!takes_part()) return;
    auto& chosen = *parts_[verdict_of(slot_of(frame, inputs_[0])) ? 0 : 1];
    std::vector<Buffer> operands;
    for (std::size_t i = 1; i < inputs_.size(); ++i)
      operands.push_back(taken(frame, inputs_, inputs_[i], frees));
    auto results = chosen.run_inside(std::move(operands), frame);
    for (std::size_t i = 0; i < outputs_.size(); ++i) slot_of(frame, outputs_[i]) = std::move(results[i]);
  }

 private:
  std::vector<int> inputs_, outputs_;
};

class LoopStep : public ControlStep {
 public:
  LoopStep(const BindContext& context, const Instruction& i, const Control& control)
      : ControlStep(context, control),
        inputs_(i.inputs),
        outputs_(i.outputs),
        carried_(control.loop()->carried),
        from_zero_(carried_) {
    for (std::size_t k = 0; k < carried_; ++k) locals_.push_back(context.local(outputs_[k]));
  }

 protected:
  // The values that go from step to step. Their first ones are taken from the frame where this is their last
  // use.
  std::vector<Buffer> first_carried(Frame& frame) const {
    std::vector<Buffer> carried;
    for (std::size_t k = 0; k < carried_; ++k) {
      if (from_zero_[k]) {
        carried.push_back(locals_[k].holds ? Buffer::allocate(locals_[k].bytes) : Buffer());
        if (locals_[k].bytes > 0) std::memset(carried.back().data(), 0, locals_[k].bytes);
        continue;
      }
      carried.push_back(taken(frame, inputs_, inputs_[k], frees));
    }
    return carried;
  }
  std::vector<int> inputs_, outputs_;
  std::size_t carried_;
  std::vector<bool> from_zero_;
  std::vector<LocalValue> locals_;  // of what is carried
};

class CountedStep final : public LoopStep {
 public:
  CountedStep(const BindContext& context, const Instruction& i, const Control& control,
              const CountedLoop& loop)
      : LoopStep(context, i, control), stacks_(loop.stacks), length_(loop.length), reverse_(loop.reverse) {
    if (!loop.from_zero.empty()) from_zero_ = loop.from_zero;
    for (std::size_t k = carried_; k < carried_ + stacks_; ++k) read_.push_back(context.local(inputs_[k]));
    for (std::size_t k = carried_; k < outputs_.size(); ++k) made_.push_back(context.local(outputs_[k]));
  }

  void run(Frame& frame) override {
    if (!takes_part()) return;
    auto carried = first_carried(frame);
    std::vector<Buffer> stacks;
    for (const auto& local : made_) stacks.push_back(local.holds ? Buffer::allocate(local.bytes) : Buffer());
    for (std::int64_t n = 0; n < length_; ++n) {
      const auto step = reverse_ ? length_ - 1 - n : n;
      auto results = parts_[0]->run_inside(operands_of(step, std::move(carried), frame), frame);
      for (std::size_t y = 0; y < made_.size(); ++y) {
        const auto bytes = entry_bytes(made_[y]);
        if (bytes > 0)
          std::memcpy(stacks[y].data() + static_cast<std::size_t>(step) * bytes, results[carried_ + y].data(),
                      bytes);
      }
      results.resize(carried_);
      carried = std::move(results);
      for (auto& value : carried) keep_from_views(value);
    }
    for (std::size_t k = 0; k < carried_; ++k) slot_of(frame, outputs_[k]) = std::move(carried[k]);
    for (std::size_t y = 0; y < made_.size(); ++y)
      slot_of(frame, outputs_[carried_ + y]) = std::move(stacks[y]);
  }

 private:
  std::size_t entry_bytes(const LocalValue& stack) const {
    return static_cast<std::size_t>(stack.bytes / length_);
  }

  std::vector<Buffer> operands_of(std::int64_t step, std::vector<Buffer> carried, Frame& frame) {
    auto operands = std::move(carried);
    operands.reserve(inputs_.size());
    views_.clear();
    for (std::size_t x = 0; x < stacks_; ++x) {
      const auto& whole = slot_of(frame, inputs_[carried_ + x]);
      const auto bytes = entry_bytes(read_[x]);
      views_.push_back(whole ? view_of(whole, static_cast<std::size_t>(step) * bytes, bytes) : Buffer());
      operands.push_back(views_.back());  // two handles: nobody writes his result over it
    }
    for (std::size_t k = carried_ + stacks_; k < inputs_.size(); ++k)
      operands.push_back(slot_of(frame, inputs_[k]));
    return operands;
  }

  // A carried value that is an entry as it stands becomes a copy: the body may write over what it carries.
  void keep_from_views(Buffer& value) const {
    if (std::none_of(views_.begin(), views_.end(),
                     [&](const Buffer& view) { return view && view.data() == value.data(); }))
      return;
    const Buffer entry = value;
    value = Buffer::allocate(entry.bytes());
    if (entry.bytes() > 0) std::memcpy(value.data(), entry.data(), entry.bytes());
  }

  std::size_t stacks_;
  std::int64_t length_;
  bool reverse_;
  std::vector<LocalValue> read_, made_;
  std::vector<Buffer> views_;
};

class UntilStep final : public LoopStep {
 public:
  UntilStep(const BindContext& context, const Instruction& i, const Control& control)
      : LoopStep(context, i, control) {
    const auto& condition = parts_[0]->program();
    decide_together(context, condition.values[condition.outputs[0]]);
  }
  void run(Frame& frame) override {
    if (!takes_part()) return;
    auto carried = first_carried(frame);
    while (verdict_of(parts_[0]->run_inside(operands_of(carried, frame), frame)[0])) {
      auto operands = operands_of(carried, frame);
      carried.clear();
      carried = parts_[1]->run_inside(std::move(operands), frame);
    }
    for (std::size_t k = 0; k < carried_; ++k) slot_of(frame, outputs_[k]) = std::move(carried[k]);
  }

 private:
  std::vector<Buffer> operands_of(const std::vector<Buffer>& carried, Frame& frame) {
    auto operands = carried;
    for (std::size_t k = carried_; k < inputs_.size(); ++k) operands.push_back(slot_of(frame, inputs_[k]));
    return operands;
  }
};

}  // namespace

ControlStep::ControlStep(const BindContext& context, const Control& control) {
  for (const auto& part : control.parts) parts_.push_back(std::make_unique<Executable>(part, context.me));
}

std::int64_t ControlStep::temporary_bytes() const {
  std::int64_t most = 0;
  for (const auto& part : parts_) most = std::max(most, part->peak_bytes());
  return most;
}

std::vector<const Executable*> ControlStep::parts() const {
  std::vector<const Executable*> parts;
  for (const auto& part : parts_) parts.push_back(part.get());
  return parts;
}

void ControlStep::decide_together(const BindContext& context, const ProgramValue& predicate) {
  // Where a mapped function's ranks need not be alike, they need not decide alike either.
  if (predicate.region && !predicate.region->check_varying) return;
  if (!takes_part() || std::none_of(parts_.begin(), parts_.end(),
                                    [](const auto& part) { return communicates(part->program()); }))
    return;
  std::set<int> devices;
  for (const auto& part : parts_) devices.insert(part->devices().begin(), part->devices().end());
  if (devices.size() < 2 || !devices.contains(context.me)) return;
  const Mesh mesh = predicate.layout.mesh();
  const std::vector<int> ids(devices.begin(), devices.end());
  const auto first = std::find_if(ids.begin(), ids.end(),
                                  [&](int id) { return predicate.everywhere || mesh.position(id) >= 0; });
  if (first == ids.end()) return;
  deciding_ = &comm::group(ids);
  first_ = static_cast<int>(first - ids.begin());
}

bool ControlStep::verdict_of(const Buffer& mine) const {
  if (deciding_ == nullptr) return is_true(mine);
  const comm::Purpose purpose("the verdict of a branch or loop");
  std::uint8_t verdict = is_true(mine) ? 1 : 0;
  if (settings().check >= 2)
    comm::agree(*deciding_, verdict, [&] {
      return std::string("the condition of a branch or loop is ") + (verdict == 1 ? "true" : "false");
    });
  comm::broadcast(*deciding_, &verdict, 1, first_);
  return verdict == 1;
}

bool ControlStep::takes_part() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->takes_part(); });
}

StepPtr bind_control(const BindContext& context, const Instruction& i, const Control& control) {
  return std::visit(
      overloaded{
          [&](const Branch&) -> StepPtr { return std::make_unique<BranchStep>(context, i, control); },
          [&](const CountedLoop& loop) -> StepPtr {
            return std::make_unique<CountedStep>(context, i, control, loop);
          },
          [&](const UntilLoop&) -> StepPtr { return std::make_unique<UntilStep>(context, i, control); }},
      control.kind);
}

}  // namespace tessera
