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
#include <variant>
#include <vector>

#include <tessera/jit/explain.hpp>

#include "base/overloaded.hpp"
#include "graph/op.hpp"
#include "mesh/remap.hpp"
#include "mesh/reshard.hpp"

namespace tessera {

// A value of the program: a global array and how it lies over the ranks. Over its partial axes each rank
// holds a term that is still to be combined.
struct ProgramValue {
  Type type;
  Sharding layout;
  MeshAxes partial_axes = {};
  ReduceKind reduce_kind = ReduceKind::sum;
  RegionPtr region = {};
  bool everywhere = false;  // every process holds all of it, whatever the layout says: constants and other
                            // uncommitted arrays
};

// ---- What an instruction does: one of these ----

struct Epilogue;

// One op's local arithmetic: that of Instruction::op.
struct KernelCall {
  ParamsPtr params = no_params();
  std::shared_ptr<const Epilogue> epilogue = nullptr;
};

// A chain of elementwise ops in one pass. The last step is the result; what a reduction ends is not stored.
// Of the instruction's inputs the first are the operands, and the last `sources` what only views read.
struct FusedChain {
  struct Step {
    const OpDef* op;
    ParamsPtr params;
    std::vector<int> in;  // registers: operands first, then steps
    Dtype out;
  };
  struct Reduction {
    int value;  // the chain's result
    std::vector<int> dims;
    ReduceKind kind;
  };
  // An operand, or a view's source, that a RemapMove with `leaves_own` makes: read from its sources where
  // they are on this rank, and from what it received.
  struct View {
    int value;
    std::shared_ptr<const Remap> map;
    std::vector<std::byte> fill;
    std::vector<int> sources;  // values
  };
  std::vector<Step> steps = {};
  std::optional<Reduction> reduction = {};
  std::vector<View> views = {};  // after those that they read
  std::size_t sources = 0;
};

// A chain that works on parts of a kernel's result while they are in the cache, and leaves its own in
// their place: of the chain's operands one is the kernel's result. The instruction's inputs are the
// kernel's own and the chain's other operands.
struct Epilogue {
  FusedChain chain;
  std::size_t operand;  // of the chain: the kernel's result
  std::size_t inputs;   // of the kernel
};

// The same bytes under another type or layout.
struct Bitcast {};

// One step of a reshard.
struct Move {
  ReshardStep step;
};

// Terms combined over `axes`; several small values travel as one message.
struct AllReduce {
  MeshAxes axes;
  ReduceKind kind;
};
// The same, of which each rank keeps its block of `dim`.
struct ReduceScatter {
  MeshAxes axes;
  ReduceKind kind;
  int dim;
};

// Blocks of several sources by an affine index map: slices, rolls, pads, concatenations.
struct RemapMove {
  std::shared_ptr<const Remap> map;
  std::vector<std::byte> fill = {};  // the element where no piece covers the result; zeros when empty
  bool leaves_own = false;  // the chain that reads the result takes what this rank has from the sources
};

// A kernel that communicates, and what it moves.
struct TalkCall {
  ParamsPtr params;
  std::vector<TalkCost> costs;
  std::int64_t temporary_bytes = 0;
  std::shared_ptr<const Epilogue> epilogue = nullptr;
};

// A branch or a loop: programs of its own.
struct Control;
struct ControlFlow {
  std::shared_ptr<const Control> inside;
};

struct Instruction {
  std::variant<KernelCall, FusedChain, Bitcast, Move, AllReduce, ReduceScatter, RemapMove, TalkCall,
               ControlFlow>
      what = {};
  const OpDef* op = nullptr;  // the op that this serves; nullptr: the program's results
  std::source_location where = {};
  const char* call = nullptr;                  // what the user called there; the op may be a part of it
  std::vector<int> inputs = {}, outputs = {};  // value numbers
  std::int64_t bytes = 0;                      // the busiest rank receives from others

