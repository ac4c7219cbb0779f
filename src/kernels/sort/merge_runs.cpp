#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"

namespace tessera::kernels {
namespace {

template <class T> bool runs_before(const T& a, const T& b, SortOrder order) {
  return oriented(order_key(a), order) < oriented(order_key(b), order);
}

// Merges two neighbouring runs; equals come from the left one first.
template <class T> void merge_two(const T* keys, const std::int64_t* payload, std::int64_t begin,
                                  std::int64_t middle, std::int64_t end, SortOrder order, T* out,
                                  std::int64_t* payload_out) {
  std::int64_t left = begin, right = middle;
  for (std::int64_t at = begin; at < end; ++at) {
    const bool take_right = left == middle || (right < end && runs_before(keys[right], keys[left], order));
    const std::int64_t from = take_right ? right++ : left++;
    out[at] = keys[from];
    if (payload != nullptr) payload_out[at] = payload[from];
  }
}

template <class T> void merge_runs_typed(const T* keys, const std::int64_t* payload,
                                         std::span<const std::int64_t> offsets, SortOrder order, T* out,
                                         std::int64_t* payload_out) {
  const std::int64_t n = offsets.empty() ? 0 : offsets.back();
  std::copy_n(keys, n, out);
  if (payload != nullptr) std::copy_n(payload, n, payload_out);
  std::vector<std::int64_t> bounds(offsets.begin(), offsets.end());
  if (bounds.size() <= 2) return;
  const std::unique_ptr<T[]> spare_keys(new T[n]);
  std::vector<std::int64_t> spare_payload(payload != nullptr ? static_cast<std::size_t>(n) : 0);
  while (bounds.size() > 2) {
    std::copy_n(out, n, spare_keys.get());
    if (payload != nullptr) std::copy_n(payload_out, n, spare_payload.data());
    std::vector<std::int64_t> merged{bounds[0]};
    std::size_t run = 0;
    for (; run + 2 < bounds.size(); run += 2) {
      merge_two(spare_keys.get(), payload != nullptr ? spare_payload.data() : nullptr, bounds[run],
                bounds[run + 1], bounds[run + 2], order, out, payload_out);
      merged.push_back(bounds[run + 2]);
    }
    if (run + 1 < bounds.size()) merged.push_back(bounds.back());
    bounds = std::move(merged);
  }
}

}  // namespace

void merge_runs(Dtype dtype, const void* keys, const std::int64_t* payload,
                std::span<const std::int64_t> offsets, SortOrder order, void* keys_out,
                std::int64_t* payload_out) {
  visit(dtype, [&]<class T>(T) {
    merge_runs_typed(static_cast<const T*>(keys), payload, offsets, order, static_cast<T*>(keys_out),
                     payload_out);
  });
}

}  // namespace tessera::kernels
