// Operands whose blocks have a margin: each rank receives its block with the elements around it, by one
// exchange per such dim. Corner elements arrive with the exchange of the second dim.
//
//   i = 6 on 2 ranks, margin 1, wrap    operand  [0 1 2 | 3 4 5]
//                                       windows  [5 0 1 2 3 | 2 3 4 5 0]
#include <tessera/error.hpp>

#include <algorithm>

#include "mesh/axes.hpp"
#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/index/windows.hpp"
#include "program/builder.hpp"
#include "transforms/custom_op/definition.hpp"

namespace tessera::custom {
namespace {

const Halo* halo_of(const CustomOp::Definition& op, const std::string& factor) {
  for (const auto& halo : op.options.halo)
    if (halo.dim == factor) return &halo;
  return nullptr;
}

// Elements [start, start + count) of an array of n elements that is continued beyond its ends: the longest
// run from `start` on that one affine map reads from the operand. A run of constants has no source.
struct Run {
  std::int64_t count;
  std::int64_t source;
  std::int64_t step;
  bool is_constant = false;
};

// wrap [0 1 2 0 1 2], symmetric [0 1 2 2 1 0], reflect [0 1 2 1 0 1]: runs of `period` elements, every other
// one of them reversed if `turns`.
Run run_of(std::int64_t start, std::int64_t period, bool turns, bool repeats_edge) {
  const auto run = start >= 0 ? start / period : -((-start + period - 1) / period);
  const auto inside = start - run * period;
  if (!turns || run % 2 == 0) return {period - inside, inside, 1};
  return {period - inside, (repeats_edge ? period - 1 : period) - inside, -1};
}

Run run_at(std::int64_t start, std::int64_t n, const Halo& halo) {
  if (start >= 0 && start < n && halo.boundary != Boundary::wrap) return {n - start, start, 1};
  const std::int64_t rest = start < 0 ? -start : std::int64_t{1} << 62;
  switch (halo.boundary.value_or(Boundary::constant)) {
    case Boundary::constant: return {rest, 0, 0, true};
    case Boundary::edge: return {rest, start < 0 ? 0 : n - 1, 0};
    case Boundary::wrap: return run_of(start, n, false, false);
    case Boundary::symmetric: return run_of(start, n, true, true);
    case Boundary::reflect: break;
  }
  return n == 1 ? Run{rest, 0, 0} : run_of(start, n - 1, true, false);
}

// Window `at` of `longest` elements along dim d of the packed array holds [range.start, range.stop).
void add_pieces(Remap& map, const Shape& packed, std::size_t d, Range range, std::int64_t at, std::int64_t n,
                const Halo& halo) {
  for (auto place = range.start; place < range.stop;) {
    const Run run = run_at(place, n, halo);
    const auto count = std::min(run.count, range.stop - place);
    if (!run.is_constant) {
      RemapPiece piece{0, whole_box(packed), std::vector<std::int64_t>(packed.size(), 0),
                       std::vector<std::int64_t>(packed.size(), 1)};
      const auto to = at + place - range.start;
      piece.to[d] = {to, to + count};
      piece.offset[d] = run.source - run.step * to;
      piece.step[d] = run.step;
      map.pieces.push_back(std::move(piece));
    }
    place += count;
  }
}

// v with margins along dim d, for blocks of `extent` elements that are split as `layout` splits them.
int fetch(ProgramBuilder& builder, int v, std::size_t d, const Sharding& layout, std::int64_t extent,
          const Halo& halo) {
  Type packed = builder.value(v).type;
  const auto n = packed.shape[d];
  const auto parts = parts_along(layout, static_cast<int>(d), packed.shape.ndim());
  // In the operand's indices. Without a boundary the operand begins `before` elements earlier.
  const auto shift = halo.boundary ? halo.before : 0;
  const auto window = [&](std::int64_t part) {
    const Range block = block_range(extent, parts, part);
    if (block.size() <= 0) return Range{0, 0};
    return Range{block.start - shift, block.stop - shift + halo.before + halo.after};
  };
  std::int64_t longest = 0;
  for (std::int64_t part = 0; part < parts; ++part) longest = std::max(longest, window(part).size());
  packed.shape[d] = longest * parts;
  Remap map;
  for (std::int64_t part = 0; part < parts; ++part)
    add_pieces(map, packed.shape, d, window(part), part * longest, n, halo);
  std::byte fill[16] = {};
  write_scalar({halo.value, static_cast<std::int64_t>(halo.value), !is_inexact(packed.dtype)}, packed.dtype,
               fill);
  return builder.remap(std::move(map), {v}, packed, layout, std::span(fill, itemsize(packed.dtype)));
}

}  // namespace

std::vector<Margin> margins_of(const CustomOp::Definition& op, std::span<const Shape> in,
                               std::span<const Shape> out) {
  std::vector<Margin> margins;
  if (op.options.halo.empty()) return margins;
  const auto names = op.rule.dim_names(in, out);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t d = 0; d < names.in[i].size(); ++d) {
      if (!names.in[i][d].is_about) continue;
      const auto& factor = names.in[i][d].factor;
      const auto& result = names.out[0];  // every result has all factors that are passed through
      const auto found = std::find_if(result.begin(), result.end(),
                                      [&](const RuleText::DimName& dim) { return dim.factor == factor; });
      margins.push_back({i, d, 0, static_cast<std::size_t>(found - result.begin()), halo_of(op, factor)});
    }
  return margins;
}

