// Branches and loops: steps that run other programs.
//
//   counted loop of 3 steps, one carried value, a stack that is read, a stack that is made:
//     carried    c0 ──body──> c1 ──body──> c2 ──body──> result    passed on without a copy; c0's memory
//                                                                 is reused unless it is held elsewhere
//     read         x[0]         x[1]         x[2]                 views of the stack, or of the block that
//                                                                 its owner has broadcast
//     made         y[0]         y[1]         y[2]                 copied to their positions, on the ranks
//                                                                 that hold these
#include <algorithm>
#include <cstring>
#include <set>

#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/mpi/idle_groups.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "run/steps.hpp"

namespace tessera {
namespace {

Buffer& slot_of(Frame& frame, int v) { return frame.slots[v]; }

// A part of another buffer, which it keeps alive.
Buffer view_of(const Buffer& whole, std::size_t offset, std::size_t bytes) {
  return Buffer::borrow(whole.data() + offset, bytes, [whole] {});
}

// The value passed to a part: moved at its last use, so that the part may overwrite it.
Buffer taken(Frame& frame, const std::vector<int>& inputs, int v, const std::vector<int>& frees) {
  const bool is_last_use = std::count(inputs.begin(), inputs.end(), v) == 1 &&
                           std::find(frees.begin(), frees.end(), v) != frees.end();
  return is_last_use ? std::move(slot_of(frame, v)) : slot_of(frame, v);
}

// Whether ranks wait for each other in the program.
bool communicates(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(), [](const Instruction& i) {
    const auto* control = i.control();
    if (i.is<CommunicatingCall>() || !traffic_of(i).empty()) return true;
    return control != nullptr && std::any_of(control->parts.begin(), control->parts.end(), communicates);
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
  // The initial carried values; moved from the frame if this is their last use.
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
  std::vector<LocalValue> locals_;  // locals of the carried values
};

// The rows of a stack that a rank holds, as bytes in its memory.
struct Rows {
  Range steps;
  std::size_t entry_bytes = 0;

  explicit Rows(const LocalValue& stack) {
    if (!stack.holds) return;
    steps = stack.tile.box[0];
    if (steps.size() > 0) entry_bytes = static_cast<std::size_t>(stack.bytes / steps.size());
  }
  bool has(std::int64_t step) const { return step >= steps.start && step < steps.stop; }
  std::size_t offset(std::int64_t step) const {
    return static_cast<std::size_t>(step - steps.start) * entry_bytes;
  }
};

// A stack that a loop reads step by step.
class StackReader {
 public:
  StackReader(const BindContext& context, const Instruction& i, int v, const Walk& walk)
      : mine_(context.local(v)), held_(mine_) {
    const auto& value = context.value(v);
    if (walk.broadcast.axes.empty() || !context.local(v).holds) return;
    label_ = "broadcast for " + call_of(i);
    auto ids = group_along(value.layout.mesh(), walk.broadcast.axes, context.me);
    const auto rows_of = [&](int id) { return value.layout.local_box(value.type.shape, id)[0]; };
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int a, int b) { return rows_of(a).start < rows_of(b).start; });
    for (const int id : ids) blocks_.push_back(rows_of(id));
    mine_.entry_bytes = held_.entry_bytes = entry_bytes_of(context.local(v));
    held_.steps = {};
    if (mine_.entry_bytes > 0) ranks_ = comm::hold_group(ids);
  }

  // The entry of a step, from this rank's part of the stack or from the block that was broadcast last.
  Buffer entry(std::int64_t step, const Buffer& mine) {
    if (ranks_ != nullptr && !held_.has(step)) receive_block_of(step, mine);
    const Buffer& block = ranks_ == nullptr ? mine : block_;
    return block ? view_of(block, held_.offset(step), held_.entry_bytes) : Buffer();
  }
  void forget_block() {
    if (ranks_ == nullptr) return;
    block_.reset();
    held_.steps = {};
  }

 private:
  // Also valid on a rank without rows.
  static std::size_t entry_bytes_of(const LocalValue& stack) {
    std::size_t bytes = itemsize(stack.tile.dtype);
    for (std::size_t d = 1; d < stack.tile.box.size(); ++d)
      bytes *= static_cast<std::size_t>(stack.tile.box[d].size());
    return bytes;
  }

