#include "ops/factor/tall.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "comm/collectives/collectives.hpp"
#include "comm/watch/traffic.hpp"
#include "kernels/factor/tall_qr.hpp"
#include "kernels/move/transpose_tile.hpp"

namespace tessera::factor {
namespace {

int power_below(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }

}  // namespace

bool is_tall(std::int64_t m, std::int64_t n, int ranks) {
  constexpr std::int64_t widest = 512;
  return n > 0 && m > n && n <= widest && block_size(m, ranks) >= n;
}

std::vector<TallStep> tall_steps(int ranks, int me) {
  using enum TallStep::Kind;
  const int inside = power_below(ranks);
  if (me >= inside) return {{send, me - inside}, {receive_q, me - inside}};
  std::vector<TallStep> steps;
  const bool has_extra = me + inside < ranks;
  if (has_extra) steps.push_back({receive, me + inside});
  for (int bit = 1; bit < inside; bit *= 2) steps.push_back({exchange, me ^ bit});
  if (has_extra) steps.push_back({return_q, me + inside});
  return steps;
}

std::vector<CommunicationCost> tall_costs(const Type& matrix, const MeshAxes& axes, int ranks, bool vectors,
                                          std::int64_t broadcast_elements, std::int64_t matrices) {
  const std::int64_t n = extent(matrix, 1),
                     bytes = matrices * static_cast<std::int64_t>(itemsize(matrix.dtype));
  std::int64_t elements = 0, calls = 0, sent = 0;
  for (int rank = 0; rank < ranks; ++rank) {  // the busiest rank: rank 0 broadcasts
    std::int64_t swapped = 0, steps = 0;
    for (const TallStep& step : tall_steps(ranks, rank)) {
      if (step.kind == TallStep::Kind::receive || step.kind == TallStep::Kind::exchange)
        swapped += triangle_elements(n), ++steps;
      if (step.kind == TallStep::Kind::receive_q && vectors) swapped += n * n, ++steps;
    }
    const std::int64_t broadcast = rank == 0 ? 0 : broadcast_elements;
    if (rank > 0 && swapped + broadcast <= elements + sent) continue;
    elements = swapped, calls = steps, sent = broadcast;
  }
  return {{"collective-permute", axes, elements * bytes, matrices * calls},
          {"broadcast", axes, sent * bytes, matrices}};
}

namespace {

template <class T> std::int64_t bytes_of(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(T));
}

template <class T> std::vector<T> packed(const std::vector<T>& r, std::int64_t n) {
  std::vector<T> triangle;
  triangle.reserve(triangle_elements(n));
  for (std::int64_t j = 0; j < n; ++j)
    triangle.insert(triangle.end(), r.begin() + j * n, r.begin() + j * n + j + 1);
  return triangle;
}
// Unpacks the triangle to the first rows of a column-major matrix.
template <class T> void unpack(const std::vector<T>& triangle, std::int64_t n, T* to, std::int64_t ld) {
  const T* from = triangle.data();
  for (std::int64_t j = 0; j < n; from += ++j) std::copy(from, from + j + 1, to + j * ld);
}

// Replaces column-major a (m x n) by Q (m x min(m, n)) if `vectors`; r (n x n) receives the triangle.
template <class T>
void local_qr(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, std::vector<T>& r, bool vectors) {
  const std::int64_t k = std::min(m, n);
  r.assign(n * n, T(0));
  if (k == 0) return;
  if (kernels::goes_by_chunks(m, n, sizeof(T))) return kernels::chunked_qr(m, n, a, ld, r.data(), vectors);
  const int rows = kernels::lapack_int(m, "a number of rows per rank"), columns = static_cast<int>(n),
            narrow = static_cast<int>(k), step = kernels::lapack_int(ld, "a number of rows per rank");
  std::vector<T> tau(k), work(64 * n);
  lapack::geqrf(rows, columns, a, step, tau.data(), work.data(), static_cast<int>(work.size()));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i <= std::min(j, k - 1); ++i) r[i + j * n] = a[i + j * ld];
  if (vectors)
    lapack::orgqr(rows, narrow, narrow, a, step, tau.data(), work.data(), static_cast<int>(work.size()));
}

