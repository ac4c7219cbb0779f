// A sample tells two keys around each position, and those between them are kept. Each round counts a digit of
// the keys, finds the digits at the positions, and keeps the keys with them:
//
//   positions 2, 3 of 10 rows' keys     count of digits:  0: 2  1: 3  2: 5       both positions have digit 1
//   next round: the 3 keys with digit 1, positions 0 and 1 of them
#include "kernels/sort/select.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sort/order_key.hpp"
#include "types/pooled.hpp"

namespace tessera::kernels {
namespace {

constexpr int select_bits = 11;                 // of a digit
constexpr std::int64_t few_keys = 1 << 14;      // whose order is found by comparisons
constexpr std::int64_t counted_from = 1 << 12;  // elements that are worth a table of counts
constexpr std::int64_t few_compared = 24;       // keys that std::nth_element orders quicker

using Numbers = std::vector<std::int64_t>;

// The keys that are sampled of a row of n elements.
std::int64_t sample_size(std::int64_t n) {
  return std::min(static_cast<std::int64_t>(4 * std::sqrt(static_cast<double>(n))), n);
}

// The element at `rank` of the sorted keys. Divides them around a pivot without branches, from one of two
// arrays of n keys into the other.
template <class K> K key_at(K* keys, K* other, std::int64_t n, std::int64_t rank) {
  for (int rounds = 0; n > few_compared && rounds < 32; ++rounds) {
    const K a = keys[n / 4], b = keys[n / 2], c = keys[3 * n / 4];
    const K pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    std::int64_t below = 0, above = n - 1;  // ends of the smaller and of the larger keys
    for (std::int64_t i = 0; i < n; ++i) {
      const K key = keys[i];
      other[below] = key;
      other[above] = key;
      below += key < pivot;
      above -= key > pivot;
    }
    if (rank >= below && rank <= above) return pivot;
    const std::int64_t first = rank < below ? 0 : above + 1;
    K* const rest = other + first;
    other = keys;
    keys = rest;
    n = rank < below ? below : n - first;
    rank -= first;
  }
  std::nth_element(keys, keys + rank, keys + n);
  return keys[rank];
}

// The number of a key. One NaN stands for all, 0 for both zeros.
template <class T> T value_of(OrderKey<T> key) {
  using K = OrderKey<T>;
  constexpr K top = static_cast<K>(K(1) << (8 * sizeof(K) - 1)), none = static_cast<K>(~K(0));
  if (key == none) return std::numeric_limits<T>::quiet_NaN();
  return std::bit_cast<T>(static_cast<K>((key & top) != 0 ? key ^ top : ~key));
}

// A row of fewer than `counted_from` elements, in space for 3 n keys.
template <class T> void select_short(const T* x, std::int64_t n, std::span<const std::int64_t> positions,
                                     OrderKey<T>* space, T* out) {
  using K = OrderKey<T>;
  K *const keys = space, *const copy = space + n, *const other = copy + n;
  for (std::int64_t i = 0; i < n; ++i) keys[i] = order_key(x[i]);
  K last = 0;
  for (std::size_t p = 0; p < positions.size(); ++p) {
    const std::int64_t at = positions[p];
    if (p > 0 && at == positions[p - 1] + 1) {  // as of a median between two
      std::int64_t up_to = 0;
      K next = static_cast<K>(~K(0));
      for (std::int64_t i = 0; i < n; ++i) {
        up_to += keys[i] <= last;
        next = keys[i] > last ? std::min(next, keys[i]) : next;
      }
      last = up_to > at ? last : next;
    } else {
      std::copy_n(keys, n, copy);
      last = key_at(copy, other, n, at);
    }
    out[p] = value_of<T>(last);
    if (last != order_key(T(0))) continue;  // zeros are in the order of the row
    std::int64_t rank = at - std::count_if(keys, keys + n, [&](K key) { return key < last; });
    const T* zero = std::find(x, x + n, T(0));
    while (rank-- > 0) zero = std::find(zero + 1, x + n, T(0));
    out[p] = *zero;
  }
}

// The search for one position of one row.
template <class K> struct PlaceSearch {
  K key = 0;              // the digits found
  std::int64_t rank = 0;  // among the row's elements that have them
};

// The searches of several rows, advanced together.
template <class T> class RowSelect {
  using K = OrderKey<T>;

 public:
  RowSelect(const T* data, std::int64_t rows, std::int64_t n, std::span<const std::int64_t> positions,
            const RowParts& parts)
      : data_(data),
        rows_(rows),
        n_(n),
        each_(std::ssize(positions)),
        parts_(parts),
        searches_(rows * each_),
        kept_(rows * each_),
        kept_counts_(rows * each_) {
    for (std::int64_t s = 0; s < rows * each_; ++s) searches_[s].rank = positions[s % each_];
  }

  void run(T* out) {
    const bool is_alone = parts_.parts == 1, is_narrow = narrow();
    int left = 8 * static_cast<int>(sizeof(K));
    if (is_alone && is_narrow) finish(), left = 0;
    for (bool reads_rows = !is_narrow; left > 0; reads_rows = false) {
      const int bits = std::min(select_bits, left);
      left -= bits;
      count_round(bits, left, reads_rows);
      for (std::int64_t s = 0; s < count(); ++s) reads_rows ? keep(s, left) : keep_of_kept(s, left);
      if (is_alone && left > 0 && *std::ranges::max_element(kept_counts_) <= few_keys) {
        finish();
        left = 0;
      }
    }
    write(out);
  }

 private:
  std::int64_t count() const { return rows_ * each_; }
  const T* row(std::int64_t s) const { return data_ + s / each_ * n_; }

  void add_up(Numbers& numbers) const {
    if (parts_.parts > 1) parts_.add_up(numbers.data(), std::ssize(numbers));
  }

  // Keeps the keys between two of a sample's that lie around each position; false if they do not. The keys
  // that were kept for the last position may be around the next one, too.
  bool narrow() {
    const auto before = searches_;
    const Numbers samples = sampled();
    const std::int64_t size = std::ssize(samples) / rows_;
    std::vector<KeysBetween> around(static_cast<std::size_t>(rows_));  // those last kept of each row
    const auto has = [&](std::int64_t r, std::int64_t rank) {
      return rank >= around[r].below && rank < around[r].below + around[r].kept;
    };
    for (std::int64_t p = 0; p < each_; ++p) {
      Numbers found(2 * rows_);
      std::vector<bool> is_new(static_cast<std::size_t>(rows_));
      for (std::int64_t r = 0, s = p; r < rows_; ++r, s += each_) {
        is_new[r] = !has(r, searches_[s].rank);
        if (!is_new[r]) {
          keep_copy(s);
          continue;
        }
        const auto [least, most] = bounds_around({&samples[r * size], &samples[r * size] + size}, s);
        const KeysBetween keys = keep_between(s, least, most);
        found[2 * r] = keys.below, found[2 * r + 1] = keys.kept;
      }
      if (std::ranges::find(is_new, true) != is_new.end()) add_up(found);
      for (std::int64_t r = 0, s = p; r < rows_; ++r, s += each_) {
        if (is_new[r]) around[r] = {.kept = found[2 * r + 1], .below = found[2 * r]};
        if (!has(r, searches_[s].rank)) {
          searches_ = before;
          return false;
        }
        searches_[s].rank -= around[r].below;
      }
    }
    return true;
  }
  // Keys at the same places of each row, from all of its parts; irregular places, as rows may be periodic.
  Numbers sampled() const {
    const std::int64_t total = parts_.parts == 1 ? n_ : parts_.total, size = sample_size(total),
                       step = std::max<std::int64_t>(total / std::max<std::int64_t>(size, 1), 1);
    Numbers samples(rows_ * size);
    std::uint64_t at = 1;
    for (std::int64_t i = 0; i < size; ++i, at *= 0x9e3779b97f4a7c15u) {
      const std::int64_t place = i * step + static_cast<std::int64_t>((at >> 40) % step) - parts_.first;
      if (place < 0 || place >= n_) continue;
      for (std::int64_t r = 0; r < rows_; ++r)
        samples[r * size + i] = static_cast<std::int64_t>(order_key(data_[r * n_ + place]));
    }
    add_up(samples);
    return samples;
  }
  KeysBetween keep_between(std::int64_t s, K least, K most) {
    constexpr std::int64_t piece = 1 << 14, vector = 64 / sizeof(K);
    KeysBetween found;
    for (std::int64_t i = 0; i < n_; i += piece) {
      const std::int64_t some = std::min(piece, n_ - i);
      if (std::ssize(kept_[s]) < found.kept + some + vector)
        kept_[s].resize(2 * (found.kept + some + vector));
      const auto more = keys_between(row(s) + i, some, least, most, kept_[s].data() + found.kept);
      found.kept += more.kept, found.below += more.below;
    }
    kept_counts_[s] = found.kept;
    return found;
  }
  // Three deviations below and above the place that the element has in the sample, if the row is large enough
  // for a sample to tell.
  std::pair<K, K> bounds_around(std::span<const std::int64_t> keys, std::int64_t s) const {
    std::vector<K> sample(keys.begin(), keys.end());
    const double whole = static_cast<double>(parts_.parts == 1 ? n_ : parts_.total),
                 part = static_cast<double>(searches_[s].rank) / whole,
                 middle = part * static_cast<double>(std::ssize(sample)),
                 margin = 3 * std::sqrt(middle * (1 - part)) + 1;
    const auto first = static_cast<std::int64_t>(middle - margin),
               last = static_cast<std::int64_t>(middle + margin);
    if (last < std::ssize(sample)) std::nth_element(sample.begin(), sample.begin() + last, sample.end());
    const K most = last < std::ssize(sample) ? sample[last] : static_cast<K>(~K(0));
    if (middle < margin) return {K(0), most};
    std::nth_element(sample.begin(), sample.begin() + first,
                     sample.begin() + std::min(last, std::ssize(sample)));
    return {sample[first], most};
  }

  // In a round that reads the rows, the positions of a row share its counts.
  void count_round(int bits, int left, bool reads_rows) {
    const std::int64_t digits = std::int64_t{1} << bits, step = reads_rows ? each_ : 1;
    Numbers counts(count() / step * digits);
    for (std::int64_t s = 0; s < count(); s += step) {
      std::int64_t* const to = counts.data() + s / step * digits;
      if (reads_rows)
        count_row(row(s), left, digits, to);
      else
        for (const K key : std::span(kept_[s].data(), kept_counts_[s])) ++to[(key >> left) & (digits - 1)];
    }
    add_up(counts);
    for (std::int64_t s = 0; s < count(); ++s) {
      const std::int64_t* const of = counts.data() + s / step * digits;
      std::int64_t digit = 0;
      auto& search = searches_[s];
      for (; digit + 1 < digits && search.rank >= of[digit]; ++digit) search.rank -= of[digit];
      search.key |= static_cast<K>(static_cast<K>(digit) << left);
    }
  }
  // Two tables: an increment need not wait for one of the same digit.
  void count_row(const T* x, int left, std::int64_t digits, std::int64_t* counts) const {
    constexpr std::int64_t most = std::int64_t{1} << 30, piece = 1024;
    std::vector<std::uint32_t> table(static_cast<std::size_t>(2 * digits));
    std::uint32_t *even = table.data(), *odd = even + digits;
    std::uint32_t places[piece];
    for (std::int64_t first = 0; first < n_; first += most) {
      const std::int64_t last = std::min(n_, first + most);
      std::ranges::fill(table, 0U);
      for (std::int64_t i = first; i < last; i += piece) {
        const std::int64_t some = std::min(piece, last - i);
        for (std::int64_t j = 0; j < some; ++j)
          places[j] = static_cast<std::uint32_t>(order_key(x[i + j]) >> left);
        for (std::int64_t j = 0; j + 1 < some; j += 2) ++even[places[j]], ++odd[places[j + 1]];
        if (some % 2 != 0) ++even[places[some - 1]];
      }
      for (std::int64_t d = 0; d < digits; ++d) counts[d] += even[d] + odd[d];
    }
  }

  // Keeps the row's keys whose upper digits are those found; positions with the same digits share them.
  bool is_like_last(std::int64_t s, int left) const {
    return s % each_ > 0 && upper(searches_[s - 1].key, left) == upper(searches_[s].key, left);
  }
  static K upper(K key, int left) {
    return left == 8 * static_cast<int>(sizeof(K)) ? K(0) : static_cast<K>(key >> left);
  }
  void keep(std::int64_t s, int left) {
    const K wanted = upper(searches_[s].key, left);
    if (is_like_last(s, left)) return keep_copy(s);
    const T* const x = row(s);
    kept_[s].resize(static_cast<std::size_t>(64));
    std::int64_t found = 0;
    constexpr std::int64_t piece = 1024;
    K keys[piece];
    for (std::int64_t i = 0; i < n_; i += piece) {
      const std::int64_t some = std::min(piece, n_ - i);
      for (std::int64_t j = 0; j < some; ++j) keys[j] = order_key(x[i + j]);
      if (std::ssize(kept_[s]) < found + some) kept_[s].resize(static_cast<std::size_t>(2 * (found + some)));
      K* const to = kept_[s].data();
      for (std::int64_t j = 0; j < some; ++j) {
        to[found] = keys[j];
        found += upper(keys[j], left) == wanted;
      }
    }
    kept_counts_[s] = found;
  }
  void keep_copy(std::int64_t s) {
    const auto of = kept_[s - 1].begin();
    kept_[s].assign(of, of + kept_counts_[s - 1]);
    kept_counts_[s] = kept_counts_[s - 1];
  }
  void keep_of_kept(std::int64_t s, int left) {
    const K wanted = upper(searches_[s].key, left);
    std::int64_t found = 0;
    K* const keys = kept_[s].data();
    for (std::int64_t i = 0; i < kept_counts_[s]; ++i) {
      const K key = keys[i];
      keys[found] = key;
      found += upper(key, left) == wanted;
    }
    kept_counts_[s] = found;
  }

  // Finishes the searches by comparisons, if the rows have one part.
  void finish() {
    for (std::int64_t s = 0; s < count(); ++s) {
      auto& search = searches_[s];
      K *const first = kept_[s].data(), *const last = first + kept_counts_[s];
      std::vector<K> keys(first, last), other(keys.size());
      search.key = key_at(keys.data(), other.data(), kept_counts_[s], search.rank);
      search.rank -= std::count_if(first, last, [&](K key) { return key < search.key; });
    }
  }

  void write(T* out) {
    Numbers are_negative(count());
    const bool has_zero =
        std::ranges::any_of(searches_, [](const auto& s) { return s.key == order_key(T(0)); });
    if (has_zero) find_signs(are_negative);
    for (std::int64_t s = 0; s < count(); ++s) {
      out[s] = are_negative[s] != 0 ? -T(0) : value_of<T>(searches_[s].key);
    }
  }
  // Elements that equal 0 are in the order of the row.
  void find_signs(Numbers& are_negative) const {
    Numbers zeros(rows_ * parts_.parts);
    for (std::int64_t r = 0; r < rows_; ++r)
      zeros[r * parts_.parts + parts_.part] = std::count(data_ + r * n_, data_ + (r + 1) * n_, T(0));
    add_up(zeros);
    for (std::int64_t s = 0; s < count(); ++s) {
      if (searches_[s].key != order_key(T(0))) continue;
      const std::int64_t* const of = zeros.data() + s / each_ * parts_.parts;
      std::int64_t rank = searches_[s].rank;
      for (int p = 0; p < parts_.part; ++p) rank -= of[p];
      if (rank < 0 || rank >= of[parts_.part]) continue;
      const T* x = row(s);
      for (;; ++x)
        if (*x == T(0) && rank-- == 0) break;
      are_negative[s] = std::bit_cast<K>(*x) != 0;
    }
    add_up(are_negative);
  }

  const T* data_;
  std::int64_t rows_, n_, each_;
  const RowParts& parts_;
  std::vector<PlaceSearch<K>> searches_;
  std::vector<std::vector<K>> kept_;
  Numbers kept_counts_;
};

template <class T> void select_of(const T* data, std::int64_t rows, std::int64_t n,
                                  std::span<const std::int64_t> positions, const RowParts& parts, T* out) {
  if (parts.parts > 1) return RowSelect<T>(data, rows, n, positions, parts).run(out);
  share(rows, worth_a_thread(n * static_cast<std::int64_t>(sizeof(T))),
        [&](std::int64_t begin, std::int64_t end) {
          std::vector<OrderKey<T>> space(n < counted_from ? static_cast<std::size_t>(3 * n) : 0);
          for (std::int64_t r = begin; r < end; ++r) {
            T* const to = out + r * std::ssize(positions);
            if (n < counted_from)
              select_short(data + r * n, n, positions, space.data(), to);
            else
              RowSelect<T>(data + r * n, 1, n, positions, parts).run(to);
          }
        });
}

}  // namespace

void select_rows(Dtype dtype, const void* data, std::int64_t rows, std::int64_t n,
                 std::span<const std::int64_t> positions, const RowParts& parts, void* out) {
  if (rows == 0 || positions.empty()) return;
  if (dtype == float32)
    return select_of(static_cast<const float*>(data), rows, n, positions, parts, static_cast<float*>(out));
  if (dtype == float64)
    return select_of(static_cast<const double*>(data), rows, n, positions, parts, static_cast<double*>(out));
  throw DtypeError("select_rows: dtype is " + name(dtype) + "; float32 and float64 are possible");
}

SelectSums select_sums(Dtype dtype, std::int64_t rows, std::int64_t n, std::int64_t positions,
                       std::int64_t parts) {
  const std::int64_t bits = 8 * static_cast<std::int64_t>(itemsize(dtype)),
                     rounds = (bits + select_bits - 1) / select_bits, searches = rows * positions;
  const std::int64_t counts = (rounds * searches) << select_bits;
  return {8 * (rows * sample_size(n) + counts + rows * parts + 3 * searches), 1 + positions + rounds + 2};
}

}  // namespace tessera::kernels
