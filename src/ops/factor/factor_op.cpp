#include "ops/factor/factor_op.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/session.hpp"

#include "comm/watch/traffic.hpp"
#include "ops/factor/tall.hpp"
#include "types/extents.hpp"

namespace tessera::factor {
namespace {

bool has(const MeshAxes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
MeshAxes without(MeshAxes axes, const MeshAxes& taken) {
  std::erase_if(axes, [&](int a) { return has(taken, a); });
  return axes;
}

// The axes that split dims which an algorithm needs unsplit, ascending.
std::vector<int> team_axes(const MatrixDims& dims, std::span<const DimAxes> layouts) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < dims.in.size(); ++i) {
    const auto& letters = dims.in[i];
    const std::size_t lead = layouts[i].size() - letters.size();
    for (std::size_t d = 0; d < letters.size(); ++d)
      if (dims.rule.text.is_whole(letters[d]))
        for (const int a : layouts[i][lead + d])
          if (!has(axes, a)) axes.push_back(a);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::vector<int> batch_axes(const DimAxes& layout, std::size_t matrix_ndim) {
  std::vector<int> axes;
  for (std::size_t d = 0; d + matrix_ndim < layout.size(); ++d)
    axes.insert(axes.end(), layout[d].begin(), layout[d].end());
  return axes;
}

std::vector<Sharding> output_layouts(const MatrixDims& dims, const Mesh& mesh, const DimAxes& like) {
  std::vector<Sharding> layouts;
  const std::size_t lead = like.size() - dims.in[dims.like].size();
  for (const auto& letters : dims.out) {
    DimAxes layout(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(lead));
    if (letters.size() == 2)
      layout.insert(layout.end(), like.begin() + static_cast<std::ptrdiff_t>(lead), like.end());
    else
      layout.resize(lead + letters.size());
    layouts.push_back(Sharding::from_dim_axes(mesh, layout));
  }
  return layouts;
}

Shape batch_shape(const Tile& tile, int matrix_ndim) { return without_last(tile.shape(), matrix_ndim); }

}  // namespace

MatrixDims::MatrixDims(const char* sentence, Forecast forecast, int like, Tall tall)
    : rule(sentence), forecast(forecast), like(like), tall(tall) {
  for (std::size_t i = 0; i < rule.text.operands(false); ++i) in.push_back(rule.text.letters(false, i));
  for (std::size_t i = 0; i < rule.text.operands(true); ++i) out.push_back(rule.text.letters(true, i));
}

Placement place_factorization(const MatrixDims& dims, const PlacementArgs& args) {
  std::vector<std::optional<Sharding>> shardings(args.shardings.begin(), args.shardings.end());
  const bool uncommitted =
      std::none_of(shardings.begin(), shardings.end(), [](const auto& s) { return s.has_value(); });
  const auto like = static_cast<std::size_t>(dims.like);
  if (uncommitted && args.wanted && dims.out[0].size() == dims.in[like].size()) shardings[like] = args.wanted;
  std::optional<std::size_t> lead;  // the largest operand that has a layout
  std::vector<DimAxes> layouts;
  const auto bytes = [&](std::size_t i) { return args.in[i].shape.elements(); };
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    const int ndim = args.in[i].shape.ndim();
    layouts.push_back(shardings[i] ? shardings[i]->dim_axes(ndim) : DimAxes(ndim));
    if (shardings[i] && (!lead || bytes(i) > bytes(*lead))) lead = i;
  }
  if (!lead || team_axes(dims, layouts).empty()) return place_by(dims.rule, args);

  const std::size_t batch_ndim = layouts[*lead].size() - dims.in[*lead].size();
  const auto taken = batch_axes(layouts[*lead], dims.in[*lead].size());
  Placement placement;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    DimAxes layout(layouts[*lead].begin(), layouts[*lead].begin() + static_cast<std::ptrdiff_t>(batch_ndim));
    if (shardings[i]) {
      for (std::size_t d = batch_ndim; d < layouts[i].size(); ++d)
        layout.push_back(without(layouts[i][d], taken));
    } else {  // gets the layout of the other operand's rows
      const auto &rows = layouts[*lead][batch_ndim], &columns = layouts[*lead][batch_ndim + 1];
      layout.push_back(rows.empty() && dims.in[*lead] == "nn" ? columns : rows);
      layout.emplace_back();
    }
    layouts[i] = std::move(layout);
    placement.inputs.push_back(Sharding::from_dim_axes(args.mesh, layouts[i]));
  }
  placement.outputs = output_layouts(dims, args.mesh, layouts[like]);
  return placement;
}

