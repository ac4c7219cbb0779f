// Poisson and binomial samples.
//
//   poisson   lambda < 10: Knuth's product of uniforms; else Hoermann's transformed rejection ("The
//             transformed rejection method for generating Poisson random variables", 1993)
//   binomial  count * min(p, 1 - p) <= 10: sums of geometric jumps; else Hoermann's BTRS ("The generation of
//             binomial random variates", 1993)
//
// All elements of an array share the keys of a round; each reads its own position in the round's draw.
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/random/lanes.hpp"
#include "kernels/random/rejection.hpp"
#include "kernels/random/share_draw.hpp"

namespace tessera::kernels {
namespace {

// The keys of rejection rounds: key, a, b = split(key, 3) again and again.
class RoundKeys {
 public:
  RoundKeys(Words key, Threefry mode) : next_(key), mode_(mode) {}
  std::pair<Words, Words> at(std::int32_t round) {
    while (static_cast<std::int32_t>(rounds_.size()) <= round) {
      rounds_.emplace_back(split_key(next_, 1, 3, mode_), split_key(next_, 2, 3, mode_));
      next_ = split_key(next_, 0, 3, mode_);
    }
    return rounds_[round];
  }

 private:
  Words next_;
  Threefry mode_;
  std::vector<std::pair<Words, Words>> rounds_;
};

// Iterates over the elements of a draw in batches: use(key number, positions, done, n), done counted from the
// first element of the first key.
template <class F> void for_each_batch(const DrawBlock& draw, F&& use) {
  if (is_empty(draw.box)) return;
  BoxRuns runs(draw.box, draw.global);
  Row<std::uint64_t> position;
  std::int64_t done = 0;
  for (std::size_t key = 0; key < draw.keys.size(); ++key) {
    while (!runs.done()) {
      std::int64_t n = 0;
      while (n < batch && !runs.done()) {
        const CounterRange run = runs.take(batch - n);
        for (std::int64_t i = 0; i < run.count; ++i)
          position[n + i] = run.start + static_cast<std::uint64_t>(i);
        n += run.count;
      }
      use(key, position, done, n);
      done += n;
    }
    runs.restart();
  }
}

// The number of rounds until all lanes have accepted once. A Test belongs to one element: test(u, v, k) says
// whether k, computed from the uniforms u and v, is accepted.
template <class T, class Test>
std::int32_t rounds_until_accepted(const std::vector<Test>& tests, const Row<std::uint64_t>& position,
                                   std::int64_t n, std::int64_t total, Threefry mode, RoundKeys& keys) {
  Row<std::uint64_t> at = position;
  Row<std::int32_t> lane;
  Row<T> u, v;
  for (std::int64_t i = 0; i < n; ++i) lane[i] = static_cast<std::int32_t>(i);
  std::int32_t round = 0;
  for (std::int64_t left = n; left > 0; ++round) {
    const auto [key_u, key_v] = keys.at(round);
    uniform_at(key_u, at.at, left, total, mode, u.at);
    uniform_at(key_v, at.at, left, total, mode, v.at);
    T k;
    left = compact(
        left, [&](std::int64_t i) { return !tests[lane[i]](u[i], v[i], k); }, lane, at);
  }
  return round;
}

// Each wanted lane's value of the last accepting round before `rounds`. Rounds run backwards, so that most
// lanes are done after one.
template <class T, class Test, class Wanted>
void last_accepted(const std::vector<Test>& tests, Wanted&& is_wanted, const Row<std::uint64_t>& position,
                   std::int64_t n, std::int64_t total, Threefry mode, RoundKeys& keys, std::int32_t rounds,
                   Row<T>& result) {
  Row<std::uint64_t> at = position;
  Row<std::int32_t> lane;
  Row<T> u, v;
  for (std::int64_t i = 0; i < n; ++i) lane[i] = static_cast<std::int32_t>(i), result[i] = -1;
  std::int64_t left = compact(n, is_wanted, lane, at);
  while (left > 0 && rounds > 0) {
    const auto [key_u, key_v] = keys.at(--rounds);
    uniform_at(key_u, at.at, left, total, mode, u.at);
    uniform_at(key_v, at.at, left, total, mode, v.at);
    T k;
    const auto rejected = [&](std::int64_t i) {
      if (!tests[lane[i]](u[i], v[i], k)) return true;
      result[lane[i]] = k;
      return false;
    };
    left = compact(left, rejected, lane, at);
  }
}

// ---- poisson ----

// log of the gamma function for x >= 0.5 in float32, Lanczos' approximation with g = 7 as in JAX: its
// rounding errors enter the acceptance test, so another approximation would change samples.
float lanczos_lgamma(float x) {
  constexpr float c[8] = {676.520368121885098567009190444019f, -1259.13921672240287047156078755283f,
                          771.3234287776530788486528258894f,   -176.61502916214059906584551354f,
                          12.507343278686904814458936853f,     -0.13857109526572011689554707f,
                          9.984369578019570859563e-6f,         1.50563273514931155834e-7f};
  const float z = x - 1;
  float sum = 0.99999999999980993227684700473478f;
  for (int i = 0; i < 8; ++i) sum += c[i] / (z + static_cast<float>(i + 1));
  const float t = 7.5f + z, log_t = std::log(7.5f) + std::log1p(z / 7.5f);
  return 0.91893853320467274178f + (z + 0.5f - t / log_t) * log_t + std::log(sum);
}

// log(k!) for an integer k >= 0.
float log_factorial(float k) {
  constexpr int size = 1024;
  static const std::vector<float> table = [] {
    std::vector<float> values;
    for (int i = 0; i < size; ++i) values.push_back(lanczos_lgamma(static_cast<float>(i + 1)));
    return values;
  }();
  return k < size ? table[k] : lanczos_lgamma(k + 1);
}

struct PoissonTest {
  float lambda, log_lambda, a, b, inverse_alpha, v_r;
  explicit PoissonTest(float given) {
    // Elements drawn by Knuth's method take part in the rounds with a large lambda: they affect the number of
    // rounds.
    lambda = std::isnan(given) || given < 10 ? 1e5f : given;
    log_lambda = std::log(lambda);
    b = 0.931f + 2.53f * std::sqrt(lambda);
    a = -0.059f + 0.02483f * b;
    inverse_alpha = 1.1239f + 1.1328f / (b - 3.4f);
    v_r = 0.9277f - 3.6224f / (b - 2);
  }
  bool operator()(float uniform, float v, float& k) const {
    const float u = uniform - 0.5f, u_shifted = 0.5f - std::abs(u);
    k = std::floor((2 * a / u_shifted + b) * u + lambda + 0.43f);
    if (u_shifted >= 0.07f && v <= v_r) return true;
    if (k < 0 || (u_shifted < 0.013f && v > u_shifted)) return false;
    const float s = std::log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b));
    return s <= -lambda + k * log_lambda - log_factorial(k);
  }
};

