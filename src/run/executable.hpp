// A program bound to this rank: boxes, messages and communicators are computed once, and the program then
// runs any number of times.
#pragma once
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tessera/detail/inline_vector.hpp>
#include "graph/failed_value.hpp"
#include "program/program.hpp"
#include "types/buffer.hpp"

namespace tessera {

// The values of one run, by value number. A slot is cleared after its last use.
struct Frame {
  detail::InlineVector<Buffer, 8> slots;  // as many as most small programs have values
  std::string failure;      // message of a kernel that failed (a singular matrix): agreed when the run ends
  std::string nan_failure;  // the first NaN found
  // Failed steps of the program that owns this frame, ascending if they ran in order.
  std::vector<int> failed_steps;
  FailedValue::Kind failure_kind = FailedValue::lin_alg;
};

// The result of a run. Failures are the same on all ranks.
struct RunResult {
  std::vector<Buffer> outputs;  // one per program output; empty if this rank has no block
  FailurePtr failure;           // nullptr: none
  std::vector<bool> failed;     // per output, if something failed: whether it depends on the failure
};

// A value as seen by this rank.
struct LocalValue {
  Tile tile;           // without memory
  bool holds = false;  // this rank is one of the value's devices
  std::int64_t bytes = 0;
};

class Executable;

// One instruction on this rank. A collective may start() and continue while later steps compute; finish()
// waits for it.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Frame& frame) {
    start(frame);
    finish(frame);
  }
  virtual void start(Frame&) {}
  virtual void finish(Frame&) {}
  virtual void move_on() {}  // between start and finish: lets the collective start its next round
  virtual bool is_split() const { return false; }  // start and finish are worth separating
  virtual std::int64_t temporary_bytes() const { return 0; }
  virtual std::vector<const Executable*> parts() const { return {}; }  // the programs of a branch or a loop
  std::vector<int> frees;                                              // values with their last use here
};

// Bytes of the largest instruction's results on this rank: a lower bound of peak_bytes(), known before
// binding.
std::int64_t bytes_at_least(const Program&, int me);

class Executable {
 public:
  Executable(Program, int me);
  // One buffer per program input; an empty one if this rank has no block.
  RunResult run(std::vector<Buffer> inputs);
  // The same as part of another program's run, which agrees on failures at its end.
  std::vector<Buffer> run_inside(std::vector<Buffer> inputs, Frame& outer);
  bool takes_part() const { return takes_part_; }  // this rank holds a block of some value
  bool may_fail() const { return may_fail_; }
  const std::vector<int>& devices() const { return devices_; }  // devices of all values, in increasing order
  const Program& program() const { return program_; }
  // The peak memory of this rank: live values and temporaries, without inputs.
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  RunResult failed_result(std::vector<Buffer> outputs, FailedValue, const std::vector<int>& steps) const;
  std::vector<bool> depend_on(const std::vector<bool>& failed_steps) const;
  void note_failures(std::size_t n, Frame& frame, Frame& outer, bool looks_for_nan) const;
  std::vector<Buffer> run_to_its_end(std::vector<Buffer> inputs, Frame& failures);
  void bind_values(int me);
  std::set<int> devices_of_values() const;
  void bind_steps(int me);
  void find_last_uses();
  void plan_overlap();
  void count_memory();
  std::string nans_of(const Instruction&, const Frame&) const;
  void finish_step(std::size_t n, Frame&, Frame& outer);
  void run_step(std::size_t n, Frame&, Frame& outer, std::vector<std::size_t>& under_way);

  Program program_;
  std::vector<LocalValue> values_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<bool> overlaps_;  // per step: starts here, finishes later
  // Per step: started steps whose results it uses or frees.
  std::vector<std::vector<std::size_t>> finish_before_;
  std::vector<std::size_t> finish_last_;
  std::vector<int> devices_;
  bool takes_part_ = false;
  bool may_fail_ = false;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace tessera
