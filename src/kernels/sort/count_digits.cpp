#include "kernels/sort/count_digits.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sort/order_key.hpp"

namespace tessera::kernels {
namespace {

// Counts of one prefix. Two tables: an increment need not wait for one of the same digit.
class DigitCounts {
 public:
  template <class K> void add(const K* keys, std::int64_t n, int shift) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (n > most - counted_) flush();
    counted_ += n;
    std::uint32_t *const even = table_.data(), *const odd = even + digit_count;
    const auto digit = [shift](K key) { return static_cast<std::uint16_t>(key >> shift); };
    for (std::int64_t i = 0; i + 1 < n; i += 2) ++even[digit(keys[i])], ++odd[digit(keys[i + 1])];
    if (n % 2 != 0) ++even[digit(keys[n - 1])];
  }
  void add_to(std::int64_t* out) {
    flush();
    for (std::int64_t d = 0; d < digit_count; ++d) out[d] += totals_[d];
  }

 private:
  void flush() {
    for (std::int64_t d = 0; d < digit_count; ++d)
      totals_[d] += table_[d] + std::int64_t{table_[digit_count + d]};
    std::ranges::fill(table_, 0U);
    counted_ = 0;
  }
  std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(2 * digit_count);
  std::vector<std::int64_t> totals_ = std::vector<std::int64_t>(digit_count);
  std::int64_t counted_ = 0;
};

template <class T> void count_range(const T* x, std::int64_t n, std::span<const std::uint64_t> prefixes,
                                    int shift, std::vector<DigitCounts>& counts) {
  using K = OrderKey<T>;
  constexpr int key_bits = 8 * static_cast<int>(sizeof(K));
  constexpr std::int64_t piece = 1024;
  const bool has_prefix = shift + digit_bits < key_bits;
  K keys[piece], found[piece];
  for (std::int64_t first = 0; first < n; first += piece) {
    const std::int64_t some = std::min(piece, n - first);
    for (std::int64_t i = 0; i < some; ++i) keys[i] = order_key(x[first + i]);
    for (std::size_t p = 0; p < prefixes.size(); ++p) {
      if (!has_prefix) {
        counts[p].add(keys, some, shift);
        continue;
      }
      const auto wanted = static_cast<K>(prefixes[p]);
      const int upper = shift + digit_bits;
      std::int64_t some_found = 0;
      for (std::int64_t i = 0; i < some; ++i) {
        found[some_found] = keys[i];
        some_found += static_cast<K>(keys[i] >> upper) == wanted;
      }
      counts[p].add(found, some_found, shift);
    }
  }
}

template <class T> void count_of(const T* x, std::int64_t n, std::span<const std::uint64_t> prefixes,
                                 int shift, std::int64_t* out) {
  // Equal prefixes, as those of neighbouring positions are, are counted once.
  std::vector<std::uint64_t> different;
  for (const auto prefix : prefixes)
    if (std::ranges::find(different, prefix) == different.end()) different.push_back(prefix);
  std::vector<std::int64_t> sums(different.size() * digit_count);
  constexpr std::int64_t worth_tables = 1 << 18;
  share(n, worth_tables, [&](std::int64_t begin, std::int64_t end) {
    std::vector<DigitCounts> own(different.size());
    count_range(x + begin, end - begin, different, shift, own);
#pragma omp critical(tessera_count_digits)
    for (std::size_t p = 0; p < own.size(); ++p) own[p].add_to(sums.data() + p * digit_count);
  });
  for (const auto prefix : prefixes) {
    const auto p = std::ranges::find(different, prefix) - different.begin();
    out = std::copy_n(sums.data() + p * digit_count, digit_count, out);
  }
}

}  // namespace

void count_digits(Dtype dtype, const void* x, std::int64_t n, std::span<const std::uint64_t> prefixes,
                  int shift, std::int64_t* out) {
  if (dtype == float32) return count_of(static_cast<const float*>(x), n, prefixes, shift, out);
  if (dtype == float64) return count_of(static_cast<const double*>(x), n, prefixes, shift, out);
  throw DtypeError("count_digits: dtype is " + name(dtype) + "; float32 and float64 are possible");
}

}  // namespace tessera::kernels
