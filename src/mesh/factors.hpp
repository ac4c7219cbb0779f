// The factors of an op's dims, which are split together, and the layouts that follow from them.
//
// The dims of an op's operands are made of factors, named as einsum does (mesh/rule.hpp is the language):
//
//   matmul   "i k, k j -> i j | sum k"
//   reshape  "(i j) k -> i (j k)"        (24, 5) -> (4, 30): i = 4, j = 6, k = 5
//   softmax  "i j -> i j | whole j"
//
// An assignment gives each factor the mesh axes that split it. All decisions about layouts are made here,
// independent of the op's name.
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
  pass,    // may be split: every rank computes its part
  reduce,  // may be split: every rank has a partial result, to be combined over the axes
  whole,   // must not be split
};
struct Factor {
  std::int64_t size = 1;
  FactorKind kind = FactorKind::pass;
  friend bool operator==(const Factor&, const Factor&) = default;
};
using DimFactors =
    std::vector<int>;  // factors of one dim, major first; empty for a broadcast dim of size 1 without factor
struct FactorRule {
  std::vector<Factor> factors;
  std::vector<std::vector<DimFactors>> inputs, outputs;  // [operand][dim]
  ReduceKind reduce_kind = ReduceKind::sum;              // combines partial results
};

std::string to_string(const FactorRule&);

// The factors of two rules of mesh/rule.hpp on given shapes. For {D..} -> D.. dims are aligned from the last,
// and those of size 1 are broadcast.
FactorRule elementwise_rule(std::span<const Shape> in, std::span<const Shape> out);
// (D..) -> (D..): the factors common to the row-major indices of both shapes; a dim without a common one is
// `whole`.
FactorRule reshape_rule(const Shape& in, const Shape& out);

// The mesh axes that split each factor, major first.
using FactorAxes = std::vector<MeshAxes>;

// The factors that one operand's sharding splits. Omits axes that no factor can take: those of a broadcast
// dim, of a `whole` factor, or of a compound dim whose blocks are not blocks of its factors.
FactorAxes factors_of(const FactorRule&, const Sharding&, int operand, bool is_output);
// The sharding of one operand under an assignment; is_allowed must hold.
Sharding sharding_of(const FactorRule&, const FactorAxes&, const Mesh&, int operand, bool is_output);
// Whether `whole` factors are unsplit and the blocks of every compound dim are blocks of its factors: in
// (ij), splitting i into p parts needs i % p == 0, and j can be split only if i is split into single indices.
bool is_allowed(const FactorRule&, const FactorAxes&, const Mesh&);

struct Propagation {
  FactorAxes factor_axes;
  std::vector<Sharding> inputs;  // the layout to which each input must be resharded
  std::vector<Sharding> outputs;
  MeshAxes partial_axes;  // axes over which the outputs are partial
  std::int64_t bytes =
      0;  // received by the busiest rank: reshards of the inputs, and the reduction of the outputs
};

// Forward propagation: the layout of the op from the shardings of its inputs. nullopt stands for an
// uncommitted input, which is computed in any layout at no cost. If the inputs agree, no input moves,
// whatever a reduction costs afterwards. Otherwise chooses the assignment that moves the fewest bytes (for
// contractions: bytes and one rank's arithmetic together) among those that put each mesh axis where some
// input has it, or nowhere; ties go to the one that moves less of the first input, then of the second, ... An
// input on another mesh over the same devices in the same order is accepted and resharded.
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