std::vector<Shape> without_margins(const CustomOp::Definition& op, std::span<const Shape> in) {
  std::vector<Shape> shapes(in.begin(), in.end());
  if (op.options.halo.empty()) return shapes;
  RuleText::DimNames names;
  try {
    names = op.rule.dim_names(in, {});
  } catch (const InternalError& error) {
    throw ShapeError(call_text() + ": " + error.what() + "; call it with operands that the sentence fits");
  }
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t d = 0; d < names.in[i].size(); ++d) {
      if (!names.in[i][d].is_about) continue;
      const Halo& halo = *halo_of(op, names.in[i][d].factor);
      if (halo.boundary) continue;
      shapes[i][d] -= halo.before + halo.after;
      if (shapes[i][d] < 0)
        throw ShapeError(call_text() + ": operand " + std::to_string(i) + " has shape " + to_string(in[i]) +
                         ", but its dim " + std::to_string(d) + " needs " +
                         std::to_string(halo.before + halo.after) + " elements for the margins alone");
    }
  return shapes;
}

std::vector<int> write_with_margins(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const auto& p = params_of(*node.params);
  std::vector<Shape> shapes, results;
  for (const auto& x : node.inputs) shapes.push_back(x.shape());
  const auto batches = p.batches.size();
  std::vector<Type> types;
  for (const auto& output : node.outputs) {
    types.push_back(output.type);
    const auto& extents = output.type.shape.vector();
    results.emplace_back(
        std::vector<std::int64_t>(extents.begin() + static_cast<std::ptrdiff_t>(batches), extents.end()));
  }
  const auto& layouts = builder.placement().outputs;
  std::vector<int> values(in.begin(), in.end());
  for (const auto& margin : margins_of(*p.op, shapes_of_examples(p, shapes), results)) {
    int& v = values[margin.operand];
    const auto d = margin.dim + p.batch_dims(margin.operand);
    const auto& output = types[margin.output].shape;
    const auto split = layouts[margin.output].dim_axes(output.ndim())[margin.output_dim + batches];
    auto dims = builder.value(v).layout.dim_axes(builder.value(v).type.shape.ndim());
    dims[d] = split;
    v = fetch(builder, v, d, Sharding::from_dim_axes(layouts[margin.output].mesh(), dims),
              output[margin.output_dim + batches], *margin.halo);
  }
  return builder.kernel(*node.op, node.params, std::move(values), types, layouts);
}

}  // namespace tessera::custom