// Makes one test per element; consecutive equal parameters share the work.
template <class Test, class Parameters>
std::vector<Test> tests_of(const Parameters* parameters, std::int64_t n) {
  std::vector<Test> tests;
  tests.reserve(n);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0 && parameters[i] == parameters[i - 1])
      tests.push_back(tests.back());
    else
      tests.emplace_back(parameters[i]);
  }
  return tests;
}

// k = the number of uniforms until their product falls to exp(-lambda), minus one.
void knuth(Words key, const float* lambda, const Row<std::uint64_t>& position, std::int64_t n,
           std::int64_t total, Threefry mode, Row<float>& k) {
  Row<std::uint64_t> at = position;
  Row<std::int32_t> lane;
  Row<float> log_product, u, log_u;
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!(std::isnan(lambda[i]) || lambda[i] < 10)) continue;
    lane[left] = static_cast<std::int32_t>(i), at[left] = position[i], log_product[left] = 0, k[i] = -1;
    ++left;
  }
  const auto unfinished = [&](std::int64_t i) { return log_product[i] > -lambda[lane[i]]; };
  left = compact(left, unfinished, lane, at, log_product);
  while (left > 0) {
    const Words drawing = split_key(key, 1, 2, mode);
    key = split_key(key, 0, 2, mode);
    uniform_at(drawing, at.at, left, total, mode, u.at);
    apply_map(map<"log">, u.at, log_u.at, left);
    for (std::int64_t i = 0; i < left; ++i) k[lane[i]] += 1, log_product[i] += log_u[i];
    left = compact(left, unfinished, lane, at, log_product);
  }
}

// ---- binomial ----

template <class T> T stirling_tail(T k) {
  constexpr double table[10] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return static_cast<T>(table[k > 0 ? static_cast<int>(k) : 0]);
  const T square = (k + 1) * (k + 1);
  return (T(1.0 / 12) - (T(1.0 / 360) - T(1.0 / 1260) / square) / square) / (k + 1);
}

// A binomial parameter pair, and the method that draws it.
template <class T> struct BinomialPair {
  T count, q;  // q: min(p, 1 - p), in range
  bool is_swapped, is_invalid, is_infinite, by_jumps, is_count_invalid, is_p_nan;
  friend bool operator==(const BinomialPair&, const BinomialPair&) = default;
  BinomialPair(T given, T p) {
    is_swapped = !(p < T(0.5));
    q = is_swapped ? T(1) - p : p;
    is_count_invalid = std::isnan(given) || given < 0;
    is_infinite = std::isinf(given);
    is_p_nan = std::isnan(q);
    is_invalid = q < 0 || is_p_nan || is_count_invalid;
    if (q < 0 || is_p_nan) q = T(0.01);
    by_jumps = is_count_invalid || given * q <= 10;
    count = std::floor(given);
  }
  // Converts the sample of (count, q) to that of (count, p).
  T finish(T sample) const {
    constexpr T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
    if (is_invalid)
      sample = nan;
    else if (is_infinite)
      sample = infinity;
    return !is_swapped || is_count_invalid || is_p_nan || is_infinite ? sample : count - sample;
  }
};

