// The op record: everything tessera knows about one operation, in one place.
//
// Every record defines the result types (infer), the dims of its operands that are split together (sharding),
// how the op runs, and how it is differentiated and batched.
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

// Work on complete parts of a result that are still in the cache. The result is seen as a matrix. Called from
// several threads at once, for different parts.
using LastPass =
    std::function<void(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns)>;

// Arguments of a kernel: dense tiles with their boxes. Output memory is allocated but uninitialised.
struct KernelArgs {
  const OpDef& op;
  const Params& params;
  std::span<const Tile> in;
  std::span<const Tile> out;
  const LastPass* last_pass = nullptr;  // called on complete parts of the result; nullptr: not used
};

struct VjpArgs {
  const Node& node;
  std::span<const Array> in;          // the node's inputs
  std::span<const Array> out;         // its outputs
  std::span<const Array> cotangents;  // cotangents of the outputs; an Array without a node means zeros
  std::span<const bool> wanted;       // whether each input needs a cotangent
  const Array& cotangent() const { return cotangents[0]; }
};
// One entry per input; an Array without a node means zeros.
using Cotangents = std::vector<Array>;

inline constexpr int not_batched = -1;
struct BatchArgs {
  const Node& node;
  std::span<const Array> in;  // with the batch dim included
  std::span<const int> dims;  // the batch dim of each input; not_batched if it has none
  std::int64_t size;          // size of the batch
};
struct Batched {
  std::vector<Array> out;
  std::vector<int> dims;
};

// The layouts in which an op takes its inputs and leaves its outputs.
struct Placement {
  std::vector<Sharding> inputs, outputs;
  MeshAxes partial_axes;  // over which the outputs are unreduced
  ReduceKind reduce_kind = ReduceKind::sum;
};
struct PlacementArgs {
  std::span<const Type> in, out;
  std::span<const std::optional<Sharding>> shardings;  // shardings of the inputs; nullopt: uncommitted
  const Params& params;
  const Mesh& mesh;
  const MeshAxes& fixed_axes;  // manual axes, which must not be used
  // A layout that the consumer prefers for output 0 (of an uncommitted result, or in jit). May be ignored.
  std::optional<Sharding> wanted;
  bool same_bits = false;  // the node was recorded in a ReproducibleScope: no sum may be split by a layout
};

class ProgramBuilder;  // program/builder.hpp: written to by a lower rule

// Arguments of a communicating kernel: the tiles with their layouts and the mesh.
struct CommunicationArgs {
  KernelArgs local;
  std::span<const Sharding> in_layouts, out_layouts;
  const Mesh& mesh;
  int me;  // this rank's device id, a member of the mesh
  const MeshAxes& fixed_axes;
  std::string label;  // for the watchdog: op and call site
};
// The traffic of a communicating kernel, for explain and CommStats: per kind, the bytes that the busiest rank
// receives.
struct CommunicationCost {
  std::string kind;
  MeshAxes axes;
  std::int64_t bytes = 0;
  std::int64_t calls = 1;
};

struct ElementwiseRow;  // graph/elementwise_row.hpp

// ---- how an op's operands are placed: one of these ----

// By a sharding rule (mesh/rule.hpp). The reading supplies the facts that shapes alone do not determine, from
// the params.
struct Rule {
  using Reading = RuleReading (*)(const Params&, std::span<const Shape> in);
  explicit Rule(const char* sentence, Reading reading = nullptr) : text(sentence), reading(reading) {}
  FactorRule on(std::span<const Shape> in, std::span<const Shape> out, const Params&) const;
  RuleText text;
  Reading reading;
};
// By a function, for ops to which "reshard, compute, reduce" does not apply well.
struct PlacementRule {
  Placement (*place)(const PlacementArgs&);
  const Rule* rule = nullptr;  // the rule that it uses if it finds nothing better
};
// monostate: a step of another op, which places it.
using ShardingRule = std::variant<std::monostate, Rule, PlacementRule>;

// ---- how an op runs: one of these ----

using KernelFunction = void (*)(const KernelArgs&);
using CommunicatingFunction = void (*)(const CommunicationArgs&);

