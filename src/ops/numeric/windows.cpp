// Windows: shifted copies of an array, combined. A shift exchanges only its halo.
#include <tessera/ops/window.hpp>

#include <algorithm>

#include "kernels/visit.hpp"
#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"
#include "ops/index/spread.hpp"

namespace tessera {
namespace {

// ---- shifts ----
// Positions of the source in runs of `period`: always forwards, or alternately forwards and backwards.
struct Runs {
  std::int64_t period;
  bool turns, repeats_edge;
};

RemapPiece run_piece(const Shape& shape, std::size_t d, Range to, std::int64_t offset, std::int64_t step) {
  RemapPiece piece = whole_piece(0, shape, std::vector<std::int64_t>(shape.size(), 0));
  piece.to[d] = to;
  piece.step[d] = step;
  piece.offset[d] = offset;
  return piece;
}

// result[i] = source[i + offset], with i + offset as a position in runs of the source.
std::vector<RemapPiece> pieces_in_runs(const Shape& shape, std::size_t d, std::int64_t offset, Runs runs) {
  std::vector<RemapPiece> pieces;
  for (std::int64_t at = 0; at < shape[d];) {
    const auto place = at + offset;
    const auto run = place >= 0 ? place / runs.period : -((-place + runs.period - 1) / runs.period);
    const auto inside = place - run * runs.period;
    const bool is_backwards = runs.turns && run % 2 != 0;
    const auto from = is_backwards ? (runs.repeats_edge ? runs.period - 1 : runs.period) - inside : inside;
    const auto end = std::min(shape[d], at + runs.period - inside);
    pieces.push_back(
        run_piece(shape, d, {at, end}, is_backwards ? from + at : from - at, is_backwards ? -1 : 1));
    at = end;
  }
  return pieces;
}

Array shifted_by(const Array& x, std::int64_t offset, int dim, Boundary boundary, double value) {
  const Shape& shape = x.shape();
  const auto d = static_cast<std::size_t>(dim);
  const auto n = shape[d];
  if (offset == 0 || x.size() == 0) return x;
  RemapParams p{shape, {}, {}, {}, output_of(x).sharding};
  if (boundary == Boundary::wrap) {
    p.pieces = pieces_in_runs(shape, d, offset, {n, false, false});
  } else if (boundary == Boundary::constant) {
    p.fill = is_inexact(x.dtype()) ? ScalarValue{value, 0, false}
                                   : ScalarValue{0, static_cast<std::int64_t>(value), true};
    const Range to{std::clamp<std::int64_t>(-offset, 0, n), std::clamp<std::int64_t>(n - offset, 0, n)};
    if (to.size() > 0) p.pieces.push_back(run_piece(shape, d, to, offset, 1));
  } else {
    const bool repeats = boundary != Boundary::reflect;
    const auto reach = offset < 0 ? -offset : offset;
    if (reach > (boundary == Boundary::edge ? n - 1 : repeats ? n : n - 1))
      throw ShapeError(call_text() + ": an offset of " + std::to_string(offset) + " along axis " +
                       std::to_string(dim) + " reaches further than shape " + to_string(shape) +
                       " has elements to continue it");
    if (boundary != Boundary::edge) {
      p.pieces = pieces_in_runs(shape, d, offset, {repeats ? n : n - 1, true, repeats});
    } else {
      const Range to{std::max<std::int64_t>(-offset, 0), std::min(n, n - offset)};
      p.pieces.push_back(run_piece(shape, d, to, offset, 1));
      // Repeats one slice.
      p.pieces.push_back(offset > 0 ? run_piece(shape, d, {to.stop, n}, n - 1, 0)
                                    : run_piece(shape, d, {0, to.start}, 0, 0));
    }
  }
  return remap(std::move(p), {x});
}

// ---- pooling ----
struct Reducer {
  Array (*combine)(const Operand&, const Operand&);
  double neutral;  // neutral element of floating point; extrema of integers use the ends of their range
};
Reducer reducer_of(const std::string& kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (kind == "sum") return {add, 0};
  if (kind == "prod") return {multiply, 1};
  if (kind == "max") return {maximum, -infinity};
  if (kind == "min") return {minimum, infinity};
  throw ArgumentError(call_text() + ": there is no reduction '" + kind + "'; take sum, prod, max or min");
}

ScalarValue neutral_of(const Reducer& reducer, Dtype dtype) {
  if (is_inexact(dtype)) return {reducer.neutral, 0, false};
  if (std::isfinite(reducer.neutral)) return {0, static_cast<std::int64_t>(reducer.neutral), true};
  return kernels::visit(dtype, [&]<class T>(T) -> ScalarValue {
    if constexpr (std::is_integral_v<T>)
      return {0,
              static_cast<std::int64_t>(reducer.neutral < 0 ? kernels::lowest<T>() : kernels::highest<T>()),
              true};
    else
      return {};
  });
}

Array padded(const Array& x, int dim, std::pair<int, int> widths, const ScalarValue& fill) {
  if (widths.first == 0 && widths.second == 0) return x;
  Shape shape = x.shape();
  std::vector<std::int64_t> at(shape.size(), 0);
  at[dim] = widths.first;
  RemapParams p{shape, {}, fill};
  p.shape[dim] += widths.first + widths.second;
  if (x.size() > 0) p.pieces.push_back(whole_piece(0, shape, at));
  return remap(std::move(p), {x});
}

Array run_of(const Array& x, int dim, const Slice& s) {
  std::vector<IndexPart> parts(dim, IndexPart(slice()));
  parts.emplace_back(s);
  return index(x, std::move(parts));
}

// Windows of `width` along dim: windows of powers of two are made of two halves, and joined by the bits of
// width.
//   width 6 = 4 + 2:  w2[i] = x[i] x[i+1],  w4[i] = w2[i] w2[i+2],  w6[i] = w4[i] w2[i+4]
Array windows_along(const Array& x, int dim, std::int64_t width, const Reducer& reducer) {
  const auto count = x.shape()[dim] - width + 1;
  Array power = x, result;
  std::int64_t span = 1, done = 0;
  for (auto bits = width; bits > 0; bits /= 2) {
    if (bits % 2 != 0) {
      const Array part = run_of(power, dim, slice(done, done + count));
      result = done == 0 ? part : reducer.combine(result, part);
      done += span;
    }
    if (bits > 1) {
      const auto n = power.shape()[dim];
      power = reducer.combine(run_of(power, dim, slice(0, n - span)), run_of(power, dim, slice(span, n)));
      span *= 2;
    }
  }
  return result;
}

template <class T> void check_entries(const std::vector<T>& entries, std::size_t dims, const char* what) {
  if (entries.size() != dims)
    throw ArgumentError(call_text() + ": " + std::to_string(entries.size()) + " " + what + " for " +
                        std::to_string(dims) + " dimensions; give one for each");
}
void check_positive(const std::vector<int>& entries, const char* what) {
  for (const int n : entries)
    if (n < 1)
      throw ArgumentError(call_text() + ": " + what + " must be at least 1, one is " + std::to_string(n));
}
void check_padding(const std::vector<std::pair<int, int>>& padding) {
  for (const auto& [before, after] : padding)
    if (before < 0 || after < 0)
      throw ArgumentError(call_text() + ": the padding (" + std::to_string(before) + ", " +
                          std::to_string(after) + ") must not be negative");
}

}  // namespace

Array shifted(const Operand& x, int offset, int axis, Boundary boundary, double value) {
  const Call call("shifted", x.where);
  check_usable(x.array);
  return shifted_by(x.array, offset, checked_dim(axis, x.array.ndim()), boundary, value);
}

Array Neighbours::at(std::vector<int> offsets) const {
  const Call call("stencil", x_.where);
  check_usable(x_.array);
  if (!offsets.empty()) check_entries(offsets, x_.array.shape().size(), "offsets");
  Array y = x_.array;
  for (std::size_t d = 0; d < offsets.size(); ++d)
    y = shifted_by(y, offsets[d], static_cast<int>(d), boundary_, value_);
  return y;
}

Array reduce_window(const Operand& x, const std::string& kind, std::vector<int> window,
                    WindowOptions options) {
  const Call call("reduce_window", x.where);
  check_usable(x.array);
  const Reducer reducer = reducer_of(kind);
  const auto dims = x.array.shape().size();
  if (options.strides.empty()) options.strides.assign(dims, 1);
  if (options.padding.empty()) options.padding.assign(dims, {0, 0});
  check_entries(window, dims, "extents of the window");
  check_entries(options.strides, dims, "strides");
  check_entries(options.padding, dims, "pairs of padding");
  check_positive(window, "extents of the window");
  check_positive(options.strides, "strides");
  check_padding(options.padding);
  if (is_complex(x.array.dtype()) && (kind == "max" || kind == "min"))
    throw DtypeError(call_text() + ": complex numbers have no order");
  Array y = is_bool(x.array.dtype()) ? astype(x, int32) : x.array;
  for (std::size_t d = 0; d < dims; ++d) {
    const int dim = static_cast<int>(d);
    const Array around = padded(y, dim, options.padding[d], neutral_of(reducer, y.dtype()));
    if (around.shape()[d] < window[d])
      throw ShapeError(call_text() + ": a window of " + std::to_string(window[d]) +
                       " does not fit into dimension " + std::to_string(d) + " of shape " +
                       to_string(x.array.shape()) + ", of " + std::to_string(around.shape()[d]) +
                       " with its padding");
    y = windows_along(around, dim, window[d], reducer);
    if (options.strides[d] > 1) y = run_of(y, dim, slice(None, None, options.strides[d]));
  }
  return y;
}

Array conv_transpose(const Operand& x, const Operand& kernel, ConvTransposeOptions options) {
  const Call call("conv_transpose", x.where);
  check_usable(x.array);
  check_usable(kernel.array);
  const Shape &xs = x.array.shape(), &ks = kernel.array.shape();
  if (xs.size() < 2 || xs.size() != ks.size() || xs[1] != ks[0] || options.groups < 1 ||
      ks[0] % options.groups != 0)
    throw ShapeError(call_text() + ": operand " + to_string(xs) + ", kernel " + to_string(ks) + ", " +
                     std::to_string(options.groups) +
                     " groups: they must be (images, features, spatial...) and (features, channels / groups, "
                     "taps...), and groups must divide the features");
  const auto spatial = xs.size() - 2;
  if (options.strides.empty()) options.strides.assign(spatial, 1);
  if (options.padding.empty()) options.padding.assign(spatial, {0, 0});
  if (options.output_padding.empty()) options.output_padding.assign(spatial, 0);
  check_entries(options.strides, spatial, "strides");
  check_entries(options.padding, spatial, "pairs of padding");
  check_entries(options.output_padding, spatial, "output paddings");
  check_positive(options.strides, "strides");
  check_padding(options.padding);
  Array spread = x.array;
  ConvOptions conv_options{.groups = options.groups};
  std::vector<IndexPart> kept{slice(), slice()};
  for (std::size_t d = 0; d < spatial; ++d) {
    const auto dim = d + 2;
    if (options.output_padding[d] < 0 ||
        (options.output_padding[d] > 0 && options.output_padding[d] >= options.strides[d]))
      throw ArgumentError(call_text() + ": an output padding of " +
                          std::to_string(options.output_padding[d]) + " must be less than the stride " +
                          std::to_string(options.strides[d]));
    if (options.strides[d] > 1 && spread.shape()[dim] > 1)
      spread = dilate(spread, static_cast<int>(dim), options.strides[d]);
    const auto reach = static_cast<int>(ks[dim]) - 1;
    const auto [before, after] = options.padding[d];
    // Removes the conv's padding: from the surrounding zeros, or from the result if those are fewer.
    const int lead = reach - before, tail = reach - after + options.output_padding[d];
    conv_options.padding.push_back({std::max(lead, 0), std::max(tail, 0)});
    const auto extent = spread.shape()[dim] + std::max(lead, 0) + std::max(tail, 0) - reach;
    const std::int64_t first = std::max(-lead, 0), last = extent - std::max(-tail, 0);
    if (last <= first)
      throw ShapeError(call_text() + ": operand " + to_string(xs) + ", kernel " + to_string(ks) +
                       ": nothing is left of spatial dimension " + std::to_string(d) +
                       " without the padding");
    kept.push_back(slice(first, last));
  }
  return index(conv(spread, transposed_weights(kernel.array, options.groups), conv_options), std::move(kept));
}

}  // namespace tessera
