// Random numbers: the values that JAX gives for the same key, the same on any number of
// ranks and any sharding.
//
// A draw is a pure function of (key, shape, dtype). It is uncommitted when its key is: each rank then
// computes its own block in whatever layout the consumer has, with no communication, e.g.
// device_put(random::normal(key, {8192, 8192}), mesh, P("x")).
//
//   random::Key key = random::key(0);
//   auto keys = random::split(key, 2);                       // never use a key twice
//   Array x = random::normal(keys[0], {1000});
//   Array noise = random::uniform(random::fold_in(keys[1], step), {1000});
//
// Keys are arrays, so vmap, pmap and shard_map map over them, and fold_in(key, axis_index("x")) gives each
// device a stream of its own.
//
// Bits, uniform, randint, bernoulli and permutation are JAX's bit for bit; what goes through log, erf_inv or
// pow agrees to a few units in the last place. Every function raises ShapeError when its key is a batch of
// keys (use vmap), DtypeError for a dtype it cannot draw and ArgumentError for parameters that make no
// sense, on every rank.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera::random {

// 64 bits from which draws are made: uint32[2]. A tree with one leaf.
struct Key {
  Array data;
};

using Where = std::source_location;

// ---- keys ----
// The words (high, low) of the seed, as JAX with 64-bit integers has them; the same as without for seeds in
// [0, 2^32).
Key key(std::int64_t seed, Where = Where::current());
std::vector<Key> split(const Key&, int n = 2, Where = Where::current());
// A batch of new keys: data of shape (*shape, 2), to map over. Key i in row-major order is split(key, n)[i].
Key split_batch(const Key&, Shape shape, Where = Where::current());
// A key for each value of an integer scalar (modulo 2^32).
Key fold_in(const Key&, const Array& data, Where = Where::current());
Array key_data(const Key&);  // uint32[..., 2]
Key wrap_key_data(const Array& data, Where = Where::current());

// How positions in the array become bits. `original` is what JAX did before 0.5 (jax_threefry_partitionable
// = false): other values for the same key, as cheap on sharded arrays.
enum class Threefry { partitionable, original };
Threefry threefry();
// Chooses one for the draws recorded while it lives. Nests.
class ThreefryScope {
 public:
  explicit ThreefryScope(Threefry);
  ~ThreefryScope();
  ThreefryScope(const ThreefryScope&) = delete;
  ThreefryScope& operator=(const ThreefryScope&) = delete;

 private:
  Threefry before_;
};

// ---- uniform and normal ----
Array bits(const Key&, Shape shape = {}, Dtype dtype = uint32, Where = Where::current());  // uint8 ... uint64
Array uniform(const Key&, Shape shape = {}, Dtype dtype = float32, double minval = 0, double maxval = 1,
              Where = Where::current());  // [minval, maxval)
Array uniform(const Key&, Shape shape, Dtype dtype, const Array& minval, const Array& maxval,
              Where = Where::current());
Array normal(const Key&, Shape shape = {}, Dtype dtype = float32,
             Where = Where::current());  // real or complex
// [minval, maxval); maxval may be one past the dtype's largest value. minval everywhere when maxval <=
// minval.
Array randint(const Key&, Shape shape, std::int64_t minval, std::int64_t maxval, Dtype dtype = int32,
              Where = Where::current());
// How finely small probabilities are resolved: `high` spends two draws per element.
enum class Resolution { low, high };
Array bernoulli(const Key&, double p = 0.5, Shape shape = {}, Where = Where::current());

// The shape to draw; nothing: the shape that the parameters broadcast to. Parameters must broadcast to the
// shape.
class DrawShape {
 public:
  DrawShape() = default;
  DrawShape(std::nullopt_t) {}
  DrawShape(Shape given) : shape(std::move(given)) {}
  DrawShape(std::optional<Shape> given) : shape(std::move(given)) {}
  DrawShape(std::initializer_list<std::int64_t> extents) : shape(Shape(extents)) {}
  std::optional<Shape> shape;
};

// p is an array of probabilities, float32 or float64.
Array bernoulli(const Key&, const Array& p, DrawShape shape = {}, Resolution = Resolution::low,
                Where = Where::current());
Array rademacher(const Key&, Shape shape = {}, Dtype dtype = int32, Where = Where::current());  // -1 or 1
Array geometric(const Key&, const Array& p, DrawShape shape = {}, Dtype dtype = int32,
                Where = Where::current());  // trials until success, from 1

