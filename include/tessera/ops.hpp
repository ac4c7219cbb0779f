// Ops on arrays (API section 4). Broadcasting, promotion and names are NumPy's; every op works on every
// sharding.
//
// An `Operand` is an Array or a plain number (weakly typed). Unless said otherwise the result has the
// operands' broadcast shape, keeps their sharding, moves nothing when they agree, and raises ShapeError,
// DtypeError or ShardingError on every rank.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

// Axes of an array, as in NumPy: one or several, negative ones from the end; none means all.
struct Axes {
  Axes() = default;
  Axes(int axis) : values{axis} {}
  Axes(std::initializer_list<int> axes) : values(axes) {}
  Axes(std::vector<int> axes) : values(std::move(axes)) {}
  std::vector<int> values;
};

#define TESSERA_UNARY(name) Array name(const Operand& x);
#define TESSERA_BINARY(name) Array name(const Operand& a, const Operand& b);
#define TESSERA_REDUCE(name) Array name(const Operand& x, Axes axes = {}, bool keepdims = false);

// clang-format off
TESSERA_UNARY(operator-)
TESSERA_UNARY(operator!)
TESSERA_UNARY(operator~)
TESSERA_BINARY(operator+)
TESSERA_BINARY(operator-)
TESSERA_BINARY(operator*)
TESSERA_BINARY(operator/)
TESSERA_BINARY(operator%)
TESSERA_BINARY(operator==)
TESSERA_BINARY(operator!=)
TESSERA_BINARY(operator<)
TESSERA_BINARY(operator<=)
TESSERA_BINARY(operator>)
TESSERA_BINARY(operator>=)
TESSERA_BINARY(operator&)
TESSERA_BINARY(operator|)
TESSERA_BINARY(operator^)
// clang-format on
Array& operator+=(Array& a, const Operand& b);
Array& operator-=(Array& a, const Operand& b);
Array& operator*=(Array& a, const Operand& b);
Array& operator/=(Array& a, const Operand& b);

// ---- elementwise ----
// clang-format off
TESSERA_UNARY(abs)
TESSERA_UNARY(exp)
TESSERA_UNARY(exp2)
TESSERA_UNARY(expm1)
TESSERA_UNARY(log)
TESSERA_UNARY(log2)
TESSERA_UNARY(log10) TESSERA_UNARY(log1p) TESSERA_UNARY(sin) TESSERA_UNARY(cos) TESSERA_UNARY(tan) TESSERA_UNARY(asin) TESSERA_UNARY(acos)
    TESSERA_UNARY(atan) TESSERA_UNARY(sinh) TESSERA_UNARY(cosh) TESSERA_UNARY(tanh) TESSERA_UNARY(asinh) TESSERA_UNARY(acosh)
        TESSERA_UNARY(atanh) TESSERA_UNARY(erf) TESSERA_UNARY(erf_inv) TESSERA_UNARY(erfc) TESSERA_UNARY(lgamma) TESSERA_UNARY(digamma)
            TESSERA_UNARY(sqrt) TESSERA_UNARY(cbrt) TESSERA_UNARY(rsqrt) TESSERA_UNARY(square) TESSERA_UNARY(reciprocal)
                TESSERA_UNARY(negative) TESSERA_UNARY(positive) TESSERA_UNARY(floor) TESSERA_UNARY(ceil) TESSERA_UNARY(round)
                    TESSERA_UNARY(trunc) TESSERA_UNARY(sign) TESSERA_UNARY(isnan) TESSERA_UNARY(isfinite) TESSERA_UNARY(isinf)
                        TESSERA_UNARY(real) TESSERA_UNARY(imag) TESSERA_UNARY(conj) TESSERA_UNARY(sigmoid) TESSERA_UNARY(relu)
                            TESSERA_UNARY(gelu) TESSERA_UNARY(silu) TESSERA_UNARY(softplus) TESSERA_UNARY(logical_not)
                                TESSERA_UNARY(bitwise_invert) TESSERA_UNARY(copy) TESSERA_BINARY(add) TESSERA_BINARY(subtract)
                                    TESSERA_BINARY(multiply) TESSERA_BINARY(divide) TESSERA_BINARY(power) TESSERA_BINARY(maximum)
                                        TESSERA_BINARY(minimum) TESSERA_BINARY(atan2) TESSERA_BINARY(hypot) TESSERA_BINARY(logaddexp)
                                            TESSERA_BINARY(remainder) TESSERA_BINARY(floor_divide) TESSERA_BINARY(copysign)
                                                TESSERA_BINARY(nextafter) TESSERA_BINARY(equal) TESSERA_BINARY(not_equal)
                                                    TESSERA_BINARY(less) TESSERA_BINARY(less_equal) TESSERA_BINARY(greater)
                                                        TESSERA_BINARY(greater_equal) TESSERA_BINARY(logical_and) TESSERA_BINARY(logical_or)
                                                            TESSERA_BINARY(logical_xor) TESSERA_BINARY(bitwise_and)
                                                                TESSERA_BINARY(bitwise_or) TESSERA_BINARY(bitwise_xor)
                                                                    TESSERA_BINARY(bitwise_left_shift)
                                                                        TESSERA_BINARY(bitwise_right_shift) Array
    // clang-format on
    make_complex(const Operand& re, const Operand& im);
