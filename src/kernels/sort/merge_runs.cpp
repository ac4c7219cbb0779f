#include <algorithm>
#include <vector>

#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"
#include "types/pooled.hpp"

namespace tessera::kernels {
namespace {

template <class T> bool runs_before(const T& a, const T& b, SortOrder order) {
  return oriented(order_key(a), order) < oriented(order_key(b), order);
}

// Where the runs of keys and payload come from, or go to.
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

// Merges two neighbouring runs; equals come from the left one first. Without branches that depend on the
// keys: they would be guessed wrong every other time.
template <class T> void merge_two(From<T> from, std::int64_t begin, std::int64_t middle, std::int64_t end,
                                  SortOrder order, To<T> to) {
  std::int64_t left = begin, right = middle, at = begin;
  while (left < middle && right < end) {
    const bool takes_right = runs_before(from.keys[right], from.keys[left], order);
    const std::int64_t taken = takes_right ? right : left;
    to.keys[at] = from.keys[taken];
    if (from.payload != nullptr) to.payload[at] = from.payload[taken];
    right += takes_right ? 1 : 0;
    left += takes_right ? 0 : 1;
    ++at;
  }
  copy_range(from, left, middle, to, at);
  copy_range(from, right, end, to, at + middle - left);
}

// Round after round, to and fro, so that the last one ends in `out`.
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
      merge_two(from, bounds[run], bounds[run + 1], bounds[run + 2], order, to);
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
