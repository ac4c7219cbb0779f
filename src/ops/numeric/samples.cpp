// Sampled functions: derivatives, integrals, convolutions. Neighbouring samples come from rolls, slices and
// conv, which exchange halos.
#include <tessera/ops/numeric.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

Array inexact(const Array& x) {
  check_usable(x);
  return cast_to(x, to_inexact(x.dtype()));
}
Array part_of(const Array& x, int dim, const IndexPart& part) {
  std::vector<IndexPart> parts(dim, IndexPart(slice()));
  parts.push_back(part);
  return index(x, std::move(parts));
}
At at_part(const Array& x, int dim, const IndexPart& part) {
  std::vector<IndexPart> parts(dim, IndexPart(slice()));
  parts.push_back(part);
  return At(x, std::move(parts));
}

void check_samples(const Array& x, int dim, int edge_order) {
  if (edge_order != 1 && edge_order != 2)
    throw ArgumentError(call_text() + ": edge_order is " + std::to_string(edge_order) + "; it is 1 or 2");
  if (x.shape()[dim] <= edge_order)
    throw ShapeError(
        call_text() + ": axis " + std::to_string(dim) + " of shape " + to_string(x.shape()) +
        " has fewer than the " +
        (edge_order == 1 ? "two samples that a difference needs" : "three samples that edge_order 2 needs"));
}

Array derivative_along(const Array& x, int dim, double spacing, int edge_order) {
  check_samples(x, dim, edge_order);
  const auto n = x.shape()[dim];
  const auto slope = [&](std::int64_t i) {
    return (part_of(x, dim, slice(i + 1, i + 2)) - part_of(x, dim, slice(i, i + 1))) / spacing;
  };
  // At the end of a parabola the derivative is half a step beyond the outer slope.
  const auto at_end = [&](std::int64_t outer, std::int64_t inner) {
    return edge_order == 1 ? slope(outer) : 1.5 * slope(outer) - 0.5 * slope(inner);
  };
  const Array central = (roll(x, -1, dim) - roll(x, 1, dim)) / (2 * spacing);
  const Array with_first = at_part(central, dim, slice(0, 1)).set(at_end(0, 1));
  return at_part(with_first, dim, slice(n - 1, n)).set(at_end(n - 2, n - 3));
}

// The positions of the full convolution that a mode keeps, for n elements and a kernel of m <= n.
struct Padding {
  std::int64_t before, after;
};
Padding padding_of(const std::string& mode, std::int64_t m) {
  if (mode == "full") return {m - 1, m - 1};
  if (mode == "valid") return {0, 0};
  if (mode == "same") return {m / 2, (m - 1) / 2};
  throw ArgumentError(call_text() + ": there is no mode '" + mode + "'; take full, same or valid");
}

void check_line(const Array& x, const char* what) {
  check_usable(x);
  if (x.ndim() != 1 || x.size() == 0)
    throw ShapeError(call_text() + ": " + what + " has shape " + to_string(x.shape()) +
                     "; it must have one dimension, and hold an element");
}

// sum over k of x[i + k] taps[k]; x is the longer one. Of complex numbers part by part: lines of real numbers
// have kernels of their own, which multiply nothing by the zeros beyond the ends.
Array slid(const Array& x, const Array& taps, Padding padding) {
  if (is_complex(x.dtype()) && is_complex(taps.dtype()))
    return make_complex(slid(real(x), real(taps), padding) - slid(imag(x), imag(taps), padding),
                        slid(real(x), imag(taps), padding) + slid(imag(x), real(taps), padding));
  if (is_complex(x.dtype())) return make_complex(slid(real(x), taps, padding), slid(imag(x), taps, padding));
  if (is_complex(taps.dtype()))
    return make_complex(slid(x, real(taps), padding), slid(x, imag(taps), padding));
  const Array y = conv(reshape(x, Shape{1, 1, x.size()}), reshape(taps, Shape{1, 1, taps.size()}),
                       {.padding = {{static_cast<int>(padding.before), static_cast<int>(padding.after)}}});
  return reshape(y, Shape{y.size()});
}

}  // namespace

Array gradient(const Operand& x, int axis, double spacing, int edge_order) {
  const Call call("gradient", x.where);
  const Array samples = inexact(x.array);
  return derivative_along(samples, checked_dim(axis, samples.ndim()), spacing, edge_order);
}
Array gradient(const Operand& x, const Operand& coordinates, int axis, int edge_order) {
  const Call call("gradient", x.where);
  const Array samples = inexact(x.array), at = inexact(coordinates.array);
  const int dim = checked_dim(axis, samples.ndim());
  const auto n = samples.shape()[dim];
  check_samples(samples, dim, edge_order);
  if (at.ndim() != 1 || at.size() != n)
    throw ShapeError(call_text() + ": coordinates of shape " + to_string(at.shape()) + " for axis " +
                     std::to_string(dim) + " of shape " + to_string(samples.shape()) +
                     "; there must be one for each sample");
  std::vector<std::int64_t> aligned(samples.shape().size(), 1);
  aligned[dim] = n - 1;
  const auto between = [&](std::int64_t i, std::int64_t j) { return part_of(samples, dim, slice(i, j)); };
  const Array step = reshape(diff(at, 1, 0), Shape(std::move(aligned)));
  const Array slope = (between(1, n) - between(0, n - 1)) / step;
  const auto slab = [&](const Array& of, std::int64_t i) { return part_of(of, dim, slice(i, i + 1)); };
  // The derivative at the end of a parabola through the three outermost samples.
  const auto at_end = [&](std::int64_t outer, std::int64_t inner) {
    const Array outermost = slab(slope, outer);
    if (edge_order == 1) return outermost;
    const Array reach = slab(step, outer);
    return outermost + (outermost - slab(slope, inner)) * reach / (reach + slab(step, inner));
  };
  const Array first = at_end(0, 1), last = at_end(n - 2, n - 3);
  if (n == 2) return concatenate({first, last}, dim);
  const Array before = part_of(step, dim, slice(0, n - 2)), after = part_of(step, dim, slice(1, n - 1));
  const Array inner =
      (part_of(slope, dim, slice(0, n - 2)) * after + part_of(slope, dim, slice(1, n - 1)) * before) /
      (before + after);
  return concatenate({first, inner, last}, dim);
}
std::vector<Array> gradient(const Operand& x, double spacing, int edge_order) {
  const Call call("gradient", x.where);
  const Array samples = inexact(x.array);
  std::vector<Array> result;
  for (int d = 0; d < samples.ndim(); ++d)
    result.push_back(derivative_along(samples, d, spacing, edge_order));
  return result;
}

