// The op record: everything tessera knows about one operation, in one place.
//
// Every record says how types follow (infer), which dims of its operands are split together (sharding), how
// it runs, and how it is differentiated and batched.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graph/node.hpp"
#include "mesh/rule.hpp"
#include "types/tile.hpp"

namespace tessera {

// Work on parts of a result that are complete, while they are in the cache. The result is seen as a matrix.
// Called from several threads at once, for different parts.
using LastPass =
    std::function<void(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns)>;

// Arguments of a kernel: dense tiles that know their boxes. Output memory is allocated and uninitialised.
struct KernelArgs {
  const OpDef& op;
  const Params& params;
  std::span<const Tile> in;
  std::span<const Tile> out;
  const LastPass* last_pass = nullptr;  // of an op that hands on parts; nullptr: there is none
};

struct VjpArgs {
  const Node& node;
  std::span<const Array> in;          // the node's inputs
  std::span<const Array> out;         // its outputs
  std::span<const Array> cotangents;  // of its outputs; an Array that holds nothing stands for zeros
  std::span<const bool> wanted;       // which inputs need a cotangent
  const Array& in_at(std::size_t i) const { return in[i]; }
  const Array& cotangent() const { return cotangents[0]; }
};
// One entry per input; an Array that holds nothing stands for zeros.
using Cotangents = std::vector<Array>;

inline constexpr int not_batched = -1;
struct BatchArgs {
  const Node& node;
  std::span<const Array> in;  // with the batch dim inside
  std::span<const int> dims;  // where each input has its batch dim; not_batched where it has none
  std::int64_t size;          // of the batch
};
struct Batched {
  std::vector<Array> out;
  std::vector<int> dims;
};

// The layouts in which an op wants its inputs and leaves its outputs.
struct Placement {
  std::vector<Sharding> inputs, outputs;
  MeshAxes partial_axes;  // over which the outputs are unreduced
  ReduceKind reduce_kind = ReduceKind::sum;
};
struct PlaceArgs {
  std::span<const Type> in, out;
  std::span<const std::optional<Sharding>> shardings;  // of the inputs; nullopt: uncommitted
  const Params& params;
  const Mesh& mesh;
  const MeshAxes& fixed_axes;  // manual axes: must not be used
  // Backward: a layout that the consumer would like for output 0 (of an uncommitted result, or in jit). May
  // be ignored.
  std::optional<Sharding> wanted;
};

class ProgramBuilder;  // program/builder.hpp: what a lower rule writes to

// For kernels that communicate: the layouts and the mesh stand beside the tiles.
struct TalkArgs {
  KernelArgs local;
  std::span<const Sharding> in_layouts, out_layouts;
  const Mesh& mesh;
  int me;  // this rank's device id; it is in the mesh
  const MeshAxes& fixed_axes;
  std::string label;  // for the watchdog: op and call site
};
// The traffic of a communicating kernel, for explain and CommStats: per kind, bytes that the busiest rank
// receives.
struct TalkCost {
  std::string kind;
  MeshAxes axes;
  std::int64_t bytes = 0;
  std::int64_t calls = 1;
};

struct ElementwiseRow;  // graph/elementwise_row.hpp

// ---- where an op puts things: one of these ----

// By a sentence (mesh/rule.hpp). The reading says what it cannot know from shapes, for these params.
struct Rule {
  using Reading = RuleReading (*)(const Params&, std::span<const Shape> in);
  explicit Rule(const char* sentence, Reading reading = nullptr) : text(sentence), reading(reading) {}
  FactorRule on(std::span<const Shape> in, std::span<const Shape> out, const Params&) const;
  RuleText text;
  Reading reading;
};
// By its own choice, where "reshard, compute, reduce" is not the good algorithm.
struct Place {
  Placement (*place)(const PlaceArgs&);
  const Rule* rule = nullptr;  // that it follows where it finds nothing better
};
// Neither: a step of another op, which places it.
using ShardingRule = std::variant<std::monostate, Rule, Place>;

// ---- how an op runs: one of these ----

using KernelFunction = void (*)(const KernelArgs&);
using TalkFunction = void (*)(const TalkArgs&);

// One rank's arithmetic on its tiles.
struct Kernel {
  KernelFunction run;
};
// A kernel that communicates. Where it costs nothing, since no dim it works on is split, each rank works
// alone.
struct Talk {
  TalkFunction together;
  std::vector<TalkCost> (*cost)(const PlaceArgs&, const Placement&) = nullptr;
  KernelFunction alone = nullptr;
};
// Several instructions. Those among them that are the op itself run its kernel, or its talk.
struct Lower {
  std::vector<int> (*write)(ProgramBuilder&, const Node&, std::span<const int> in);
  KernelFunction kernel = nullptr;
  TalkFunction talk = nullptr;
};
// Nothing runs: the output is the input's bytes under another type or layout.
struct Alias {};
// Element by element, in one pass with its neighbours; what has no row's kernel (a broadcast) has one of its
// own for when it stands alone.
struct PerElement {
  const ElementwiseRow* row;
  KernelFunction kernel = nullptr;
};
using Execution = std::variant<std::monostate, Kernel, Talk, Lower, Alias, PerElement>;

// ---- how it is transformed ----

struct NoRule {
  const char* why;  // a sentence's end, for the error text
};
// A rule, or why there is none.
template <class Function> class RuleOrReason {
 public:
  RuleOrReason() = default;
  // Implicit: a record says `.vjp = rule` or `.vjp = NoRule{"..."}`.
  template <class F, std::enable_if_t<std::is_convertible_v<F, Function>, int> = 0> RuleOrReason(F rule)
      : rule_(rule) {}
  RuleOrReason(NoRule none) : why_(none.why) {}
  explicit operator bool() const { return rule_ != nullptr; }
  Function rule() const { return rule_; }
  const char* why() const { return why_; }  // nullptr: nobody said

 private:
  Function rule_ = nullptr;
  const char* why_ = nullptr;
};

// In which operands an op is linear: there the terms of a sum that is still to be made may pass through it.
enum class Linear {
  no,
  in_first,
  jointly,    // in all operands at once: a + b of terms is terms of the sum
  in_either,  // in each for itself, the others being no terms: a * b
};

// The treatment of operands of two bytes, bfloat16 and float16 (graph/halves.hpp).
enum class Halves {
  widened,  // computes in float32: its operands are widened, what has their dtype is rounded
  moved,    // looks at no number: items of two bytes are as good as any
  refused,  // they have too few digits for it
};
inline Halves widens_halves(const Params&) { return Halves::widened; }
inline Halves moves_halves(const Params&) { return Halves::moved; }
inline Halves refuses_halves(const Params&) { return Halves::refused; }

struct OpDef {
  std::string name;
  Halves (*halves)(const Params&) = widens_halves;
  std::vector<Type> (*infer)(std::span<const Type> in, const Params&) = nullptr;  // raises the user's errors
  ShardingRule sharding = {};
  Execution runs = {};
  RuleOrReason<Cotangents (*)(const VjpArgs&)> vjp = {};
  RuleOrReason<Batched (*)(const BatchArgs&)> batch = {};
  // optional
  Linear linear = Linear::no;
  double (*flops)(std::span<const Type> in, std::span<const Type> out, const Params&) = nullptr;
  // In a region; the union of the inputs otherwise.
  std::uint64_t (*varying)(std::span<const std::uint64_t> in, const Params&) = nullptr;
  // Set by ops whose outputs differ in that.
  std::uint64_t (*output_varying)(std::size_t output, const Params&) = nullptr;
  // The result is committed to this mesh even when no input is.
  std::optional<Mesh> (*commit)(const Params&) = nullptr;
  // The region of the outputs, when it is not that of the inputs.
  RegionPtr (*region)(const Params&, const RegionPtr& inputs) = nullptr;
  bool works_in_place = false;  // its kernel may write over its first input, when that is dead and as large
  // Set by ops that hand on complete parts of their one result through KernelArgs::last_pass: how many of the
  // result's last dims are the columns.
  int (*columns_of_parts)(std::span<const Shape> in, const Params&) = nullptr;
  bool may_fail = false;            // its kernel throws LinAlgError: agreed over all ranks when the run ends
  bool is_value_dependent = false;  // reads a value at record time or has an effect: never merged by CSE
};

// ---- reading a record ----

bool is_alias(const OpDef&);
bool is_elementwise(const OpDef&);  // one element of the result is made of one element of each operand
bool is_broadcast(const OpDef&);    // ... by copying alone, under another shape
bool is_placed_by_rule(const OpDef&);
bool is_one_local_step(const OpDef&);                 // placed by a rule, and then each rank works for itself
const ElementwiseRow* elementwise_row(const OpDef&);  // nullptr where it is not fused
const Lower* lowering(const OpDef&);                  // nullptr where it is one instruction
KernelFunction kernel_of(const OpDef&);               // on one rank's tiles; nullptr where there is none
TalkFunction talk_of(const OpDef&);                   // nullptr where it does not communicate
const Rule* rule_of(const OpDef&);                    // the sentence that places it; nullptr where none does

// Nodes without an op of their own: a value, and a transformation's argument.
bool is_leaf(const Node&);
bool is_parameter(const Node&);

// Registered ops, for the completeness check and the laws that every op obeys.
void register_op(const OpDef*);
const std::vector<const OpDef*>& registered_ops();

// Chains longer than this are computed when they are recorded, at the same op on every rank.
inline constexpr std::uint32_t longest_pending_chain = 2000;

// Records one op as a part of the current call (base/call.hpp): infers types, propagates shardings, checks
// devices. Inputs must hold arrays.
std::vector<Array> record_all(const OpDef&, ParamsPtr, std::vector<Array> inputs);
Array record(const OpDef&, ParamsPtr, std::vector<Array> inputs);

// The committed inputs' shardings brought onto one mesh (that of the first, or a common refinement of their
// axes), which is returned. ShardingError naming both operands when their devices or device orders differ;
// nullopt when no input is committed.
std::optional<Mesh> unify_meshes(std::span<const Array> inputs, std::vector<std::optional<Sharding>>&);

// The layouts of the inputs and outputs.
Placement place(const OpDef&, const PlaceArgs&);
// By a sentence; `bytes`: what that moves, for ops that weigh it against another algorithm.
Placement place_by(const Rule&, const PlaceArgs&, std::int64_t* bytes = nullptr);

// A leaf with a value. layout is replicated over all devices for uncommitted values.
Array make_leaf(Type, Sharding layout, Buffer, bool committed);
// A leaf without a value: a transformation's argument.
Array make_placeholder(Type, std::optional<Sharding>, RegionPtr, std::uint64_t varying);
// Identity in the graph, so that a transformation can tell its own argument from the caller's array.
Array make_alias(const Array&);
bool is_made_alias(const Node&);

// The layout that handles of uncommitted arrays show.
const Sharding& replicated_everywhere();
// Raises ArgumentError when x holds nothing or was deleted.
void check_usable(const Array& x);

}  // namespace tessera
