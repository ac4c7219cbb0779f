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
#include "kernels/random/squeeze.hpp"

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

// The tests of a batch's elements. Elements with the parameters of the one before share its test.
template <class Test> struct Trials {
  using T = typename Test::Real;
  std::vector<Test> tests;
  Row<std::int32_t> test_of;
  Row<T> twice_a, b, c, v_r;  // what the first step of a test reads, by lane

  // is_as_before(i): whether element i has the parameters of element i - 1.
  template <class Same, class Make> Trials(std::int64_t n, Same&& is_as_before, Make&& make) {
    for (std::int64_t first = 0, end; first < n; first = end) {
      for (end = first + 1; end < n && is_as_before(end);) ++end;
      const Test& test = tests.emplace_back(make(first));
      const auto fill = [&](auto& row, auto value) { std::fill(row.at + first, row.at + end, value); };
      fill(test_of, static_cast<std::int32_t>(tests.size() - 1));
      fill(twice_a, 2 * test.a), fill(b, test.b), fill(c, test.c), fill(v_r, test.v_r);
    }
  }
  const Test& of(std::int64_t i) const { return tests[test_of[i]]; }
};

// The lanes that go through rounds together, and a round of theirs.
template <class Test> class Rounds {
  using T = typename Test::Real;

 public:
  Row<std::int32_t> lane;
  std::int64_t left;

  Rounds(const Trials<Test>& trials, const Row<std::uint64_t>& position, std::int64_t n, std::int64_t total,
         Threefry mode, RoundKeys& keys)
      : left(n), trials_(trials), total_(total), mode_(mode), keys_(keys) {
    for (std::int64_t i = 0; i < n; ++i) lane[i] = static_cast<std::int32_t>(i);
    const auto copy = [n](const auto& from, auto& to) { std::copy_n(from.at, n, to.at); };
    copy(position, at_), copy(trials.twice_a, twice_a_), copy(trials.b, b_), copy(trials.c, c_),
        copy(trials.v_r, v_r_);
  }

  template <class Keep> void keep(Keep&& is_kept) {
    left = compact(left, is_kept, lane, at_, twice_a_, b_, c_, v_r_);
  }
  // Keeps the lanes that reject in a round; accept(lane, k) is called for the others.
  template <class Accept> void run(std::int32_t round, Accept&& accept) {
    const auto [key_u, key_v] = keys_.at(round);
    uniform_at(key_u, at_.at, left, total_, mode_, u_.at);
    uniform_at(key_v, at_.at, left, total_, mode_, v_.at);
    squeeze({twice_a_.at, b_.at, c_.at, v_r_.at}, Test::shift, u_.at, v_.at, left, k_.at, is_sure_.at);
    keep([&](std::int64_t i) {
      if (is_sure_[i] == 0 && !trials_.of(lane[i]).accepts(u_[i], v_[i], k_[i])) return true;
      accept(lane[i], k_[i]);
      return false;
    });
  }

 private:
  const Trials<Test>& trials_;
  std::int64_t total_;
  Threefry mode_;
  RoundKeys& keys_;
  Row<std::uint64_t> at_;
  Row<T> twice_a_, b_, c_, v_r_, u_, v_, k_, is_sure_;
};

// The number of rounds until all lanes have accepted once.
template <class Test> std::int32_t rounds_until_accepted(const Trials<Test>& trials,
                                                         const Row<std::uint64_t>& position, std::int64_t n,
                                                         std::int64_t total, Threefry mode, RoundKeys& keys) {
  Rounds<Test> rounds(trials, position, n, total, mode, keys);
  std::int32_t round = 0;
  for (; rounds.left > 0; ++round) rounds.run(round, [](auto, auto) {});
  return round;
}

// Each wanted lane's value of the last accepting round before `count`. Rounds run backwards, so that most
// lanes are done after one.
template <class Test, class Wanted> void last_accepted(const Trials<Test>& trials, Wanted&& is_wanted,
                                                       const Row<std::uint64_t>& position, std::int64_t n,
                                                       std::int64_t total, Threefry mode, RoundKeys& keys,
                                                       std::int32_t count, Row<typename Test::Real>& result) {
  Rounds<Test> rounds(trials, position, n, total, mode, keys);
  std::fill_n(result.at, n, -1);
  rounds.keep(is_wanted);
  while (rounds.left > 0 && count > 0) rounds.run(--count, [&](auto lane, auto k) { result[lane] = k; });
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
  using Real = float;
  static constexpr float shift = 0.43f;
  float log_lambda, a, b, c, inverse_alpha, v_r;
  explicit PoissonTest(float given) {
    // Elements drawn by Knuth's method take part in the rounds with a large lambda: they affect the number of
    // rounds.
    const float lambda = std::isnan(given) || given < 10 ? 1e5f : given;
    c = lambda;
    log_lambda = std::log(lambda);
    b = 0.931f + 2.53f * std::sqrt(lambda);
    a = -0.059f + 0.02483f * b;
    inverse_alpha = 1.1239f + 1.1328f / (b - 3.4f);
    v_r = 0.9277f - 3.6224f / (b - 2);
  }
  bool accepts(float u, float v, float k) const {
    const float u_shifted = 0.5f - std::abs(u - 0.5f);
    if (k < 0 || (u_shifted < 0.013f && v > u_shifted)) return false;
    const float s = std::log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b));
    return s <= -c + k * log_lambda - log_factorial(k);
  }
};

