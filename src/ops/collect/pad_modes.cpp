// pad with modes other than a constant: axis by axis, from x's own elements.
#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {
namespace {

struct Along {
  Array x;
  int dim;
  std::int64_t before, after;
  std::int64_t extent() const { return x.shape()[dim]; }
  Shape shape_with(std::int64_t n) const {
    Shape shape = x.shape();
    shape[dim] = n;
    return shape;
  }
};

Array slice_of(const Along& a, const Slice& s) {
  std::vector<IndexPart> parts(a.dim, IndexPart(slice()));
  parts.emplace_back(s);
  return index(a.x, std::move(parts));
}

Array between(const Array& front, const Along& a, const Array& back) {
  return concatenate({front, a.x, back}, a.dim);
}
Array repeated(const Along& a, const Array& one, std::int64_t n) {
  return broadcast_to(one, a.shape_with(n));
}

Array edge(const Along& a) {
  return between(repeated(a, slice_of(a, slice(0, 1)), a.before), a,
                 repeated(a, slice_of(a, slice(a.extent() - 1, a.extent())), a.after));
}

// Repeats x in runs of `period` elements, alternately backwards and forwards, or always forwards:
//   reflect of [0 1 2 3], period 3:    3 2 1|0 1 2|3 2 1|0 ...
//   symmetric, period 4:             3 2 1 0|0 1 2 3|3 2 1 0|...
struct Runs {
  std::int64_t period;
  bool turns, repeats_edge;
};
Array in_runs(const Along& a, Runs runs) {
  const Shape shape = a.shape_with(a.before + a.extent() + a.after);
  RemapParams p{shape, {}};
  const auto d = static_cast<std::size_t>(a.dim);
  for (std::int64_t at = 0; at < shape[d];) {
    const auto place = at - a.before;  // the index in x, as if x continued without end
    const auto run = place >= 0 ? place / runs.period : -((-place + runs.period - 1) / runs.period);
    const auto inside = place - run * runs.period;
    const bool is_backwards = runs.turns && run % 2 != 0;
    const auto from = is_backwards ? (runs.repeats_edge ? runs.period - 1 : runs.period) - inside : inside;
    const auto end = std::min(shape[d], at + runs.period - inside);
    RemapPiece piece = whole_piece(0, shape, std::vector<std::int64_t>(shape.size(), 0));
    piece.to[d] = {at, end};
    piece.step[d] = is_backwards ? -1 : 1;
    piece.offset[d] = is_backwards ? from + at : from - at;
    p.pieces.push_back(std::move(piece));
    at = end;
  }
  return remap(std::move(p), {a.x});
}

// A ramp from `value` outside to the edge, exclusive; integers are rounded down, as in NumPy.
Array ramp(const Along& a, double value) {
  const auto side = [&](std::int64_t width, const Array& edge_slice, bool is_front) {
    std::vector<std::int64_t> column(a.x.shape().size(), 1);
    column[a.dim] = width;
    const Array steps =
        reshape(is_front ? arange(width) : arange(width - 1, std::int64_t{-1}, std::int64_t{-1}),
                Shape(std::move(column)));
    const Dtype exact = is_inexact(a.x.dtype()) ? a.x.dtype() : float64;
    const Array end = astype(edge_slice, exact);
    const Array values =
        value + (end - value) * astype(steps, exact) / static_cast<double>(std::max<std::int64_t>(width, 1));
    return astype(is_inexact(a.x.dtype()) ? values : floor(values), a.x.dtype());
  };
  return between(side(a.before, slice_of(a, slice(0, 1)), true), a,
                 side(a.after, slice_of(a, slice(a.extent() - 1, a.extent())), false));
}

Array statistic(const Along& a, const std::string& mode) {
  Array one = mode == "maximum"   ? max(a.x, a.dim, true)
              : mode == "minimum" ? min(a.x, a.dim, true)
              : mode == "mean"    ? mean(is_inexact(a.x.dtype()) ? a.x : astype(a.x, float64), a.dim, true)
                                  : median(is_inexact(a.x.dtype()) ? a.x : astype(a.x, float64), a.dim, true);
  one = astype(is_inexact(a.x.dtype()) ? one : round(one), a.x.dtype());
  return between(repeated(a, one, a.before), a, repeated(a, one, a.after));
}

Array continued(const Along& a, const std::string& mode, double value) {
  if (mode == "edge" || (mode == "reflect" && a.extent() == 1)) return edge(a);
  if (mode == "reflect") return in_runs(a, {a.extent() - 1, true, false});
  if (mode == "symmetric") return in_runs(a, {a.extent(), true, true});
  if (mode == "wrap") return in_runs(a, {a.extent(), false, false});
  if (mode == "linear_ramp") return ramp(a, value);
  return statistic(a, mode);
}

void check_mode(const std::string& mode) {
  static const char* const modes[] = {"edge",    "reflect", "symmetric", "wrap",  "linear_ramp",
                                      "maximum", "minimum", "mean",      "median"};
  if (std::find(std::begin(modes), std::end(modes), mode) == std::end(modes))
    throw ArgumentError(call_text() + ": the mode is '" + mode +
                        "'; it must be 'constant', 'edge', 'reflect', 'symmetric', 'wrap', 'linear_ramp', "
                        "'maximum', 'minimum', 'mean', 'median' or 'empty'");
}

}  // namespace

Array pad(const Operand& x, std::vector<std::pair<int, int>> widths, const std::string& mode, double value) {
  const Call call("pad", x.where);
  if (mode == "constant") return pad(x, std::move(widths), value);
  if (mode == "empty") return pad(x, std::move(widths), 0.0);
  check_usable(x.array);
  check_mode(mode);
  const Array constant = pad(x, widths, 0.0);  // validates the widths
  if (constant.shape() == x.array.shape()) return x.array;
  if (widths.size() == 1) widths.resize(x.array.shape().size(), widths[0]);
  Array y = x.array;
  for (int d = 0; d < y.ndim(); ++d) {
    const auto [before, after] = widths[d];
    if (before + after == 0) continue;
    if (y.shape()[d] == 0)
      throw ShapeError(call_text() + ": dimension " + std::to_string(d) + " of shape " +
                       to_string(x.array.shape()) + " has no element from which mode '" + mode +
                       "' could continue; use mode 'constant'");
    y = continued({y, d, before, after}, mode, value);
  }
  return y;
}

}  // namespace tessera
