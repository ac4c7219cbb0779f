// Incomplete LU of each rank's diagonal block, and the solve with it: a preconditioner without communication.
// The factors have the layout of the values.
#include <cstring>

#include "ops/build.hpp"
#include "ops/sparse/pattern.hpp"
#include "ops/sparse/sparse_params.hpp"

namespace tessera {
namespace {

struct SolveParams {
  SparseParams matrix;
  bool transposed;
  template <class V> void fields(V&& visit) const {
    matrix.fields(visit);
    visit("transposed", transposed);
  }
};

Placement place_factor(const PlacementArgs& args) {
  const auto& p = pattern_of(args.params);
  check_axes(args, p);
  const auto values = split_first(p, {}, 2);
  return {{values}, {values}, {}, ReduceKind::sum};
}

void factor(const KernelArgs& a) {
  const auto& p = pattern_of(a.params);
  std::memcpy(a.out[0].data, a.in[0].data, static_cast<std::size_t>(a.in[0].bytes()));
  const auto failed = kernels::csr_incomplete_lu(a.out[0].dtype, p.plan.view(), a.out[0].data);
  if (failed < 0) return;
  const auto first = block_range(p.rows, a.in[0].global[0], a.in[0].box[0].start).start;
  throw LinAlgError("the incomplete LU has no pivot in row " + std::to_string(first + failed) +
                    ": the diagonal lacks that entry, or it became 0; precondition with jacobi, or order "
                    "the rows so that the diagonal is not 0");
}

void solve(const KernelArgs& a) {
  const auto& p = a.params.as<SolveParams>();
  kernels::csr_solve_lu(a.in[0].dtype, p.matrix.pattern->plan.view(), a.in[0].data, a.in[1].data,
                        width_of(a.in[1].shape()), a.out[0].data, p.transposed);
}
Placement place_solve(const PlacementArgs& args) {
  return place_product(args, *args.params.as<SolveParams>().matrix.pattern);
}
// Linear in the right-hand side. The factors are constants: a preconditioner changes a solver's speed, not
// its result.
Cotangents vjp_solve(const VjpArgs& v) {
  const auto& p = v.node.params->as<SolveParams>();
  return {Array(), sparse_solve_lu(p.matrix.pattern, v.in[0], v.cotangents[0], !p.transposed)};
}

const OpDef factor_op{
    .name = "sparse_incomplete_lu",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> { return {in[0]}; },
    .sharding = PlacementRule{place_factor},
    .runs = Kernel{factor},
    .vjp = NoRule{"a preconditioner changes how fast a solver is, not what it finds"},
    .batch = NoRule{"factor once, outside of vmap"},
    .commit = commit_to_pattern,
    .same_bits = SameBits::never,
    .may_fail = true,
};
const OpDef solve_op{
    .name = "sparse_solve_lu",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> { return {in[1]}; },
    .sharding = PlacementRule{place_solve},
    .runs = Kernel{solve},
    .vjp = vjp_solve,
    .batch = batch_columns,
    .commit = [](const Params& p) -> std::optional<Mesh> {
      return p.as<SolveParams>().matrix.pattern->sharding.mesh();
    },
    .same_bits = SameBits::never,
};
const Registered registered[] = {Registered(factor_op), Registered(solve_op)};

}  // namespace

Array sparse_incomplete_lu(const PatternPtr& p, const Array& values) {
  return record(factor_op, make_params(SparseParams{p}), {values});
}
Array sparse_solve_lu(const PatternPtr& p, const Array& factors, const Array& y, bool transposed) {
  return record(solve_op, make_params(SolveParams{{p}, transposed}), {factors, on_pattern_mesh(*p, y)});
}

}  // namespace tessera