template <class T> struct BinomialTest {
  T count, b, a, c, v_r, r, alpha, m;
  explicit BinomialTest(const BinomialPair<T>& pair) {
    // Elements drawn by jumps take part in the rounds too: they affect the number of rounds.
    const bool is_dummy = pair.by_jumps || pair.is_infinite;
    count = is_dummy ? T(1e4) : pair.count;
    const T p = is_dummy ? T(0.5) : pair.q, deviation = std::sqrt(count * p * (1 - p));
    b = T(1.15) + T(2.53) * deviation;
    a = T(-0.0873) + T(0.0248) * b + T(0.01) * p;
    c = count * p + T(0.5);
    v_r = T(0.92) - T(4.2) / b;
    r = p / (1 - p);
    alpha = (T(2.83) + T(5.1) / b) * deviation;
    m = std::floor((count + 1) * p);
  }
  bool operator()(T uniform, T v, T& k) const {
    const T u = uniform - T(0.5), us = T(0.5) - std::abs(u);
    k = std::floor((2 * a / us + b) * u + c);
    if (us >= T(0.07) && v <= v_r) return true;
    if (k < 0 || k > count) return false;
    const T log_v = std::log(v * alpha / (a / (us * us) + b));
    const T bound = (m + T(0.5)) * std::log((m + 1) / (r * (count - m + 1))) +
                    (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                    (k + T(0.5)) * std::log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                    stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    return log_v <= bound;
  }
};

// k = the number of geometric jumps that fit into count.
template <class T> void jumps(Words key, const std::vector<BinomialPair<T>>& pairs,
                              const Row<std::uint64_t>& position, std::int64_t total, Threefry mode,
                              Row<T>& k) {
  Row<std::uint64_t> at = position;
  Row<std::int32_t> lane;
  Row<T> sum, u, log_u;
  std::int64_t left = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].by_jumps) continue;
    lane[left] = static_cast<std::int32_t>(i), at[left] = position[static_cast<std::int64_t>(i)],
    sum[left] = 0, k[static_cast<std::int64_t>(i)] = -1;
    ++left;
  }
  const auto pair_of = [&](std::int64_t i) -> const BinomialPair<T>& { return pairs[lane[i]]; };
  const auto unfinished = [&](std::int64_t i) { return sum[i] <= pair_of(i).count; };
  left = compact(left, unfinished, lane, at, sum);
  while (left > 0) {
    const Words drawing = split_key(key, 0, 2, mode);
    key = split_key(key, 1, 2, mode);
    uniform_at(drawing, at.at, left, total, mode, u.at);
    apply_map(map<"log">, u.at, log_u.at, left);
    for (std::int64_t i = 0; i < left; ++i)
      k[lane[i]] += 1, sum[i] += std::ceil(log_u[i] / std::log1p(-pair_of(i).q));
    left = compact(left, unfinished, lane, at, sum);
  }
}

template <class T> std::vector<BinomialPair<T>> binomial_pairs(const T* count, const T* p, std::int64_t n) {
  std::vector<BinomialPair<T>> pairs;
  for (std::int64_t i = 0; i < n; ++i) pairs.emplace_back(count[i], p[i]);
  return pairs;
}

std::vector<RoundKeys> round_keys(const DrawBlock& draw) {
  std::vector<RoundKeys> keys;
  for (const Words key : draw.keys) keys.emplace_back(key, draw.mode);
  return keys;
}

template <class T>
void binomial_rounds(const DrawBlock& draw, const T* count, const T* p, std::int32_t* rounds) {
  auto keys = round_keys(draw);
  for_each_batch(draw, [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done,
                           std::int64_t n) {
    const auto tests = tests_of<BinomialTest<T>>(binomial_pairs(count + done, p + done, n).data(), n);
    rounds[key] = std::max(rounds[key], rounds_until_accepted<T>(tests, position, n, draw.global.elements(),
                                                                 draw.mode, keys[key]));
  });
}

