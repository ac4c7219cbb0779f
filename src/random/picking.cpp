// Permutations, choices and categories.
//
// A shuffle sorts by random words, in several rounds if so many elements make equal words likely: a
// distributed sort on split arrays.
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "ops/position_dtype.hpp"
#include "ops/sort/sort_by_key.hpp"
#include "random/draw.hpp"
#include "types/extents.hpp"

namespace tessera::random {
namespace {

// The number of rounds that makes elements with equal words in all rounds unlikely: 1 up to 1625 elements, 2
// up to 2.6 million, then 3.
int rounds_for(std::int64_t elements) {
  return static_cast<int>(std::ceil(3 * std::log(std::max(1.0, static_cast<double>(elements))) /
                                    std::log(std::numeric_limits<std::uint32_t>::max())));
}

// Shuffles the elements of each line along dim; every line with its own random words.
Array shuffle(Key key, Array x, int dim) {
  if (itemsize(x.dtype()) > 8)  // both parts use equal random words
    return make_complex(shuffle(key, real(x), dim), shuffle(key, imag(x), dim));
  const Shape shape = x.shape();
  x = moveaxis(x, dim, -1);
  for (int round = rounds_for(shape.elements()); round-- > 0;) {
    const auto keys = split(key, 2);
    key = keys[0];
    const Array words = rng::bits(keys[1].data, shape, uint32, threefry());
    x = sort_by_key(moveaxis(words, dim, -1), x).second;
  }
  return moveaxis(x, -1, dim);
}

Array positions(std::int64_t n) { return arange_of(std::int64_t{0}, n, std::int64_t{1}, position_dtype(n)); }

// The first elements of permutation(key, n), few of them: the last round moves the least words alone.
Array first_of_shuffle(Key key, std::int64_t n, std::int64_t count) {
  Array at = positions(n);
  for (int round = rounds_for(n);;) {
    const auto keys = split(key, 2);
    key = keys[0];
    const Array words = rng::bits(keys[1].data, {n}, uint32, threefry());
    if (--round == 0) return take(at, top_k(~words, static_cast<int>(count)).second, 0);
    at = sort_by_key(words, at).second;
  }
}

// The range [0, n) along one dim.
Array first_along(const Array& x, int dim, std::int64_t n) {
  std::vector<IndexPart> parts(dim, slice());
  parts.emplace_back(slice(0, n));
  return index(x, std::move(parts));
}

// The population to choose from: the elements of an array along a dim, or 0 .. n-1.
struct Population {
  std::int64_t n;
  int dim = 0;
  std::optional<Array> array;
};
Population population_of(const Array& a, int axis) {
  check_usable(a);
  if (a.ndim() > 0) {
    const int dim = checked_dim(axis, a.ndim());
    return {a.shape()[dim], dim, a};
  }
  if (!is_integer(a.dtype()))
    throw DtypeError(call_text() + ": a is a number of dtype " + name(a.dtype()) +
                     "; give an integer n, to choose from 0 .. n-1, or an array");
  const auto value = scalar_value(a);
  return {value ? value->integer : item<std::int64_t>(a), 0, {}};
}

Array indices_by_probability(const Key& key, const Array& given, std::int64_t n, const Shape& shape,
                             bool replace) {
  check_usable(given);
  if (!(given.shape() == Shape{n}))
    throw ShapeError(call_text() + ": p has shape " + to_string(given.shape()) + ", but there are " +
                     std::to_string(n) + " elements to choose from; give one probability for each");
  if (is_complex(given.dtype()))
    throw DtypeError(call_text() + ": the probabilities are complex; they must be real");
  const Array p = is_floating(given.dtype()) ? given : cast_to(given, float32);
  if (!replace) {
    const Array score = gumbel(key, {n}, p.dtype(), Resolution::low) + log(p);
    return top_k(score, static_cast<int>(shape.elements())).second;
  }
  const Array cumulative = cumsum(p, 0);
  const Array total = index(cumulative, {IndexPart(-1)});
  const Array r = total * (1.0 - uniform_of(key, shape, p.dtype(), 0, 1));
  return searchsorted(cumulative, r);
}

}  // namespace

Array permutation(const Key& key, std::int64_t n, Where where) {
  const Call call("permutation", where);
  check_key(key);
  if (n < 0) throw ArgumentError(call_text() + ": n is " + std::to_string(n) + "; it must not be negative");
  return shuffle(key, positions(n), 0);
}

Array permutation(const Key& key, const Array& x, int axis, bool independent, Where where) {
  const Call call("permutation", where);
  check_key(key);
  check_usable(x);
  if (x.ndim() == 0)
    throw ShapeError(call_text() +
                     ": the array is a scalar; give an integer n or an array of at least one dimension");
  const int dim = checked_dim(axis, x.ndim());
  if (independent || x.ndim() == 1) return shuffle(key, x, dim);
  return take(x, shuffle(key, positions(x.shape()[dim]), 0), dim);
}

Array choice(const Key& key, const Array& a, Shape shape, bool replace, std::optional<Array> p, int axis,
             Where where) {
  const Call call("choice", where);
  check_key(key);
  const Population from = population_of(a, axis);
  const auto draws = checked_elements(shape, "choice");
  if (draws == 0) return zeros(shape, a.dtype());
  if (from.n <= 0)
    throw ArgumentError(call_text() + ": there is nothing to choose from: a has " + std::to_string(from.n) +
                        " elements; it needs at least one");
  if (!replace && draws > from.n)
    throw ArgumentError(call_text() + ": " + std::to_string(draws) + " draws without replacement from " +
                        std::to_string(from.n) + " elements; draw fewer, or with replace = true");

  Array chosen;
  // A line is shuffled where it lies; few positions are found with one sort less.
  const bool is_line = from.array && from.array->ndim() == 1, are_few = draws <= from.n / 64;
  if (!p && !replace && are_few && !is_line) {
    const Array indices = first_of_shuffle(key, from.n, draws);
    chosen = from.array ? take(*from.array, indices, from.dim) : indices;
  } else if (!p && !replace) {
    const Array shuffled =
        from.array ? permutation(key, *from.array, from.dim, false) : permutation(key, from.n);
    chosen = first_along(shuffled, from.dim, draws);
  } else {
    const Array indices = p ? indices_by_probability(key, *p, from.n, shape, replace)
                            : randint(key, shape, 0, from.n, position_dtype(from.n));
    chosen = from.array ? take(*from.array, indices, from.dim) : indices;
  }
  Shape result = shape;
  if (from.array) {
    std::vector<std::int64_t> extents(a.shape().begin(), a.shape().begin() + from.dim);
    extents.insert(extents.end(), shape.begin(), shape.end());
    extents.insert(extents.end(), a.shape().begin() + from.dim + 1, a.shape().end());
    result = Shape(std::move(extents));
  }
  return chosen.shape() == result ? chosen : reshape(chosen, result);
}

Array categorical(const Key& key, const Array& logits, int axis, DrawShape shape, bool replace, Where where) {
  const Call call("categorical", where);
  check_key(key);
  check_usable(logits);
  if (!is_floating(logits.dtype()))
    throw DtypeError(call_text() + ": the logits have dtype " + name(logits.dtype()) +
                     "; they must be real floating-point numbers");
  if (logits.ndim() == 0)
    throw ShapeError(call_text() + ": the logits are a scalar; they need a dimension of categories");
  const int dim = checked_dim(axis, logits.ndim());
  const auto categories = logits.shape()[dim];
  const Shape batch = without_dim(logits.shape(), dim), drawn = shape.shape ? *shape.shape : batch;
  if (drawn.size() < batch.size() || !(broadcast_shapes(drawn, batch) == drawn))
    throw ShapeError(call_text() + ": the shape " + to_string(drawn) + " must end with " + to_string(batch) +
                     ", that of the logits " + to_string(logits.shape()) + " without axis " +
                     std::to_string(dim));
  const std::vector<std::int64_t> prefix(drawn.begin(), drawn.end() - batch.ndim());
  if (categories == 0)
    throw ArgumentError(call_text() + ": there are no categories: the logits have shape " +
                        to_string(logits.shape()));

  if (replace) {
    // One Gumbel draw per sample and category: (*prefix, *batch with the categories at dim).
    std::vector<std::int64_t> with_categories(drawn.begin() + static_cast<std::ptrdiff_t>(prefix.size()),
                                              drawn.end());
    with_categories.insert(with_categories.begin() + dim, categories);
    with_categories.insert(with_categories.begin(), prefix.begin(), prefix.end());
    const Array noise = gumbel(key, Shape(std::move(with_categories)), logits.dtype(), Resolution::low);
    return argmax((noise + logits), dim + static_cast<int>(prefix.size()));
  }
  const auto k = std::accumulate(prefix.begin(), prefix.end(), std::int64_t{1}, std::multiplies<>());
  if (k > categories)
    throw ArgumentError(call_text() + ": " + std::to_string(k) + " samples without replacement from " +
                        std::to_string(categories) + " categories; draw fewer, or with replace = true");
  const Array scores = logits + gumbel(key, logits.shape(), logits.dtype(), Resolution::low);
  const Array best = top_k(moveaxis(scores, dim, -1), static_cast<int>(k)).second;
  return reshape(moveaxis(best, -1, 0), drawn);
}

}  // namespace tessera::random