namespace {

// A factorization that is being lowered: its operands' layouts, and those that the op needs.
struct Lowering {
  const MatrixDims& dims;
  ProgramBuilder& builder;
  const Node& node;
  std::vector<int> inputs;
  std::vector<Type> in_types = {}, out_types = {};
  std::vector<DimAxes> layouts = {};
  Placement placed = {};
  MeshAxes axes = {};  // axes that split the matrices: their ranks work together
  std::size_t lead = 0;

  Mesh mesh() const { return builder.value(inputs[0]).layout.mesh(); }
  int ranks() const { return static_cast<int>(devices_along(mesh(), axes)); }
};

Lowering lowering_of(const MatrixDims& dims, ProgramBuilder& builder, const Node& node,
                     std::span<const int> in) {
  Lowering l{dims, builder, node, {in.begin(), in.end()}};
  std::vector<std::optional<Sharding>> shardings;
  for (const int v : in) {
    const auto& value = builder.value(v);
    l.in_types.push_back(value.type);
    shardings.emplace_back(value.layout);
    l.layouts.push_back(value.layout.dim_axes(value.type.shape.ndim()));
  }
  for (const auto& output : node.outputs) l.out_types.push_back(output.type);
  static const std::vector<int> none;
  l.placed = place(*node.op, {l.in_types, l.out_types, shardings, *node.params, l.mesh(),
                              node.region ? node.region->manual_axes : none, std::nullopt});
  l.axes = team_axes(dims, l.layouts);
  l.lead = l.layouts[0].size() - dims.in[0].size();
  return l;
}

// The batch dim with the largest blocks, if it gives each rank of the group whole matrices.
std::optional<std::size_t> dim_to_spread(const Lowering& l) {
  std::size_t widest = l.lead;
  std::int64_t most = 0;
  for (std::size_t d = 0; d < l.lead; ++d)
    if (const auto n = block_size(l.in_types[0].shape[d], devices_along(l.mesh(), l.layouts[0][d])); n > most)
      widest = d, most = n;
  return most >= l.ranks() ? std::optional(widest) : std::nullopt;
}

// Scatters the matrices over the ranks of the group, each on one rank.
std::vector<int> spread_over_batch(const Lowering& l, std::size_t dim) {
  const auto spread = [&](DimAxes layout) {
    for (std::size_t d = l.lead; d < layout.size(); ++d) layout[d] = without(layout[d], l.axes);
    layout[dim].insert(layout[dim].end(), l.axes.begin(), l.axes.end());
    return Sharding::from_dim_axes(l.mesh(), layout);
  };
  std::vector<int> moved;
  for (std::size_t i = 0; i < l.inputs.size(); ++i)
    moved.push_back(l.builder.reshard(l.inputs[i], spread(l.layouts[i])));
  std::vector<Sharding> outputs;
  for (std::size_t i = 0; i < l.out_types.size(); ++i)
    outputs.push_back(spread(l.placed.outputs[i].dim_axes(l.out_types[i].shape.ndim())));
  auto results = l.builder.kernel(*l.node.op, l.node.params, moved, l.out_types, outputs);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = l.builder.reshard(results[i], l.placed.outputs[i]);
  return results;
}

std::int64_t shard_bytes(const std::vector<Type>& types, const std::vector<Sharding>& layouts) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < types.size(); ++i)
    bytes += layouts[i].shard_shape(types[i].shape).elements() *
             static_cast<std::int64_t>(itemsize(types[i].dtype));
  return bytes;
}

std::int64_t matrices_held(const Lowering& l) {
  const Shape held = l.placed.inputs[0].shard_shape(l.in_types[0].shape);
  std::int64_t matrices = 1;
  for (std::size_t d = 0; d < l.lead; ++d) matrices *= held[d];
  return matrices;
}

// The traffic of a tall matrix: triangles, and rows only if columns are split too.
std::vector<CommunicationCost> cost_of_tall(const Lowering& l, const TallTraffic& tall) {
  const int ranks = l.ranks();
  auto costs =
      tall_costs(l.in_types[0], l.axes, ranks, tall.vectors, tall.broadcast_elements, matrices_held(l));
  if (l.placed.inputs[0].dim_axes(l.in_types[0].shape.ndim()).back().empty()) return costs;
  auto redistributed = shard_bytes({l.in_types[0]}, {l.placed.inputs[0]});
  if (tall.vectors) redistributed += shard_bytes({l.out_types[0]}, {l.placed.outputs[0]});
  costs.push_back({"all-to-all", l.axes, redistributed * (ranks - 1) / ranks, 1});
  return costs;
}

