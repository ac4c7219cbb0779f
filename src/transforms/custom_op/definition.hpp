// The definition of a custom op: what the user gave, the parsed sharding rule, and the params of its nodes.
#pragma once
#include <tessera/custom_op.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct CustomOp::Definition {
  CustomOpOptions options;
  RuleText rule;
  RuleText without_margins;  // the rule in which dims marked ~ have the extent of their factor
  std::uint64_t serial;      // distinguishes definitions of one name and rule, on this rank
  std::uint64_t hash;        // hash of what all ranks must have in common
  const char* name;          // never freed
};

using CustomOpPtr = std::shared_ptr<const CustomOp::Definition>;
inline std::uint64_t field_hash(const CustomOpPtr& op) { return mix(op->hash, op->serial); }
inline bool same_field(const CustomOpPtr& a, const CustomOpPtr& b) { return a == b; }
inline std::string field_text(const CustomOpPtr& op) { return op->options.name; }

namespace custom {

// Operands with the batch dim of one vmap, which precedes their other dims.
using BatchLevel = std::vector<bool>;

struct CustomOpParams {
  CustomOpPtr op;
  std::vector<BatchLevel> batches = {};  // the outermost vmap first
  template <class V> void fields(V&& visit) const {
    visit("op", op);
    if (!batches.empty()) visit("batches", batches);
  }
  std::uint64_t agreed_hash() const { return mix(op->hash, tessera::field_hash(batches)); }

  // The number of an operand's first dims that are batch dims.
  std::size_t batch_dims(std::size_t operand) const;
};
inline const CustomOpParams& params_of(const Params& p) { return p.as<CustomOpParams>(); }

// Shapes without their batch dims.
std::vector<Shape> shapes_of_examples(const CustomOpParams&, std::span<const Shape> in);

// ---- margins ----

// A dim of an operand that is read with a margin, and the dim of a result that is split as it is.
struct Margin {
  std::size_t operand, dim;
  std::size_t output, output_dim;
  const Halo* halo;
};
// Margins for examples of these shapes.
std::vector<Margin> margins_of(const CustomOp::Definition&, std::span<const Shape> in,
                               std::span<const Shape> out);
// The extents of the operands' factors: for dims with margins, the extent without the margins. ShapeError
// if nothing is left.
std::vector<Shape> without_margins(const CustomOp::Definition&, std::span<const Shape> in);
// Fetches the margins of all operands, then calls the kernel.
std::vector<int> write_with_margins(ProgramBuilder&, const Node&, std::span<const int> in);

// The kernel of every custom op: that of its params, for each example of its blocks.
void run_kernel(const KernelArgs&);

// ---- derivatives and batches ----

Cotangents vjp(const VjpArgs&);
Batched batch(const BatchArgs&);
// Sets the rule for jvp of a record.
void add_jvp(const OpDef&);

// The record of a definition whose operands have these batch dims. Lives as long as the program.
const OpDef& record_of(const CustomOp::Definition&, const std::vector<BatchLevel>& batches);

}  // namespace custom
}  // namespace tessera