Trials<PoissonTest> poisson_trials(const float* lambda, std::int64_t n) {
  return {n, [&](std::int64_t i) { return lambda[i] == lambda[i - 1]; },
          [&](std::int64_t i) { return PoissonTest(lambda[i]); }};
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
  using Real = T;
  static constexpr T shift = 0;
  BinomialPair<T> pair;
  T log_miss;  // for jumps
  T count, b, a, c, v_r, r, alpha, m;
  BinomialTest(T given, T given_p)
      : pair(given, given_p), log_miss(pair.by_jumps ? std::log1p(-pair.q) : T(0)) {
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
  bool accepts(T u, T v, T k) const {
    const T us = T(0.5) - std::abs(u - T(0.5));
    if (k < 0 || k > count) return false;
    const T log_v = std::log(v * alpha / (a / (us * us) + b));
    const T bound = (m + T(0.5)) * std::log((m + 1) / (r * (count - m + 1))) +
                    (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                    (k + T(0.5)) * std::log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                    stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    return log_v <= bound;
  }
};

template <class T> Trials<BinomialTest<T>> binomial_trials(const T* count, const T* p, std::int64_t n) {
  return {n, [&](std::int64_t i) { return count[i] == count[i - 1] && p[i] == p[i - 1]; },
          [&](std::int64_t i) { return BinomialTest<T>(count[i], p[i]); }};
}

// k = the number of geometric jumps that fit into count.
template <class T> void jumps(Words key, const Trials<BinomialTest<T>>& trials,
                              const Row<std::uint64_t>& position, std::int64_t n, std::int64_t total,
                              Threefry mode, Row<T>& k) {
  Row<std::uint64_t> at = position;
  Row<std::int32_t> lane;
  Row<T> sum, count, log_miss, u, log_u;
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& test = trials.of(i);
    if (!test.pair.by_jumps) continue;
    lane[left] = static_cast<std::int32_t>(i), at[left] = position[i], sum[left] = 0, k[i] = -1;
    count[left] = test.pair.count, log_miss[left] = test.log_miss;
    ++left;
  }
  const auto unfinished = [&](std::int64_t i) { return sum[i] <= count[i]; };
  left = compact(left, unfinished, lane, at, sum, count, log_miss);
  while (left > 0) {
    const Words drawing = split_key(key, 0, 2, mode);
    key = split_key(key, 1, 2, mode);
    uniform_at(drawing, at.at, left, total, mode, u.at);
    apply_map(map<"log">, u.at, log_u.at, left);
    add_jumps(log_u.at, log_miss.at, left, sum.at);
    for (std::int64_t i = 0; i < left; ++i) k[lane[i]] += 1;
    left = compact(left, unfinished, lane, at, sum, count, log_miss);
  }
}

std::vector<RoundKeys> round_keys(const DrawBlock& draw) {
  std::vector<RoundKeys> keys;
  for (const Words key : draw.keys) keys.emplace_back(key, draw.mode);
  return keys;
}

template <class T>
void binomial_rounds(const DrawBlock& draw, const T* count, const T* p, std::int32_t* rounds) {
  auto keys = round_keys(draw);
  for_each_batch(
      draw, [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done, std::int64_t n) {
        const auto trials = binomial_trials(count + done, p + done, n);
        rounds[key] = std::max(rounds[key], rounds_until_accepted(trials, position, n, draw.global.elements(),
                                                                  draw.mode, keys[key]));
      });
}

template <class T>
void binomial(const DrawBlock& draw, const T* count, const T* p, const std::int32_t* rounds, T* out) {
  auto keys = round_keys(draw);
  const auto total = draw.global.elements();
  Row<T> by_rounds, by_jumps;
  for_each_batch(draw,
                 [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done, std::int64_t n) {
                   const auto trials = binomial_trials(count + done, p + done, n);
                   last_accepted(
                       trials, [&](std::int64_t i) { return !trials.of(i).pair.by_jumps; }, position, n,
                       total, draw.mode, keys[key], rounds[key], by_rounds);
                   jumps(draw.keys[key], trials, position, n, total, draw.mode, by_jumps);
                   for (std::int64_t i = 0; i < n; ++i) {
                     const auto& pair = trials.of(i).pair;
                     out[done + i] = pair.finish(pair.by_jumps ? by_jumps[i] : by_rounds[i]);
                   }
                 });
}

void poisson_rounds(const DrawBlock& draw, const float* lambda, std::int32_t* rounds) {
  auto keys = round_keys(draw);
  for_each_batch(draw, [&](std::size_t key, const Row<std::uint64_t>& position, std::int64_t done,
                           std::int64_t n) {
    rounds[key] = std::max(rounds[key], rounds_until_accepted(poisson_trials(lambda + done, n), position, n,
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
        last_accepted(
            poisson_trials(lam, n), [&](std::int64_t i) { return lam[i] >= 10; }, position, n, total,
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

// Whether no element of the array keeps the value of a round, so that their number affects none.
template <class Needs> bool needs_no_rounds(const DrawBlock& draw, Needs&& needs_rounds) {
  const std::int64_t elements = box_elements(draw.box);
  if (elements != draw.global.elements()) return false;
  for (std::int64_t i = 0; i < elements * std::ssize(draw.keys); ++i)
    if (needs_rounds(i)) return false;
  return true;
}

}  // namespace

void count_rounds_poisson(const DrawBlock& draw, const float* lambda, std::int32_t* rounds) {
  if (needs_no_rounds(draw, [&](std::int64_t i) { return lambda[i] >= 10; }))
    return void(std::fill_n(rounds, draw.keys.size(), 0));
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
  const auto no_rounds = [&]<class T>(const T* n, const T* q) {
    return needs_no_rounds(draw, [&](std::int64_t i) { return !BinomialPair<T>(n[i], q[i]).by_jumps; });
  };
  if (dtype == float32 ? no_rounds(static_cast<const float*>(count), static_cast<const float*>(p))
                       : no_rounds(static_cast<const double*>(count), static_cast<const double*>(p)))
    return void(std::fill_n(rounds, draw.keys.size(), 0));
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
