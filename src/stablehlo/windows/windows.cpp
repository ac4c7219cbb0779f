// Reductions of windows, running reductions, and the gradients of pooling.
//
// A window's elements are slices of the padded array with the window's stride, one for each place in the
// window: all that tessera's own reduce_window does not know is made of those.
#include <tessera/ops.hpp>
#include <tessera/ops/window.hpp>

#include <algorithm>

#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

struct Windows {
  std::vector<std::int64_t> window, strides, padding, base, dilation;

  std::vector<Padding> around() const {
    std::vector<Padding> dims;
    for (std::size_t d = 0; d < window.size(); ++d) dims.push_back({padding[2 * d], padding[2 * d + 1], 0});
    return dims;
  }
  Array apart(const Array& x, const Array& value) const {
    std::vector<Padding> dims;
    for (const auto n : base) dims.push_back({0, 0, n - 1});
    return padded(x, value, dims);
  }
  std::vector<std::int64_t> counts(const Shape& whole) const {
    std::vector<std::int64_t> result;
    for (std::size_t d = 0; d < window.size(); ++d) {
      const auto room = whole[d] - ((window[d] - 1) * dilation[d] + 1);
      result.push_back(room < 0 ? 0 : room / strides[d] + 1);
    }
    return result;
  }
  std::int64_t places() const {
    std::int64_t n = 1;
    for (const auto w : window)
      if (__builtin_mul_overflow(n, w, &n)) return std::numeric_limits<std::int64_t>::max();
    return n;
  }
  // TextPlace n of the window, row-major.
  std::vector<std::int64_t> place(std::int64_t n) const {
    std::vector<std::int64_t> at(window.size());
    for (std::size_t d = window.size(); d-- > 0; n /= window[d]) at[d] = n % window[d];
    return at;
  }
  // The elements at one place of all windows.
  Array cut(const Array& whole, const std::vector<std::int64_t>& at) const {
    const auto count = counts(whole.shape());
    std::vector<IndexPart> parts;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const auto start = at[d] * dilation[d];
      parts.emplace_back(
          slice(start, count[d] == 0 ? start : start + (count[d] - 1) * strides[d] + 1, strides[d]));
    }
    return parts.empty() ? whole : index(whole, std::move(parts));
  }
  // The elements of a cut where they came from, the value elsewhere.
  Array spread(const Array& part, const std::vector<std::int64_t>& at, const Shape& whole,
               const Array& value) const {
    std::vector<Padding> dims;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const auto extent = (part.shape()[d] - 1) * strides[d] + 1;
      dims.push_back({at[d], whole[d] - at[d] - extent, strides[d] - 1});
    }
    return padded(part, value, dims);
  }
  Array unpadded(const Array& x) const {
    std::vector<Padding> dims;
    for (std::size_t d = 0; d < window.size(); ++d) dims.push_back({-padding[2 * d], -padding[2 * d + 1], 0});
    return padded(x, number_like(0, x), dims);
  }
};

Windows windows_of(const OpCall& s, std::size_t ndim) {
  Windows w{s.integers("window_dimensions", 1, ndim), s.integers("window_strides", 1, ndim),
            s.integers("padding", 0, 2 * ndim), s.integers("base_dilations", 1, ndim),
            s.integers("window_dilations", 1, ndim)};
  constexpr std::int64_t most = 1 << 30;
  for (const auto* values : {&w.window, &w.strides, &w.base, &w.dilation})
    for (const auto n : *values)
      if (n < 1 || n > most) s.refuse("an extent, stride or dilation of " + std::to_string(n));
  for (const auto n : w.padding)
    if (n < -most || n > most) s.refuse("a padding of " + std::to_string(n));
  return w;
}

void want_few_places(const OpCall& s, const Windows& w) {
  constexpr std::int64_t most = 4096;
  if (w.places() > most)
    s.refuse(
        "a window of " + std::to_string(w.places()) +
        " elements and a function that is neither a sum, product, maximum nor minimum: 4096 is the limit");
}

