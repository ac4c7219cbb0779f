// Common rules of the factorizations: operands are batches of matrices. Batch dims move together and may be
// split; split matrix dims are handled here:
//
//   matrix dims unsplit               every rank calls LAPACK on its own matrices
//   split, and many matrices          the axes move to a batch dim (an all-to-all), LAPACK, and back
//   split, and few matrices           the ranks that hold a matrix factor it together (`communicate`)
//
// In a ReproducibleScope another record stands in for each: blocks of columns at fixed global positions, each
// panel on one rank and sums in one order (kernels/factor/ordered_columns.hpp), on one rank as on several.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/factor/lapack.hpp"
#include "ops/build.hpp"
#include "ops/factor/grid.hpp"
#include "ops/factor/traffic/traffic.hpp"
#include "program/builder.hpp"
#include "program/workspace.hpp"

namespace tessera::factor {

// The traffic of a tall matrix (tall.hpp): whether Q is wanted, and how many elements rank 0 broadcasts.
struct TallTraffic {
  bool vectors;
  std::int64_t broadcast_elements;
};

// Ranks that factor a matrix together, as the planner sees them.
struct MatrixGroupPlan {
  std::span<const Type> in, out;
  const Params& params;
  int ranks = 1;
  std::vector<Tiles> in_tiles, out_tiles;  // of the matrices; empty ones of vectors
  std::int64_t itemsize = 0;
  kernels::SumOrder order = kernels::SumOrder::any;
};
// The bytes that rank `me` receives for one matrix, and the elements of memory that a rank needs besides
// operands and results.
struct Forecast {
  ReceivedBytes (*predicted)(const MatrixGroupPlan&, int me) = nullptr;
  std::int64_t (*elements)(const MatrixGroupPlan&) = nullptr;
};

// The dims of the op's matrices, by letter.
struct MatrixDims {
  using Tall = std::optional<TallTraffic> (*)(const Type& matrix, const Params&, int ranks);

