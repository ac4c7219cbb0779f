// A program bound to this rank: boxes, messages and communicators are worked out once, then run as often as
// wanted.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mesh/groups.hpp"
#include "program/program.hpp"
#include "types/buffer.hpp"

namespace tessera {

// The values of one run, by value number. A slot is emptied after its last use.
struct Frame {
  std::vector<Buffer> slots;
  std::string failure;      // of a kernel that may fail (a singular matrix): agreed when the run ends
  std::string nan_failure;  // what the search for NaN found first
};

// What this rank knows about a value.
struct LocalValue {
  Tile tile;           // without memory
  bool holds = false;  // this rank is one of the value's devices
  std::int64_t bytes = 0;
};

// One instruction on this rank. A collective may start() and go on while later steps compute; finish() waits
// for it.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Frame& frame) {
    start(frame);
    finish(frame);
  }
  virtual void start(Frame&) {}
  virtual void finish(Frame&) {}
  virtual void move_on() {}  // between start and finish: what is under way may take its next round
  virtual bool is_split() const { return false; }  // start and finish are worth separating
  virtual std::int64_t temporary_bytes() const { return 0; }
  std::vector<int> frees;  // values whose last use this is
};

class Executable {
 public:
  Executable(Program, int me);
  // One buffer per program input and output; an empty buffer where this rank holds nothing. LinAlgError and
  // the like are raised on every rank alike.
  std::vector<Buffer> run(std::vector<Buffer> inputs);
  // The same as part of another program's run, which agrees on failures when it ends.
  std::vector<Buffer> run_inside(std::vector<Buffer> inputs, Frame& outer);
  bool takes_part() const { return takes_part_; }  // this rank holds something of some value
  bool may_fail() const { return may_fail_; }
  const std::vector<int>& participants() const { return participants_; }
  const Program& program() const { return program_; }
  std::int64_t peak_bytes() const {
    return peak_bytes_;
  }  // of this rank: live values and their temporaries, without inputs

 private:
  Program program_;
  std::vector<LocalValue> values_;
  std::vector<std::unique_ptr<Step>> steps_;
  void plan_overlap();
  std::string nans_of(const Instruction&, const Frame&) const;
  std::vector<bool> overlaps_;  // per step: started here, finished later
  std::vector<std::vector<std::size_t>>
      finish_before_;  // per step: started steps whose results it, or what it frees, touches
  std::vector<std::size_t> finish_last_;
  std::vector<int> participants_;  // devices of all values
  bool takes_part_ = false;        // this rank is one of them
  bool may_fail_ = false;
  std::int64_t peak_bytes_ = 0;
};

// ---- for the steps ----
struct BindContext {
  const Program& program;
  const std::vector<LocalValue>& values;
  int me;
  const LocalValue& local(int v) const { return values[v]; }
  const ProgramValue& value(int v) const { return program.values[v]; }
};
std::unique_ptr<Step> bind_local(const BindContext&, const Instruction&);     // kernel, fused, alias
std::unique_ptr<Step> bind_exchange(const BindContext&, const Instruction&);  // move, remap
std::unique_ptr<Step> bind_collective(const BindContext&,
                                      const Instruction&);  // all-gather, all-reduce, reduce-scatter
std::unique_ptr<Step> bind_talk(const BindContext&, const Instruction&);
// Branches and loops.
class ControlStep : public Step {
 public:
  ControlStep(const BindContext&, const Instruction&);
  std::int64_t temporary_bytes() const override;
  const std::vector<std::unique_ptr<Executable>>& parts() const { return parts_; }

 protected:
  bool takes_part() const;
  std::vector<std::unique_ptr<Executable>> parts_;
};
std::unique_ptr<ControlStep> bind_control(const BindContext&, const Instruction&);

// "matmul at train.cpp:12": what the watchdog shows.
std::string label_of(const Instruction&);

}  // namespace tessera
