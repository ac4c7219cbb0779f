#include "kernels/sort/sort.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/sort/order_key.hpp"
#include "kernels/sort/radix_sort.hpp"

namespace tessera::kernels {
namespace {

// Rows shorter than this are sorted by comparisons: a radix sort has 256 counters per digit to clear and add
// up.
constexpr std::int64_t radix_from = 192;

template <class K> K oriented(K key, SortOrder order) {
  if constexpr (std::is_same_v<K, ComplexKey>)
    return order.descending ? ComplexKey{~key.real, ~key.imag} : key;
  else
    return order.descending ? static_cast<K>(~key) : key;
}

// The scratch of one call: keys of a row, positions, and their shadows.
template <class T> class RowSorter {
 public:
  using K = decltype(order_key(T{}));
  using Position = std::uint32_t;

  RowSorter(std::int64_t n, SortOrder order) : n_(n), order_(order), keys_(size()), at_(size()) {
    if constexpr (!is_complex_type<T>)
      if (n >= radix_from) spare_keys_.resize(size()), spare_at_.resize(size());
  }

  // Positions of the row's elements in sorted order.
  const Position* argsort(const T* row) {
    for (std::int64_t i = 0; i < n_; ++i) keys_[at(i)] = oriented(order_key(row[i]), order_);
    std::iota(at_.begin(), at_.end(), Position{0});
    if constexpr (!is_complex_type<T>) {
      if (n_ >= radix_from) {
        radix_sort(keys_.data(), at_.data(), spare_keys_.data(), spare_at_.data(), n_);
        return at_.data();
      }
    }
    std::stable_sort(at_.begin(), at_.end(), [&](Position a, Position b) { return keys_[a] < keys_[b]; });
    return at_.data();
  }

  // Integers carry nothing that their keys do not: no positions needed.
  void sort_integers(const T* row, T* out) requires std::is_integral_v<T> {
    for (std::int64_t i = 0; i < n_; ++i) keys_[at(i)] = oriented(order_key(row[i]), order_);
    if (n_ >= radix_from)
      radix_sort(keys_.data(), spare_keys_.data(), n_);
    else
      std::sort(keys_.begin(), keys_.end());
    for (std::int64_t i = 0; i < n_; ++i) {
      const K key = oriented(keys_[at(i)], order_);
      if constexpr (std::is_same_v<T, bool>)
        out[i] = key != 0;
      else
        out[i] = static_cast<T>(order_key(static_cast<T>(key)));  // flipping the sign bit twice gives it back
    }
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(n_); }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t n_;
  SortOrder order_;
  std::vector<K> keys_, spare_keys_;
  std::vector<Position> at_, spare_at_;
};

// Rows of 2^32 elements and more: 64-bit positions, by comparisons.
template <class T> std::vector<std::int64_t> argsort_huge(const T* row, std::int64_t n, SortOrder order) {
  std::vector<std::int64_t> at(n);
  std::iota(at.begin(), at.end(), std::int64_t{0});
  std::stable_sort(at.begin(), at.end(), [&](std::int64_t a, std::int64_t b) {
    return oriented(order_key(row[a]), order) < oriented(order_key(row[b]), order);
  });
  return at;
}
bool is_huge(std::int64_t n) { return n > std::numeric_limits<std::uint32_t>::max(); }

// Calls use(row, positions) with the sorted positions of every row.
template <class T, class F>
void for_each_sorted_row(const T* data, std::int64_t rows, std::int64_t n, SortOrder order, F&& use) {
  if (is_huge(n)) {
    for (std::int64_t r = 0; r < rows; ++r) use(r, argsort_huge(data + r * n, n, order).data());
    return;
  }
  RowSorter<T> sorter(n, order);
  for (std::int64_t r = 0; r < rows; ++r) use(r, sorter.argsort(data + r * n));
}

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

template <class T>
void top_k_typed(const T* row, std::int64_t n, std::int64_t k, T* values, std::int64_t* index) {
  using K = decltype(order_key(T{}));
  struct Candidate {
    K key;
    std::int64_t at;
  };
  const auto better = [](const Candidate& a, const Candidate& b) {
    return b.key < a.key || (a.key == b.key && a.at < b.at);
  };
  std::vector<Candidate> best;  // a heap with the worst of the best on top
  best.reserve(k);
  for (std::int64_t i = 0; i < n; ++i) {
    const Candidate candidate{order_key(row[i]), i};
    if (static_cast<std::int64_t>(best.size()) < k) {
      best.push_back(candidate);
      std::push_heap(best.begin(), best.end(), better);
    } else if (better(candidate, best.front())) {
      std::pop_heap(best.begin(), best.end(), better);
      best.back() = candidate;
      std::push_heap(best.begin(), best.end(), better);
    }
  }
  std::sort_heap(best.begin(), best.end(), better);
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (values != nullptr) values[i] = row[best[i].at];
    if (index != nullptr) index[i] = best[i].at;
  }
}

}  // namespace