  // instruction.as<Move>() is nullptr for other kinds.
  template <class Kind> const Kind* as() const { return std::get_if<Kind>(&what); }
  template <class Kind> Kind* as() { return std::get_if<Kind>(&what); }
  template <class Kind> bool is() const { return std::holds_alternative<Kind>(what); }
  const Epilogue* epilogue() const;  // nullptr: none
  const Control* control() const {
    const auto* flow = as<ControlFlow>();
    return flow == nullptr ? nullptr : flow->inside.get();
  }
  void set_control(Control);
};

struct Program {
  std::vector<ProgramValue> values;
  std::vector<Instruction> instructions;
  std::vector<int> inputs;  // values that the caller binds
  std::vector<int> outputs;
  std::vector<PlannedChoice> choices = {};  // that were made on the way, for explain
};

// Parts that both loops have: carried values, and how the body computes its results, for finding loops that
// compute the same (compile/loops.cpp). An expression reads the parts' operands (numbers from 0) and the
// expressions before it.
struct Loop {
  struct Expression {
    const OpDef* op;
    ParamsPtr params;
    int output;  // of the op
    std::vector<int> reads;
  };
  int carried = 0;                           // values
  std::vector<Expression> expressions = {};  // empty with `results`: not known
  std::vector<int> results = {};             // operand or expression numbers
};

// The parts of a branch or a loop. They read their operands in the order of the instruction's inputs:
//
//   Branch        predicate, operands...     -> results
//     parts: where it is true, where it is false (operands -> results)
//   CountedLoop   carried, stacks, captured  -> carried, stacks
//     part: (carried, entries, captured) -> (carried, entries)
//   UntilLoop     carried, captured          -> carried
//     parts: the condition (-> bool), the body (-> carried)
//
// An entry is one step's block of a stack, whose leading dim is the step. Where that dim is split, each rank
// keeps its own steps: of a stack that is made it keeps what its steps make, one that is read is walked.
struct Branch {};
// Before the first step of a block its owner sends it to the ranks along the axes, which keep it until the
// last one.
struct Walk {
  TalkCost broadcast = {};  // of all blocks; no axes: the stack is whole
  std::int64_t block_bytes = 0;
};
struct CountedLoop : Loop {
  std::int64_t length = 1;  // steps
  int stacks = 0;           // that are read
  bool reverse = false;     // from the last entry to the first
  // Carried values that begin with zeros instead of their operands; empty: none.
  std::vector<bool> from_zero = {};
  std::vector<Walk> walks = {};  // per stack that is read
};
struct UntilLoop : Loop {};

struct Control {
  std::variant<Branch, CountedLoop, UntilLoop> kind;
  std::vector<Program> parts;
  std::string call = {};  // what the user wrote: "fori_loop"; empty when that is the op's name

  template <class Kind> const Kind* as() const { return std::get_if<Kind>(&kind); }
  template <class Kind> Kind* as() { return std::get_if<Kind>(&kind); }
  const Loop* loop() const;  // nullptr: a branch
  Loop* loop();
  std::int64_t steps() const;  // of a counted loop; 1 otherwise: as much as is known
};

// "f32[8,4]": types in the texts of graphs and programs, which are long enough.
std::string short_text(const Type&);
// Bytes of a rank's first, largest block.
std::int64_t block_bytes(const ProgramValue&);
// A view on what this rank has: the instruction's result takes no memory.
bool is_stored(const Instruction&);
// The same blocks under the same axes.
bool same_layout(const Sharding&, const Sharding&, int ndim);
// The mesh to which an instruction's axes belong.
Mesh mesh_of(const Program&, const Instruction&);
// "x,y"; "" for no axes.
std::string axes_text(const Mesh&, const MeshAxes&);
// "add+multiply+sum"
std::string chain_text(const FusedChain&);

// "all-gather", ... for an instruction that communicates; "" for one that does not.
std::string collective_kind(const Instruction&);
// Kinds and bytes of everything that an instruction moves (a talk kernel may use several collectives); of a
// loop the blocks of the stacks that it walks, without what its body moves.
std::vector<TalkCost> traffic_of(const Instruction&);
// One line per instruction: local shapes, op, collective, axes, bytes per rank, source line.
std::string program_text(const Program&);
// InternalError unless every value is defined once before its use, layouts fit shapes and steps join.
void verify(const Program&);

}  // namespace tessera