// One rank's arithmetic on its tiles.
struct Kernel {
  KernelFunction run;
};
// A kernel that communicates. If the op costs no traffic, since no dim that it works on is split, each rank
// runs the local kernel alone.
struct Communicating {
  CommunicatingFunction together;
  std::vector<CommunicationCost> (*cost)(const PlacementArgs&, const Placement&) = nullptr;
  KernelFunction alone = nullptr;
};
// Several instructions. Those of the op itself run its kernel, or its communicating kernel.
struct Lower {
  std::vector<int> (*write)(ProgramBuilder&, const Node&, std::span<const int> in);
  KernelFunction kernel = nullptr;
  CommunicatingFunction communicate = nullptr;
};
// Nothing runs: the output is the input's bytes under another type or layout.
struct Alias {};
// Runs element by element, fused with neighbouring ops. If the op's row has no kernel (a broadcast), `kernel`
// runs the op alone.
struct PerElement {
  const ElementwiseRow* row;
  KernelFunction kernel = nullptr;
};
using Execution = std::variant<std::monostate, Kernel, Communicating, Lower, Alias, PerElement>;

// ---- how it is transformed ----

struct NoRule {
  const char* why;  // the end of a sentence in the error text
};
// A rule, or the reason why there is none.
template <class Function> class RuleOrReason {
 public:
  RuleOrReason() = default;
  // Implicit, so that a record can say `.vjp = rule` or `.vjp = NoRule{"..."}`.
  template <class F, std::enable_if_t<std::is_convertible_v<F, Function>, int> = 0> RuleOrReason(F rule)
      : rule_(rule) {}
  RuleOrReason(NoRule none) : why_(none.why) {}
  explicit operator bool() const { return rule_ != nullptr; }
  Function rule() const { return rule_; }
  const char* why() const { return why_; }  // nullptr: no reason was given

 private:
  Function rule_ = nullptr;
  const char* why_ = nullptr;
};

// The operands in which an op is linear: through these, the terms of a pending sum may pass.
enum class Linear {
  no,
  in_first,
  jointly,    // in all operands at once: a + b of terms is terms of the sum
  in_either,  // in each one separately, if the others are not terms: a * b
};

// The treatment of operands of two bytes: bfloat16 and float16 (graph/halves.hpp).
enum class Halves {
  widened,  // computes in float32: operands are widened, results of their dtype are rounded
  moved,    // does not interpret the numbers: any items of two bytes will do
  refused,  // refused: too few digits for the op
};
inline Halves widens_halves(const Params&) { return Halves::widened; }
inline Halves moves_halves(const Params&) { return Halves::moved; }
inline Halves refuses_halves(const Params&) { return Halves::refused; }

// How an op keeps the promise of a ReproducibleScope: the same bits in every layout (graph/same_bits.hpp).
enum class SameBits {
  by_rule,         // summed dims are unsplit, and the kernel adds them in one order
  always,          // adds nothing, or in an order that does not depend on the layout
  whole_matrices,  // by LAPACK on one rank: a matrix that is split is refused
  made_for_it,  // replaces another op inside the scope, and is recorded again as itself; a PlacementRule of
                // its own holds there, else sums are unsplit
  never,        // refused
};

