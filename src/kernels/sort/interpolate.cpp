#include "kernels/sort/interpolate.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sort/sort.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

template <class T> class Function {
 public:
  explicit Function(const Points& points)
      : xp_(static_cast<const T*>(points.xp)),
        fp_(static_cast<const T*>(points.fp)),
        last_(points.n - 1),
        left_(points.left ? static_cast<T>(*points.left) : fp_[0]),
        right_(points.right ? static_cast<T>(*points.right) : fp_[last_]) {}

  // The value at x; `place`: the number of points xp <= x.
  T at(T x, std::int64_t place) const {
    const auto after = std::clamp<std::int64_t>(place, std::min<std::int64_t>(last_, 1), last_);
    const auto before = std::max<std::int64_t>(after - 1, 0);
    const T dx = xp_[after] - xp_[before], f = fp_[before];
    const T value = dx == 0 ? f : f + (x - xp_[before]) / dx * (fp_[after] - f);
    return x > xp_[last_] ? right_ : x < xp_[0] ? left_ : value;
  }

 private:
  const T *xp_, *fp_;
  std::int64_t last_;
  T left_, right_;
};

// The number of points not above each x. Values that ascend, as those of a grid do, need no search.
template <class T> void find_places(Dtype dtype, const T* x, std::int64_t count, const T* xp, std::int64_t n,
                                    std::int64_t* places) {
  const auto descends = [](T a, T b) { return !(a <= b); };  // also at NaN
  if (n > 4 * count || std::adjacent_find(x, x + count, descends) != x + count)
    return searchsorted(dtype, xp, n, x, count, true, places);
  for (std::int64_t i = 0, at = 0; i < count; ++i) {
    while (at < n && xp[at] <= x[i]) ++at;
    places[i] = at;
  }
}

template <class T>
void interpolate(Dtype dtype, const T* x, std::int64_t count, const Points& points, T* out) {
  const Function<T> function(points);
  // Places of one piece at a time: a search of many values copies the points first.
  const std::int64_t piece = std::min(count, std::max<std::int64_t>(1 << 16, 16 * points.n));
  std::vector<std::int64_t> places(static_cast<std::size_t>(piece));
  for (std::int64_t first = 0; first < count; first += piece) {
    const auto some = std::min(piece, count - first);
    find_places(dtype, x + first, some, static_cast<const T*>(points.xp), points.n, places.data());
    share(some, 4096, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) out[first + begin] = function.at(x[first + begin], places[begin]);
    });
  }
}

}  // namespace

void interpolate(Dtype dtype, const void* x, std::int64_t count, const Points& points, void* out) {
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      interpolate(dtype, static_cast<const T*>(x), count, points, static_cast<T*>(out));
  });
}

}  // namespace tessera::kernels
