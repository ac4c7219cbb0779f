// Eigenvalues and eigenvectors of Hermitian matrices; the lower triangle is read.
#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/scalapack.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

constexpr std::int64_t small = 64;  // is done by one rank

BlockCyclic layout_of(std::int64_t n, int ranks) {
  const GridShape grid = grid_for(ranks);
  return dealt(grid, n, n, n <= small ? std::max<std::int64_t>(n, 1) : block_for(n, grid.columns, 64));
}
Received received(const Joint& joint, int me) {
  const std::int64_t n = extent(joint.in[0], 1);
  const BlockCyclic layout = layout_of(n, joint.ranks);
  Received heard;
  heard.dealt.add(loaded_from_others(joint.in_tiles[0], layout, me) * joint.itemsize);
  if (joint.out.size() == 2)
    heard.dealt.add(stored_from_others(joint.out_tiles[1], layout, me) * joint.itemsize);
  if (n > small) {
    hear_scalapack(heard, {layout, me, joint.itemsize});
  } else if (n > 0) {
    heard.broadcast.add(me == 0 ? 0 : 8);
    heard.broadcast.add(me == 0 ? 0 : n * static_cast<std::int64_t>(itemsize(joint.out[0].dtype)));
  }
  return heard;
}
// The matrix, its vectors, and a workspace of two more.
std::int64_t memory(const Joint& joint) {
  return 4 * part_elements(layout_of(extent(joint.in[0], 1), joint.ranks), joint.itemsize);
}
const MatrixDims dims("B.. n n -> B.. n, B.. n n | whole n", {received, memory}),
    value_dims("B.. n n -> B.. n | whole n", {received, memory});

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

// One block on the grid's first rank: small matrices are not worth a conversation.
template <class T> bool eigh_alone(const Grid& grid, GridMatrix<T>& a, real_of<T>* w, GridMatrix<T>& z) {
  const auto n = static_cast<int>(a.layout.rows.extent);
  std::int64_t failed = 0;
  if (grid.rank == 0) {
    // By rows and by columns the memory of a Hermitian matrix differs by a conjugate; the kernel wants rows.
    std::vector<T> rows(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    const auto turn = [n](const T* from, T* to) {
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) to[i * n + j] = from[i + j * n];
    };
    turn(a.values.data(), rows.data());
    std::vector<T> vectors(rows.size());
    failed = kernels::eigh(dtype_of<T>(), 1, n, rows.data(), w, vectors.data()).happened();
    turn(vectors.data(), z.values.data());
  }
  counted::broadcast(*grid.all, &failed, sizeof failed, 0);
  counted::broadcast(*grid.all, w, n * static_cast<std::int64_t>(sizeof(real_of<T>)), 0);
  return failed == 0;
}

template <class T, bool vectors> void eigh_together(const TalkArgs& args) {
  const Team team(args, vectors ? dims : value_dims);
  const Grid grid(team.device_ids, grid_for(static_cast<int>(team.device_ids.size())));
  const Tile &a = args.local.in[0], &w = args.local.out[0];
  const std::int64_t n = a.global.back();
  const Tiles in = team.tiles_of(args, false, 0);
  const BlockCyclic layout = layout_of(n, grid.all->size());
  std::int64_t failed_matrix = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    real_of<T>* values = Team::matrix<real_of<T>>(w, i, 1);
    if (!magnitude_of(grid, in, Team::matrix<T>(a, i), Part::lower).is_finite()) {
      kernels::fill_nan(values, n);  // the iterations might not end
      if constexpr (vectors)
        fill_nan(grid, team.tiles_of(args, true, 1), Team::matrix<T>(args.local.out[1], i));
      continue;
    }
    GridMatrix<T> matrix(grid, layout), z(grid, layout);
    load(grid, in, Team::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld);
    if (n > 0) {
      if (n > small) count_scalapack({layout, grid.rank, static_cast<std::int64_t>(sizeof(T))});
      const bool converged = n <= small ? eigh_alone(grid, matrix, values, z) : eigh(grid, matrix, values, z);
      if (!converged && failed_matrix < 0) failed_matrix = i;
    }
    if constexpr (vectors)
      store(grid, team.tiles_of(args, true, 1), Team::matrix<T>(args.local.out[1], i), layout,
            z.values.data(), z.ld);
  }
  if (failed_matrix >= 0) throw_not_converged(a, failed_matrix);
}

template <bool vectors> void talk(const TalkArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype,
                         [&](auto zero) { eigh_together<decltype(zero), vectors>(args); });
}

// a (..., n) as the columns' factors: (..., 1, n).
Array along_columns(const Array& values, Dtype dtype) { return astype(expand_dims(values, -2), dtype); }

// S = V (diag(gw) + E o V^H gV) V^H with E_ij = 1 / (w_j - w_i) off the diagonal. Only the lower triangle
// was read, so it gets what a Hermitian change of both would do: tril(S + S^H), the diagonal once.
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

const OpDef eigh_op = factorization<dims>(
    {.name = "eigh", .infer = infer<true>, .vjp = vjp_vectors, .flops = flops}, kernel<true>, talk<true>);
const OpDef eigvalsh_op =
    factorization<value_dims>({.name = "eigvalsh", .infer = infer<false>, .vjp = vjp_values, .flops = flops},
                              kernel<false>, talk<false>);
const Registered registered(eigh_op), registered_values(eigvalsh_op);
const TakesWorkspace takes(eigh_op, workspace<true>), takes_for_values(eigvalsh_op, workspace<false>);

}  // namespace

std::pair<Array, Array> eigh(const Array& a) {
  auto results = record_all(eigh_op, no_params(), {a});
  return {results[0], results[1]};
}
Array eigvalsh(const Array& a) { return record(eigvalsh_op, no_params(), {a}); }

}  // namespace tessera::factor
