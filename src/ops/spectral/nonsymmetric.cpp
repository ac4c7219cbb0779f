// Eigenvalues, Schur forms and pivots by LAPACK. ScaLAPACK cannot compute eigenvectors of real nonsymmetric
// matrices, and its Schur form is worthwhile only from thousands of rows: below that one rank is faster.
#include "kernels/spectral/nonsymmetric.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/functions.hpp"
#include "ops/spectral/spectral.hpp"

namespace tessera::factor {
namespace {

template <bool vectors> std::vector<Type> infer_eig(std::span<const Type> in, const Params&) {
  std::vector<Type> out{{with_matrix_dims(in[0].shape, {extent(in[0], 1)}), in[0].dtype}};
  if (vectors) out.push_back({in[0].shape, in[0].dtype});
  return out;
}
template <bool vectors> void run_eig(const KernelArgs& args) {
  const Tile& a = args.in[0];
  const auto breakdown = kernels::eig(a.dtype, batch_count(a), extent(a, 1), a.data, args.out[0].data,
                                      vectors ? args.out[1].data : nullptr);
  if (breakdown.happened()) throw_not_converged(a, breakdown.matrix);
}

// dw = diag(v^-1 da v), so the cotangent of a is v^-T diag(gw) v^T.
Array values_cotangent(const Array& v, const Array& gw) {
  const Array scaled = transposed(v) * expand_dims(gw, -1);
  return solve(transposed(v), scaled, SolveHow{});
}
Cotangents vjp_eig(const VjpArgs& v) {
  if (v.cotangents[1].node())
    throw ArgumentError(
        "eig: its eigenvectors have no derivative here, as in JAX: they are determined up to "
        "a factor only. Its eigenvalues have one, and eigh has both");
  return {values_cotangent(v.out[1], v.cotangents[0])};
}
Cotangents vjp_eigvals(const VjpArgs& v) { return {values_cotangent(eig(v.in[0]).second, v.cotangents[0])}; }

void run_schur(const KernelArgs& args) {
  const Tile& a = args.in[0];
  const auto breakdown =
      kernels::schur(a.dtype, batch_count(a), extent(a, 1), a.data, args.out[0].data, args.out[1].data);
  if (breakdown.happened()) throw_not_converged(a, breakdown.matrix);
}

void run_pivots(const KernelArgs& args) {
  const Tile& a = args.in[0];
  kernels::pivoted_columns(a.dtype, batch_count(a), extent(a, 2), extent(a, 1), a.data,
                           args.out[0].as<std::int32_t>());
}

template <bool vectors>
std::int64_t workspace_of_eig(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack([&] { return kernels::eig_workspace(in[0].dtype, extent(in[0], 1), vectors); });
}
std::int64_t workspace_of_schur(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack([&] { return kernels::schur_workspace(in[0].dtype, extent(in[0], 1)); });
}
std::int64_t workspace_of_pivots(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack(
      [&] { return kernels::pivots_workspace(in[0].dtype, extent(in[0], 2), extent(in[0], 1)); });
}

const OpDef eig_op{
    .name = "eig",
    .halves = refuses_halves,
    .infer = infer_eig<true>,
    .sharding = Rule("B.. n n -> B.. n, B.. n n | whole n"),
    .runs = Kernel{run_eig<true>},
    .vjp = vjp_eig,
    .batch = batch_leading,
    .parts = Parts::unreduced_dims,
    .same_bits = SameBits::whole_matrices,
    .may_fail = true,
};
const OpDef eigvals_op{
    .name = "eigvals",
    .halves = refuses_halves,
    .infer = infer_eig<false>,
    .sharding = Rule("B.. n n -> B.. n | whole n"),
    .runs = Kernel{run_eig<false>},
    .vjp = vjp_eigvals,
    .batch = batch_leading,
    .parts = Parts::unreduced_dims,
    .same_bits = SameBits::whole_matrices,
    .may_fail = true,
};
const OpDef schur_op{
    .name = "schur",
    .halves = refuses_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}, {in[0].shape, in[0].dtype}};
    },
    .sharding = Rule("B.. n n -> B.. n n, B.. n n | whole n"),
    .runs = Kernel{run_schur},
    .vjp = NoRule{"a Schur form is not unique; differentiate eigvals, or the function that it is used for"},
    .batch = batch_leading,
    .parts = Parts::unreduced_dims,
    .same_bits = SameBits::whole_matrices,
    .may_fail = true,
};
const OpDef pivots_op{
    .name = "pivoted_columns",
    .halves = refuses_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{with_matrix_dims(in[0].shape, {extent(in[0], 1)}), int32}};
    },
    .sharding = Rule("B.. m n -> B.. n | whole m n"),
    .runs = Kernel{run_pivots},
    .vjp = [](const VjpArgs&) -> Cotangents { return Cotangents(1); },  // a step function
    .batch = batch_leading,
    .parts = Parts::all_dims,
    .same_bits = SameBits::whole_matrices,
};
const Registered registered[] = {Registered(eig_op), Registered(eigvals_op), Registered(schur_op),
                                 Registered(pivots_op)};
const TakesWorkspace takes[] = {
    {eig_op, workspace_of_eig<true>},
    {eigvals_op, workspace_of_eig<false>},
    {schur_op, workspace_of_schur},
    {pivots_op, workspace_of_pivots},
};

}  // namespace

std::pair<Array, Array> eig(const Array& a) {
  auto results = record_all(eig_op, no_params(), {a});
  return {results[0], results[1]};
}
Array eigvals(const Array& a) { return record(eigvals_op, no_params(), {a}); }
std::pair<Array, Array> schur(const Array& a) {
  auto results = record_all(schur_op, no_params(), {a});
  return {results[0], results[1]};
}
Array pivoted_columns(const Array& a) { return record(pivots_op, no_params(), {a}); }

}  // namespace tessera::factor