// ---- continuous: float32 or float64, one uniform (or normal) draw per element ----
Array exponential(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
Array gumbel(const Key&, Shape shape = {}, Dtype dtype = float32, Resolution = Resolution::low,
             Where = Where::current());
Array laplace(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
Array logistic(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
Array cauchy(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
Array maxwell(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
Array double_sided_maxwell(const Key&, const Array& loc, const Array& scale, Shape shape = {},
                           Dtype dtype = float32, Where = Where::current());
// The standard normal within the open interval (lower, upper).
Array truncated_normal(const Key&, double lower, double upper, Shape shape = {}, Dtype dtype = float32,
                       Where = Where::current());
Array truncated_normal(const Key&, const Array& lower, const Array& upper, DrawShape shape = {},
                       Dtype dtype = float32, Where = Where::current());
Array pareto(const Key&, const Array& b, DrawShape shape = {}, Dtype dtype = float32,
             Where = Where::current());
Array weibull_min(const Key&, const Array& scale, const Array& concentration, Shape shape = {},
                  Dtype dtype = float32, Where = Where::current());
Array rayleigh(const Key&, const Array& scale, DrawShape shape = {}, Dtype dtype = float32,
               Where = Where::current());
Array lognormal(const Key&, const Array& sigma = 1.0, DrawShape shape = {}, Dtype dtype = float32,
                Where = Where::current());  // also complex
Array triangular(const Key&, const Array& left, const Array& mode, const Array& right, DrawShape shape = {},
                 Dtype dtype = float32, Where = Where::current());
Array wald(const Key&, const Array& mean, DrawShape shape = {}, Dtype dtype = float32,
           Where = Where::current());

// ---- by rejection: each element takes as many random numbers as it needs ----
// Parameters are broadcast to the shape. gamma and what is made of it (beta, dirichlet, t, chisquare, f)
// have no derivative by their parameters.
Array gamma(const Key&, const Array& alpha, DrawShape shape = {}, Dtype dtype = float32,
            Where = Where::current());
Array loggamma(const Key&, const Array& alpha, DrawShape shape = {}, Dtype dtype = float32,
               Where = Where::current());  // log of the sample
Array beta(const Key&, const Array& a, const Array& b, DrawShape shape = {}, Dtype dtype = float32,
           Where = Where::current());
// alpha (..., k) gives (*shape, k), which sums to 1 along k; shape is that of alpha's leading dims by
// default.
Array dirichlet(const Key&, const Array& alpha, DrawShape shape = {}, Dtype dtype = float32,
                Where = Where::current());
Array chisquare(const Key&, const Array& df, DrawShape shape = {}, Dtype dtype = float32,
                Where = Where::current());
Array t(const Key&, const Array& df, DrawShape shape = {}, Dtype dtype = float32, Where = Where::current());
Array f(const Key&, const Array& dfnum, const Array& dfden, DrawShape shape = {}, Dtype dtype = float32,
        Where = Where::current());
Array generalized_normal(const Key&, double p, Shape shape = {}, Dtype dtype = float32,
                         Where = Where::current());
Array ball(const Key&, std::int64_t d, double p = 2, Shape shape = {}, Dtype dtype = float32,
           Where = Where::current());  // (*shape, d), in the unit p-norm ball
// JAX's values of these two depend on how many rounds the whole array took. Ranks agree on that number: one
// all-reduce of 4 bytes per draw.
Array poisson(const Key&, const Array& lambda, DrawShape shape = {}, Dtype dtype = int32,
              Where = Where::current());
Array binomial(const Key&, const Array& n, const Array& p, DrawShape shape = {}, Dtype dtype = float32,
               Where = Where::current());
// p (..., k): how often each of k outcomes occurs in n trials; (*shape, k).
Array multinomial(const Key&, const Array& n, const Array& p, DrawShape shape = {}, Dtype dtype = float32,
                  Where = Where::current());

// ---- picking and shuffling: split arrays are sorted and indexed where they lie, nothing is gathered ----
// 0 .. n-1 in random order, int32.
Array permutation(const Key&, std::int64_t n, Where = Where::current());
template <std::floating_point T>
Array permutation(const Key&, T n, Where = Where::current()) = delete;  // n is an integer or an array
// x shuffled along an axis: its slices as wholes, or each line on its own when independent.
Array permutation(const Key&, const Array& x, int axis = 0, bool independent = false,
                  Where = Where::current());
// Elements (along axis: slices) of a, or of arange(a) when a is an integer: shape (..., *shape, ...) with
// the axis replaced by shape. p: their probabilities, 1-D; equal ones when not given. ArgumentError when a
// is empty, or too small to draw without replacement.
Array choice(const Key&, const Array& a, Shape shape = {}, bool replace = true, std::optional<Array> p = {},
             int axis = 0, Where = Where::current());
// Indices along an axis of logits, by the Gumbel trick. shape ends with that of logits without the axis.
// Without replacement the leading dims of shape hold different indices.
Array categorical(const Key&, const Array& logits, int axis = -1, DrawShape shape = {}, bool replace = true,
                  Where = Where::current());

// ---- vectors and matrices ----
enum class CovarianceFactor { cholesky, eigh, svd };  // eigh and svd also take singular covariances
// mean (..., n), cov (..., n, n): (*shape, n); shape is that of their leading dims by default. LinAlgError
// when cov is not positive definite.
Array multivariate_normal(const Key&, const Array& mean, const Array& cov, DrawShape shape = {},
                          std::optional<Dtype> dtype = {}, CovarianceFactor = CovarianceFactor::cholesky,
                          Where = Where::current());
// (*shape, n, m), uniformly among the matrices with orthonormal columns (rows when m > n); m = n by default.
// float or complex.
Array orthogonal(const Key&, std::int64_t n, Shape shape = {}, Dtype dtype = float32,
                 std::optional<std::int64_t> m = {}, Where = Where::current());

}  // namespace tessera::random