Array trapezoid(const Operand& y, double dx, int axis) {
  const Call call("trapezoid", y.where);
  const Array samples = inexact(y.array);
  const int dim = checked_dim(axis, samples.ndim());
  const auto n = samples.shape()[dim];
  if (n < 2) return sum(zeros_like(samples), dim);
  // The complete sum less half of both ends: communicates only a partial sum.
  return (sum(samples, dim) - 0.5 * (part_of(samples, dim, 0) + part_of(samples, dim, -1))) * dx;
}
Array trapezoid(const Operand& y, const Operand& x, int axis) {
  const Call call("trapezoid", y.where);
  const Array samples = inexact(y.array);
  check_usable(x.array);
  const int dim = checked_dim(axis, samples.ndim());
  Array places = x.array;
  if (places.ndim() == 1) {
    std::vector<std::int64_t> aligned(samples.shape().size(), 1);
    aligned[dim] = places.size();
    places = reshape(places, Shape(std::move(aligned)));
  }
  if (places.ndim() != samples.ndim() || places.shape()[dim] != samples.shape()[dim])
    throw ShapeError(call_text() + ": the samples have shape " + to_string(samples.shape()) +
                     ", their places " + to_string(x.array.shape()) +
                     "; give one for each sample along axis " + std::to_string(dim));
  const auto later = [&](const Array& a) { return part_of(a, dim, slice(1, None)); };
  const auto earlier = [&](const Array& a) { return part_of(a, dim, slice(None, -1)); };
  return sum(0.5 * (later(places) - earlier(places)) * (later(samples) + earlier(samples)), dim);
}

Array convolve(const Operand& a, const Operand& v, const std::string& mode) {
  const Call call("convolve", a.where);
  check_line(a.array, "the first array");
  check_line(v.array, "the second array");
  const bool is_shorter = a.array.size() < v.array.size();
  const Array &line = is_shorter ? v.array : a.array, &taps = is_shorter ? a.array : v.array;
  const auto padding = padding_of(mode, taps.size());
  return slid(line, flip(taps, 0), {padding.before, padding.after});
}
Array correlate(const Operand& a, const Operand& v, const std::string& mode) {
  const Call call("correlate", a.where);
  check_line(a.array, "the first array");
  check_line(v.array, "the second array");
  const Array taps = conj(v);
  if (a.array.size() >= v.array.size()) return slid(a.array, taps, padding_of(mode, v.array.size()));
  return flip(slid(taps, a.array, padding_of(mode, a.array.size())), 0);
}

Array kron(const Operand& a, const Operand& b) {
  const Call call("kron", a.where);
  check_usable(a.array);
  check_usable(b.array);
  const int ndim = std::max(a.array.ndim(), b.array.ndim());
  std::vector<std::int64_t> outer, inner, product;
  for (int d = -ndim; d < 0; ++d) {
    const auto m = a.array.ndim() + d >= 0 ? a.array.shape()[a.array.ndim() + d] : 1,
               n = b.array.ndim() + d >= 0 ? b.array.shape()[b.array.ndim() + d] : 1;
    outer.insert(outer.end(), {m, 1});
    inner.insert(inner.end(), {1, n});
    product.push_back(m * n);
  }
  return reshape(reshape(a, Shape(std::move(outer))) * reshape(b, Shape(std::move(inner))),
                 Shape(std::move(product)));
}

Array cross(const Operand& a, const Operand& b) {
  const Call call("cross", a.where);
  check_usable(a.array);
  check_usable(b.array);
  for (const Array* x : {&a.array, &b.array})
    if (x->ndim() == 0 || x->shape().back() != 3)
      throw ShapeError(call_text() + ": the arrays have shapes " + to_string(a.array.shape()) + " and " +
                       to_string(b.array.shape()) + "; the last extent of both must be 3");
  const auto component = [](const Array& x, int i) {
    std::vector<IndexPart> parts(static_cast<std::size_t>(x.ndim() - 1), IndexPart(slice()));
    parts.emplace_back(i % 3);
    return index(x, std::move(parts));
  };
  const auto product = [&](int i) {
    return component(a.array, i + 1) * component(b.array, i + 2) -
           component(a.array, i + 2) * component(b.array, i + 1);
  };
  return stack({product(0), product(1), product(2)}, -1);
}

Array vecdot(const Operand& a, const Operand& b, int axis) {
  const Call call("vecdot", a.where);
  return sum(conj(a) * b.array, axis);
}

}  // namespace tessera