// c = a b, all n x n, column-major.
template <class T>
std::vector<T> square_product(std::int64_t n, const T* a, std::int64_t lda, const T* b, std::int64_t ldb) {
  std::vector<T> c(n * n);
  const int size = static_cast<int>(n);
  lapack::gemm<T>('N', 'N', size, size, size, T(1), a, static_cast<int>(lda), b, static_cast<int>(ldb), T(0),
                  c.data(), size);
  return c;
}

template <class T> std::vector<T> identity(std::int64_t n) {
  std::vector<T> result(n * n);
  for (std::int64_t i = 0; i < n; ++i) result[i + i * n] = T(1);
  return result;
}

// One rank's steps through the butterfly.
template <class T> class Butterfly {
 public:
  Butterfly(const comm::Communicator& all, bool vectors, TallFactor<T>& factor)
      : all_(all), n_(factor.n), vectors_(vectors), factor_(factor) {}

  void run() {
    for (const TallStep& step : tall_steps(all_.size(), all_.rank())) take_step(step);
  }

 private:
  using Kind = TallStep::Kind;
  void take_step(const TallStep& step) {
    switch (step.kind) {
      case Kind::send: return comm::send(all_, std::span<const T>(packed(factor_.r, n_)), step.peer);
      case Kind::receive: return receive_from(step.peer);
      case Kind::exchange: return exchange_with(step.peer);
      case Kind::return_q: return return_q(step.peer);
      case Kind::receive_q:
        if (!vectors_) return;
        comm::receive(all_, std::span<T>(factor_.turn), step.peer);
        comm::count("collective-permute", bytes_of<T>(n_ * n_));
    }
  }
  // [upper; lower] = z r, z (2n x n).
  std::vector<T> stacked_qr(const std::vector<T>& upper, const std::vector<T>& lower) {
    std::vector<T> z(2 * n_ * n_);
    unpack(upper, n_, z.data(), 2 * n_), unpack(lower, n_, z.data() + n_, 2 * n_);
    local_qr(2 * n_, n_, z.data(), 2 * n_, factor_.r, vectors_);
    return z;
  }
  void receive_from(int extra) {
    std::vector<T> theirs(triangle_elements(n_));
    comm::receive(all_, std::span<T>(theirs), extra);
    comm::count("collective-permute", bytes_of<T>(triangle_elements(n_)));
    z_with_extra_ = stacked_qr(packed(factor_.r, n_), theirs);
  }
  void exchange_with(int partner) {
    const auto mine = packed(factor_.r, n_);
    std::vector<T> theirs(mine.size());
    const auto bytes = static_cast<std::int64_t>(mine.size() * sizeof(T));
    comm::send_receive(all_, mine.data(), bytes, partner, theirs.data(), bytes, partner);
    comm::count("collective-permute", bytes);
    const bool is_lower = partner < all_.rank();
    const auto z = is_lower ? stacked_qr(theirs, mine) : stacked_qr(mine, theirs);
    if (vectors_)
      factor_.turn = square_product(n_, factor_.turn.data(), n_, z.data() + (is_lower ? n_ : 0), 2 * n_);
  }
  void return_q(int extra) {
    if (!vectors_) return;
    const T* z = z_with_extra_.data();
    const auto of_extra = square_product(n_, z + n_, 2 * n_, factor_.turn.data(), n_);
    factor_.turn = square_product(n_, z, 2 * n_, factor_.turn.data(), n_);
    comm::send(all_, std::span<const T>(of_extra), extra);
  }

  const comm::Communicator& all_;
  std::int64_t n_;
  bool vectors_;
  TallFactor<T>& factor_;
  std::vector<T> z_with_extra_;
};

}  // namespace

