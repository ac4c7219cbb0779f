// The op record: everything tessera knows about one operation, in one place.
//
// Five rules are mandatory: infer (types), factors (which dims move together), kernel (one rank's
// arithmetic), vjp and batch. An op for which "reshard, compute, reduce" is not the good algorithm adds
// place, lower or talk.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/node.hpp"
#include "mesh/factors.hpp"
#include "types/tile.hpp"

namespace tessera {

// What a kernel gets: dense tiles that know their place. Output memory is allocated and uninitialised.
struct KernelArgs {
  const OpDef& op;
  const Params& params;
  std::span<const Tile> in;
  std::span<const Tile> out;
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

// Where an op wants its inputs and leaves its outputs.
struct Placement {
  std::vector<Sharding> inputs, outputs;
  std::vector<int> partial_axes;  // mesh axes over which the outputs are unreduced
  std::string reduce_kind = "sum";
};
struct PlaceArgs {
  std::span<const Type> in, out;
  std::span<const std::optional<Sharding>> shardings;  // of the inputs; nullopt: uncommitted
  const Params& params;
  const Mesh& mesh;
  const std::vector<int>& fixed_axes;  // manual axes: must not be used
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
  const std::vector<int>& fixed_axes;
  std::string label;  // for the watchdog: op and call site
};
// What a talk kernel will move, for explain and CommStats: per kind, bytes that the busiest rank receives.
struct TalkCost {
  std::string kind;
  std::vector<int> axes;
  std::int64_t bytes = 0;
  std::int64_t calls = 1;
};

struct ElementwiseRow;  // ops/elementwise: set for ops that the fuser may merge

struct OpDef {
  std::string name;
  std::vector<Type> (*infer)(std::span<const Type> in, const Params&) = nullptr;
  FactorRule (*factors)(std::span<const Type> in, std::span<const Type> out, const Params&) = nullptr;
  void (*kernel)(const KernelArgs&) = nullptr;
  Cotangents (*vjp)(const VjpArgs&) = nullptr;
  const char* no_vjp = nullptr;  // why there is no vjp, for the error text
  Batched (*batch)(const BatchArgs&) = nullptr;
  const char* no_batch = nullptr;  // why there is no batch rule
  // optional
  Placement (*place)(const PlaceArgs&) = nullptr;  // instead of factors
  std::vector<int> (*lower)(ProgramBuilder&, const Node&,
                            std::span<const int> in) = nullptr;  // instead of kernel: several instructions
  void (*talk)(const TalkArgs&) = nullptr;                       // when a dim it works on is split
  std::vector<TalkCost> (*talk_cost)(const PlaceArgs&, const Placement&) = nullptr;
  std::string (*linear_in)(const Params&) =
      nullptr;  // inputs (as digits) in which it is linear: partial sums pass through
  double (*flops)(std::span<const Type> in, std::span<const Type> out, const Params&) = nullptr;
  std::uint64_t (*varying)(std::span<const std::uint64_t> in,
                           const Params&) = nullptr;  // in a region; union of the inputs otherwise
  std::uint64_t (*output_varying)(std::size_t output,
                                  const Params&) = nullptr;  // of an op whose outputs differ in that
  std::optional<Mesh> (*commit)(const Params&) =
      nullptr;  // the result is committed to this mesh even when no input is
  RegionPtr (*region)(const Params&, const RegionPtr& inputs) =
      nullptr;            // of the outputs, when it is not that of the inputs
  bool is_alias = false;  // the output is the input's bytes under another type or layout
  const ElementwiseRow* elementwise = nullptr;
  bool works_in_place =
      false;  // its kernel may write its result over its first input, when that is dead and as large
  bool may_fail = false;            // its kernel throws LinAlgError: agreed over all ranks when the run ends
  bool is_value_dependent = false;  // reads a value at record time or has an effect: never merged by CSE
};

// Registered ops, for the completeness check and the laws that every op obeys.
void register_op(const OpDef*);
const std::vector<const OpDef*>& registered_ops();

// Chains longer than this are computed when they are recorded, at the same op on every rank.
inline constexpr std::uint32_t longest_pending_chain = 2000;
// Set by the room that can compute (api).
extern void (*compute_pending)(const std::vector<Array>&);

// What happens to operands where they meet inside a mapped function. ops/collective, which owns those ops,
// sets both.
struct RegionHooks {
  Array (*enter)(const Array& outer, const RegionPtr& region,
                 std::source_location where) = nullptr;  // as every rank's own copy
  // Said to vary over these axes: where a value that is the same on all ranks meets one that is not, its
  // cotangent is summed.
  Array (*vary)(const Array& x, std::uint64_t axes, std::source_location where) = nullptr;
};
RegionHooks& region_hooks();

// Records one op: infers types, propagates shardings, checks devices. Inputs must hold arrays.
std::vector<Array> record_all(const OpDef&, ParamsPtr, std::vector<Array> inputs, std::source_location where);
Array record(const OpDef&, ParamsPtr, std::vector<Array> inputs, std::source_location where);

// While it lives, ops count as called at `where` (nullopt: where they are called): what a rule records
// serves the user's call.
class AttributedTo {
 public:
  explicit AttributedTo(std::optional<std::source_location> where);
  ~AttributedTo();
  AttributedTo(const AttributedTo&) = delete;
  AttributedTo& operator=(const AttributedTo&) = delete;

 private:
  std::optional<std::source_location> outer_;
};

// The committed inputs' shardings brought onto one mesh (that of the first, or a common refinement of their
// axes), which is returned. ShardingError naming both operands when their devices or device orders differ;
// nullopt when no input is committed.
std::optional<Mesh> unify_meshes(const OpDef&, std::span<const Array> inputs,
                                 std::vector<std::optional<Sharding>>&, std::source_location where);

// Where the op puts its inputs and outputs, by its place rule or its factors.
Placement place(const OpDef&, const PlaceArgs&);
// By a rule of factors; `bytes`: what that moves, for place rules that weigh it against another algorithm.
Placement place_by(const FactorRule&, const PlaceArgs&, std::int64_t* bytes = nullptr);

// A leaf with a value. layout is replicated over all devices for uncommitted values.
Array make_leaf(Type, Sharding layout, Buffer, bool committed, std::source_location where);
// A leaf without a value: a transformation's argument.
Array make_placeholder(Type, std::optional<Sharding>, RegionPtr, std::uint64_t varying,
                       std::source_location where);
// Identity in the graph, so that a transformation can tell its own argument from the caller's array.
Array make_alias(const Array&);

// What array handles are shown as when they are uncommitted.
const Sharding& replicated_everywhere();
// Raises ArgumentError when x holds nothing or was deleted.
void check_usable(const Array& x, const char* call);

}  // namespace tessera
