// Common rules of the factorizations: operands are batches of matrices. Batch dims move together and may be
// split; what happens to split matrix dims is decided here:
//
//   matrix dims whole                 every rank calls LAPACK on its own matrices
//   split, and many matrices          the axes move to a batch dim (an all-to-all), LAPACK, and back
//   split, and few matrices           the ranks that hold a matrix together factor it together (`talk`)
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/factor/lapack.hpp"
#include "ops/build.hpp"
#include "ops/factor/grid.hpp"
#include "ops/factor/traffic/conversation.hpp"
#include "program/builder.hpp"
#include "program/workspace.hpp"

namespace tessera::factor {

// How a tall matrix talks (tall.hpp): whether Q is asked for, and how much the first rank tells the others.
struct TallTalk {
  bool vectors;
  std::int64_t broadcast_elements;
};

// Ranks that work on a matrix together, as the planner sees them.
struct Joint {
  std::span<const Type> in, out;
  const Params& params;
  int ranks = 1;
  std::vector<Tiles> in_tiles, out_tiles;  // of the matrices; empty ones of vectors
  std::int64_t itemsize = 0;
};
// The bytes that rank `me` receives for one matrix, and the elements of memory that a rank takes beside
// operands and results.
struct Forecast {
  Received (*received)(const Joint&, int me) = nullptr;
  std::int64_t (*elements)(const Joint&) = nullptr;
};

// The dims of the op's matrices, by letter.
struct MatrixDims {
  using Tall = std::optional<TallTalk> (*)(const Type& matrix, const Params&, int ranks);

  // "B.. n n, B.. n c -> B.. n c | whole n". Dims behind the batch dims that are not whole may be split for
  // nothing.
  MatrixDims(const char* sentence, Forecast forecast, int like = 0, Tall tall = nullptr);
  Rule rule;
  Forecast forecast;
  int like;                          // the input whose layout the matrix outputs have
  Tall tall;                         // nullopt: it is not tall, or the op does it the general way
  std::vector<std::string> in, out;  // of each operand, without the batch dims: {"nn", "nc"} -> {"nc"}
};

Placement place_factorization(const MatrixDims&, const PlaceArgs&);
std::vector<int> lower_factorization(const MatrixDims&, ProgramBuilder&, const Node&,
                                     std::span<const int> in);

// The record of a factorization: `own` says what is its own (name, types, gradient, flops), the rest follows
// from the letters of its dims.
//
//   const OpDef qr_op =
//       factorization<dims>({.name = "qr", .infer = infer, .vjp = vjp, .flops = flops}, kernel, talk);
template <const MatrixDims& dims>
OpDef factorization(OpDef own, void (*kernel)(const KernelArgs&), void (*talk)(const TalkArgs&)) {
  own.sharding = Place{[](const PlaceArgs& args) { return place_factorization(dims, args); }, &dims.rule};
  own.runs =
      Lower{.write = [](ProgramBuilder& builder, const Node& node,
                        std::span<const int> in) { return lower_factorization(dims, builder, node, in); },
            .kernel = kernel,
            .talk = talk};
  own.halves = refuses_halves;
  own.batch = batch_leading;
  own.may_fail = true;
  return own;
}

// ---- for talk kernels ----
// The ranks that hold matrices together, in the order of the mesh axes over which matrix dims are split.
struct Team {
  explicit Team(const TalkArgs&, const MatrixDims&);
  std::vector<int> device_ids;
  std::int64_t matrices = 1;  // of the batch, on these ranks
  Tiles tiles_of(const TalkArgs&, bool output, std::size_t operand) const;
  // Pointer to the matrix dims of one batch element of a tile.
  template <class T> static T* matrix(const Tile& tile, std::int64_t batch_element, int matrix_ndim = 2);
};
template <class T> T* Team::matrix(const Tile& tile, std::int64_t batch_element, int matrix_ndim) {
  const Shape shape = tile.shape();
  std::int64_t size = 1;
  for (std::size_t d = shape.size() - static_cast<std::size_t>(matrix_ndim); d < shape.size(); ++d)
    size *= shape[d];
  return tile.as<T>() + batch_element * size;
}

// How a talk kernel is told to work; 0: its own choice.
struct FactorParams {
  std::int64_t block = 0;
  int grid_rows = 0;
  bool nan_for_failure = false;  // of cholesky: NaN instead of a LinAlgError
  template <class V> void fields(V&& visit) const {
    visit("block", block);
    visit("grid_rows", grid_rows);
    visit("nan_for_failure", nan_for_failure);
  }
};
GridShape grid_shape(const FactorParams&, int ranks);

// ---- for forecasts ----

// A matrix dealt over a grid in blocks.
inline BlockCyclic dealt(GridShape grid, std::int64_t rows, std::int64_t columns, std::int64_t block) {
  return {{rows, block, grid.rows}, {columns, block, grid.columns}};
}
// The first rank's part, with columns padded as GridMatrix does, and the messages of its way there and back.
std::int64_t part_elements(const BlockCyclic&, std::int64_t itemsize);
// Two panels that are under way.
std::int64_t panel_elements(const BlockCyclic&);

double epsilon(Dtype);
// "matrix (2, 0) of the batch": its place in the global array, for errors. "" when there is no batch.
std::string batch_element_text(const Tile&, std::int64_t element, int matrix_ndim = 2);
[[noreturn]] void throw_singular(const Tile&, std::int64_t element, std::int64_t pivot);
[[noreturn]] void throw_not_positive_definite(const Tile&, std::int64_t element, std::int64_t minor);
[[noreturn]] void throw_ill_conditioned(const Tile&, std::int64_t element, double rcond);
// Once in a session, by a rank that has the matrix.
struct ConditionWarning {
  bool was_given = false;
};
enum class Speaker { this_rank, first_rank, another };
void warn_of_condition(const Tile&, std::int64_t element, double rcond, Speaker);
[[noreturn]] void throw_not_converged(const Tile&, std::int64_t element);

std::int64_t batch_count(const Tile&, int matrix_ndim = 2);
std::int64_t batch_count(const Type&);
// Extent of the tile's dim, counted from the last.
inline std::int64_t extent(const Tile& tile, int from_last) {
  const Range& range = tile.box[tile.box.size() - static_cast<std::size_t>(from_last)];
  return std::max<std::int64_t>(range.size(), 0);
}
inline std::int64_t extent(const Type& type, int from_last) {
  return type.shape[type.shape.size() - static_cast<std::size_t>(from_last)];
}

// The answer of `ask`; 0 for a matrix beyond LAPACK's integers, which is refused when it is worked on.
template <class Ask> std::int64_t workspace_of_lapack(Ask&& ask) {
  try {
    return ask();
  } catch (const LinAlgError&) {
    return 0;
  }
}

// Shape {batch dims of `type`, tail...}.
Shape with_matrix_dims(const Shape& shape, std::initializer_list<std::int64_t> tail, int matrix_ndim = 2);

// Type checks of the public functions.
void check_matrices(const Array&, bool square);

}  // namespace tessera::factor
