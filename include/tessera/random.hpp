/// @file
/// Random numbers: JAX's values for the same key, the same on any number of ranks and any sharding.
///
/// A draw is a pure function of (key, shape, dtype). It is uncommitted if its key is: each rank then computes
/// only its own block in the consumer's layout, without communication, e.g. device_put(random::normal(key,
/// {8192, 8192}), mesh, P("x")).
///
///   random::Key key = random::key(0);
///   auto keys = random::split(key, 2);                       // never use a key twice
///   Array x = random::normal(keys[0], {1000});
///   Array noise = random::uniform(random::fold_in(keys[1], step), {1000});
///
/// Keys are arrays, so vmap, pmap and shard_map map over them, and fold_in(key, axis_index("x")) gives each
/// device a separate stream.
///
/// **Not collective**: every function records, and sends nothing, except: poisson and binomial agree on one
/// number per draw, and picking from split arrays sends the elements that change their rank.
///
/// **Numbers.** Bits, uniform, randint, bernoulli and permutation are JAX's bit for bit; values computed by
/// log, erf_inv or pow agree to a few units in the last place. Bits come from Threefry-2x32 with 20 rounds
/// (Salmon et al. 2011).
///
/// **Errors**, on every rank when recorded: ShapeError for a key that is a batch of keys (use vmap) and for
/// parameters that do not broadcast to the shape, DtypeError for a dtype that cannot be drawn, ArgumentError
/// for invalid parameters.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops/choices.hpp>

namespace tessera::random {

/// 64 bits from which draws are made: uint32[2]. A tree with one leaf.
struct Key {
  Array data;  ///< uint32[2], or (..., 2) for a batch of keys
};

using Where = std::source_location;  ///< the line of the call

/// @name Keys
/// @{

/// The key of a seed: its words (high, low), as in JAX with 64-bit integers, and as without them for seeds in
/// [0, 2^32).
[[nodiscard]] Key key(std::int64_t seed, Where = Where::current());
/// JAX's older name of key.
[[nodiscard]] inline Key PRNGKey(std::int64_t seed, Where where = Where::current()) {
  return key(seed, where);
}
/// n new keys. Never use a key twice: draw from these, and not from the old one.
[[nodiscard]] std::vector<Key> split(const Key&, int n = 2, Where = Where::current());
/// The number of keys follows from the bindings: auto [a, b] = random::split<2>(key).
template <std::size_t n>
[[nodiscard]] std::array<Key, n> split(const Key& from, Where where = Where::current()) {
  std::array<Key, n> keys;
  std::ranges::move(split(from, static_cast<int>(n), where), keys.begin());
  return keys;
}
/// A batch of new keys: data of shape (*shape, 2), to map over. Key i in row-major order is split(key,
/// n)[i].
[[nodiscard]] Key split_batch(const Key&, Shape shape, Where = Where::current());
/// A key for each value of an integer scalar (modulo 2^32).
[[nodiscard]] Key fold_in(const Key&, const Array& data, Where = Where::current());
/// The key's words, uint32[..., 2].
[[nodiscard]] Array key_data(const Key&);
/// A key of given words. DtypeError or ShapeError unless uint32[..., 2].
[[nodiscard]] Key wrap_key_data(const Array& data, Where = Where::current());
/// @}

Threefry threefry();  ///< the current mapping
/// Selects a mapping for the draws recorded during its lifetime: other values for the same key, at the same
/// cost on sharded arrays. Nests.
class ThreefryScope {
 public:
  /// Applies from here to the end of the scope.
  explicit ThreefryScope(Threefry);
  ~ThreefryScope();
  ThreefryScope(const ThreefryScope&) = delete;
  ThreefryScope& operator=(const ThreefryScope&) = delete;

