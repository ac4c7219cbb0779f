// How one instruction is bound to a rank, and the kinds of steps that come of it.
#pragma once
#include "comm/mpi/communicator.hpp"
#include "mesh/axes.hpp"
#include "run/executable.hpp"

namespace tessera {

struct BindContext {
  const Program& program;
  const std::vector<LocalValue>& values;
  int me;
  const LocalValue& local(int v) const { return values[v]; }
  const ProgramValue& value(int v) const { return program.values[v]; }
};
using StepPtr = std::unique_ptr<Step>;
StepPtr bind(const BindContext&, const Instruction&);

// One for each kind of instruction; a kernel of the fuser's table runs as a chain of one.
StepPtr bind_kernel(const BindContext&, const Instruction&, const KernelCall&);
StepPtr bind_chain(const BindContext&, const Instruction&, const FusedChain&);
StepPtr bind_alias(const BindContext&, const Instruction&);
StepPtr bind_reshard(const BindContext&, const Instruction&);
StepPtr bind_remap(const BindContext&, const Instruction&, const RemapMove&);
StepPtr bind_all_gather(const BindContext&, const Instruction&, const ReshardStep&);
StepPtr bind_all_reduce(const BindContext&, const Instruction&, const AllReduce&);
StepPtr bind_reduce_scatter(const BindContext&, const Instruction&, const ReduceScatter&);
StepPtr bind_talk(const BindContext&, const Instruction&, const TalkCall&);
StepPtr bind_control(const BindContext&, const Instruction&, const Control&);

// Branches and loops.
class ControlStep : public Step {
 public:
  ControlStep(const BindContext&, const Control&);
  std::int64_t temporary_bytes() const override;
  std::vector<const Executable*> parts() const override;

 protected:
  bool takes_part() const;
  // Which way all ranks go. The value is replicated, but each rank has computed its own copy: where the parts
  // communicate, that of the first rank holds for all, or ranks whose copies differ (other processors, other
  // libraries) would wait for each other for ever. TESSERA_CHECK=2 compares them.
  bool verdict_of(const Buffer& mine) const;
  void decide_together(const BindContext&, const ProgramValue& predicate);  // called once, where that is so
  std::vector<std::unique_ptr<Executable>> parts_;

 private:
  const comm::Communicator* deciding_ = nullptr;  // nullptr: each rank for itself
  int first_ = 0;                                 // the rank that decides
};

// "matmul at train.cpp:12": what the watchdog shows.
std::string call_of(const Instruction&);  // without the collective
std::string label_of(const Instruction&);

}  // namespace tessera
