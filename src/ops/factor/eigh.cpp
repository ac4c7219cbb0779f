// Eigenvalues and eigenvectors of Hermitian matrices; the lower triangle is read.
#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/two_stage/alone.hpp"
#include "ops/factor/two_stage/two_stage.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

BlockCyclic layout_of(std::int64_t n, int ranks) {
  return is_quicker_alone(n) ? one_block({1, ranks}, n, n) : two_stage_layout(n, ranks);
}
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const std::int64_t n = extent(plan.in[0], 1);
  const bool vectors = plan.out.size() == 2, alone = is_quicker_alone(n);
  const BlockCyclic layout = layout_of(n, plan.ranks);
  ReceivedBytes traffic;
  const Tiles& in = plan.in_tiles[0];
  traffic.redistributed.add(loaded_from_others(in, layout, me, alone ? Part::all : Part::lower) *
                            plan.itemsize);
  if (vectors) traffic.redistributed.add(stored_from_others(plan.out_tiles[1], layout, me) * plan.itemsize);
  const auto real_itemsize = static_cast<std::int64_t>(itemsize(plan.out[0].dtype));
  if (!alone)
    predict_two_stages(traffic, {layout, me, plan.itemsize}, real_itemsize, vectors);
  else if (n > 0)
    predict_values(traffic, me, n * real_itemsize);
  return traffic;
}
// The memory that a rank needs: the matrix, the vectors, their rows, and a workspace as large as the matrix;
// on the first rank also the reflectors of the band.
std::int64_t memory(const MatrixGroupPlan& plan) {
  const std::int64_t n = extent(plan.in[0], 1);
  const bool vectors = plan.out.size() == 2;
  const std::int64_t part = part_elements(layout_of(n, plan.ranks), plan.itemsize);
  return (vectors ? 4 : 2) * part + (vectors && !is_quicker_alone(n) ? n * n / 2 : 0);
}
const MatrixDims dims("B.. n n -> B.. n, B.. n n | whole n", {predicted, memory}),
    value_dims("B.. n n -> B.. n | whole n", {predicted, memory});

template <bool vectors> std::vector<Type> infer(std::span<const Type> in, const Params&) {
  std::vector<Type> out{{with_matrix_dims(in[0].shape, {extent(in[0], 1)}), real_dtype(in[0].dtype)}};
  if (vectors) out.push_back({in[0].shape, in[0].dtype});
  return out;
}

template <bool vectors> void kernel(const KernelArgs& args) {
  const Tile& a = args.in[0];
  const auto breakdown = kernels::eigh(a.dtype, batch_count(a), extent(a, 1), a.data, args.out[0].data,
                                       vectors ? args.out[1].data : nullptr);
  if (breakdown.happened()) throw_not_converged(a, breakdown.matrix);
}

// Factors a matrix on the first rank alone.
template <class T, bool with_vectors> bool eigh_alone(const Grid& grid, std::int64_t n, const Tiles& in,
                                                      const T* a, real_of<T>* w, const Tiles& v_tiles, T* v) {
  OnFirst<T> matrix(grid, n, n), vectors(grid, n, with_vectors ? n : 0);
  matrix.load(in, a);
  bool converged = true;
  if (grid.rank == 0)
    converged = !kernels::eigh(dtype_of<T>(), 1, n, matrix.data(), w, with_vectors ? vectors.data() : nullptr)
                     .happened();
  if (with_vectors) vectors.store(v_tiles, v);
  return broadcast_values(grid, converged, w, n);
}
template <class T, bool with_vectors> bool eigh_on_grid(const Grid& grid, std::int64_t n, const Tiles& in,
                                                        const T* a, real_of<T>* w, const Tiles& v_tiles,
                                                        T* v) {
  const BlockCyclic layout = layout_of(n, grid.all->size());
  GridMatrix<T> matrix(grid, layout, 0, true);
  const int exponent = load_hermitian(grid, in, a, matrix);
  GridMatrix<T> z(grid, with_vectors ? layout : BlockCyclic{layout.rows, {0, 1, layout.columns.parts}}, 0,
                  true);
  const bool converged = eigh_in_two_stages(grid, matrix, w, with_vectors ? &z : nullptr);
  kernels::scale(w, n, -exponent);
  if (with_vectors) store(grid, v_tiles, v, layout, z.values.data(), z.ld);
  return converged;
}

