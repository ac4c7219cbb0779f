// The rank program: what every rank of a mesh runs, as data. The same on all ranks; a rank's own boxes
// follow from the layouts.
//
//   Graph --partition--> Program --fuse--> Program --schedule--> Program --bind (run/)--> calls on this rank
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "mesh/remap.hpp"
#include "mesh/reshard.hpp"

namespace tessera {

// A value of the program: a global array and how it lies over the ranks. Over its partial axes each rank
// holds a term that is still to be combined.
struct ProgramValue {
  Type type;
  Sharding layout;
  std::vector<int> partial_axes;
  std::string reduce_kind = "sum";
  RegionPtr region;
  bool everywhere = false;  // every process holds all of it, whatever the layout says: constants and other
                            // uncommitted arrays
};

enum class InstructionKind {
  kernel,          // one op's local arithmetic
  fused,           // a chain of elementwise ops in one pass
  alias,           // the same bytes under another type or layout
  move,            // one reshard step
  all_reduce,      // combine over `axes`
  reduce_scatter,  // combine over `axes`, keep a block of dim
  remap,           // blocks of several sources by an affine index map: slices, rolls, pads, concatenations
  talk,            // a kernel that communicates
  control,         // a branch or a loop: programs of its own
};

struct FusedStepPlan {
  const OpDef* op;
  ParamsPtr params;
  std::vector<int> in;  // registers: inputs first, then steps
  Dtype out;
};

struct Control;

struct Instruction {
  InstructionKind kind;
  const OpDef* op = nullptr;  // the user's op that this serves
  ParamsPtr params = no_params();
  std::vector<int> inputs = {}, outputs = {};  // value numbers
  std::source_location where = {};
  std::vector<int> axes = {};  // collectives: mesh axes over which ranks talk
  int dim = -1;                // reduce_scatter
  std::string reduce_kind = {};
  std::optional<ReshardStep> step = {};  // move
  std::shared_ptr<const Remap> remap = {};
  std::vector<std::byte> fill = {};  // remap: the element where no piece covers the result; zeros when empty
  int reduced_value =
      -1;  // fused: the chain's result, of which only the reduction over reduced_dims by reduce_kind is kept
  std::vector<int> reduced_dims = {};
  std::vector<FusedStepPlan> chain = {};  // fused: the last step is the output
  std::int64_t bytes = 0;                 // the busiest rank receives from others
  std::vector<TalkCost> costs = {};       // talk
  std::shared_ptr<const Control> control = {};
};

struct Program {
  std::vector<ProgramValue> values;
  std::vector<Instruction> instructions;
  std::vector<int> inputs;  // values that the caller binds
  std::vector<int> outputs;
};

// The inside of a branch or a loop. Parts read their operands in the order of the instruction's inputs:
//
//   branch      predicate, operands...         -> results            parts: where it is true, where it is
//     false (operands -> results)
//   counted     carried, stacks, captured      -> carried, stacks    part: (carried, entries, captured) ->
//     (carried, entries)
//   until       carried, captured              -> carried            parts: the condition -> bool; the body
//     -> carried
//
// An entry is one step's block of a stack: the stack's leading dim is the step, whole on every rank.
enum class ControlKind { branch, counted, until };
struct Control {
  ControlKind kind;
  std::vector<Program> parts;
  std::int64_t length = 1;  // counted: steps
  int carried = 0;          // values
  int stacks = 0;           // counted: stacks that are read
  bool reverse = false;     // counted: from the last entry to the first
  std::vector<bool> from_zero =
      {};  // counted: carried values that begin with zeros instead of their operands; empty: none
  // Of loops: how the parts compute their results, for finding loops that compute the same
  // (compile/loops.cpp). An expression reads the parts' operands (numbers from 0) and the expressions before
  // it.
  struct Expression {
    std::uint64_t op = 0;
    std::vector<int> reads = {};
  };
  std::vector<Expression> expressions = {};
  std::vector<int> results = {};  // operand or expression numbers
  std::string call = {};          // what the user wrote: "fori_loop"; empty when that is the op's name
};

// "all-gather", ... for an instruction that communicates; "" for one that does not.
std::string collective_kind(const Instruction&);
// Kinds and bytes of everything that an instruction moves (a talk kernel may use several collectives).
std::vector<TalkCost> traffic_of(const Instruction&);
// One line per instruction: local shapes, op, collective, axes, bytes per rank, source line.
std::string program_text(const Program&);
// InternalError unless every value is defined once before its use, layouts fit shapes and steps join.
void verify(const Program&);

}  // namespace tessera