// The ranks' boxes without the indices that no rank of the group holds: columns of right-hand sides may be
// split over other ranks too.
Tiles tiles_among(const std::vector<int>& device_ids, const Shape& global, const Sharding& layout);

// The grid of the mesh's first device; all devices have the same.
MatrixGroupPlan plan_of(const Lowering& l) {
  const auto ids = group_along(l.mesh(), l.axes, l.mesh().device_ids()[0]);
  MatrixGroupPlan plan{l.in_types,
                       l.out_types,
                       *l.node.params,
                       l.ranks(),
                       {},
                       {},
                       static_cast<std::int64_t>(itemsize(l.in_types[0].dtype)),
                       order_of(*l.node.op)};
  const auto tiles_of = [&](const Type& type, const Sharding& layout, const std::string& letters) {
    return letters.size() == 2 ? tiles_among(ids, type.shape, layout) : Tiles();
  };
  for (std::size_t i = 0; i < l.in_types.size(); ++i)
    plan.in_tiles.push_back(tiles_of(l.in_types[i], l.placed.inputs[i], l.dims.in[i]));
  for (std::size_t i = 0; i < l.out_types.size(); ++i)
    plan.out_tiles.push_back(tiles_of(l.out_types[i], l.placed.outputs[i], l.dims.out[i]));
  return plan;
}

// The traffic of the rank that receives most; for very many ranks only a few are computed.
ReceivedBytes busiest(const MatrixGroupPlan& plan, const Forecast& forecast) {
  constexpr int most_asked = 64;
  const int step = plan.ranks <= most_asked ? 1 : plan.ranks / 4 - 1;
  ReceivedBytes most;
  for (int rank = 0; rank < plan.ranks; rank += step)
    if (auto traffic = forecast.predicted(plan, rank); rank == 0 || traffic.bytes() > most.bytes())
      most = traffic;
  return most;
}

std::optional<TallTraffic> tall_traffic(const Lowering& l) {
  if (l.dims.tall == nullptr || order_of(*l.node.op) == kernels::SumOrder::fixed) return std::nullopt;
  return l.dims.tall(l.in_types[0], *l.node.params, l.ranks());
}

// The traffic of a joint factorization: each rank's shards to the block-cyclic layout and back, and panels
// along the rows and columns of the grid, or sums.
std::vector<CommunicationCost> cost_together(const Lowering& l) {
  if (const auto tall = tall_traffic(l)) return cost_of_tall(l, *tall);
  const ReceivedBytes traffic = busiest(plan_of(l), l.dims.forecast);
  const std::int64_t matrices = matrices_held(l);
  std::vector<CommunicationCost> costs;
  for (const auto& [kind, of_kind] : {std::pair{"all-to-all", traffic.redistributed},
                                      {"broadcast", traffic.broadcast},
                                      {"all-reduce", traffic.reduced}})
    if (of_kind.calls > 0)
      costs.push_back({kind, l.axes, matrices * of_kind.bytes, matrices * of_kind.calls});
  return costs;
}

// Bytes besides operands and results. Matrices are factored one after the other.
std::int64_t memory_together(const Lowering& l) {
  const MatrixGroupPlan plan = plan_of(l);
  if (tall_traffic(l)) {
    const std::int64_t m = extent(l.in_types[0], 2), n = extent(l.in_types[0], 1);
    return (block_size(m, plan.ranks) * n + 6 * n * n) * plan.itemsize;
  }
  return l.dims.forecast.elements(plan) * plan.itemsize;
}

}  // namespace

std::vector<int> lower_factorization(const MatrixDims& dims, ProgramBuilder& builder, const Node& node,
                                     std::span<const int> in) {
  const Lowering l = lowering_of(dims, builder, node, in);
  if (l.axes.empty()) return builder.kernel(*node.op, node.params, l.inputs, l.out_types, l.placed.outputs);
  if (const auto dim = dim_to_spread(l)) return spread_over_batch(l, *dim);
  auto results =
      builder.communicate(*node.op, node.params, l.inputs, l.out_types, l.placed.outputs, cost_together(l));
  builder.program().instructions.back().as<CommunicatingCall>()->temporary_bytes = memory_together(l);
  return results;
}