  // Example: "B.. n n, B.. n c -> B.. n c | whole n". Dims behind the batch dims that are not `whole` may be
  // split without communication.
  MatrixDims(const char* sentence, Forecast forecast, int like = 0, Tall tall = nullptr);
  Rule rule;
  Forecast forecast;
  int like;                          // the input whose layout the matrix outputs have
  Tall tall;                         // nullopt: not tall, or the op uses its general algorithm
  std::vector<std::string> in, out;  // of each operand, without the batch dims: {"nn", "nc"} -> {"nc"}
};

Placement place_factorization(const MatrixDims&, const PlacementArgs&);
std::vector<int> lower_factorization(const MatrixDims&, ProgramBuilder&, const Node&,
                                     std::span<const int> in);

// Makes the record of a factorization: `own` has its specific fields (name, types, gradient, flops), the rest
// follows from the letters of its dims.
//
//   const OpDef qr_op =
//       factorization<dims>({.name = "qr", .infer = infer, .vjp = vjp, .flops = flops}, kernel, communicate);
template <const MatrixDims& dims> OpDef factorization(OpDef own, void (*kernel)(const KernelArgs&),
                                                      void (*communicate)(const CommunicationArgs&)) {
  own.sharding =
      PlacementRule{[](const PlacementArgs& args) { return place_factorization(dims, args); }, &dims.rule};
  own.runs =
      Lower{.write = [](ProgramBuilder& builder, const Node& node,
                        std::span<const int> in) { return lower_factorization(dims, builder, node, in); },
            .kernel = kernel,
            .communicate = communicate};
  own.halves = refuses_halves;
  own.batch = batch_leading;
  own.parts = Parts::unreduced_dims;
  own.may_fail = true;
  own.same_bits = SameBits::whole_matrices;
  return own;
}

// ---- in a ReproducibleScope ----
//
//   extern const OpDef ordered_qr_op;
//   const OpDef qr_op = with_ordered<ordered_qr_op>(factorization<dims>(...)),
//               ordered_qr_op = ordered_record(qr_op, kernel_of_one_rank);
//   const RegisteredPair<dims> registered(qr_op, ordered_qr_op, workspace);

template <const OpDef& other> OpDef with_ordered(OpDef own) {
  own.instead = [](const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) {
    return record_all(other, params, in);
  };
  own.same_bits = SameBits::always;
  return own;
}
// `kernel`: the same algorithm as `communicate`, on one rank.
OpDef ordered_record(OpDef own, KernelFunction kernel);
inline kernels::SumOrder order_of(const OpDef& op) {
  return op.same_bits == SameBits::made_for_it ? kernels::SumOrder::fixed : kernels::SumOrder::any;
}
// The bytes that an ordered kernel needs besides operands and results.
std::int64_t ordered_workspace(const MatrixDims&, std::span<const Type> in, std::span<const Type> out,
                               const Params&);
// Registers an op and its ordered record, with the memory that each takes.
template <const MatrixDims& dims> struct RegisteredPair {
  RegisteredPair(const OpDef& op, const OpDef& ordered, WorkspaceFunction workspace)
      : registered(op),
        takes(op, workspace),
        ordered_takes(ordered, [](std::span<const Type> in, std::span<const Type> out, const Params& p) {
          return ordered_workspace(dims, in, out, p);
        }) {}
  Registered registered;
  TakesWorkspace takes, ordered_takes;
};

// ---- for communicating kernels ----
inline const KernelArgs& local_of(const CommunicationArgs& args) { return args.local; }
inline const KernelArgs& local_of(const KernelArgs& args) { return args; }

// The ranks that hold matrices together, in the order of the mesh axes that split matrix dims.
struct MatrixGroup {
  MatrixGroup(const CommunicationArgs&, const MatrixDims&);
  MatrixGroup(const KernelArgs&, const MatrixDims&);  // this rank alone
  std::vector<int> device_ids;
  std::int64_t matrices = 1;  // of the batch, on these ranks
  kernels::SumOrder order;
  int ranks() const { return static_cast<int>(device_ids.size()); }
  Tiles tiles_of(const CommunicationArgs&, bool output, std::size_t operand) const;
  Tiles tiles_of(const KernelArgs&, bool output, std::size_t operand) const;
  // Pointer to the matrix dims of one batch element of a tile.
  template <class T> static T* matrix(const Tile& tile, std::int64_t batch_element, int matrix_ndim = 2);
};
template <class T> T* MatrixGroup::matrix(const Tile& tile, std::int64_t batch_element, int matrix_ndim) {
  const Shape shape = tile.shape();
  std::int64_t size = 1;
  for (std::size_t d = shape.size() - static_cast<std::size_t>(matrix_ndim); d < shape.size(); ++d)
    size *= shape[d];
  return tile.as<T>() + batch_element * size;
}

// Parameters of a communicating kernel; 0: its own choice.
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
GridShape grid_shape(const FactorParams&, int ranks, kernels::SumOrder);
// Blocks of a square grid's columns; at fixed positions whatever the grid, with SumOrder::fixed.
std::int64_t block_size_of(std::int64_t extent, int parts, kernels::SumOrder);

// ---- for forecasts ----

// A matrix scattered over a grid in blocks.
inline BlockCyclic block_cyclic(GridShape grid, std::int64_t rows, std::int64_t columns, std::int64_t block) {
  return {{rows, block, grid.rows}, {columns, block, grid.columns}};
}
// The elements of the first rank's part, with columns padded as by GridMatrix, and of its messages.
std::int64_t part_elements(const BlockCyclic&, std::int64_t itemsize);
// The elements of two panels in transit.
std::int64_t panel_elements(const BlockCyclic&);

double epsilon(Dtype);
// "matrix (2, 0) of the batch": its global index, for errors. "" if there is no batch.
std::string batch_element_text(const Tile&, std::int64_t element, int matrix_ndim = 2);
[[noreturn]] void throw_singular(const Tile&, std::int64_t element, std::int64_t pivot);
[[noreturn]] void throw_not_positive_definite(const Tile&, std::int64_t element, std::int64_t minor);
[[noreturn]] void throw_ill_conditioned(const Tile&, std::int64_t element, double rcond);
// Given once per session, by a rank that holds the matrix.
struct ConditionWarning {
  bool was_given = false;
};
enum class Reporter { this_rank, first_rank, another };
void warn_of_condition(const Tile&, std::int64_t element, double rcond, Reporter);
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

// The result of `ask`; 0 for a matrix beyond LAPACK's integers, which is rejected when it is factored.
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