template <class T> void TallFactor<T>::write_q(T* q, std::int64_t row_step, const T* right) const {
  const auto whole = right == nullptr ? turn : square_product(n, turn.data(), n, right, n);
  // Row-major q is q^T in column-major order.
  lapack::gemm<T>('T', 'T', static_cast<int>(n), static_cast<int>(rows), static_cast<int>(known), T(1),
                  whole.data(), static_cast<int>(n), own.data(),
                  static_cast<int>(std::max<std::int64_t>(rows, 1)), T(0), q, static_cast<int>(row_step));
}

TallRows::TallRows(const std::vector<int>& ids, const Tiles& held, std::int64_t m, std::int64_t n)
    : all(&comm::group(ids)),
      rank(all->rank()),
      first(0),
      rows(0),
      are_in_place(true),
      tiles(held),
      layout{{m, block_size(m, static_cast<int>(ids.size())), static_cast<int>(ids.size())}, {n, n, 1}},
      device_ids(ids) {
  for (std::size_t r = 0; r < tiles.held.size(); ++r) {
    const Rectangle& box = tiles.held[r];
    if (!box.is_empty() && (box.columns.start != 0 || box.columns.stop != n)) are_in_place = false;
    if (!box.is_empty() && box.rows.start == 0) first = static_cast<int>(r);
  }
  if (!are_in_place) first = 0;
  const Range mine = tiles.held[rank].rows;
  rows = are_in_place ? std::max<std::int64_t>(mine.size(), 0) : layout.rows.count(rank);
}

template <class T> TallFactor<T> TallRows::factor(const T* tile, bool vectors) const {
  const std::int64_t n = layout.columns.extent, ld = std::max<std::int64_t>(rows, 1);
  TallFactor<T> f{rows, n, std::min(rows, n), Pooled<T>(ld * n), identity<T>(vectors ? n : 0), {}};
  if (are_in_place)
    kernels::transpose_plane(reinterpret_cast<std::byte*>(f.own.data()), ld,
                             reinterpret_cast<const std::byte*>(tile), tiles.row_step, n, rows, sizeof(T));
  else
    load(Grid(device_ids, {all->size(), 1}), tiles, tile, layout, f.own.data(), ld);
  local_qr(rows, n, f.own.data(), ld, f.r, vectors);
  Butterfly<T>(*all, vectors, f).run();
  return f;
}

template <class T>
void TallRows::store(const TallFactor<T>& f, const T* right, const Tiles& q_tiles, T* q_tile) const {
  if (are_in_place) return f.write_q(q_tile, q_tiles.row_step, right);
  Pooled<T> q(rows * f.n), turned(rows * f.n);
  f.write_q(q.data(), f.n, right);
  kernels::transpose_plane(reinterpret_cast<std::byte*>(turned.data()), std::max<std::int64_t>(rows, 1),
                           reinterpret_cast<const std::byte*>(q.data()), f.n, f.n, rows, sizeof(T));
  factor::store(Grid(device_ids, {all->size(), 1}), q_tiles, q_tile, layout,
                static_cast<const T*>(turned.data()), std::max<std::int64_t>(rows, 1));
}

namespace {

template <class T> std::vector<T> signs_of(const TallRows& matrix, const TallFactor<T>& f) {
  const std::int64_t n = f.n;
  std::vector<T> signs(n);
  if (matrix.rank == matrix.first) {
    std::vector<T> top(n * n);
    const int size = static_cast<int>(n);
    lapack::gemm<T>('N', 'N', size, size, size, T(1), f.own.data(), static_cast<int>(f.rows), f.turn.data(),
                    size, T(0), top.data(), size);
    signs = kernels::householder_signs(std::move(top), n);
  }
  counted::broadcast(*matrix.all, signs.data(), bytes_of<T>(n), matrix.first);
  return signs;
}

template <class T> bool is_finite(const std::vector<T>& triangle) {
  kernels::Magnitude magnitude;
  magnitude.add(triangle.data(), static_cast<std::int64_t>(triangle.size()));
  return magnitude.is_finite();
}

// Writes this rank's tile of a small matrix that every rank knows.
template <class T, class F>
void store_known(const Rectangle& mine, std::int64_t row_step, T* tile, F&& value) {
  for (std::int64_t i = mine.rows.start; i < mine.rows.stop; ++i)
    for (std::int64_t j = mine.columns.start; j < mine.columns.stop; ++j)
      tile[(i - mine.rows.start) * row_step + (j - mine.columns.start)] = value(i, j);
}

}  // namespace