// The dims along which a part of an op's operands gives the same part of its results (for reduced dims: terms
// of the results), because its kernel does not depend on an element's position in them.
enum class Parts {
  none,            // its kernel reads positions
  unreduced_dims,  // dims of its rule that it does not reduce: indices refer to positions in the reduced ones
  beside_lines,    // all but the dim that it works along, which its params name
  reduced_dims,    // dims that it reduces: each part has the extents of the whole result
  all_dims,        // all dims of its rule
  tree_nodes,      // the same; of a reduced dim, parts that are nodes of its tree (kernels/reduce/tree.hpp)
};

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
  Parts parts = Parts::none;  // read by parts_of, which knows those of elementwise ops by itself
  double (*flops)(std::span<const Type> in, std::span<const Type> out, const Params&) = nullptr;
  // The varying axes in a region; by default the union of the inputs'.
  std::uint64_t (*varying)(std::span<const std::uint64_t> in, const Params&) = nullptr;
  // The same for ops whose outputs have different varying axes.
  std::uint64_t (*output_varying)(std::size_t output, const Params&) = nullptr;
  // The result is committed to this mesh even when no input is.
  std::optional<Mesh> (*commit)(const Params&) = nullptr;
  // The region of the outputs, if it is not that of the inputs.
  RegionPtr (*region)(const Params&, const RegionPtr& inputs) = nullptr;
  bool works_in_place = false;  // the kernel may overwrite its first input if that is dead and of equal size
  // Set by ops that pass complete parts of their single result to KernelArgs::last_pass: the number of the
  // result's last dims that form the columns.
  int (*columns_of_parts)(std::span<const Shape> in, const Params&) = nullptr;
  SameBits same_bits = SameBits::by_rule;
  // The function that a ReproducibleScope records instead; nullptr: the op itself.
  std::vector<Array> (*instead)(const OpDef&, const ParamsPtr&, const std::vector<Array>& in) = nullptr;
  bool may_fail = false;            // its kernel throws LinAlgError: agreed over all ranks when the run ends
  bool is_value_dependent = false;  // reads a value at record time or has an effect: never merged by CSE
};

// ---- reading a record ----

bool is_alias(const OpDef&);
bool is_elementwise(const OpDef&);  // each element of the result depends on one element of each operand
Parts parts_of(const OpDef&);       // all dims for elementwise ops and for reinterpretations with a rule
bool is_broadcast(const OpDef&);    // whether the op copies its operand into another shape
bool is_placed_by_rule(const OpDef&);
bool is_one_local_step(const OpDef&);                 // placed by a rule, then run without communication
const ElementwiseRow* elementwise_row(const OpDef&);  // nullptr if it is not fused
const Lower* lowering(const OpDef&);                  // nullptr if it is one instruction
KernelFunction kernel_of(const OpDef&);               // on one rank's tiles; nullptr if there is none
CommunicatingFunction communicating_function(const OpDef&);  // nullptr if it does not communicate
const Rule* rule_of(const OpDef&);  // the sharding rule that places it; nullptr if none does

// Nodes without an op: a value, and a transformation's argument.
bool is_leaf(const Node&);
bool is_parameter(const Node&);

// Registered ops, for the completeness check and the tests of laws for every op.
void register_op(const OpDef*);
const std::vector<const OpDef*>& registered_ops();

// Longer chains are computed during recording, at the same op on every rank.
inline constexpr std::uint32_t longest_pending_chain = 2000;

// Records one op as a part of the current call (base/call.hpp): infers types, propagates shardings, checks
// devices. Every input must hold an array.
std::vector<Array> record_all(const OpDef&, ParamsPtr, std::vector<Array> inputs);
Array record(const OpDef&, ParamsPtr, std::vector<Array> inputs);
// Records the op itself, even where a ReproducibleScope would replace it.
std::vector<Array> record_itself(const OpDef&, ParamsPtr, std::vector<Array> inputs);

// Rewrites the committed inputs' shardings on one mesh (that of the first, or a common refinement of their
// axes) and returns it. ShardingError naming both operands if their devices or device orders differ; nullopt
// if no input is committed.
std::optional<Mesh> unify_meshes(std::span<const Array> inputs, std::span<std::optional<Sharding>>);

// The layouts of an op's inputs and outputs.
Placement place(const OpDef&, const PlacementArgs&);
// Placement by a sharding rule; `bytes` receives its traffic, for ops that compare it with another algorithm.
Placement place_by(const Rule&, const PlacementArgs&, std::int64_t* bytes = nullptr);

// The number of the node that was recorded last.
std::uint64_t newest_serial();

// A leaf with a value. `layout` is replicated over all devices for uncommitted values.
Array make_leaf(Type, Sharding layout, Buffer, bool committed);
// A leaf without a value: a transformation's argument.
Array make_placeholder(Type, std::optional<Sharding>, RegionPtr, std::uint64_t varying);
// An identity node, so that a transformation distinguishes its own argument from the caller's array.
Array make_alias(const Array&);
bool is_made_alias(const Node&);

// The layout that handles of uncommitted arrays show.
const Sharding& replicated_everywhere();
// Raises ArgumentError when x holds nothing or was deleted.
void check_usable(const Array& x);

}  // namespace tessera
