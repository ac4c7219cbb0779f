#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sort/merge_vectors.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"
#include "types/pooled.hpp"

namespace tessera::kernels {
namespace {

template <class T> bool runs_before(const T& a, const T& b, SortOrder order) {
  return oriented(order_key(a), order) < oriented(order_key(b), order);
}

// The keys and payload of runs that are read or written.
template <class K, class P> struct Lists {
  K* keys;
  P* payload;
};
template <class T> using From = Lists<const T, const std::int64_t>;
template <class T> using To = Lists<T, std::int64_t>;

template <class T>
void copy_range(From<T> from, std::int64_t begin, std::int64_t end, To<T> to, std::int64_t at) {
  std::copy(from.keys + begin, from.keys + end, to.keys + at);
  if (from.payload != nullptr) std::copy(from.payload + begin, from.payload + end, to.payload + at);
}

// Two neighbouring runs that are merged into one.
struct Pair {
  std::int64_t begin, middle, end;
};

// The number of elements that the left run contributes to the first k of the merged run.
template <class T> std::int64_t taken_from_left(From<T> from, Pair p, std::int64_t k, SortOrder order) {
  std::int64_t low = std::max<std::int64_t>(0, k - (p.end - p.middle)),
               high = std::min(k, p.middle - p.begin);
  while (low < high) {
    const std::int64_t i = low + (high - low) / 2;
    if (runs_before(from.keys[p.middle + k - i - 1], from.keys[p.begin + i], order))
      high = i;
    else
      low = i + 1;
  }
  return low;
}

// The remaining elements of both runs for a part of the result, and the index of the next element.
struct Lane {
  std::int64_t left, left_end, right, right_end, at;
};
template <class T>
Lane lane_of(From<T> from, Pair p, std::int64_t first, std::int64_t last, SortOrder order) {
  const auto a = taken_from_left(from, p, first, order), b = taken_from_left(from, p, last, order);
  return {p.begin + a, p.begin + b, p.middle + first - a, p.middle + last - b, p.begin + first};
}

// Merges until either run ends. Branch-free, because branches on keys would be mispredicted every other time.
template <class T, bool has_payload> void step(From<T> from, SortOrder order, To<T> to, Lane& lane) {
  const auto takes_right =
      static_cast<std::int64_t>(runs_before(from.keys[lane.right], from.keys[lane.left], order));
  const auto taken = lane.left ^ ((lane.left ^ lane.right) & -takes_right);
  to.keys[lane.at] = from.keys[taken];
  if constexpr (has_payload) to.payload[lane.at] = from.payload[taken];
  lane.right += takes_right;
  lane.left += 1 - takes_right;
  ++lane.at;
}

template <class T, bool has_payload, std::size_t count>
void merge_lanes(From<T> from, SortOrder order, To<T> to, std::span<Lane, count> lanes) {
  for (;;) {
    auto steps = std::numeric_limits<std::int64_t>::max();
    for (const auto& lane : lanes)
      steps = std::min({steps, lane.left_end - lane.left, lane.right_end - lane.right});
    if (steps == 0) return;
    for (; steps > 0; --steps)
      for (auto& lane : lanes) step<T, has_payload>(from, order, to, lane);
  }
}

// Whether equal elements of an ascending run have equal bits, and none is NaN.
template <class T> bool is_plain(const T* begin, const T* end) {
  if constexpr (std::is_floating_point_v<T>) {
    if (begin != end && end[-1] != end[-1]) return false;
    const auto zeros = std::equal_range(begin, end, T(0));
    return std::none_of(zeros.first, zeros.second, [](T zero) { return std::signbit(zero); });
  }
  return true;
}
template <class T> bool merge_plain(From<T> from, std::span<const Lane, 4> lanes, SortOrder order, To<T> to) {
  if constexpr (has_vector_merge<T>) {
    if (order.descending) return false;
    std::array<RunsToMerge<T>, 4> runs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Lane& lane = lanes[i];
      runs[i] = {from.keys + lane.left, from.keys + lane.left_end, from.keys + lane.right,
                 from.keys + lane.right_end, to.keys + lane.at};
      if (!is_plain(runs[i].left, runs[i].left_end) || !is_plain(runs[i].right, runs[i].right_end))
        return false;
    }
    merge_by_vectors(std::span(runs));
    return true;
  }
  return false;
}

// Merges elements [first, last) of the result. Each step depends on the one before it: four interleaved parts
// keep the processor busy.
template <class T, bool has_payload>
void merge_part(From<T> from, Pair p, std::int64_t first, std::int64_t last, SortOrder order, To<T> to) {
  constexpr std::int64_t count = 4;
  Lane lanes[count];
  for (std::int64_t i = 0; i < count; ++i)
    lanes[i] =
        lane_of(from, p, first + (last - first) * i / count, first + (last - first) * (i + 1) / count, order);
  if constexpr (!has_payload)
    if (merge_plain<T>(from, std::span<const Lane, count>(lanes), order, to)) return;
  merge_lanes<T, has_payload>(from, order, to, std::span(lanes));
  for (auto& lane : lanes) {
    merge_lanes<T, has_payload>(from, order, to, std::span<Lane, 1>(&lane, 1));
    copy_range(from, lane.left, lane.left_end, to, lane.at);
    copy_range(from, lane.right, lane.right_end, to, lane.at + lane.left_end - lane.left);
  }
}

// Merges two neighbouring runs; of equal keys, the left run's come first.
template <class T> void merge_two(From<T> from, Pair p, SortOrder order, To<T> to) {
  share(p.end - p.begin, worth_a_thread(sizeof(T)), [&](std::int64_t first, std::int64_t last) {
    if (from.payload != nullptr)
      merge_part<T, true>(from, p, first, last, order, to);
    else
      merge_part<T, false>(from, p, first, last, order, to);
  });
}

// Alternates between two buffers each round, so that the last round ends in `out`.
template <class T>
void merge_runs_typed(From<T> from, std::span<const std::int64_t> offsets, SortOrder order, To<T> out) {
  std::vector<std::int64_t> bounds(offsets.begin(), offsets.end());
  if (bounds.size() < 2) return;
  const std::int64_t n = bounds.back();
  if (bounds.size() == 2) return copy_range(from, 0, n, out, 0);
  int rounds = 0;
  for (std::size_t runs = bounds.size() - 1; runs > 1; runs = (runs + 1) / 2) ++rounds;
  Pooled<T> spare_keys(rounds > 1 ? n : 0);
  Pooled<std::int64_t> spare_payload(rounds > 1 && from.payload != nullptr ? n : 0);
  const To<T> spare{spare_keys.data(), spare_payload.data()};
  for (; rounds > 0; --rounds) {
    const To<T> to = rounds % 2 == 1 ? out : spare;
    std::vector<std::int64_t> merged{bounds[0]};
    std::size_t run = 0;
    for (; run + 2 < bounds.size(); run += 2) {
      merge_two(from, {bounds[run], bounds[run + 1], bounds[run + 2]}, order, to);
      merged.push_back(bounds[run + 2]);
    }
    if (run + 1 < bounds.size()) {
      copy_range(from, bounds[run], bounds.back(), to, bounds[run]);
      merged.push_back(bounds.back());
    }
    bounds = std::move(merged);
    from = {to.keys, from.payload != nullptr ? to.payload : nullptr};
  }
}

}  // namespace

void merge_runs(Dtype dtype, const void* keys, const std::int64_t* payload,
                std::span<const std::int64_t> offsets, SortOrder order, void* keys_out,
                std::int64_t* payload_out) {
  visit(dtype, [&]<class T>(T) {
    merge_runs_typed<T>({static_cast<const T*>(keys), payload}, offsets, order,
                        {static_cast<T*>(keys_out), payload_out});
  });
}

}  // namespace tessera::kernels