OpDef ordered_record(OpDef own, KernelFunction kernel) {
  std::get<Lower>(own.runs).kernel = kernel;
  own.same_bits = SameBits::made_for_it;
  own.instead = nullptr;
  return own;
}

std::int64_t ordered_workspace(const MatrixDims& dims, std::span<const Type> in, std::span<const Type> out,
                               const Params& params) {
  MatrixGroupPlan plan{
      in, out, params, 1, {}, {}, static_cast<std::int64_t>(itemsize(in[0].dtype)), kernels::SumOrder::fixed};
  const auto whole = [](std::span<const Type> types, const std::vector<std::string>& letters) {
    std::vector<Tiles> tiles(types.size());
    for (std::size_t i = 0; i < types.size(); ++i)
      if (letters[i].size() == 2) tiles[i].held = {{{0, extent(types[i], 2)}, {0, extent(types[i], 1)}}};
    return tiles;
  };
  plan.in_tiles = whole(in, dims.in), plan.out_tiles = whole(out, dims.out);
  return dims.forecast.elements(plan) * plan.itemsize;
}

MatrixGroup::MatrixGroup(const KernelArgs& args, const MatrixDims&)
    : device_ids{comm::world().rank()}, matrices(batch_count(args.in[0])), order(order_of(args.op)) {}

Tiles MatrixGroup::tiles_of(const KernelArgs& args, bool output, std::size_t operand) const {
  const Tile& mine = (output ? args.out : args.in)[operand];
  Tiles tiles;
  tiles.held = {{{0, extent(mine, 2)}, {0, extent(mine, 1)}}};
  if (tiles.held[0].is_empty()) tiles.held[0] = {};
  tiles.row_step = extent(mine, 1);
  return tiles;
}

MatrixGroup::MatrixGroup(const CommunicationArgs& args, const MatrixDims& dims)
    : order(order_of(args.local.op)) {
  comm::counts_itself();
  std::vector<DimAxes> layouts;
  for (std::size_t i = 0; i < args.in_layouts.size(); ++i)
    layouts.push_back(args.in_layouts[i].dim_axes(static_cast<int>(args.local.in[i].box.size())));
  device_ids = group_along(args.mesh, team_axes(dims, layouts), args.me);
  matrices = batch_count(args.local.in[0]);
}

Tiles MatrixGroup::tiles_of(const CommunicationArgs& args, bool output, std::size_t operand) const {
  const Tile& mine = (output ? args.local.out : args.local.in)[operand];
  Tiles tiles = tiles_among(device_ids, mine.global, (output ? args.out_layouts : args.in_layouts)[operand]);
  tiles.row_step = extent(mine, 1);
  return tiles;
}

namespace {

Tiles tiles_among(const std::vector<int>& device_ids, const Shape& global, const Sharding& layout) {
  const std::size_t lead = global.size() - 2;
  Tiles tiles;
  for (const int id : device_ids) {
    const Box box = layout.local_box(global, id);
    tiles.held.push_back({box[lead], box[lead + 1]});
    if (tiles.held.back().is_empty()) tiles.held.back() = {};
  }
  const auto close_gaps = [&](auto member) {
    std::map<std::int64_t, std::int64_t> moved;  // by the old start: first the size, then the new start
    for (const auto& box : tiles.held)
      if (!box.is_empty()) moved[(box.*member).start] = (box.*member).size();
    std::int64_t next = 0;
    for (auto& [start, size] : moved) next += std::exchange(size, next);
    for (auto& box : tiles.held)
      if (!box.is_empty())
        box.*member = {moved[(box.*member).start], moved[(box.*member).start] + (box.*member).size()};
  };
  close_gaps(&Rectangle::rows);
  close_gaps(&Rectangle::columns);
  tiles.column_step = 1;
  return tiles;
}

}  // namespace

std::int64_t part_elements(const BlockCyclic& layout, std::int64_t itemsize) {
  const std::int64_t rows = layout.rows.count(0), columns = layout.columns.count(0),
                     ld = itemsize == 4   ? leading_dimension<float>(rows)
                          : itemsize == 8 ? leading_dimension<double>(rows)
                                          : leading_dimension<kernels::c64>(rows);
  return ld * columns + 2 * rows * columns / layout.ranks();
}
std::int64_t panel_elements(const BlockCyclic& layout) {
  const std::int64_t width = std::min(layout.columns.block, layout.columns.extent);
  return 2 * (layout.rows.count(0) + width) * width;
}

