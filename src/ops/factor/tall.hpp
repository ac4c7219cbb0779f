// Tall and narrow matrices that several ranks hold by rows: one QR per rank, and a butterfly of triangles
// (TSQR: Demmel, Grigori, Hoemmen and Langou 2012). No row of the matrix is sent.
//
//   rank 0:  A0 = Q0 R0 --+-- [R0; R1] = Z  R01 --+-- [R01; R23] = Z  R
//   rank 1:  A1 = Q1 R1 --+                       |
//   rank 2:  A2 = Q2 R2 --+-- [R2; R3] = Z' R23 --+       Q = [Q0 (its part of Z) (its part of Z) ...; ...]
//   rank 3:  A3 = Q3 R3 --+
//
// Both partners of a round compute the same, so every rank knows its part of each Z and no second pass is
// needed. Ranks beyond the last power of two first send their triangle to a partner, and receive their part
// of the product at the end.
#pragma once
#include <cstdint>
#include <vector>

#include "ops/factor/factor_op.hpp"

namespace tessera::factor {

// Whether the algorithm suits the matrix: each rank holds at least n rows, ceil(m / ranks) >= n (and m > n),
// and n is small enough that ranks may repeat each other's arithmetic on n x n.
bool is_tall(std::int64_t m, std::int64_t n, int ranks);

// The steps of a rank that move its triangle, in this order.
struct TallStep {
  enum class Kind { send, receive, exchange, return_q, receive_q } kind;
  int peer;
  friend bool operator==(const TallStep&, const TallStep&) = default;
};
std::vector<TallStep> tall_steps(int ranks, int me);

// The traffic, for explain and CommStats. `broadcast_elements`: elements that rank 0 broadcasts afterwards.
std::vector<CommunicationCost> tall_costs(const Type& matrix, const MeshAxes&, int ranks, bool vectors,
                                          std::int64_t broadcast_elements, std::int64_t matrices);
inline std::int64_t triangle_elements(std::int64_t n) { return n * (n + 1) / 2; }

// This rank's rows of a tall matrix, factored. Collective over `all`.
template <class T> struct TallFactor {
  std::int64_t rows, n, known;  // known = min(rows, n) columns of the own Q
  Pooled<T> own;                // rows x known, column-major: Q of this rank's rows on their own
  std::vector<T> turn;          // n x n: this rank's rows of the complete Q are own * turn[0:known, :]
  std::vector<T> r;             // n x n, zeros below the diagonal; valid on the first rank only
  // q (rows x n, row-major) = own * turn * right.
  void write_q(T* q, std::int64_t row_step, const T* right) const;
};

// The rows of a matrix for TallFactor: in place if only rows are split, else redistributed.
struct TallRows {
  TallRows(const std::vector<int>& device_ids, const Tiles& tiles, std::int64_t m, std::int64_t n);
  const comm::Communicator* all;
  int rank, first;    // first: the rank with row 0
  std::int64_t rows;  // of this rank
  bool are_in_place;
  const Tiles& tiles;
  BlockCyclic layout;  // for rows that are not in place
  std::vector<int> device_ids;
  template <class T> TallFactor<T> factor(const T* tile, bool vectors) const;
  // Computes the rows of q = (Q of the factor) * right and sends them to the tiles that hold them.
  template <class T> void store(const TallFactor<T>&, const T* right, const Tiles& q_tiles, T* q_tile) const;
};

// QR with Householder's signs.
template <class T>
void tall_qr(const TallRows&, const T* a, const Tiles& q_tiles, T* q_tile, const Tiles& r_tiles, T* r_tile);
template <class T> struct TallVectors {
  const Tiles& u_tiles;
  T* u;
  const Tiles& vh_tiles;
  T* vh;
};
// The reduced SVD; `out` null: values alone. False: no convergence.
template <class T> bool tall_svd(const TallRows&, const T* a, const TallVectors<T>* out, real_of<T>* s);

}  // namespace tessera::factor