 private:
  Threefry before_;
};

/// @name Uniform and normal
/// @{

/// Random bits: uint8 to uint64.
[[nodiscard]] Array bits(const Key&, Shape shape = {}, Dtype dtype = uint32, Where = Where::current());
/// Uniform in [minval, maxval), which are numbers or arrays: float32, float64, bfloat16 (8 random bits each)
/// or float16 (16).
[[nodiscard]] Array uniform(const Key&, Shape shape = {}, Dtype dtype = float32, double minval = 0,
                            double maxval = 1, Where = Where::current());
[[nodiscard]] Array uniform(const Key&, Shape shape, Dtype dtype, const Array& minval, const Array& maxval,
                            Where = Where::current());
/// The standard normal distribution: real, or complex with total variance 1.
[[nodiscard]] Array normal(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
/// Integers in [minval, maxval); maxval may be one past the dtype's largest value. All minval if maxval <=
/// minval.
[[nodiscard]] Array randint(const Key&, Shape shape, std::int64_t minval, std::int64_t maxval,
                            Dtype dtype = int32, Where = Where::current());
/// The resolution of small probabilities: `high` uses two draws per element.
enum class Resolution { low, high };
/// Bernoulli trials: true with probability p. bool.
[[nodiscard]] Array bernoulli(const Key&, double p = 0.5, Shape shape = {}, Where = Where::current());

/// The shape to draw; nullopt: the shape that the parameters broadcast to. Parameters must broadcast to the
/// shape.
class DrawShape {
 public:
  DrawShape() = default;
  /// From a shape, braces, or nothing.
  DrawShape(std::nullopt_t) {}
  DrawShape(Shape given) : shape(std::move(given)) {}
  DrawShape(std::optional<Shape> given) : shape(std::move(given)) {}
  DrawShape(std::initializer_list<std::int64_t> extents) : shape(Shape(extents)) {}
  template <class Extents>
  requires(!std::is_same_v<Extents, Shape> && std::is_convertible_v<const Extents&, Shape>)
      DrawShape(const Extents& extents)
      : shape(Shape(extents)) {}
  std::optional<Shape> shape;  ///< nullopt: that of the parameters
};

/// Bernoulli trials with a probability each: p is floating-point.
[[nodiscard]] Array bernoulli(const Key&, const Array& p, DrawShape shape = {}, Resolution = Resolution::low,
                              Where = Where::current());
/// -1 or 1, equally likely.
[[nodiscard]] Array rademacher(const Key&, Shape shape = {}, Dtype dtype = int32, Where = Where::current());
/// Number of trials up to the first success, at least 1, with success probability p.
[[nodiscard]] Array geometric(const Key&, const Array& p, DrawShape shape = {}, Dtype dtype = int32,
                              Where = Where::current());
/// @}

/// @name Continuous distributions
/// Any floating-point dtype (lognormal also complex), by formulas of one or two uniform or normal draws per
/// element.
/// @{

/// Exponential with rate 1: -log(1 - u).
[[nodiscard]] Array exponential(const Key&, Shape shape = {}, Dtype dtype = float32,
                                Where = Where::current());
/// Gumbel: -log(-log(u)); Resolution::high resolves the upper tail with a second draw.
[[nodiscard]] Array gumbel(const Key&, Shape shape = {}, Dtype dtype = float32, Resolution = Resolution::low,
                           Where = Where::current());
/// Laplace with location 0 and scale 1.
[[nodiscard]] Array laplace(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
/// Logistic with location 0 and scale 1.
[[nodiscard]] Array logistic(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
/// Cauchy with location 0 and scale 1.
[[nodiscard]] Array cauchy(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
/// Maxwell with scale 1: the length of a normal 3-vector.
[[nodiscard]] Array maxwell(const Key&, Shape shape = {}, Dtype dtype = float32, Where = Where::current());
/// Maxwell of random sign, scaled and shifted: shape (*shape, *parameters' shape).
[[nodiscard]] Array double_sided_maxwell(const Key&, const Array& loc, const Array& scale, Shape shape = {},
                                         Dtype dtype = float32, Where = Where::current());
/// Truncated normal: the standard normal within the open interval (lower, upper).
[[nodiscard]] Array truncated_normal(const Key&, double lower, double upper, Shape shape = {},
                                     Dtype dtype = float32, Where = Where::current());
[[nodiscard]] Array truncated_normal(const Key&, const Array& lower, const Array& upper, DrawShape shape = {},
                                     Dtype dtype = float32, Where = Where::current());
/// Pareto with exponent b, from 1.
[[nodiscard]] Array pareto(const Key&, const Array& b, DrawShape shape = {}, Dtype dtype = float32,
                           Where = Where::current());
/// Weibull with scale and concentration.
[[nodiscard]] Array weibull_min(const Key&, const Array& scale, const Array& concentration, Shape shape = {},
                                Dtype dtype = float32, Where = Where::current());
/// Rayleigh with scale.
[[nodiscard]] Array rayleigh(const Key&, const Array& scale, DrawShape shape = {}, Dtype dtype = float32,
                             Where = Where::current());
/// exp(sigma z) for a normal z; real or complex.
[[nodiscard]] Array lognormal(const Key&, const Array& sigma = 1.0, DrawShape shape = {},
                              Dtype dtype = float32, Where = Where::current());
/// Triangular on [left, right] with its peak at mode.
[[nodiscard]] Array triangular(const Key&, const Array& left, const Array& mode, const Array& right,
                               DrawShape shape = {}, Dtype dtype = float32, Where = Where::current());
/// Wald (inverse Gaussian) with mean, and scale 1.
[[nodiscard]] Array wald(const Key&, const Array& mean, DrawShape shape = {}, Dtype dtype = float32,
                         Where = Where::current());
/// @}

/// @name By rejection
/// Each element uses as many random numbers as it needs. Parameters are broadcast to the shape. gamma and its
/// derived distributions (beta, dirichlet, t, chisquare, f) have no derivative by their parameters.
/// @{

/// Gamma with shape alpha and scale 1 (Marsaglia and Tsang 2000).
[[nodiscard]] Array gamma(const Key&, const Array& alpha, DrawShape shape = {}, Dtype dtype = float32,
                          Where = Where::current());
/// The logarithm of a gamma sample, accurate where the sample itself underflows.
[[nodiscard]] Array loggamma(const Key&, const Array& alpha, DrawShape shape = {}, Dtype dtype = float32,
                             Where = Where::current());
/// Beta with a and b, in (0, 1).
[[nodiscard]] Array beta(const Key&, const Array& a, const Array& b, DrawShape shape = {},
                         Dtype dtype = float32, Where = Where::current());
/// Dirichlet: alpha (..., k) gives (*shape, k), which sums to 1 along k; shape defaults to alpha's leading
/// dims.
[[nodiscard]] Array dirichlet(const Key&, const Array& alpha, DrawShape shape = {}, Dtype dtype = float32,
                              Where = Where::current());
/// Chi-square with df degrees of freedom.
[[nodiscard]] Array chisquare(const Key&, const Array& df, DrawShape shape = {}, Dtype dtype = float32,
                              Where = Where::current());
/// Student's t with df degrees of freedom.
[[nodiscard]] Array t(const Key&, const Array& df, DrawShape shape = {}, Dtype dtype = float32,
                      Where = Where::current());
/// F with dfnum and dfden degrees of freedom.
[[nodiscard]] Array f(const Key&, const Array& dfnum, const Array& dfden, DrawShape shape = {},
                      Dtype dtype = float32, Where = Where::current());
/// Density proportional to exp(-|x|^p).
[[nodiscard]] Array generalized_normal(const Key&, double p, Shape shape = {}, Dtype dtype = float32,
                                       Where = Where::current());
/// Uniform in the unit ball of the p-norm in d dimensions: (*shape, d).
[[nodiscard]] Array ball(const Key&, std::int64_t d, double p = 2, Shape shape = {}, Dtype dtype = float32,
                         Where = Where::current());
/// Poisson with mean lambda. JAX's values depend on the number of rounds for the whole array, so ranks agree
/// on that number: one all-reduce of 4 bytes per draw.
[[nodiscard]] Array poisson(const Key&, const Array& lambda, DrawShape shape = {}, Dtype dtype = int32,
                            Where = Where::current());
/// Number of successes in n trials of probability p. Communicates as poisson.
[[nodiscard]] Array binomial(const Key&, const Array& n, const Array& p, DrawShape shape = {},
                             Dtype dtype = float32, Where = Where::current());
/// Multinomial: p (..., k): number of occurrences of each of k outcomes in n trials; (*shape, k).
[[nodiscard]] Array multinomial(const Key&, const Array& n, const Array& p, DrawShape shape = {},
                                Dtype dtype = float32, Where = Where::current());
/// @}

/// @name Picking and shuffling
/// Split arrays are sorted and indexed in place; nothing is gathered.
/// @{

/// 0 .. n-1 in random order, int32.
[[nodiscard]] Array permutation(const Key&, std::int64_t n, Where = Where::current());
/// Deleted: n must be an integer or an array.
template <std::floating_point T>
[[nodiscard]] Array permutation(const Key&, T n, Where = Where::current()) = delete;
/// x shuffled along an axis: its slices as a whole, or each line separately if independent. ShapeError for a
/// scalar.
[[nodiscard]] Array permutation(const Key&, const Array& x, int axis = 0, bool independent = false,
                                Where = Where::current());
/// Samples: elements (along axis: slices) of a, or of arange(a) if a is an integer: shape (..., *shape, ...)
/// with the axis replaced by shape. p: their probabilities, 1-D; equal by default. ArgumentError if a is
/// empty, or too small to draw without replacement.
[[nodiscard]] Array choice(const Key&, const Array& a, Shape shape = {}, bool replace = true,
                           std::optional<Array> p = {}, int axis = 0, Where = Where::current());
/// Samples from logits: indices along an axis of them, by the Gumbel trick. shape ends with that of logits
/// without the axis. Without replacement the indices along the leading dims of shape are distinct.
[[nodiscard]] Array categorical(const Key&, const Array& logits, int axis = -1, DrawShape shape = {},
                                bool replace = true, Where = Where::current());
/// @}

/// @name Vectors and matrices
/// @{

/// The root of the covariance to use; eigh and svd also accept singular ones.
enum class CovarianceFactor { cholesky, eigh, svd };
/// Normal vectors: mean (..., n), cov (..., n, n): (*shape, n); shape defaults to their leading dims.
/// LinAlgError if cov is not positive definite.
[[nodiscard]] Array multivariate_normal(const Key&, const Array& mean, const Array& cov, DrawShape shape = {},
                                        std::optional<Dtype> dtype = {},
                                        CovarianceFactor = CovarianceFactor::cholesky,
                                        Where = Where::current());
/// Orthogonal matrices, (*shape, n, m), uniform among the matrices with orthonormal columns (rows if m > n);
/// m = n by default. float or complex.
[[nodiscard]] Array orthogonal(const Key&, std::int64_t n, Shape shape = {}, Dtype dtype = float32,
                               std::optional<std::int64_t> m = {}, Where = Where::current());
/// @}

}  // namespace tessera::random