std::vector<int> as_ints(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

std::string kind_of(const std::string& body, Dtype dtype) {
  if (body == "add") return is_bool(dtype) ? "" : "sum";
  if (body == "multiply") return is_bool(dtype) ? "" : "prod";
  if (is_complex(dtype) || is_bool(dtype)) return "";
  return body == "maximum" ? "max" : body == "minimum" ? "min" : "";
}

// The only dim whose window is the whole line, from its start (or its end) up to each element; -1: none.
struct Running {
  int d = -1;
  bool is_reverse = false;
};
Running running_of(const Windows& w, const Shape& shape) {
  Running found;
  for (std::size_t d = 0; d < w.window.size(); ++d) {
    const auto low = w.padding[2 * d], high = w.padding[2 * d + 1];
    if (w.strides[d] != 1 || w.base[d] != 1 || w.dilation[d] != 1) return {};
    if (w.window[d] == 1 && low == 0 && high == 0) continue;
    const bool forward = low == w.window[d] - 1 && high == 0, reverse = high == w.window[d] - 1 && low == 0;
    if (found.d >= 0 || w.window[d] != shape[d] || !(forward || reverse)) return {};
    found = {static_cast<int>(d), reverse};
  }
  return found;
}

Array running(const std::string& kind, const Array& x, Running how) {
  if (kind == "sum") return cumsum(x, how.d, {x.dtype(), false, how.is_reverse});
  if (kind == "prod") return cumprod(x, how.d, {x.dtype(), false, how.is_reverse});
  return kind == "max" ? cummax(x, how.d, how.is_reverse) : cummin(x, how.d, how.is_reverse);
}

Array neutral_of(const std::string& kind, Dtype dtype) {
  if (kind == "sum") return number_of(std::int64_t{0}, dtype);
  if (kind == "prod") return number_of(std::int64_t{1}, dtype);
  return kind == "max" ? lowest_of(dtype) : highest_of(dtype);
}

// By a known function. Padding is made of its neutral element: what init adds once to each window.
Array windows_by_known_function(const OpCall& s, const Windows& w, const std::string& kind,
                                const std::string& body) {
  const Array &x = s.x[0], &init = s.x[1];
  const Array neutral = neutral_of(kind, x.dtype());
  const auto how = running_of(w, x.shape());
  Array result;
  if (how.d >= 0 && x.size() > 0) {
    result = running(kind, x, how);
  } else {
    const Array whole = padded(w.apart(x, neutral), neutral, w.around());
    const auto counts = w.counts(whole.shape());
    const bool is_dilated = std::any_of(w.dilation.begin(), w.dilation.end(), [](auto n) { return n != 1; });
    if (std::find(counts.begin(), counts.end(), 0) != counts.end()) return zeros(Shape(counts), x.dtype());
    if (!is_dilated && x.ndim() > 0) {
      result = astype(reduce_window(whole, kind, as_ints(w.window), {as_ints(w.strides), {}}), x.dtype());
    } else {
      want_few_places(s, w);
      result = w.cut(whole, w.place(0));
      for (std::int64_t n = 1; n < w.places(); ++n)
        result = *combined(body, result, w.cut(whole, w.place(n)));
    }
  }
  return *combined(body, init, result);
}

Arrays reduce_window_rule(OpCall& s) {
  if (s.x.size() < 2 || s.x.size() % 2 != 0 || s.op.regions.size() != 1)
    s.refuse("takes arrays, as many first values, and a function");
  const auto n = s.x.size() / 2;
  for (std::size_t i = 0; i < n; ++i)
    if (s.x[i].shape() != s.x[0].shape() || s.x[n + i].ndim() != 0 || s.x[i].dtype() != s.x[n + i].dtype())
      s.refuse("arrays of different shapes, or first values of other types");
  const Windows w = windows_of(s, s.x[0].shape().size());
  const auto body = simple_body(s.op.regions[0]);
  const auto kind = kind_of(body, s.x[0].dtype());
  if (n == 1 && !kind.empty()) return {windows_by_known_function(s, w, kind, body)};
  want_few_places(s, w);
  Arrays whole, result;
  for (std::size_t i = 0; i < n; ++i)
    whole.push_back(padded(w.apart(s.x[i], s.x[n + i]), s.x[n + i], w.around()));
  const Shape counts(w.counts(whole[0].shape()));
  for (std::size_t i = 0; i < n; ++i) result.push_back(broadcast_to(s.x[n + i], counts));
  if (counts.elements() == 0) return result;
  for (std::int64_t place = 0; place < w.places(); ++place) {
    for (const auto& x : whole) result.push_back(w.cut(x, w.place(place)));
    result = s.run.elementwise(s.frame, s.op.regions[0], result);
  }
  return result;
}

// ---- select_and_scatter ----

// For each window the number (row-major, in the window) of the element that it selects: the elements are
// compared in order, and the best so far stays where the program's function says so.
Array selected_places(const OpCall& s, const Windows& w, const Array& whole, const Array& is_inside) {
  Array best, which, is_known;
  for (std::int64_t n = 0; n < w.places(); ++n) {
    const Array part = w.cut(whole, w.place(n)), here = w.cut(is_inside, w.place(n));
    if (n == 0) {
      best = part, which = zeros(part.shape(), int32), is_known = here;
      continue;
    }
    const Array keeps = s.run.elementwise(s.frame, s.op.regions[0], {best, part})[0];
    const Array better = here & (bitwise_invert(keeps) | bitwise_invert(is_known));
    best = where(better, part, best), which = where(better, full({}, static_cast<std::int32_t>(n)), which);
    is_known = is_known | here;
  }
  return which;
}

Arrays select_and_scatter(OpCall& s) {
  s.want_operands(3);
  if (s.op.regions.size() != 2 || s.op.regions[0].arguments.size() != 2 ||
      s.op.regions[1].arguments.size() != 2)
    s.refuse("takes two functions of two elements");
  const Array &x = s.x[0], &source = s.x[1], &init = s.x[2];
  if (source.dtype() != x.dtype() || init.dtype() != x.dtype() || init.ndim() != 0)
    s.refuse("a source or first value of another type");
  const Windows w = windows_of(s, x.shape().size());
  want_few_places(s, w);
  const Array whole = padded(x, number_like(0, x), w.around());
  if (Shape(w.counts(whole.shape())) != source.shape())
    s.refuse("a source of " + tessera::to_string(source.shape()) + " for windows of " +
             tessera::to_string(Shape(w.counts(whole.shape()))));
  if (source.size() == 0 || x.size() == 0) return {broadcast_to(init, x.shape())};
  const Array is_inside = padded(full(x.shape(), true), full({}, false), w.around());
  const Array which = selected_places(s, w, whole, is_inside);
  const bool adds = simple_body(s.op.regions[1]) == "add";
  Array result = broadcast_to(init, whole.shape());
  for (std::int64_t n = 0; n < w.places(); ++n) {
    const Array chosen = equal(which, full({}, static_cast<std::int32_t>(n)));
    const auto at = w.place(n);
    if (adds) {
      const Array zero = number_like(0, source);
      result = add(result, w.spread(where(chosen, source, zero), at, whole.shape(), zero));
      continue;
    }
    const Array changed =
        s.run.elementwise(s.frame, s.op.regions[1], {result, w.spread(source, at, whole.shape(), init)})[0];
    result = where(w.spread(chosen, at, whole.shape(), full({}, false)), changed, result);
  }
  return {w.unpadded(result)};
}

}  // namespace

void add_windows(Rules& rules) {
  rules["stablehlo.reduce_window"] = reduce_window_rule;
  rules["stablehlo.select_and_scatter"] = select_and_scatter;
}

}  // namespace tessera::stablehlo
