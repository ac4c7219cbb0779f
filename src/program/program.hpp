// The rank program: the work of all ranks of a mesh, as data. The same on all ranks; a rank's own boxes
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

// A value of the program: a global array and its layout. Over its partial axes each rank holds a term that is
// yet to be combined.
struct ProgramValue {
  Type type;
  Sharding layout;
  MeshAxes partial_axes = {};
  ReduceKind reduce_kind = ReduceKind::sum;
  RegionPtr region = {};
  bool everywhere = false;  // every process holds all of it, whatever the layout: uncommitted arrays
};

// ---- kinds of instructions ----

struct Epilogue;

// The local arithmetic of Instruction::op.
struct KernelCall {
  ParamsPtr params = no_params();
  std::shared_ptr<const Epilogue> epilogue = nullptr;
};

// A chain of elementwise ops in one pass. The last step is the result; the operand of a final reduction is
// not stored. The instruction's inputs are the operands first, and last the `sources` values that only views
// read.
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
    std::optional<TreePart> tree = {};  // over the one dim
  };
  // An operand, or a view's source, produced by a RemapMove with `leaves_own`: elements on this rank are read
  // from the sources, all others from the received data.
  struct View {
    int value;
    std::shared_ptr<const Remap> map;
    std::vector<std::byte> fill;
    std::vector<int> sources;  // values
  };
  std::vector<Step> steps = {};
  std::optional<Reduction> reduction = {};
  std::vector<View> views = {};  // each after the views that it reads
  std::size_t sources = 0;
};

// A chain that works on parts of a kernel's result in the cache and replaces them by its own result: one of
// the chain's operands is the kernel's result. The instruction's inputs are the kernel's own and the chain's
// other operands.
struct Epilogue {
  FusedChain chain;
  std::size_t operand;  // the chain's operand that is the kernel's result
  std::size_t inputs;   // number of the kernel's inputs
};

// The same bytes under another type or layout.
struct Bitcast {};

// One step of a reshard.
struct Move {
  ReshardStep step;
};

// Combines partial terms over `axes`; several small values share one message.
struct AllReduce {
  MeshAxes axes;
  ReduceKind kind;
};
// Combines partial terms, of which each rank keeps its block of `dim`.
struct ReduceScatter {
  MeshAxes axes;
  ReduceKind kind;
  int dim;
};

// Copies blocks of several sources by an affine index map: slices, rolls, pads, concatenations.
struct RemapMove {
  std::shared_ptr<const Remap> map;
  std::vector<std::byte> fill = {};  // the element outside of all pieces; zeros if empty
  bool leaves_own = false;  // the reading chain takes elements on this rank directly from the sources
};

// A communicating kernel and its traffic.
struct CommunicatingCall {
  ParamsPtr params;
  std::vector<CommunicationCost> costs;
  std::int64_t temporary_bytes = 0;
  std::shared_ptr<const Epilogue> epilogue = nullptr;
};

// A branch or a loop, with programs of its own.
struct Control;
struct ControlFlow {
  std::shared_ptr<const Control> inside;
};

struct Instruction {
  std::variant<KernelCall, FusedChain, Bitcast, Move, AllReduce, ReduceScatter, RemapMove, CommunicatingCall,
               ControlFlow>
      what = {};
  const OpDef* op = nullptr;  // the op that this serves; nullptr: the program's results
  std::source_location where = {};
  const char* call = nullptr;                  // the user's call, of which the op may be a part
  std::vector<int> inputs = {}, outputs = {};  // value numbers
  std::int64_t bytes = 0;                      // received by the busiest rank from others

  // instruction.as<Move>() is nullptr for other kinds of instructions.
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
  std::vector<PlannedChoice> choices = {};  // made during compilation, for explain
};

// Common to both loops: carried values, and the computation of the body's results, for finding loops that
// compute the same (compile/loops.cpp). An expression reads the parts' operands (numbered from 0) and earlier
// expressions.
struct Loop {
  struct Expression {
    const OpDef* op;
    ParamsPtr params;
    int output;  // output of the op
    std::vector<int> reads;
  };
  int carried = 0;                           // number of values
  std::vector<Expression> expressions = {};  // empty with `results`: unknown
  std::vector<int> results = {};             // operand or expression numbers
};

// The parts of a branch or a loop. Their operands have the order of the instruction's inputs:
//
//   Branch        predicate, operands...     -> results
//     parts: the program if it is true, the one if it is false (operands -> results)
//   CountedLoop   carried, stacks, captured  -> carried, stacks
//     part: (carried, entries, captured) -> (carried, entries)
//   UntilLoop     carried, captured          -> carried
//     parts: the condition (-> bool), the body (-> carried)
//
// An entry is one step's block of a stack, whose leading dim is the step. If that dim is split, each rank
// stores the entries of its own steps of a stack that the loop makes; a stack that the loop reads is
// broadcast block by block (Walk).
struct Branch {};
// Reading a split stack: before the first step of a block its owner broadcasts it along the axes; the ranks
// keep it until the block's last step.
struct Walk {
  CommunicationCost broadcast = {};  // cost of broadcasting all blocks; no axes: the stack is not split
  std::int64_t block_bytes = 0;
};
struct CountedLoop : Loop {
  std::int64_t length = 1;  // steps
  int stacks = 0;           // number of stacks that are read
  bool reverse = false;     // from the last entry to the first
  // Carried values that start as zeros instead of their operands; empty: none.
  std::vector<bool> from_zero = {};
  std::vector<Walk> walks = {};  // per stack that is read
};
struct UntilLoop : Loop {};

struct Control {
  std::variant<Branch, CountedLoop, UntilLoop> kind;
  std::vector<Program> parts;
  std::string call = {};  // the user's call: "fori_loop"; empty if it is the op's name

  template <class Kind> const Kind* as() const { return std::get_if<Kind>(&kind); }
  template <class Kind> Kind* as() { return std::get_if<Kind>(&kind); }
  const Loop* loop() const;  // nullptr: a branch
  Loop* loop();
  std::int64_t steps() const;  // steps of a counted loop; 1 for other loops, whose number is unknown
};

// "f32[8,4]": short types for the long texts of graphs and programs.
std::string short_text(const Type&);
// Bytes of the first, largest block.
std::int64_t block_bytes(const ProgramValue&);
// False for views of local data, whose result takes no memory.
bool is_stored(const Instruction&);
// Whether two shardings have the same blocks under the same axes.
bool same_layout(const Sharding&, const Sharding&, int ndim);
// The mesh of an instruction's axes.
Mesh mesh_of(const Program&, const Instruction&);
// "x,y"; "" for no axes.
std::string axes_text(const Mesh&, const MeshAxes&);
// "add+multiply+sum"
std::string chain_text(const FusedChain&);

// "all-gather", ... for an instruction that communicates; "" for one that does not.
std::string collective_kind(const Instruction&);
// Kinds and bytes of all data that an instruction moves (a communicating kernel may use several collectives);
// for a loop the blocks of the stacks that it reads, without the traffic of its body.
std::vector<CommunicationCost> traffic_of(const Instruction&);
// One line per instruction: local shapes, op, collective, axes, bytes per rank, source line.
std::string program_text(const Program&);
// InternalError unless every value is defined once before its use, layouts fit shapes, and steps match.
void verify(const Program&);

}  // namespace tessera