GridShape grid_shape(const FactorParams& params, int ranks, kernels::SumOrder order) {
  if (order == kernels::SumOrder::fixed) return {1, ranks};
  if (params.grid_rows > 0 && ranks % params.grid_rows == 0)
    return {params.grid_rows, ranks / params.grid_rows};
  return grid_for(ranks);
}

std::int64_t block_size_of(std::int64_t extent, int parts, kernels::SumOrder order) {
  return order == kernels::SumOrder::fixed ? widest_block(extent)
                                           : block_for(extent, parts, widest_block(extent));
}

std::int64_t batch_count(const Tile& tile, int matrix_ndim) {
  return batch_shape(tile, matrix_ndim).elements();
}

std::int64_t batch_count(const Type& type) {
  const std::int64_t matrix = extent(type, 1) * extent(type, 2);
  return matrix == 0 ? 0 : type.shape.elements() / matrix;
}

std::string batch_element_text(const Tile& tile, std::int64_t element, int matrix_ndim) {
  const Shape shape = batch_shape(tile, matrix_ndim);
  if (shape.empty()) return "the matrix";
  std::string text = ")";
  for (std::size_t d = shape.size(); d-- > 0;) {
    text = std::to_string(tile.box[d].start + element % shape[d]) + (d + 1 < shape.size() ? ", " : "") + text;
    element /= shape[d];
  }
  return "matrix (" + text + " of the batch";
}

void throw_singular(const Tile& tile, std::int64_t element, std::int64_t pivot) {
  throw LinAlgError(batch_element_text(tile, element) + " is singular: pivot " + std::to_string(pivot) +
                    " is exactly zero. Use lstsq or pinv for a solution of least norm");
}
void throw_not_positive_definite(const Tile& tile, std::int64_t element, std::int64_t minor) {
  throw LinAlgError(
      batch_element_text(tile, element) + " is not positive definite: pivot " + std::to_string(minor) +
      " is not positive. Is it symmetric (Hermitian)? Adding a multiple of the identity may help");
}
double epsilon(Dtype dtype) {
  return real_dtype(dtype) == float32 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                      : std::numeric_limits<double>::epsilon();
}

namespace {
std::string condition_text(const Tile& tile, std::int64_t element, double rcond) {
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "rcond is about %.0e, below the rounding unit %.0e", rcond,
                epsilon(tile.dtype));
  return batch_element_text(tile, element) + " is singular to working precision: " + numbers + " of " +
         name(tile.dtype) + ". No digit of the solution need be right. Use lstsq for one of least norm" +
         (real_dtype(tile.dtype) == float32 ? ", or more digits" : "");
}
}  // namespace

void throw_ill_conditioned(const Tile& tile, std::int64_t element, double rcond) {
  throw LinAlgError(condition_text(tile, element, rcond));
}
void warn_of_condition(const Tile& tile, std::int64_t element, double rcond, Reporter reporter) {
  if (std::exchange(state<ConditionWarning>().was_given, true) || reporter == Reporter::another) return;
  (reporter == Reporter::first_rank ? log_once : log)(LogLevel::warn,
                                                      "solve: " + condition_text(tile, element, rcond));
}
void throw_not_converged(const Tile& tile, std::int64_t element) {
  throw LinAlgError(batch_element_text(tile, element) +
                    ": the iteration did not converge; does it hold infinities?");
}

Shape with_matrix_dims(const Shape& shape, std::initializer_list<std::int64_t> tail, int matrix_ndim) {
  return join(without_last(shape, matrix_ndim), Shape(tail));
}

void check_matrices(const Array& a, bool square) {
  check_usable(a);
  const Shape& shape = a.shape();
  if (shape.ndim() < 2)
    throw ShapeError(call_text() + ": needs a matrix or a batch of matrices, got shape " + to_string(shape) +
                     ". Add dimensions with expand_dims");
  const auto rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
  if (square && rows != columns)
    throw ShapeError(call_text() + ": the matrix must be square, but the last two dimensions of " +
                     to_string(shape) + " are " + std::to_string(rows) + " and " + std::to_string(columns) +
                     ". For rectangular systems use lstsq or qr");
}

}  // namespace tessera::factor