  void receive_block_of(std::int64_t step, const Buffer& mine) {
    const auto owner = std::find_if(blocks_.begin(), blocks_.end(), [&](const Range& rows) {
      return step >= rows.start && step < rows.stop;
    });
    held_.steps = *owner;
    const auto bytes = static_cast<std::size_t>(owner->size()) * held_.entry_bytes;
    const bool is_mine = mine_.has(step);
    block_.reset();
    block_ = is_mine ? mine : Buffer::allocate(bytes);
    const comm::Purpose purpose(label_);
    comm::broadcast(*ranks_, block_.data(), static_cast<std::int64_t>(bytes),
                    static_cast<int>(owner - blocks_.begin()));
    comm::count("broadcast", is_mine ? 0 : static_cast<std::int64_t>(bytes));
  }

  Rows mine_, held_;                                 // held: the steps whose entries are at hand
  std::vector<Range> blocks_;                        // steps held by each of the ranks that split the stack
  std::shared_ptr<const comm::Communicator> ranks_;  // the ranks that split the stack; nullptr: it is unsplit
  std::string label_;
  Buffer block_;
};

class CountedStep final : public LoopStep {
 public:
  CountedStep(const BindContext& context, const Instruction& i, const Control& control,
              const CountedLoop& loop)
      : LoopStep(context, i, control), length_(loop.length), reverse_(loop.reverse) {
    if (!loop.from_zero.empty()) from_zero_ = loop.from_zero;
    for (std::size_t k = 0; k < loop.walks.size(); ++k) {
      read_.emplace_back(context, i, inputs_[carried_ + k], loop.walks[k]);
      if (context.local(inputs_[carried_ + k]).holds) block_bytes_ += loop.walks[k].block_bytes;
    }
    for (std::size_t k = carried_; k < outputs_.size(); ++k) {
      made_.push_back(context.local(outputs_[k]));
      made_rows_.emplace_back(made_.back());
    }
  }
  std::int64_t temporary_bytes() const override { return ControlStep::temporary_bytes() + block_bytes_; }

  void run(Frame& frame) override {
    if (!takes_part()) return;
    for (auto& stack : read_) stack.forget_block();  // left by a run that ended in an exception
    auto carried = first_carried(frame);
    std::vector<Buffer> stacks;
    for (const auto& local : made_) stacks.push_back(local.holds ? Buffer::allocate(local.bytes) : Buffer());
    for (std::int64_t n = 0; n < length_; ++n) {
      const auto step = reverse_ ? length_ - 1 - n : n;
      auto results = parts_[0]->run_inside(operands_of(step, std::move(carried), frame), frame);
      for (std::size_t y = 0; y < made_.size(); ++y) {
        const Rows& rows = made_rows_[y];
        if (rows.has(step) && rows.entry_bytes > 0)
          std::memcpy(stacks[y].data() + rows.offset(step), results[carried_ + y].data(), rows.entry_bytes);
      }
      results.resize(carried_);
      carried = std::move(results);
      for (auto& value : carried) keep_from_views(value);
    }
    views_.clear();
    for (auto& stack : read_) stack.forget_block();
    for (std::size_t k = 0; k < carried_; ++k) slot_of(frame, outputs_[k]) = std::move(carried[k]);
    for (std::size_t y = 0; y < made_.size(); ++y)
      slot_of(frame, outputs_[carried_ + y]) = std::move(stacks[y]);
  }

 private:
  std::vector<Buffer> operands_of(std::int64_t step, std::vector<Buffer> carried, Frame& frame) {
    auto operands = std::move(carried);
    operands.reserve(inputs_.size());
    views_.clear();
    for (std::size_t x = 0; x < read_.size(); ++x) {
      views_.push_back(read_[x].entry(step, slot_of(frame, inputs_[carried_ + x])));
      operands.push_back(views_.back());  // two handles prevent the body from overwriting it
    }
    for (std::size_t k = carried_ + read_.size(); k < inputs_.size(); ++k)
      operands.push_back(slot_of(frame, inputs_[k]));
    return operands;
  }

  // Copies a carried value that is a view of an entry, since the body may overwrite carried values.
  void keep_from_views(Buffer& value) const {
    if (std::none_of(views_.begin(), views_.end(),
                     [&](const Buffer& view) { return view && view.data() == value.data(); }))
      return;
    const Buffer entry = value;
    value = Buffer::allocate(entry.bytes());
    if (entry.bytes() > 0) std::memcpy(value.data(), entry.data(), entry.bytes());
  }

  std::int64_t length_;
  bool reverse_;
  std::vector<StackReader> read_;
  std::int64_t block_bytes_ = 0;  // bytes of the current blocks of split stacks
  std::vector<LocalValue> made_;
  std::vector<Rows> made_rows_;
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
  // Ranks of a mapped function may decide differently if their values may differ.
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
  deciding_ = comm::hold_group(ids);
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
