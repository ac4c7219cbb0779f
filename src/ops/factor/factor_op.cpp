#include "ops/factor/factor_op.hpp"

#include <algorithm>
#include <map>

namespace tessera::factor {
namespace {

bool has(const MeshAxes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
MeshAxes without(MeshAxes axes, const MeshAxes& taken) {
  std::erase_if(axes, [&](int a) { return has(taken, a); });
  return axes;
}

// The axes over which dims that an algorithm needs whole are split, ascending.
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

Shape batch_shape(const Tile& tile, int matrix_ndim) {
  const Shape shape = tile.shape();
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - matrix_ndim));
}

}  // namespace

MatrixDims::MatrixDims(const char* sentence, int like, bool substitutes)
    : rule(sentence), like(like), substitutes(substitutes) {
  for (std::size_t i = 0; i < rule.text.operands(false); ++i) in.push_back(rule.text.letters(false, i));
  for (std::size_t i = 0; i < rule.text.operands(true); ++i) out.push_back(rule.text.letters(true, i));
}

Placement place_factorization(const MatrixDims& dims, const PlaceArgs& args) {
  std::vector<std::optional<Sharding>> shardings(args.shardings.begin(), args.shardings.end());
  const bool uncommitted =
      std::none_of(shardings.begin(), shardings.end(), [](const auto& s) { return s.has_value(); });
  const auto like = static_cast<std::size_t>(dims.like);
  if (uncommitted && args.wanted && dims.out[0].size() == dims.in[like].size()) shardings[like] = args.wanted;
  std::optional<std::size_t> lead;  // the largest operand that lies somewhere
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
    } else {  // goes where the other operand's rows are
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

std::vector<int> lower_factorization(const MatrixDims& dims, ProgramBuilder& builder, const Node& node,
                                     std::span<const int> in) {
  std::vector<Type> in_types, out_types;
  std::vector<std::optional<Sharding>> shardings;
  std::vector<DimAxes> layouts;
  for (const int v : in) {
    const auto& value = builder.value(v);
    in_types.push_back(value.type);
    shardings.emplace_back(value.layout);
    layouts.push_back(value.layout.dim_axes(value.type.shape.ndim()));
  }
  for (const auto& output : node.outputs) out_types.push_back(output.type);
  static const std::vector<int> none;
  const Mesh mesh = builder.value(in[0]).layout.mesh();
  const auto placed = place(*node.op, {in_types, out_types, shardings, *node.params, mesh,
                                       node.region ? node.region->manual_axes : none, std::nullopt});
  const std::vector<int> inputs(in.begin(), in.end());
  const auto axes = team_axes(dims, layouts);
  if (axes.empty()) return builder.kernel(*node.op, node.params, inputs, out_types, placed.outputs);

  // Enough matrices for all of the team's ranks: each takes some of them whole.
  const std::size_t lead = layouts[0].size() - dims.in[0].size();
  const auto ranks = static_cast<int>(devices_along(mesh, axes));
  std::size_t widest = lead;
  std::int64_t most = 0;
  for (std::size_t d = 0; d < lead; ++d)
    if (const auto n = block_size(in_types[0].shape[d], devices_along(mesh, layouts[0][d])); n > most)
      widest = d, most = n;
  if (most >= ranks) {
    const auto spread = [&](DimAxes layout) {
      for (std::size_t d = lead; d < layout.size(); ++d) layout[d] = without(layout[d], axes);
      layout[widest].insert(layout[widest].end(), axes.begin(), axes.end());
      return Sharding::from_dim_axes(mesh, layout);
    };
    std::vector<int> moved;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      moved.push_back(builder.reshard(inputs[i], spread(layouts[i])));
    std::vector<Sharding> spread_outputs;
    for (std::size_t i = 0; i < out_types.size(); ++i)
      spread_outputs.push_back(spread(placed.outputs[i].dim_axes(out_types[i].shape.ndim())));
    auto results = builder.kernel(*node.op, node.params, moved, out_types, spread_outputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i] = builder.reshard(results[i], placed.outputs[i]);
    return results;
  }

  // What it moves: each rank's shards to the block-cyclic layout and back, and panels along the rows and
  // columns of the grid, or sums.
  std::int64_t shard_bytes = 0;
  const auto bytes_of = [&](const Type& type, const Sharding& layout) {
    return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
  };
  for (std::size_t i = 0; i < in_types.size(); ++i) shard_bytes += bytes_of(in_types[i], placed.inputs[i]);
  for (std::size_t i = 0; i < out_types.size(); ++i) shard_bytes += bytes_of(out_types[i], placed.outputs[i]);
  const GridShape grid = grid_for(ranks);
  const std::int64_t n = extent(in_types[0], 1),
                     block = std::max<std::int64_t>(block_for(n, grid.columns, widest_block(n)), 1);
  const Shape held = placed.inputs[0].shard_shape(in_types[0].shape);
  std::int64_t matrix_bytes =
      extent(in_types[0], 2) * n * static_cast<std::int64_t>(itemsize(in_types[0].dtype));
  for (std::size_t d = 0; d < lead; ++d) matrix_bytes *= held[d];
  const std::int64_t panels = n / block + 1;
  const TalkCost deal{"all-to-all", axes, shard_bytes * (ranks - 1) / ranks, 1};
  if (dims.substitutes && is_few(grid, block, extent(in_types[1], 1))) {
    const std::int64_t right_bytes = n == 0 ? 0 : matrix_bytes / n * extent(in_types[1], 1);
    return builder.talk(*node.op, node.params, inputs, out_types, placed.outputs,
                        {deal, {"all-reduce", axes, 2 * right_bytes / std::max(grid.rows, 1), panels + 1}});
  }
  return builder.talk(*node.op, node.params, inputs, out_types, placed.outputs,
                      {deal, {"broadcast", axes, matrix_bytes / std::max(grid.rows, 1), panels}});
}

Team::Team(const TalkArgs& args, const MatrixDims& dims) {
  std::vector<DimAxes> layouts;
  for (std::size_t i = 0; i < args.in_layouts.size(); ++i)
    layouts.push_back(args.in_layouts[i].dim_axes(static_cast<int>(args.local.in[i].box.size())));
  device_ids = group_along(args.mesh, team_axes(dims, layouts), args.me);
  matrices = batch_count(args.local.in[0]);
}

// The ranks' boxes, with the indices that no rank of the team holds left out: columns of right-hand sides
// may be split over other ranks too.
Tiles Team::tiles_of(const TalkArgs& args, bool output, std::size_t operand) const {
  const Tile& mine = (output ? args.local.out : args.local.in)[operand];
  const Sharding& layout = (output ? args.out_layouts : args.in_layouts)[operand];
  const std::size_t lead = mine.box.size() - 2;
  Tiles tiles;
  for (const int id : device_ids) {
    const Box box = layout.local_box(mine.global, id);
    tiles.held.push_back({box[lead], box[lead + 1]});
    if (tiles.held.back().is_empty()) tiles.held.back() = {};
  }
  const auto close_gaps = [&](auto member) {
    std::vector<Range> distinct;
    for (auto& box : tiles.held)
      if (!box.is_empty() && std::find(distinct.begin(), distinct.end(), box.*member) == distinct.end())
        distinct.push_back(box.*member);
    std::sort(distinct.begin(), distinct.end(), [](Range a, Range b) { return a.start < b.start; });
    std::map<std::int64_t, std::int64_t> moved;
    std::int64_t next = 0;
    for (const Range& range : distinct) moved[range.start] = next, next += range.size();
    for (auto& box : tiles.held)
      if (!box.is_empty())
        box.*member = {moved[(box.*member).start], moved[(box.*member).start] + (box.*member).size()};
  };
  close_gaps(&Rectangle::rows);
  close_gaps(&Rectangle::columns);
  tiles.row_step = extent(mine, 1);
  tiles.column_step = 1;
  return tiles;
}

GridShape grid_shape(const FactorParams& params, int ranks) {
  if (params.grid_rows > 0 && ranks % params.grid_rows == 0)
    return {params.grid_rows, ranks / params.grid_rows};
  return grid_for(ranks);
}

std::int64_t batch_count(const Tile& tile, int matrix_ndim) {
  return batch_shape(tile, matrix_ndim).elements();
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
void throw_not_converged(const Tile& tile, std::int64_t element) {
  throw LinAlgError(batch_element_text(tile, element) +
                    ": the iteration did not converge; does it hold infinities?");
}

Shape with_matrix_dims(const Shape& shape, std::initializer_list<std::int64_t> tail, int matrix_ndim) {
  std::vector<std::int64_t> extents(shape.begin(), shape.end() - matrix_ndim);
  extents.insert(extents.end(), tail.begin(), tail.end());
  return Shape(std::move(extents));
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
