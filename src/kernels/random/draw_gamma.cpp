// Gamma samples by Marsaglia and Tsang's method ("A simple method for generating gamma variables", 2000), a
// thousand elements at a time: each round draws again for the elements that are not yet accepted.
#include <cmath>

#include "kernels/random/lanes.hpp"
#include "kernels/random/rejection.hpp"
#include "kernels/random/share_draw.hpp"

namespace tessera::kernels {
namespace {

// The keys of elements [run.start, run.start + run.count), as made by split(key, total).
void element_keys(Words key, CounterRange run, std::int64_t total, Threefry mode, LaneKeys& keys,
                  std::int64_t from) {
  Words words[batch];
  if (mode == Threefry::partitionable)
    threefry_counters(key.x0, key.x1, run.start, run.count, words);
  else
    threefry_original_bits(key.x0, key.x1, 2 * total, static_cast<std::int64_t>(2 * run.start), 2 * run.count,
                           32, words);
  for (std::int64_t i = 0; i < run.count; ++i) keys.set(from + i, words[i]);
}

template <class T> class GammaLanes {
 public:
  GammaLanes(Threefry mode, GammaSpace space) : mode_(mode), space_(space) {}
  LaneKeys keys;  // of the elements
  void draw(const T* alpha, std::int64_t n, T* out);

 private:
  void accept_all(std::int64_t n);
  void positive_cubes(const LaneKeys& keys, const T* c, std::int64_t n);
  void finish(const T* alpha, std::int64_t n, T* out);

  Threefry mode_;
  GammaSpace space_;
  LaneKeys round_keys_, boost_keys_;
  Row<T> d_, c_, v_;
  Row<T> x_, cube_;  // of the lanes still active: the normal draw and (1 + c x)^3 > 0
};

template <class T> void GammaLanes<T>::draw(const T* alpha, std::int64_t n, T* out) {
  const T third = T(1. / 3.);
  for (std::int64_t i = 0; i < n; ++i) {
    d_[i] = (alpha[i] >= 1 ? alpha[i] : alpha[i] + 1) - third;
    c_[i] = third / std::sqrt(d_[i]);
  }
  split_lanes(keys, n, 0, 2, mode_, round_keys_);
  split_lanes(keys, n, 1, 2, mode_, boost_keys_);
  accept_all(n);
  finish(alpha, n, out);
}

// Draws one normal per lane, again while 1 + c x <= 0.
template <class T> void GammaLanes<T>::positive_cubes(const LaneKeys& keys, const T* c, std::int64_t n) {
  LaneKeys chain = keys, drawing, next;
  Row<std::int32_t> lane;
  Row<T> x, v;
  for (std::int64_t i = 0; i < n; ++i) lane[i] = static_cast<std::int32_t>(i);
  for (std::int64_t left = n; left > 0;) {
    split_lanes(chain, left, 0, 2, mode_, next);
    split_lanes(chain, left, 1, 2, mode_, drawing);
    normal_lanes(drawing, left, mode_, x.at);
    for (std::int64_t i = 0; i < left; ++i) {
      v[i] = std::fma(x[i], c[lane[i]], T(1));
      x_[lane[i]] = x[i];
      cube_[lane[i]] = v[i] * v[i] * v[i];
    }
    left = compact(
        left, [&](std::int64_t i) { return v[i] <= 0; }, lane, next.k0, next.k1);
    chain = next;
  }
}

template <class T> void GammaLanes<T>::accept_all(std::int64_t n) {
  LaneKeys chain = round_keys_, next, x_keys, u_keys;
  Row<std::int32_t> lane;
  Row<T> d, c, u, log_u, log_cube;
  for (std::int64_t i = 0; i < n; ++i) lane[i] = static_cast<std::int32_t>(i), d[i] = d_[i], c[i] = c_[i];
  for (std::int64_t left = n; left > 0;) {
    split_lanes(chain, left, 0, 3, mode_, next);
    split_lanes(chain, left, 1, 3, mode_, x_keys);
    split_lanes(chain, left, 2, 3, mode_, u_keys);
    positive_cubes(x_keys, c.at, left);
    uniform_lanes<T>(u_keys, left, mode_, T(0), T(1), u.at);
    apply_map(map<"log">, u.at, log_u.at, left);
    apply_map(map<"log">, cube_.at, log_cube.at, left);
    for (std::int64_t i = 0; i < left; ++i) v_[lane[i]] = cube_[i];
    const auto rejected = [&](std::int64_t i) {
      const T x2 = x_[i] * x_[i];
      return u[i] >= T(1) - T(0.0331) * (x2 * x2) &&
             log_u[i] >= x2 * T(0.5) + d[i] * ((T(1) - cube_[i]) + log_cube[i]);
    };
    left = compact(left, rejected, lane, d, c, next.k0, next.k1);
    chain = next;
  }
}

// Samples for alpha < 1 were drawn with alpha + 1 and are multiplied by a uniform to the power 1 / alpha.
template <class T> void GammaLanes<T>::finish(const T* alpha, std::int64_t n, T* out) {
  Row<T> u, log_u, log_d, log_v;
  uniform_lanes<T>(boost_keys_, n, mode_, T(0), T(1), u.at);
  if (space_ == GammaSpace::linear) {
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = d_[i] * v_[i] * (alpha[i] >= 1 ? T(1) : std::pow(T(1) - u[i], T(1) / alpha[i]));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) u[i] = -u[i];
  apply_map(map<"log1p">, u.at, log_u.at, n);
  apply_map(map<"log">, d_.at, log_d.at, n);
  apply_map(map<"log">, v_.at, log_v.at, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const T boost = alpha[i] >= 1 || log_u[i] == 0 ? T(0) : log_u[i] * (T(1) / alpha[i]);
    out[i] = (log_d[i] + log_v[i]) + boost;
  }
}

template <class T> void gamma_of_all_keys(const DrawBlock& draw, GammaSpace space, const T* alpha, T* out) {
  if (is_empty(draw.box)) return;
  const auto total = draw.global.elements(), elements = box_elements(draw.box);
  GammaLanes<T> lanes(draw.mode, space);
  BoxRuns runs(draw.box, draw.global);
  for (const Words key : draw.keys) {
    for (std::int64_t done = 0; done < elements;) {
      std::int64_t n = 0;
      while (n < batch && !runs.done()) {
        const CounterRange run = runs.take(batch - n);
        element_keys(key, run, total, draw.mode, lanes.keys, n);
        n += run.count;
      }
      lanes.draw(alpha, n, out);
      alpha += n, out += n, done += n;
    }
    runs.restart();
  }
}

}  // namespace

void draw_gamma(const DrawBlock& draw, Dtype dtype, GammaSpace space, const void* alpha, void* out) {
  share_draw(draw, [&](const DrawBlock& part, std::int64_t first) {
    if (dtype == float32)
      gamma_of_all_keys(part, space, static_cast<const float*>(alpha) + first,
                        static_cast<float*>(out) + first);
    else
      gamma_of_all_keys(part, space, static_cast<const double*>(alpha) + first,
                        static_cast<double*>(out) + first);
  });
}

}  // namespace tessera::kernels