template <class T>
void binomial(const DrawBlock& draw, const T* count, const T* p, const std::int32_t* rounds, T* out) {
  auto keys = round_keys(draw);
  const auto total = draw.global.elements();
  Row<T> by_rounds, by_jumps;
  for_each_batch(
      draw, [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done, std::int64_t n) {
        const auto pairs = binomial_pairs(count + done, p + done, n);
        last_accepted<T>(
            tests_of<BinomialTest<T>>(pairs.data(), n), [&](std::int64_t i) { return !pairs[i].by_jumps; },
            position, n, total, draw.mode, keys[key], rounds[key], by_rounds);
        jumps(draw.keys[key], pairs, position, total, draw.mode, by_jumps);
        for (std::int64_t i = 0; i < n; ++i) {
          const auto& pair = pairs[i];
          out[done + i] = pair.finish(pair.by_jumps ? by_jumps[i] : by_rounds[i]);
        }
      });
}

void poisson_rounds(const DrawBlock& draw, const float* lambda, std::int32_t* rounds) {
  auto keys = round_keys(draw);
  for_each_batch(
      draw, [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done, std::int64_t n) {
        rounds[key] = std::max(
            rounds[key], rounds_until_accepted<float>(tests_of<PoissonTest>(lambda + done, n), position, n,
                                                      draw.global.elements(), draw.mode, keys[key]));
      });
}

void poisson(const DrawBlock& draw, const float* lambda, const std::int32_t* rounds, Dtype dtype, void* out) {
  auto keys = round_keys(draw);
  const auto total = draw.global.elements();
  const MapFn cast = find_cast(float32, dtype);
  Row<float> k, by_knuth;
  for_each_batch(
      draw, [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done, std::int64_t n) {
        const float* lam = lambda + done;
        last_accepted<float>(
            tests_of<PoissonTest>(lam, n), [&](std::int64_t i) { return lam[i] >= 10; }, position, n, total,
            draw.mode, keys[key], rounds[key], k);
        knuth(draw.keys[key], lam, position, n, total, draw.mode, by_knuth);
        for (std::int64_t i = 0; i < n; ++i) {
          if (std::isnan(lam[i]) || lam[i] < 10) k[i] = by_knuth[i];
          if (lam[i] == 0) k[i] = 0;
        }
        const void* counts = k.at;
        cast(&counts, static_cast<std::byte*>(out) + done * static_cast<std::int64_t>(itemsize(dtype)), n);
      });
}

// The index of part's first key among the draw's keys.
std::ptrdiff_t first_key(const DrawBlock& part, const DrawBlock& draw) {
  return part.keys.data() - draw.keys.data();
}

// Calls count(part, first element, rounds of its keys) on all threads and keeps each key's maximum.
template <class Count> void most_rounds(const DrawBlock& draw, std::int32_t* rounds, Count&& count) {
  std::fill_n(rounds, draw.keys.size(), 0);
  std::mutex one_at_a_time;
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    std::vector<std::int32_t> own(part.keys.size(), 0);
    count(part, first, own.data());
    const std::lock_guard lock(one_at_a_time);
    std::int32_t* const all = rounds + first_key(part, draw);
    for (std::size_t k = 0; k < own.size(); ++k) all[k] = std::max(all[k], own[k]);
  });
}

}  // namespace

void count_rounds_poisson(const DrawBlock& draw, const float* lambda, std::int32_t* rounds) {
  most_rounds(draw, rounds, [&](const DrawBlock& part, std::int64_t first, std::int32_t* own) {
    poisson_rounds(part, lambda + first, own);
  });
}

void draw_poisson(const DrawBlock& draw, const float* lambda, const std::int32_t* rounds, Dtype dtype,
                  void* out) {
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    poisson(part, lambda + first, rounds + first_key(part, draw), dtype,
            static_cast<std::byte*>(out) + first * static_cast<std::int64_t>(itemsize(dtype)));
  });
}

void count_rounds_binomial(const DrawBlock& draw, Dtype dtype, const void* count, const void* p,
                           std::int32_t* rounds) {
  most_rounds(draw, rounds, [&](const DrawBlock& part, std::int64_t first, std::int32_t* own) {
    if (dtype == float32)
      binomial_rounds(part, static_cast<const float*>(count) + first, static_cast<const float*>(p) + first,
                      own);
    else
      binomial_rounds(part, static_cast<const double*>(count) + first, static_cast<const double*>(p) + first,
                      own);
  });
}

void draw_binomial(const DrawBlock& draw, Dtype dtype, const void* count, const void* p,
                   const std::int32_t* rounds, void* out) {
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    const std::int32_t* const own = rounds + first_key(part, draw);
    if (dtype == float32)
      binomial(part, static_cast<const float*>(count) + first, static_cast<const float*>(p) + first, own,
               static_cast<float*>(out) + first);
    else
      binomial(part, static_cast<const double*>(count) + first, static_cast<const double*>(p) + first, own,
               static_cast<double*>(out) + first);
  });
}

}  // namespace tessera::kernels
