// Binding of an instruction to a rank, and the resulting kinds of steps.
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

// One function per kind of instruction; a kernel of the fuser's table runs as a chain of one.
StepPtr bind_kernel(const BindContext&, const Instruction&, const KernelCall&);
StepPtr bind_chain(const BindContext&, const Instruction&, const FusedChain&);
StepPtr bind_alias(const BindContext&, const Instruction&);
StepPtr bind_reshard(const BindContext&, const Instruction&);
StepPtr bind_remap(const BindContext&, const Instruction&, const RemapMove&);
StepPtr bind_all_gather(const BindContext&, const Instruction&, const ReshardStep&);
StepPtr bind_all_reduce(const BindContext&, const Instruction&, const AllReduce&);
StepPtr bind_reduce_scatter(const BindContext&, const Instruction&, const ReduceScatter&);
StepPtr bind_communicating_call(const BindContext&, const Instruction&, const CommunicatingCall&);
StepPtr bind_control(const BindContext&, const Instruction&, const Control&);

// Branches and loops.
class ControlStep : public Step {
 public:
  ControlStep(const BindContext&, const Control&);
  std::int64_t temporary_bytes() const override;
  std::vector<const Executable*> parts() const override;

 protected:
  bool takes_part() const;
  // The decision of all ranks. The predicate is replicated, but each rank has computed its own copy: if the
  // parts communicate, the first rank's value applies to all, since ranks with different copies (other
  // processors, other libraries) would wait for each other for ever. TESSERA_CHECK=2 compares them.
  bool verdict_of(const Buffer& mine) const;
  void decide_together(const BindContext&, const ProgramValue& predicate);  // called once, where needed
  std::vector<std::unique_ptr<Executable>> parts_;

 private:
  std::shared_ptr<const comm::Communicator> deciding_;  // nullptr: each rank for itself
  int first_ = 0;                                       // the rank that decides
};

// "matmul at train.cpp:12": shown by the watchdog.
std::string call_of(const Instruction&);  // without the collective
std::string label_of(const Instruction&);

}  // namespace tessera
