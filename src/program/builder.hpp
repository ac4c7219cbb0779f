// ProgramBuilder writes rank programs, for the partitioner and for the lower rules of ops.
#pragma once
#include <map>
#include <span>
#include <utility>

#include "program/program.hpp"

namespace tessera {

class ProgramBuilder {
 public:
  int add_input(Type, Sharding layout, RegionPtr, bool everywhere = false);
  const ProgramValue& value(int v) const { return program_.values[v]; }

  // Sets the op and the call of the following instructions, for program texts; and, for a lower rule, the
  // layouts chosen for its node.
  void serve(const OpDef* op, const UserCall& called, const Placement* placement = nullptr) {
    op_ = op, called_ = called, placement_ = placement;
  }
  const Placement& placement() const { return *placement_; }

  // The value in another layout, moved from the layout at hand that costs least. Repeated requests return the
  // same value, and a reshard of a reshard starts from the first layout if that is better. Partial terms are
  // combined on the way, directly into a block if possible.
  int reshard(int v, const Sharding& to);
  // Combines partial terms; the layout stays the same.
  int combine(int v);

  int alias(int v, Type, Sharding layout);
  std::vector<int> kernel(const OpDef&, ParamsPtr, std::vector<int> inputs, std::vector<Type> out,
                          std::vector<Sharding> layouts);
  std::vector<int> communicate(const OpDef&, ParamsPtr, std::vector<int> inputs, std::vector<Type> out,
                               std::vector<Sharding> layouts, std::vector<CommunicationCost>);
  std::vector<int> control(Control, std::vector<int> inputs, std::vector<Type> out,
                           std::vector<Sharding> layouts);
  int remap(Remap, std::vector<int> inputs, Type out, Sharding layout, std::span<const std::byte> fill = {});
  void set_partial(int v, MeshAxes axes, ReduceKind);
  void set_region(int v, RegionPtr region) { program_.values[v].region = std::move(region); }

  Program& program() { return program_; }

 private:
  using What = decltype(Instruction::what);
  int add_value(Type, Sharding, RegionPtr);
  // Adds result values that belong to the same region (control-flow body) as the inputs.
  std::vector<int> add_results(const std::vector<int>& inputs, const std::vector<Type>&,
                               const std::vector<Sharding>& layouts);
  int reduce_scatter(int v, const Sharding& to);
  int move_step(int v, const ReshardStep&);
  Instruction& emit(What, std::vector<int> inputs, std::vector<int> outputs);
  // Emits a sum under the name of the op that left the partial terms.
  int emit_sum(What, int partial, const Sharding& layout, std::int64_t bytes);

  Program program_;
  const OpDef* op_ = nullptr;
  UserCall called_;
  const Placement* placement_ = nullptr;
  int move_from(int v, const Sharding& to);
  void join_family(int v, int member);
  // Values that are one array in several layouts, identified by the first of them.
  std::vector<int> family_of_;
  std::vector<std::vector<int>> family_;
  // The op that left a value's partial terms: the sum is attributed to it, not to the op that needs the sum.
  std::map<int, std::pair<const OpDef*, UserCall>> left_open_by_;
};

}  // namespace tessera
