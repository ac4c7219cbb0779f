#include "kernels/random/draws.hpp"

#include <tessera/error.hpp>

#include <type_traits>
#include <vector>

#include "kernels/random/share_draw.hpp"
#include "kernels/random/threefry_vectors.hpp"

namespace tessera::kernels {

Words fold_key(Words key, std::uint32_t data) { return threefry2x32(key.x0, key.x1, 0, data); }

Words split_key(Words key, std::uint64_t i, std::uint64_t n, Threefry mode) {
  if (mode == Threefry::partitionable)
    return threefry2x32(key.x0, key.x1, static_cast<std::uint32_t>(i >> 32), static_cast<std::uint32_t>(i));
  std::uint32_t words[2];
  threefry_original_bits(key.x0, key.x1, static_cast<std::int64_t>(2 * n), static_cast<std::int64_t>(2 * i),
                         2, 32, words);
  return {words[0], words[1]};
}

template <class U> BitStream<U>::BitStream(const DrawBlock& draw)
    : draw_(draw), runs_(draw.box, draw.global), done_(draw.keys.empty() || is_empty(draw.box)) {}

template <class U> std::int64_t BitStream<U>::next(U* out) {
  if (done_) return 0;
  return draw_.mode == Threefry::partitionable ? next_partitionable(out) : next_original(out);
}

// A batch under one key uses the loop with constant keys; one that spans keys has a key per element.
template <class U> std::int64_t BitStream<U>::next_partitionable(U* out) {
  Counters counters;
  alignas(64) std::uint32_t k0[batch + padding], k1[batch + padding];
  const Words first = draw_.keys[key_];
  bool several_keys = false;
  while (counters.n < batch && !done_) {
    const Words key = draw_.keys[key_];
    const std::int64_t from = counters.n;
    counters.push(runs_.take(batch - counters.n));
    if (several_keys) {
      std::fill(k0 + from, k0 + counters.n, key.x0);
      std::fill(k1 + from, k1 + counters.n, key.x1);
    }
    if (!runs_.done()) continue;
    runs_.restart();
    done_ = ++key_ == draw_.keys.size();
    if (!several_keys && !done_ && counters.n < batch) {
      several_keys = true;
      std::fill_n(k0, counters.n, first.x0);
      std::fill_n(k1, counters.n, first.x1);
    }
  }
  if (several_keys)
    hash_keyed_counters(k0, k1, counters.x0, counters.x1, counters.n);
  else
    hash_counters(first.x0, first.x1, counters.x0, counters.x1, counters.n);
  words_to_bits(counters.x0, counters.x1, counters.n, static_cast<int>(8 * sizeof(U)), out);
  return counters.n;
}

template <class U> std::int64_t BitStream<U>::next_original(U* out) {
  const auto total = draw_.global.elements();
  std::int64_t n = 0;
  while (n < batch && !done_) {
    const Words key = draw_.keys[key_];
    const CounterRange run = runs_.take(batch - n);
    threefry_original_bits(key.x0, key.x1, total, static_cast<std::int64_t>(run.start), run.count,
                           static_cast<int>(8 * sizeof(U)), out + n);
    n += run.count;
    if (!runs_.done()) continue;
    runs_.restart();
    done_ = ++key_ == draw_.keys.size();
  }
  return n;
}

template class BitStream<std::uint8_t>;
template class BitStream<std::uint16_t>;
template class BitStream<std::uint32_t>;
template class BitStream<std::uint64_t>;

namespace {

template <class U> void write_bits(const DrawBlock& draw, void* out) {
  BitStream<U> stream(draw);
  alignas(64) U bits[batch + padding];
  U* to = static_cast<U*>(out);
  for (std::int64_t n; (n = stream.next(bits)) > 0; to += n) std::copy_n(bits, n, to);
}

template <class T, class F>
void write_floats(const DrawBlock& draw, T minval, T maxval, void* out, F&& finish) {
  BitStream<BitsOf<T>> stream(draw);
  alignas(64) BitsOf<T> bits[batch + padding];
  alignas(64) T values[batch + padding] = {};
  T* to = static_cast<T*>(out);
  for (std::int64_t n; (n = stream.next(bits)) > 0; to += n) {
    bits_to_uniform(bits, n, minval, maxval, values);
    finish(values, n);
    std::copy_n(values, n, to);
  }
}

template <class T, class F>
void write_floats_by_all(const DrawBlock& draw, T minval, T maxval, void* out, F&& finish) {
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    write_floats(part, minval, maxval, static_cast<T*>(out) + first, finish);
  });
}