void sort_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder order, void* out) {
  if (rows == 0 || n == 0) return;
  visit(dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(data);
    T* to = static_cast<T*>(out);
    if constexpr (std::is_integral_v<T>) {
      RowSorter<T> sorter(n, order);
      for (std::int64_t r = 0; r < rows; ++r) sorter.sort_integers(from + r * n, to + r * n);
    } else {
      const std::unique_ptr<T[]> row(new T[n]);
      for_each_sorted_row(from, rows, n, order, [&](std::int64_t r, const auto* at) {
        for (std::int64_t i = 0; i < n; ++i) row[i] = from[r * n + static_cast<std::int64_t>(at[i])];
        std::copy_n(row.get(), n, to + r * n);
      });
    }
  });
}

void argsort_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder order,
                  std::int64_t* out) {
  if (rows == 0 || n == 0) return;
  visit(dtype, [&]<class T>(T) {
    for_each_sorted_row(static_cast<const T*>(data), rows, n, order, [&](std::int64_t r, const auto* at) {
      for (std::int64_t i = 0; i < n; ++i) out[r * n + i] = static_cast<std::int64_t>(at[i]);
    });
  });
}

void sort_pairs(Dtype dtype, void* keys, std::int64_t* payload, std::int64_t n, SortOrder order) {
  if (n < 2) return;
  visit(dtype, [&]<class T>(T) {
    T* values = static_cast<T*>(keys);
    if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
      if (n >= radix_from) {  // the values are their own keys
        const auto flip = [&] {
          if (order.descending)
            for (std::int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(~values[i]);
        };
        const std::unique_ptr<T[]> spare(new T[n]);
        const std::unique_ptr<std::int64_t[]> spare_payload(new std::int64_t[n]);
        flip();
        radix_sort(values, payload, spare.get(), spare_payload.get(), n);
        flip();
        return;
      }
    }
    for_each_sorted_row(values, 1, n, order, [&](std::int64_t, const auto* at) {
      const std::unique_ptr<T[]> old_values(new T[n]);
      const std::vector<std::int64_t> old_payload(payload, payload + n);
      std::copy_n(values, n, old_values.get());
      for (std::int64_t i = 0; i < n; ++i) values[i] = old_values[at[i]], payload[i] = old_payload[at[i]];
    });
  });
}

void merge_runs(Dtype dtype, const void* keys, const std::int64_t* payload,
                std::span<const std::int64_t> offsets, SortOrder order, void* keys_out,
                std::int64_t* payload_out) {
  visit(dtype, [&]<class T>(T) {
    merge_runs_typed(static_cast<const T*>(keys), payload, offsets, order, static_cast<T*>(keys_out),
                     payload_out);
  });
}

void searchsorted(Dtype dtype, const void* sorted, std::int64_t n, const void* values, std::int64_t count,
                  bool right, std::int64_t* out) {
  visit(dtype, [&]<class T>(T) {
    const T* row = static_cast<const T*>(sorted);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto key = order_key(static_cast<const T*>(values)[i]);
      // Without branches: `base` moves over the half that lies before the place.
      std::int64_t base = 0;
      for (std::int64_t left = n; left > 0;) {
        const std::int64_t half = (left + 1) / 2;
        const auto middle = order_key(row[base + half - 1]);
        const bool before = right ? !(key < middle) : middle < key;
        base += before ? half : 0;
        left = before ? left - half : half - 1;
      }
      out[i] = base;
    }
  });
}

void top_k_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t k,
                void* values_out, std::int64_t* index_out) {
  k = std::min(k, n);
  if (rows == 0 || k <= 0) return;
  visit(dtype, [&]<class T>(T) {
    for (std::int64_t r = 0; r < rows; ++r)
      top_k_typed(static_cast<const T*>(data) + r * n, n, k,
                  values_out == nullptr ? nullptr : static_cast<T*>(values_out) + r * k,
                  index_out == nullptr ? nullptr : index_out + r * k);
  });
}

}  // namespace tessera::kernels
