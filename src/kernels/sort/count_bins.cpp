#include "base/thresholds.hpp"
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sort/count_bins.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sort/sort.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Finds the bin of a value by one multiplication, give or take one bin, if the edges are nearly equally
// spaced; otherwise by a search.
template <class T> class Places {
 public:
  using Place = hwy::MakeSigned<T>;

  Places(const T* edges, std::int64_t count)
      : edges_(edges),
        last_(static_cast<Place>(count) - 1),
        scale_(T(last_) / (edges[last_] - edges[0])),
        next_(edges + 1, edges + count) {
    next_.push_back(std::numeric_limits<T>::infinity());
    are_about_equal_ = scale_ > 0 && scale_ <= std::numeric_limits<T>::max();
    T deviation = 0;
    for (Place i = 0; i <= last_ && are_about_equal_; ++i) {
      const T steps = (edges[i] - edges[0]) * scale_;
      const auto guess = static_cast<Place>(steps);
      are_about_equal_ = guess <= i && guess >= i - 1;
      deviation = std::max(deviation, steps > T(i) ? steps - T(i) : T(i) - steps);
    }
    margin_ = std::max(T(1) / 1024, 2 * deviation);
  }

  // place[j] = the index of the last edge that is not above x[j]; one past the last if x[j] is out of range.
  void find(const T* x, std::int64_t n, Place* place) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t j = 0;
    for (; are_about_equal_ && j + lanes <= n; j += lanes) find_some(x + j, place + j);
    for (; j < n; ++j) place[j] = find_one(x[j]);
  }

 private:
  void find_some(const T* x, Place* place) const {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto value = hn::LoadU(d, x);
    const auto zero = hn::Zero(di), one = hn::Set(di, 1), last = hn::Set(di, last_);
    const auto steps = hn::Mul(hn::Sub(value, hn::Set(d, edges_[0])), hn::Set(d, scale_));
    const auto whole = hn::ConvertTo(di, steps);
    // Step numbers are monotonic in values: a step number between those of two edges means a value between
    // them.
    const auto fraction = hn::Sub(steps, hn::ConvertTo(d, whole));
    const auto is_sure =
        hn::And(hn::And(hn::Gt(fraction, hn::Set(d, margin_)), hn::Lt(fraction, hn::Set(d, T(1) - margin_))),
                hn::Lt(steps, hn::Set(d, T(last_))));
    if (hn::AllTrue(d, is_sure)) return hn::StoreU(whole, di, place);
    auto i = hn::Max(zero, hn::Min(whole, last));
    const auto is_below = hn::RebindMask(di, hn::Lt(value, hn::GatherIndex(d, edges_, i)));
    i = hn::Max(zero, hn::IfThenElse(is_below, hn::Sub(i, one), i));
    const auto is_above = hn::RebindMask(di, hn::Ge(value, hn::GatherIndex(d, next_.data(), i)));
    i = hn::IfThenElse(is_above, hn::Add(i, one), i);
    const auto is_between =
        hn::And(hn::Ge(value, hn::Set(d, edges_[0])), hn::Le(value, hn::Set(d, edges_[last_])));
    hn::StoreU(hn::IfThenElse(hn::RebindMask(di, is_between), i, hn::Add(last, one)), di, place);
  }
  Place find_one(T x) const {
    if (!(x >= edges_[0] && x <= edges_[last_])) return last_ + 1;
    return static_cast<Place>(std::upper_bound(edges_, edges_ + last_ + 1, x) - edges_ - 1);
  }

  const T* edges_;
  Place last_;
  T scale_;
  T margin_ = 1;  // around whole step numbers, where edges may be
  std::vector<T> next_;
  bool are_about_equal_ = false;
};

// Consecutive values are often in one bin: they are counted in separate tables to avoid store dependencies.
template <class T>
void CountBins(const T* edges, std::int64_t edge_count, const T* x, std::int64_t n, std::int32_t* out) {
  constexpr std::int64_t piece = 1024, tables = 4;
  const Places<T> places(edges, edge_count);
  const std::int64_t stride = edge_count + 1;
  std::vector<std::int32_t> counts(static_cast<std::size_t>(tables * stride));
  typename Places<T>::Place place[piece];
  for (std::int64_t first = 0; first < n; first += piece) {
    const auto count = std::min(piece, n - first);
    places.find(x + first, count, place);
    std::int64_t j = 0;
    for (; j + tables <= count; j += tables)
      for (std::int64_t t = 0; t < tables; ++t) ++counts[t * stride + place[j + t]];
    for (; j < count; ++j) ++counts[place[j]];
  }
  for (std::int64_t i = 0; i + 1 < stride; ++i) {
    out[i] = 0;
    for (std::int64_t t = 0; t < tables; ++t) out[i] += counts[t * stride + i];
  }
}
void CountFloats(const float* edges, std::int64_t count, const float* x, std::int64_t n, std::int32_t* out) {
  CountBins(edges, count, x, n, out);
}
void CountDoubles(const double* edges, std::int64_t count, const double* x, std::int64_t n,
                  std::int32_t* out) {
  CountBins(edges, count, x, n, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(CountFloats);
HWY_EXPORT(CountDoubles);

namespace {
template <class T, class Count> void share_values(const void* edges, std::int64_t edge_count,
                                                  const void* values, std::int64_t n, std::int32_t* out,
                                                  Count count) {
  std::fill(out, out + edge_count, 0);
  constexpr std::int64_t worth_a_thread = 1 << 16;
  share(n, threshold(worth_a_thread), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> own(static_cast<std::size_t>(edge_count));
    count(static_cast<const T*>(edges), edge_count, static_cast<const T*>(values) + begin, end - begin,
          own.data());
#pragma omp critical(tessera_count_bins)
    for (std::size_t i = 0; i < own.size(); ++i) out[i] += own[i];
  });
}
}  // namespace

void count_bins(Dtype dtype, const void* edges, std::int64_t edge_count, const void* values, std::int64_t n,
                std::int32_t* out) {
  if (dtype == float64)
    share_values<double>(edges, edge_count, values, n, out, HWY_DYNAMIC_DISPATCH(CountDoubles));
  else
    share_values<float>(edges, edge_count, values, n, out, HWY_DYNAMIC_DISPATCH(CountFloats));
}
}  // namespace tessera::kernels
#endif
