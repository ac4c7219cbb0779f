#include <cstring>

#include "base/session.hpp"
#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"

namespace tessera::random {
namespace {

struct Mode {
  Threefry now = Threefry::partitionable;
};

std::optional<std::uint32_t> number_on_host(const Array& data) {
  const auto value = scalar_value(data);
  if (!value || !value->is_integer || !is_integer(data.dtype())) return std::nullopt;
  return static_cast<std::uint32_t>(value->integer);
}

}  // namespace

Threefry threefry() { return state<Mode>().now; }
ThreefryScope::ThreefryScope(Threefry mode) : before_(std::exchange(state<Mode>().now, mode)) {}
ThreefryScope::~ThreefryScope() { state<Mode>().now = before_; }

std::optional<rng::Words> words_on_host(const Key& key) {
  const Node& node = *key.data.node();
  const Output& output = output_of(key.data);
  if (!output.stored || output.sharding || node.region || node.traced || !output.stored->buffer)
    return std::nullopt;
  rng::Words words;
  std::memcpy(&words, output.stored->buffer.data(), sizeof words);
  return words;
}

Key key_from_words(rng::Words words) {
  Buffer buffer = Buffer::allocate(sizeof words);
  std::memcpy(buffer.data(), &words, sizeof words);
  return {make_leaf({Shape{2}, uint32}, replicated_everywhere(), std::move(buffer), false)};
}

void check_key(const Key& key) {
  check_usable(key.data);
  if (!(key.data.dtype() == uint32))
    throw DtypeError(call_text() + ": the key's data have dtype " + name(key.data.dtype()) +
                     "; a key is uint32[2], made by random::key(seed)");
  if (key.data.shape() == Shape{2}) return;
  const Shape& shape = key.data.shape();
  const bool is_batch = shape.ndim() > 1 && shape.back() == 2;
  throw ShapeError(
      call_text() + " takes one key, but was given " +
      (is_batch
           ? "keys of shape " + to_string(rng::leading_dims(shape)) + "; use vmap to draw with each of them"
           : "data of shape " + to_string(shape) + "; a key is uint32[2], made by random::key(seed)"));
}

Key key(std::int64_t seed, Where where) {
  const Call call("key", where);
  const auto bits = static_cast<std::uint64_t>(seed);
  return key_from_words({static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)});
}

Array key_data(const Key& key) { return key.data; }

Key wrap_key_data(const Array& data, Where where) {
  const Call call("wrap_key_data", where);
  check_usable(data);
  if (!(data.dtype() == uint32) || data.ndim() == 0 || data.shape().back() != 2)
    throw ArgumentError(call_text() + ": keys are uint32 arrays whose last dimension is 2; these data are " +
                        name(data.dtype()) + " of shape " + to_string(data.shape()));
  return {data};
}

static Key one_of_split(const Key& key, std::uint64_t i, std::uint64_t count, Threefry mode) {
  const auto words = words_on_host(key);
  return words ? key_from_words(kernels::split_key(*words, i, count, mode))
               : Key{rng::split_one(key.data, i, count, mode)};
}

std::vector<Key> split(const Key& key, int n, Where where) {
  const Call call("split", where);
  check_key(key);
  if (n < 0)
    throw ArgumentError(call_text() + ": the number of keys is " + std::to_string(n) +
                        "; it must not be negative");
  const auto count = static_cast<std::uint64_t>(n);
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < count; ++i) keys.push_back(one_of_split(key, i, count, threefry()));
  return keys;
}

Key key_at(const Key& batch, std::int64_t i, Where where) {
  const Call call("keys[i]", where);
  if (batch.data.ndim() < 2)
    throw ArgumentError(call_text() + ": a single key has no elements; split(key, n) makes n keys");
  const std::int64_t n = batch.data.shape()[0];
  if (i < -n || i >= n)
    throw IndexError(call_text() + ": index " + std::to_string(i) + " is out of range for " +
                     std::to_string(n) + " keys");
  const auto at = static_cast<std::uint64_t>(i < 0 ? i + n : i);
  if (const auto source = rng::source_of_split(batch.data))
    return one_of_split({source->key}, at, source->count, source->mode);
  return {index(batch.data, {i})};
}

Key split_batch(const Key& key, Shape shape, Where where) {
  const Call call("split_batch", where);
  check_key(key);
  for (const auto extent : shape)
    if (extent < 0)
      throw ShapeError(call_text() + ": the shape " + to_string(shape) + " has a negative extent");
  checked_bytes(join(shape, Shape{2}), 4, "split_batch");
  return {rng::split_many(key.data, std::move(shape), threefry())};
}

Key fold_in(const Key& key, const Array& data, Where where) {
  const Call call("fold_in", where);
  check_key(key);
  check_usable(data);
  if (!is_integer(data.dtype()))
    throw DtypeError(call_text() + ": the data have dtype " + name(data.dtype()) +
                     "; they must be an integer");
  if (data.ndim() != 0)
    throw ShapeError(call_text() + " takes one integer, but was given an array of shape " +
                     to_string(data.shape()) + "; use vmap to fold in each of its elements");
  const auto words = words_on_host(key);
  const auto number = number_on_host(data);
  if (words && number) return key_from_words(kernels::fold_key(*words, *number));
  return {rng::fold_in(key.data, data)};
}

}  // namespace tessera::random