template <class T> void tall_qr(const TallRows& matrix, const T* a, const Tiles& q_tiles, T* q_tile,
                                const Tiles& r_tiles, T* r_tile) {
  const TallFactor<T> f = matrix.factor(a, true);
  const std::int64_t n = f.n;
  auto triangle = packed(f.r, n);
  counted::broadcast(*matrix.all, triangle.data(), bytes_of<T>(triangle_elements(n)), 0);
  if (!is_finite(triangle)) {  // the matrix was not finite: NaN passes through every step
    const Grid rows(matrix.device_ids, {matrix.all->size(), 1});
    fill_nan(rows, q_tiles, q_tile);
    fill_nan(rows, r_tiles, r_tile, Part::upper);
    return;
  }
  const auto signs = signs_of(matrix, f);
  std::vector<T> r(n * n), turned(n * n);
  unpack(triangle, n, r.data(), n);
  for (std::int64_t i = 0; i < n; ++i) {
    turned[i + i * n] = signs[i];
    for (std::int64_t j = i; j < n; ++j) r[i + j * n] *= signs[i];
  }
  matrix.store(f, turned.data(), q_tiles, q_tile);
  store_known(r_tiles.held[matrix.rank], r_tiles.row_step, r_tile,
              [&](std::int64_t i, std::int64_t j) { return r[i + j * n]; });
}

// Rank 0 computes the svd of r and broadcasts it: on different processors, vectors of equal singular values
// could differ.
template <class T>
bool tall_svd(const TallRows& matrix, const T* a, const TallVectors<T>* out, real_of<T>* s) {
  const bool vectors = out != nullptr;
  const TallFactor<T> f = matrix.factor(a, vectors);
  const std::int64_t n = f.n, square = vectors ? n * n : 0;
  std::vector<T> found(1 + n + 2 * square);  // whether it failed, s, u and vh of r, row-major
  T *const u = found.data() + 1 + n, *const vh = u + square;
  if (matrix.rank == 0) {
    std::vector<T> rows(n * n);
    kernels::transpose_plane(reinterpret_cast<std::byte*>(rows.data()), n,
                             reinterpret_cast<const std::byte*>(f.r.data()), n, n, n, sizeof(T));
    const bool failed = kernels::svd(dtype_of<T>(), 1, n, n, false, rows.data(), vectors ? u : nullptr, s,
                                     vectors ? vh : nullptr)
                            .happened();
    found[0] = T(failed ? 1 : 0);
    for (std::int64_t i = 0; i < n; ++i) found[1 + i] = T(s[i]);
  }
  counted::broadcast(*matrix.all, found.data(), bytes_of<T>(static_cast<std::int64_t>(found.size())), 0);
  for (std::int64_t i = 0; i < n; ++i) s[i] = real_part(found[1 + i]);
  if (vectors) {
    std::vector<T> turned(n * n);  // column-major
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) turned[i + j * n] = u[i * n + j];
    matrix.store(f, turned.data(), out->u_tiles, out->u);
    store_known(out->vh_tiles.held[matrix.rank], out->vh_tiles.row_step, out->vh,
                [&](std::int64_t i, std::int64_t j) { return vh[i * n + j]; });
  }
  return found[0] == T(0);
}

#define TESSERA_INSTANTIATE(T)                                                             \
  template void tall_qr<T>(const TallRows&, const T*, const Tiles&, T*, const Tiles&, T*); \
  template bool tall_svd<T>(const TallRows&, const T*, const TallVectors<T>*, real_of<T>*);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