template <class T, bool vectors> void eigh_together(const CommunicationArgs& args) {
  const MatrixGroup team(args, vectors ? dims : value_dims);
  const Grid grid(team.device_ids, {1, static_cast<int>(team.device_ids.size())});
  const Tile &a = args.local.in[0], &w = args.local.out[0];
  const std::int64_t n = a.global.back();
  const Tiles in = team.tiles_of(args, false, 0);
  std::int64_t failed_matrix = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    real_of<T>* values = MatrixGroup::matrix<real_of<T>>(w, i, 1);
    if (!magnitude_of(grid, in, MatrixGroup::matrix<T>(a, i), Part::lower).is_finite()) {
      kernels::fill_nan(values, n);  // iterations on NaN might not end
      if constexpr (vectors)
        fill_nan(grid, team.tiles_of(args, true, 1), MatrixGroup::matrix<T>(args.local.out[1], i));
      continue;
    }
    if (n == 0) continue;
    const auto work = is_quicker_alone(n) ? eigh_alone<T, vectors> : eigh_on_grid<T, vectors>;
    const Tiles v_tiles = vectors ? team.tiles_of(args, true, 1) : Tiles();
    T* const v = vectors ? MatrixGroup::matrix<T>(args.local.out[1], i) : nullptr;
    const bool converged = work(grid, n, in, MatrixGroup::matrix<T>(a, i), values, v_tiles, v);
    if (!converged && failed_matrix < 0) failed_matrix = i;
  }
  if (failed_matrix >= 0) throw_not_converged(a, failed_matrix);
}

template <bool vectors> void communicate(const CommunicationArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype,
                         [&](auto zero) { eigh_together<decltype(zero), vectors>(args); });
}

// Values a (..., n) as factors of the columns: (..., 1, n).
Array along_columns(const Array& values, Dtype dtype) { return astype(expand_dims(values, -2), dtype); }

// S = V (diag(gw) + E o V^H gV) V^H with E_ij = 1 / (w_j - w_i) off the diagonal. Only the lower triangle was
// read, so its cotangent is that of a Hermitian change of both: tril(S + S^H), the diagonal once.
Array lower_cotangent(const Array& w, const Array& v, const Array& gw, const Array& gv) {
  const Dtype dtype = v.dtype();
  const Array mask = diagonal_mask(v, dtype);
  Array inner;
  if (gv.node()) {
    const Array gaps = along_columns(w, dtype) - astype(expand_dims(w, -1), dtype) + mask;
    inner = matmul(adjoint(v), gv) * (reciprocal(gaps) - mask);
  }
  if (gw.node())
    inner = inner.node() ? inner + mask * along_columns(gw, dtype) : mask * along_columns(gw, dtype);
  const Array s = matmul(matmul(v, inner), adjoint(v));
  const Array both = s + adjoint(s);
  return lower_part(both - both * (mask * 0.5));
}

Cotangents vjp_vectors(const VjpArgs& v) {
  const bool is_complex_matrix = is_complex(v.in[0].dtype());
  const Array gv = v.cotangents[1].node() && is_complex_matrix ? conj(v.cotangents[1]) : v.cotangents[1];
  const Array g = lower_cotangent(v.out[0], v.out[1], v.cotangents[0], gv);
  return {is_complex_matrix ? conj(g) : g};
}
Cotangents vjp_values(const VjpArgs& v) {
  const auto [w, vectors] = eigh(v.in[0]);
  const Array g = lower_cotangent(w, vectors, v.cotangents[0], Array());
  return {is_complex(g.dtype()) ? conj(g) : g};
}

double flops(std::span<const Type> in, std::span<const Type> out, const Params&) {
  return (out.size() == 2 ? 9.0 : 4.0 / 3) * static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(extent(in[0], 1));
}

template <bool vectors>
std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack(
      [&] { return kernels::eigh_workspace(in[0].dtype, batch_count(in[0]), extent(in[0], 1), vectors); });
}

const OpDef eigh_op =
    factorization<dims>({.name = "eigh", .infer = infer<true>, .vjp = vjp_vectors, .flops = flops},
                        kernel<true>, communicate<true>);
const OpDef eigvalsh_op =
    factorization<value_dims>({.name = "eigvalsh", .infer = infer<false>, .vjp = vjp_values, .flops = flops},
                              kernel<false>, communicate<false>);
const Registered registered(eigh_op), registered_values(eigvalsh_op);
const TakesWorkspace takes(eigh_op, workspace<true>), takes_for_values(eigvalsh_op, workspace<false>);

}  // namespace

std::pair<Array, Array> eigh(const Array& a) {
  auto results = record_all(eigh_op, no_params(), {a});
  return {results[0], results[1]};
}
Array eigvalsh(const Array& a) { return record(eigvalsh_op, no_params(), {a}); }

}  // namespace tessera::factor
