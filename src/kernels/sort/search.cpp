#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sort/keys_of_row.hpp"
#include "kernels/sort/search_table.hpp"
#include "kernels/sort/sort.hpp"

namespace tessera::kernels {
namespace {

template <class K> struct Candidate {
  K key;
  std::int64_t at;
};
template <class K> bool better(const Candidate<K>& a, const Candidate<K>& b) {
  return b.key < a.key || (a.key == b.key && a.at < b.at);
}

// The k best candidates so far, among others: whenever there are twice as many, the worse half is dropped.
template <class K> class Best {
 public:
  explicit Best(std::int64_t k) : k_(k) { kept_.reserve(2 * k); }

  // Elements come in the order of the row: an equal of the worst that is kept comes too late.
  void offer(K key, std::int64_t at) {
    if (has_worst_ && !(worst_ < key)) return;
    kept_.push_back({key, at});
    if (std::ssize(kept_) == 2 * k_) drop_half();
  }
  // The candidates, best first. clear() must precede the next offer.
  std::span<const Candidate<K>> sorted() {
    if (std::ssize(kept_) > k_) drop_half();
    std::sort(kept_.begin(), kept_.end(), better<K>);
    return kept_;
  }
  void clear() { kept_.clear(), has_worst_ = false; }

 private:
  void drop_half() {
    std::nth_element(kept_.begin(), kept_.begin() + k_ - 1, kept_.end(), better<K>);
    worst_ = kept_[k_ - 1].key, has_worst_ = true;
    kept_.resize(k_);
  }

  std::int64_t k_;
  std::vector<Candidate<K>> kept_;
  K worst_{};
  bool has_worst_ = false;
};

template <class K> void offer_row(Dtype dtype, const std::byte* row, std::int64_t n, Best<K>& best) {
  constexpr std::int64_t piece = 1024;
  K keys[piece];
  for (std::int64_t first = 0; first < n; first += piece) {
    const std::int64_t count = std::min(piece, n - first);
    read_keys(dtype, row + first * itemsize(dtype), count, {}, keys);
    for (std::int64_t i = 0; i < count; ++i) best.offer(keys[i], first + i);
  }
}

}  // namespace

namespace {

// Searches values one after the other: converting the table to keys would cost more than so few searches.
template <class T> void search_few(const T* row, std::int64_t n, const T* values, std::int64_t count,
                                   bool right, std::int64_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto key = order_key(values[i]);
    // Branch-free binary search: `base` moves over the half that precedes the position.
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
}

// Advances several searches in lockstep, so that the processor executes them in parallel.
template <bool right, class K>
void search_together(const K* table, std::int64_t n, const K* keys, std::int64_t count, std::int64_t* out) {
  const auto is_before = [](const K& entry, const K& key) { return right ? !(key < entry) : entry < key; };
  std::fill_n(out, count, 0);
  if (n == 0) return;
  std::int64_t left = n;
  for (; left > 1; left -= left / 2) {
    const std::int64_t half = left / 2;
    for (std::int64_t i = 0; i < count; ++i)
      out[i] += is_before(table[out[i] + half - 1], keys[i]) ? half : 0;
  }
  for (std::int64_t i = 0; i < count; ++i) out[i] += is_before(table[out[i]], keys[i]) ? 1 : 0;
}

// The keys as signed numbers in the same order, which vectors compare in one instruction.
template <class K> auto* as_signed(K* keys, std::int64_t n) {
  using Signed = std::make_signed_t<K>;
  constexpr K sign = K{1} << (8 * sizeof(K) - 1);
  for (std::int64_t i = 0; i < n; ++i) keys[i] ^= sign;
  return reinterpret_cast<Signed*>(keys);
}
template <class K> constexpr bool has_search_table =
    std::is_same_v<K, std::uint32_t> || std::is_same_v<K, std::uint64_t>;

}  // namespace

void searchsorted(Dtype dtype, const void* sorted, std::int64_t n, const void* values, std::int64_t count,
                  bool right, std::int64_t* out) {
  constexpr std::int64_t piece = 512;
  if (count < 16 || n > 4 * count)
    return visit(dtype, [&]<class T>(T) {
      share(count, 4096, [&](std::int64_t begin, std::int64_t end) {
        search_few(static_cast<const T*>(sorted), n, static_cast<const T*>(values) + begin, end - begin,
                   right, out + begin);
      });
    });
  visit_keys(dtype, [&]<class K>(K) {
    std::vector<K> table(static_cast<std::size_t>(n));
    read_keys(dtype, sorted, n, {}, table.data());
    const bool by_vectors = has_search_table<K> && n < std::numeric_limits<std::int32_t>::max();
    if constexpr (has_search_table<K>)
      if (by_vectors) as_signed(table.data(), n);
    share(count, 4096, [&](std::int64_t begin, std::int64_t end) {
      K keys[piece];
      for (; begin < end; begin += piece) {
        const auto some = std::min(piece, end - begin);
        read_keys(dtype,
                  static_cast<const std::byte*>(values) + begin * static_cast<std::int64_t>(itemsize(dtype)),
                  some, {}, keys);
        if constexpr (has_search_table<K>)
          if (by_vectors) {
            search_table(right, reinterpret_cast<const std::make_signed_t<K>*>(table.data()), n,
                         as_signed(keys, some), some, out + begin);
            continue;
          }
        const auto search = right ? search_together<true, K> : search_together<false, K>;
        search(table.data(), n, keys, some, out + begin);
      }
    });
  });
}

void top_k_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t k,
                void* values_out, std::int64_t* index_out) {
  k = std::min(k, n);
  if (rows == 0 || k <= 0) return;
  const std::size_t bytes = itemsize(dtype);
  visit_keys(dtype, [&]<class K>(K) {
    share(rows, worth_a_thread(n * static_cast<std::int64_t>(bytes)),
          [&](std::int64_t begin, std::int64_t end) {
            Best<K> best(k);
            for (std::int64_t r = begin; r < end; ++r, best.clear()) {
              const auto* row = static_cast<const std::byte*>(data) + r * n * bytes;
              offer_row(dtype, row, n, best);
              for (std::int64_t i = r * k; const auto& [key, at] : best.sorted()) {
                if (values_out != nullptr)
                  std::memcpy(static_cast<std::byte*>(values_out) + i * bytes, row + at * bytes, bytes);
                if (index_out != nullptr) index_out[i] = at;
                ++i;
              }
            }
          });
  });
}

}  // namespace tessera::kernels
