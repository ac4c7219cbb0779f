// Distinct values and sets: a sort brings equal values together, a mask marks the first of each, and the mask
// selects the result.
#include "api/sized/sized.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/known.hpp"
#include "ops/sort/sort_by_key.hpp"

namespace tessera {
namespace {

Array usable(const Array& x) {
  check_usable(x);
  if (is_complex(x.dtype())) throw DtypeError(call_text() + ": complex numbers have no order");
  return flattened(x);
}

// Both flattened and converted to their common dtype.
std::pair<Array, Array> alike(const Operand& a, const Operand& b) {
  const Array x = usable(a.array), y = usable(b.array);
  const Dtype dtype =
      promote(WeakDtype{x.dtype(), x.is_weakly_typed()}, WeakDtype{y.dtype(), y.is_weakly_typed()}).dtype;
  return {cast_to(x, dtype), cast_to(y, dtype)};
}

// The first of each run of equal values in a sorted array.
Array first_of_each(const Array& sorted) {
  if (sorted.size() == 0) return zeros({0}, bool_);
  const Array later = sorted(slice(1, None)), earlier = sorted(slice(None, -1));
  Array differs = not_equal(later, earlier);
  if (is_inexact(sorted.dtype())) differs = differs & !(isnan(later) & isnan(earlier));
  return concatenate({ones({1}, bool_), differs}, 0);
}

// The values that the mask selects, padded with the smallest one.
Array chosen_values(const Array& mask, const Array& sorted, const SizedOptions& options, std::int64_t size) {
  const Array chosen = compress_rows(mask, sorted, size, fill_of(options, sorted.dtype()));
  if (!options.size || options.fill_value || sorted.size() == 0) return chosen;
  return where(places(size) < sum(mask, {}, int64), chosen, sorted(0));
}

Array chosen_of_sorted(const Array& mask, const Array& sorted, const SizedOptions& options,
                       std::source_location where) {
  return chosen_values(mask, sorted, options, size_of_chosen(mask, options, where));
}

// How often each of the values occurs that the mask begins. A sized result may be truncated, where the next
// start is unknown: its counts are added up per value.
Array counts_of(const Array& first, const SizedOptions& options, std::int64_t size) {
  const auto n = first.size();
  const Array from = places(n);
  if (options.size) return zeros({size}, from.dtype()).at(cumsum(first, 0) - 1).add(ones({n}, from.dtype()));
  const Array starts = compress_rows(first, from, size, {0, n, true});
  if (size == 0) return starts;
  return concatenate({starts(slice(1, None)), full({1}, n, starts.dtype())}, 0) - starts;
}

Array is_among(const Array& x, const Array& sorted) {
  if (sorted.size() == 0) return zeros(x.shape(), bool_);
  return equal(take(sorted, searchsorted(sorted, x), 0), x);
}

}  // namespace

Array unique(const Operand& x, SizedOptions options) {
  const Call call("unique", x.where);
  const Array sorted = sort(usable(x.array), 0);
  return chosen_of_sorted(first_of_each(sorted), sorted, options, x.where);
}

UniqueAll unique_all(const Operand& x, SizedOptions options) {
  const Call call("unique_all", x.where);
  const Array flat = usable(x.array);
  const auto n = flat.size();
  const auto [sorted, from] = sort_by_key(flat, places(n));
  const Array first = first_of_each(sorted);
  const auto size = size_of_chosen(first, options, x.where);
  const Array value_at = cumsum(first, 0) - 1;
  return {chosen_values(first, sorted, options, size), compress_rows(first, from, size),
          reshape(zeros({n}, value_at.dtype()).at(from).set(value_at), x.array.shape()),
          counts_of(first, options, size)};
}

std::pair<Array, Array> unique_counts(const Operand& x, SizedOptions options) {
  const Call call("unique_counts", x.where);
  const Array sorted = sort(usable(x.array), 0), first = first_of_each(sorted);
  const auto size = size_of_chosen(first, options, x.where);
  return {chosen_values(first, sorted, options, size), counts_of(first, options, size)};
}
std::pair<Array, Array> unique_inverse(const Operand& x, SizedOptions options) {
  const Call call("unique_inverse", x.where);
  auto all = unique_all(x, options);
  return {std::move(all.values), std::move(all.inverse)};
}

Array union1d(const Operand& a, const Operand& b, SizedOptions options) {
  const Call call("union1d", a.where);
  const auto [x, y] = alike(a, b);
  const Array sorted = sort(concatenate({x, y}, 0), 0);
  return chosen_of_sorted(first_of_each(sorted), sorted, options, a.where);
}
Array intersect1d(const Operand& a, const Operand& b, SizedOptions options) {
  const Call call("intersect1d", a.where);
  const auto [x, y] = alike(a, b);
  const Array sorted = sort(x, 0);
  return chosen_of_sorted(first_of_each(sorted) & is_among(sorted, sort(y, 0)), sorted, options, a.where);
}
Array setdiff1d(const Operand& a, const Operand& b, SizedOptions options) {
  const Call call("setdiff1d", a.where);
  const auto [x, y] = alike(a, b);
  const Array sorted = sort(x, 0);
  return chosen_of_sorted(first_of_each(sorted) & !is_among(sorted, sort(y, 0)), sorted, options, a.where);
}
Array setxor1d(const Operand& a, const Operand& b, SizedOptions options) {
  const Call call("setxor1d", a.where);
  const auto [x, y] = alike(a, b);
  const Array sorted = sort(concatenate({x, y}, 0), 0);
  const Array in_one = not_equal(is_among(sorted, sort(x, 0)), is_among(sorted, sort(y, 0)));
  return chosen_of_sorted(first_of_each(sorted) & in_one, sorted, options, a.where);
}

namespace {

// Whether x is among integers whose range is known and short, by a table of the range; no array if it is not.
// The range of small dtypes is known.
Array is_in_range_table(const Array& x, const Array& among, const Array& test) {
  constexpr double longest = 1 << 20, most = 1 << 30;
  if (!is_integer(x.dtype()) || !is_integer(test.dtype())) return {};
  auto range = known_range(test);
  if (!range && itemsize(x.dtype()) == 1)
    range = x.dtype() == uint8 ? std::pair{0.0, 255.0} : std::pair{-128.0, 127.0};
  if (!range || range->first < -most || range->second > most) return {};
  const double span = range->second - range->first + 1;
  if (span > longest || span * 8 > static_cast<double>(x.size())) return {};
  const auto low = static_cast<std::int64_t>(range->first), high = static_cast<std::int64_t>(range->second);
  const Array near = clip(x, low, high);
  const Array table =
      is_among(astype(arange_of(low, high + 1, std::int64_t{1}, int32), x.dtype()), sort(among, 0));
  return take(table, astype(near, int32) - low, 0) & (near == x);
}

}  // namespace

Array isin(const Operand& x, const Operand& test, bool invert) {
  const Call call("isin", x.where);
  check_usable(x.array);
  const auto [flat, among] = alike(x, test);
  const Array shaped = reshape(flat, x.array.shape());
  const Array by_table = is_in_range_table(shaped, among, test.array);
  const Array found = by_table.node() ? by_table : is_among(shaped, sort(among, 0));
  return invert ? !found : found;
}
Array in1d(const Operand& x, const Operand& test, bool invert) {
  const Call call("in1d", x.where);
  check_usable(x.array);
  return isin(flattened(x.array), test, invert);
}

}  // namespace tessera