Array clip(const Operand& x, const Operand& lo, const Operand& hi);
Array where(const Operand& condition, const Operand& a, const Operand& b);
Array astype(const Operand& x, Dtype);

// ---- reductions: over all axes unless some are named. A split axis costs one all-reduce of the result. ----
// clang-format off
TESSERA_REDUCE(sum)
TESSERA_REDUCE(mean)
TESSERA_REDUCE(prod)
TESSERA_REDUCE(max)
TESSERA_REDUCE(min)
TESSERA_REDUCE(any)
TESSERA_REDUCE(all) TESSERA_REDUCE(var) TESSERA_REDUCE(std) TESSERA_REDUCE(count_nonzero) TESSERA_REDUCE(logsumexp) Array
    // clang-format on
    argmax(const Operand& x);
Array argmax(const Operand& x, int axis, bool keepdims = false);
Array argmin(const Operand& x);
Array argmin(const Operand& x, int axis, bool keepdims = false);
Array softmax(const Operand& x, int axis = -1);
Array log_softmax(const Operand& x, int axis = -1);
Array cumsum(const Operand& x, int axis);
Array cumprod(const Operand& x, int axis);

// ---- shape ----
Array reshape(const Operand& x, Shape shape);  // one extent may be -1
Array transpose(const Operand& x);
Array transpose(const Operand& x, std::vector<int> permutation);
Array swapaxes(const Operand& x, int a, int b);
Array moveaxis(const Operand& x, int from, int to);
Array squeeze(const Operand& x, Axes axes = {});
Array expand_dims(const Operand& x, int axis);
Array broadcast_to(const Operand& x, Shape shape);
Array concatenate(std::vector<Array> arrays, int axis = 0,
                  std::source_location where = std::source_location::current());
Array stack(std::vector<Array> arrays, int axis = 0,
            std::source_location where = std::source_location::current());
std::vector<Array> split(const Operand& x, int parts, int axis = 0);
std::vector<Array> split_at(const Operand& x, std::vector<std::int64_t> places,
                            int axis = 0);  // [0:p0], [p0:p1], ...
Array flip(const Operand& x, Axes axes = {});
Array roll(const Operand& x, int shift, int axis);
Array pad(const Operand& x, std::vector<std::pair<int, int>> widths,
          double value = 0);  // one pair stands for all dims
Array tile(const Operand& x, std::vector<int> repeats);
Array repeat(const Operand& x, int n, int axis);
Array tril(const Operand& x, int k = 0);
Array triu(const Operand& x, int k = 0);
Array diagonal(const Operand& x, int offset = 0);

// ---- index, search, sort ----
Array take(const Operand& x, const Operand& indices, int axis);
Array take_along_axis(const Operand& x, const Operand& indices, int axis);
Array searchsorted(const Operand& sorted, const Operand& values, const std::string& side = "left");
Array sort(const Operand& x, int axis = -1);
Array argsort(const Operand& x, int axis = -1);
std::pair<Array, Array> top_k(const Operand& x, int k);

// ---- made of the others ----
Array diff(const Operand& x, int n = 1, int axis = -1);  // x[1:] - x[:-1], n times
std::vector<Array> meshgrid(std::vector<Array> axes, const std::string& indexing = "xy",
                            std::source_location where = std::source_location::current());
Array isclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
Array allclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);                              // one bool
Array ptp(const Operand& x, Axes axes = {}, bool keepdims = false);  // max - min
Array median(const Operand& x);                                      // of all elements; NaN if there is one
Array median(const Operand& x, int axis, bool keepdims = false);
Array average(const Operand& x, const Operand& weights, Axes axes = {},
              bool keepdims = false);  // weights broadcast to x

// ---- contraction ----
// clang-format off
TESSERA_BINARY(matmul)
TESSERA_BINARY(dot)
TESSERA_BINARY(vdot) TESSERA_BINARY(inner) TESSERA_BINARY(outer) Array tensordot(const Operand& a, const Operand& b, int n = 2);
// clang-format on
Array tensordot(const Operand& a, const Operand& b, std::pair<std::vector<int>, std::vector<int>> axes);
Array einsum_of(const std::string& expression, std::vector<Array> operands,
                std::source_location where = std::source_location::current());
// An expression that remembers where it was written, as an Operand does: a parameter pack leaves no room for
// the place behind it.
struct EinsumExpression {
  EinsumExpression(std::string text, std::source_location where = std::source_location::current())
      : text(std::move(text)), where(where) {}
  EinsumExpression(const char* text, std::source_location where = std::source_location::current())
      : text(text), where(where) {}
  std::string text;
  std::source_location where;
};
template <class... A> Array einsum(const EinsumExpression& expression, const A&... operands) {
  return einsum_of(expression.text, {Array(operands)...}, expression.where);
}
Array trace(const Operand& x);
struct ConvOptions {
  std::vector<int> strides = {};
  std::vector<std::pair<int, int>> padding = {};
  std::vector<int> dilation = {};
  int groups = 1;
};
Array conv(const Operand& x, const Operand& kernel, ConvOptions options = {});

#undef TESSERA_UNARY
#undef TESSERA_BINARY
#undef TESSERA_REDUCE

}  // namespace tessera
