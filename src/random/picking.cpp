// Permutations, choices and categories.
//
// A shuffle sorts by random words, several times when there are so many that two may be equal: a distributed
// sort on split arrays.
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "ops/sort/sort_by_key.hpp"
#include "random/draw.hpp"
#include "random/traced.hpp"

namespace tessera::random {
namespace {

// So many that words equal in all of them are unlikely: 1 round up to 1625 elements, 2 up to 2.6 million,
// then 3.
int rounds_for(std::int64_t elements) {
  return static_cast<int>(std::ceil(3 * std::log(std::max(1.0, static_cast<double>(elements))) /
                                    std::log(std::numeric_limits<std::uint32_t>::max())));
}

// The elements of each line along dim, moved; every line by its own random words.
Array shuffle(Key key, Array x, int dim, Where where) {
  if (itemsize(x.dtype()) > 8)  // the words are the same for both parts
    return make_complex(Operand(shuffle(key, real(Operand(x, where)), dim, where), where),
                        Operand(shuffle(key, imag(Operand(x, where)), dim, where), where));
  const Shape shape = x.shape();
  x = moveaxis(Operand(x, where), dim, -1);
  for (int round = rounds_for(shape.elements()); round-- > 0;) {
    const auto keys = split(key, 2, where);
    key = keys[0];
    const Array words = rng::bits(keys[1].data, shape, uint32, counter_mode(), where);
    x = sort_by_key(moveaxis(Operand(words, where), dim, -1), x, where).second;
  }
  return moveaxis(Operand(x, where), -1, dim);
}

Array positions(std::int64_t n) {
  return arange_of(std::int64_t{0}, n, std::int64_t{1},
                   n > std::numeric_limits<std::int32_t>::max() ? int64 : int32);
}

// Along one dim: the part [0, n).
Array first_along(const Array& x, int dim, std::int64_t n, Where where) {
  std::vector<IndexPart> parts(dim, slice());
  parts.emplace_back(slice(0, n));
  return index(x, std::move(parts), where);
}

// What is chosen from: the elements of an array along a dim, or 0 .. n-1.
struct Population {
  std::int64_t n;
  int dim = 0;
  std::optional<Array> array;
};
Population population_of(const Array& a, int axis, Where where) {
  check_usable(a, "choice");
  if (a.ndim() > 0) {
    const int dim = checked_dim(axis, a.ndim(), "choice", where);
    return {a.shape()[dim], dim, a};
  }
  if (!is_integer(a.dtype()))
    throw DtypeError(call_text("choice", where) + ": a is a number of dtype " + name(a.dtype()) +
                     "; give an integer n, to choose from 0 .. n-1, or an array");
  const auto value = scalar_value(a);
  return {value ? value->integer : item<std::int64_t>(a), 0, {}};
}

Array indices_by_probability(const Key& key, const Array& given, std::int64_t n, const Shape& shape,
                             bool replace, Where where) {
  check_usable(given, "choice");
  if (!(given.shape() == Shape{n}))
    throw ShapeError(call_text("choice", where) + ": p has shape " + to_string(given.shape()) +
                     ", but there are " + std::to_string(n) +
                     " elements to choose from; give one probability for each");
  if (is_complex(given.dtype()))
    throw DtypeError(call_text("choice", where) + ": the probabilities are complex; they must be real");
  const Array p = is_floating(given.dtype()) ? given : cast_to(given, float32, where);
  if (!replace) {
    const Traced score =
        Traced{gumbel(key, {n}, p.dtype(), Resolution::low, where), where} + apply(log, Traced{p, where});
    return top_k(score.operand(), static_cast<int>(shape.elements())).second;
  }
  const Array cumulative = cumsum(Operand(p, where), 0);
  const Traced total{index(cumulative, {IndexPart(-1)}, where), where};
  const Traced r =
      total * (Traced{Array(1.0), where} - Traced{uniform_of(key, shape, p.dtype(), 0, 1, where), where});
  return searchsorted(Operand(cumulative, where), r.operand());
}

}  // namespace

Array permutation(const Key& key, std::int64_t n, Where where) {
  check_key(key, "permutation", where);
  if (n < 0)
    throw ArgumentError(call_text("permutation", where) + ": n is " + std::to_string(n) +
                        "; it must not be negative");
  return shuffle(key, positions(n), 0, where);
}

Array permutation(const Key& key, const Array& x, int axis, bool independent, Where where) {
  check_key(key, "permutation", where);
  check_usable(x, "permutation");
  if (x.ndim() == 0)
    throw ShapeError(call_text("permutation", where) +
                     ": the array is a scalar; give an integer n or an array of at least one dimension");
  const int dim = checked_dim(axis, x.ndim(), "permutation", where);
  if (independent || x.ndim() == 1) return shuffle(key, x, dim, where);
  return take(Operand(x, where), Operand(shuffle(key, positions(x.shape()[dim]), 0, where), where), dim);
}

Array choice(const Key& key, const Array& a, Shape shape, bool replace, std::optional<Array> p, int axis,
             Where where) {
  check_key(key, "choice", where);
  const Population from = population_of(a, axis, where);
  const auto draws = checked_elements(shape, "choice");
  if (draws == 0) return zeros(shape, a.dtype());
  if (from.n <= 0)
    throw ArgumentError(call_text("choice", where) + ": there is nothing to choose from: a has " +
                        std::to_string(from.n) + " elements; it needs at least one");
  if (!replace && draws > from.n)
    throw ArgumentError(call_text("choice", where) + ": " + std::to_string(draws) +
                        " draws without replacement from " + std::to_string(from.n) +
                        " elements; draw fewer, or with replace = true");

  Array chosen;
  if (!p && !replace) {
    const Array shuffled =
        from.array ? permutation(key, *from.array, from.dim, false, where) : permutation(key, from.n, where);
    chosen = first_along(shuffled, from.dim, draws, where);
  } else {
    const Array indices =
        p ? indices_by_probability(key, *p, from.n, shape, replace, where)
          : randint(key, shape, 0, from.n, from.n > std::numeric_limits<std::int32_t>::max() ? int64 : int32,
                    where);
    chosen = from.array ? take(Operand(*from.array, where), Operand(indices, where), from.dim) : indices;
  }
  Shape result = shape;
  if (from.array) {
    std::vector<std::int64_t> extents(a.shape().begin(), a.shape().begin() + from.dim);
    extents.insert(extents.end(), shape.begin(), shape.end());
    extents.insert(extents.end(), a.shape().begin() + from.dim + 1, a.shape().end());
    result = Shape(std::move(extents));
  }
  return chosen.shape() == result ? chosen : reshape(Operand(chosen, where), result);
}

Array categorical(const Key& key, const Array& logits, int axis, DrawShape shape, bool replace, Where where) {
  check_key(key, "categorical", where);
  check_usable(logits, "categorical");
  if (!is_floating(logits.dtype()))
    throw DtypeError(call_text("categorical", where) + ": the logits have dtype " + name(logits.dtype()) +
                     "; they must be float32 or float64");
  if (logits.ndim() == 0)
    throw ShapeError(call_text("categorical", where) +
                     ": the logits are a scalar; they need a dimension of categories");
  const int dim = checked_dim(axis, logits.ndim(), "categorical", where);
  auto extents = logits.shape().vector();
  const auto categories = extents[dim];
  extents.erase(extents.begin() + dim);
  const Shape batch(extents), drawn = shape.shape ? *shape.shape : batch;
  if (drawn.size() < batch.size() || !(broadcast_shapes(drawn, batch, "categorical", where) == drawn))
    throw ShapeError(call_text("categorical", where) + ": the shape " + to_string(drawn) + " must end with " +
                     to_string(batch) + ", that of the logits " + to_string(logits.shape()) +
                     " without axis " + std::to_string(dim));
  const std::vector<std::int64_t> prefix(drawn.begin(), drawn.end() - batch.ndim());
  if (categories == 0)
    throw ArgumentError(call_text("categorical", where) +
                        ": there are no categories: the logits have shape " + to_string(logits.shape()));

  if (replace) {
    // One Gumbel draw per sample and category: (*prefix, *batch with the categories at dim).
    std::vector<std::int64_t> with_categories(drawn.begin() + static_cast<std::ptrdiff_t>(prefix.size()),
                                              drawn.end());
    with_categories.insert(with_categories.begin() + dim, categories);
    with_categories.insert(with_categories.begin(), prefix.begin(), prefix.end());
    const Traced noise{gumbel(key, Shape(std::move(with_categories)), logits.dtype(), Resolution::low, where),
                       where};
    return argmax((noise + Traced{logits, where}).operand(), dim + static_cast<int>(prefix.size()));
  }
  const auto k = std::accumulate(prefix.begin(), prefix.end(), std::int64_t{1}, std::multiplies<>());
  if (k > categories)
    throw ArgumentError(call_text("categorical", where) + ": " + std::to_string(k) +
                        " samples without replacement from " + std::to_string(categories) +
                        " categories; draw fewer, or with replace = true");
  const Traced scores = Traced{logits, where} +
                        Traced{gumbel(key, logits.shape(), logits.dtype(), Resolution::low, where), where};
  const Array best = top_k(Operand(moveaxis(scores.operand(), dim, -1), where), static_cast<int>(k)).second;
  return reshape(Operand(moveaxis(Operand(best, where), -1, 0), where), drawn);
}

}  // namespace tessera::random