// Remainders by a divisor that is fixed in advance: the quotient taken from the high half of a product is
// exact or one too small.
template <class U> class Remainder {
  using Wide = std::conditional_t<sizeof(U) == 8, unsigned __int128, std::uint64_t>;

 public:
  explicit Remainder(U divisor)
      : divisor_(divisor), inverse_(divisor > 1 ? static_cast<U>((Wide{1} << bits) / divisor) : 0) {}
  U operator()(U x) const {  // divisor > 1
    const U rest = x - static_cast<U>((Wide{x} * inverse_) >> bits) * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  static constexpr int bits = 8 * sizeof(U);
  U divisor_, inverse_;
};

template <class T, class U>
void write_integers(const DrawBlock& draw, std::int64_t minval, std::uint64_t wide_span, void* out) {
  const U first = static_cast<U>(minval), span = static_cast<U>(wide_span);
  T* to = static_cast<T*>(out);
  if (span == 1)
    return void(std::fill_n(to, box_elements(draw.box) * static_cast<std::int64_t>(draw.keys.size()),
                            static_cast<T>(first)));
  std::vector<Words> high_keys, low_keys;
  for (const Words key : draw.keys) {
    high_keys.push_back(split_key(key, 0, 2, draw.mode));
    low_keys.push_back(split_key(key, 1, 2, draw.mode));
  }
  // (high * 2^bits + low) % span, in the words of the dtype
  const Remainder<U> rest(span);
  U scale = span > 1 ? rest(U{1} << (4 * sizeof(U))) : U{1} << (4 * sizeof(U));
  scale *= scale;
  if (span > 1) scale = rest(scale);
  BitStream<U> high_stream({high_keys, draw.box, draw.global, draw.mode}),
      low_stream({low_keys, draw.box, draw.global, draw.mode});
  alignas(64) U high[batch + padding], low[batch + padding];
  for (std::int64_t n; (n = high_stream.next(high)) > 0; to += n) {
    low_stream.next(low);
    if (span == 0) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(first + high[i] * scale + low[i]);
      continue;
    }
    if constexpr (sizeof(U) == 4) {
      alignas(64) U drawn[batch + padding];
      words_to_integers(high, low, n, Divisor32(span), scale, first, drawn);
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(drawn[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = static_cast<T>(first + rest(static_cast<U>(rest(high[i]) * scale + rest(low[i]))));
    }
  }
}

void bits_on_one_thread(const DrawBlock& draw, Dtype dtype, void* out) {
  switch (itemsize(dtype)) {
    case 1: return write_bits<std::uint8_t>(draw, out);
    case 2: return write_bits<std::uint16_t>(draw, out);
    case 4: return write_bits<std::uint32_t>(draw, out);
    default: return write_bits<std::uint64_t>(draw, out);
  }
}

void integers_on_one_thread(const DrawBlock& draw, Dtype dtype, std::int64_t minval, std::uint64_t span,
                            void* out) {
  switch (dtype.code) {
    case 1: return write_integers<std::int8_t, std::uint32_t>(draw, minval, span, out);
    case 2: return write_integers<std::int16_t, std::uint32_t>(draw, minval, span, out);
    case 3: return write_integers<std::int32_t, std::uint32_t>(draw, minval, span, out);
    case 4: return write_integers<std::int64_t, std::uint64_t>(draw, minval, span, out);
    case 5: return write_integers<std::uint8_t, std::uint32_t>(draw, minval, span, out);
    case 6: return write_integers<std::uint16_t, std::uint32_t>(draw, minval, span, out);
    case 7: return write_integers<std::uint32_t, std::uint32_t>(draw, minval, span, out);
    case 8: return write_integers<std::uint64_t, std::uint64_t>(draw, minval, span, out);
    default: throw DtypeError("randint: dtype is " + name(dtype) + "; integer dtypes are possible");
  }
}

}  // namespace

void draw_bits(const DrawBlock& draw, Dtype dtype, void* out) {
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    bits_on_one_thread(part, dtype, static_cast<std::byte*>(out) + first * itemsize(dtype));
  });
}

void draw_uniform(const DrawBlock& draw, Dtype dtype, double minval, double maxval, void* out) {
  const auto as_they_are = [](auto*, std::int64_t) {};
  if (dtype == float32)
    return write_floats_by_all<float>(draw, static_cast<float>(minval), static_cast<float>(maxval), out,
                                      as_they_are);
  if (dtype == float64) return write_floats_by_all<double>(draw, minval, maxval, out, as_they_are);
  throw DtypeError("uniform: dtype is " + name(dtype) + "; float32 and float64 are possible");
}

void draw_normal(const DrawBlock& draw, Dtype dtype, double minval, double maxval, void* out) {
  const auto to_normal = [](auto* values, std::int64_t n) { uniform_to_normal(values, n); };
  if (dtype == float32)
    return write_floats_by_all<float>(draw, static_cast<float>(minval), static_cast<float>(maxval), out,
                                      to_normal);
  if (dtype == float64) return write_floats_by_all<double>(draw, minval, maxval, out, to_normal);
  throw DtypeError("normal: dtype is " + name(dtype) + "; float32 and float64 are possible");
}
double after_minus_one(Dtype dtype) { return dtype == float32 ? -0x1.fffffep-1 : -0x1.fffffffffffffp-1; }

void draw_integers(const DrawBlock& draw, Dtype dtype, std::int64_t minval, std::uint64_t span, void* out) {
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    integers_on_one_thread(part, dtype, minval, span, static_cast<std::byte*>(out) + first * itemsize(dtype));
  });
}

void uniform_block(std::uint32_t k0, std::uint32_t k1, const Box& box, const Shape& global, Dtype dtype,
                   double minval, double maxval, void* out) {
  const Words key{k0, k1};
  draw_uniform({std::span(&key, 1), box, global}, dtype, minval, maxval, out);
}
void normal_block(std::uint32_t k0, std::uint32_t k1, const Box& box, const Shape& global, Dtype dtype,
                  void* out) {
  const Words key{k0, k1};
  draw_normal({std::span(&key, 1), box, global}, dtype, after_minus_one(dtype), 1, out);
}

}  // namespace tessera::kernels
