// Which dims of an op move together, and the layouts that follow from it.
//
// The dims of an op's operands are made of factors, named as einsum does (mesh/rule.hpp is the language):
//
//   matmul   "i k, k j -> i j | sum k"
//   reshape  "(i j) k -> i (j k)"        (24, 5) -> (4, 30): i = 4, j = 6, k = 5
//   softmax  "i j -> i j | whole j"
//
// An assignment gives each factor the mesh axes that split it. Everything about layouts is decided here; no
// op's name is seen.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/sharding.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/axes.hpp"
#include "types/reduce_kind.hpp"

namespace tessera {

enum class FactorKind {
  pass,    // split it: every rank computes its part
  reduce,  // split it: every rank has a partial result, to be combined over the axes
  whole,   // must not be split
};
struct Factor {
  std::int64_t size = 1;
  FactorKind kind = FactorKind::pass;
  friend bool operator==(const Factor&, const Factor&) = default;
};
using DimFactors =
    std::vector<int>;  // of one dim, major first; empty for a broadcast dim of size 1 that no factor touches
struct FactorRule {
  std::vector<Factor> factors;
  std::vector<std::vector<DimFactors>> inputs, outputs;  // [operand][dim]
  ReduceKind reduce_kind = ReduceKind::sum;              // how partial results combine
};

std::string to_string(const FactorRule&);

// The factors of two rules of mesh/rule.hpp on shapes. {D..} -> D..: dims are aligned from the last, those of
// size 1 are broadcast.
FactorRule elementwise_rule(std::span<const Shape> in, std::span<const Shape> out);
// (D..) -> (D..): factors that the row-major index of both shapes has in common; what has none is whole.
FactorRule reshape_rule(const Shape& in, const Shape& out);

// For each factor the mesh axes that split it, major first.
using FactorAxes = std::vector<MeshAxes>;

// The factors that a sharding of one operand splits. Axes that no factor can take (of a broadcast dim, of a
// whole factor, of a compound dim whose block boundaries do not agree with its factors) are left out.
FactorAxes factors_of(const FactorRule&, const Sharding&, int operand, bool is_output);
// The sharding of one operand under an assignment that is_allowed.
Sharding sharding_of(const FactorRule&, const FactorAxes&, const Mesh&, int operand, bool is_output);
// Whole factors are unsplit, and every compound dim has blocks that are the blocks of its factors: of (ij),
// i over p parts needs i % p == 0, and j can be split only when i is split into single indices.
bool is_allowed(const FactorRule&, const FactorAxes&, const Mesh&);

struct Propagation {
  FactorAxes factor_axes;
  std::vector<Sharding> inputs;  // what each input must be resharded to
  std::vector<Sharding> outputs;
  MeshAxes partial_axes;  // axes over which the outputs are partial
  std::int64_t bytes =
      0;  // that the busiest rank receives: reshards of the inputs, and the reduction of the outputs
};

// Forward: from the shardings of the inputs to the layout of the op. nullopt is an uncommitted input,
// computed in any layout at no cost. If the inputs agree, no input moves, whatever a reduction costs
// afterwards. Else the assignment that moves the fewest bytes (where operands are contracted, bytes and one
// rank's arithmetic together), among those that put each mesh axis where some input has it, or nowhere; ties
// go to the one that moves less of the first input, then of the second, ... An input on another mesh over the
// same devices in the same order is taken as it is and resharded.
//
//   a f32[4096, 2048] P('x', None) . b f32[2048, 1024] P(None, 'x'), x = 4:  P('x', None), gathers b (6 MiB
//     per rank; a would be 24 MiB)
//   a f32[4096, 4096] P(None, 'x') . b f32[4096, 4096] P(), x = 4:  P(), partial over x: gathering a would be
//     half the bytes, and four times the arithmetic
Propagation propagate_forward(const FactorRule&, std::span<const std::optional<Sharding>> inputs,
                              std::span<const Shape> in_shapes, std::span<const Dtype> in_dtypes,
                              std::span<const Shape> out_shapes, std::span<const Dtype> out_dtypes,
                              const Mesh&);

}  // namespace tessera
