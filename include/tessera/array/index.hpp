/// @file
/// Index expressions: x(0, slice(), slice(2, 10, 2), newaxis, ellipsis) and x.at(...).set(v).
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array/handle.hpp>

namespace tessera {

/// A bound of a slice: a number (negative: from the end), or None.
struct SliceBound {
  SliceBound(NoneType) {}                           ///< the end of the array
  SliceBound(std::int64_t bound) : value(bound) {}  ///< a number
  std::optional<std::int64_t> value;                ///< nullopt for None
};
/// start:stop:step, as in Python: bounds out of range are clamped, a negative step runs backwards.
struct Slice {
  std::optional<std::int64_t> start, stop, step;  ///< nullopt if None was given
};
/// slice() is NumPy's `:`, slice(2, 10, 2) its 2:10:2. Not collective.
inline Slice slice(SliceBound start = None, SliceBound stop = None, SliceBound step = None) {
  return {start.value, stop.value, step.value};
}
/// The type of `ellipsis`.
struct Ellipsis {};

/// One part of an index expression x(...), with NumPy's meaning:
///
///     x(3)            one slice, the dim goes      x(-1) counts from the end; IndexError out of range
///     x(slice(1, 5))  a run, the dim stays         out of range bounds are clamped
///     x(ellipsis, 0)  all dims in between          x(newaxis) a new dim of extent 1
///     x(indices)      the slices that an integer array selects; out of range ones are clamped, as in JAX
///
/// Several index arrays broadcast against each other. x(mask), with a bool array of x's first extents,
/// selects the true elements: it counts them, collective over all ranks; in a trace use compress(mask, x,
/// {.size = n}).
struct IndexPart {
  enum class Kind { integer, slice, ellipsis, newaxis, array };  ///< the kind of this part
  /// A number, which removes the dim.
  template <class I>
  requires(std::is_integral_v<I> && !std::is_same_v<I, bool>) IndexPart(I i)
      : kind(Kind::integer), integer(static_cast<std::int64_t>(i)) {}
  IndexPart(const Slice& s) : kind(Kind::slice), slice(s) {}  ///< slice(...)
  IndexPart(const Ellipsis&) : kind(Kind::ellipsis) {}        ///< ellipsis
  IndexPart(NoneType) : kind(Kind::newaxis) {}                ///< newaxis
  IndexPart(const Array& a) : kind(Kind::array), array(a) {}  ///< an integer array, or a mask
  Kind kind;                                                  ///< the kind of this part
  std::int64_t integer = 0;                                   ///< used by Kind::integer
  Slice slice;                                                ///< used by Kind::slice
  Array array;                                                ///< used by Kind::array
};
inline constexpr Ellipsis ellipsis{};  ///< all dims that no other part covers
inline constexpr NoneType newaxis{};   ///< a new dim of extent 1

/// A part between brackets, x[3], with its source location.
struct IndexHere {
  /// From anything that converts to an IndexPart.
  template <class I>
  requires(std::is_convertible_v<const I&, IndexPart>)
      IndexHere(const I& written, std::source_location place = std::source_location::current())
      : part(written), where(place) {}
  IndexPart part;              ///< the part
  std::source_location where;  ///< the line of the brackets
};
/// x(part).
inline Array Array::operator[](const IndexHere& here) const {
  return (*this)(here.part, detail::no_part(), detail::no_part(), detail::no_part(), detail::no_part(),
                 detail::no_part(), here.where);
}

/// x(parts...) with the parts in a vector. Not collective: records.
Array index(const Array& x, std::vector<IndexPart> parts,
            std::source_location where = std::source_location::current());

/// x.at(0, slice()).set(v): a new array in which the indexed part is replaced; x itself is unchanged.
///
/// v broadcasts to the part and takes x's dtype. The result has x's sharding; v is sent to the owners of the
/// part, and if many entries are added into few elements, their sums are sent instead. Index array entries
/// out of range are dropped, and repeated ones all count (for `set` one of them wins). at(mask) with one bool
/// array selects elements. Not collective: records. IndexError for a number out of range, ShapeError for a v
/// that does not broadcast.
class At {
 public:
  /// For Array::at.
  At(Array x, std::vector<IndexPart> parts, std::source_location where = std::source_location::current())
      : x_(std::move(x)), parts_(std::move(parts)), where_(where) {}
  [[nodiscard]] Array get() const;                       ///< the part, as x(...) gives it
  [[nodiscard]] Array set(const Operand& v) const;       ///< the part replaced by v
  [[nodiscard]] Array add(const Operand& v) const;       ///< v added to the part; repeats accumulate
  [[nodiscard]] Array subtract(const Operand& v) const;  ///< v subtracted from the part; repeats accumulate
  [[nodiscard]] Array multiply(const Operand& v) const;  ///< the part multiplied by v
  [[nodiscard]] Array divide(const Operand& v) const;    ///< the part divided by v
  [[nodiscard]] Array min(const Operand& v) const;       ///< the smaller of the part and v
  [[nodiscard]] Array max(const Operand& v) const;       ///< the larger of the part and v

 private:
  Array x_;
  std::vector<IndexPart> parts_;
  std::source_location where_;
};

#ifdef __cpp_multidimensional_subscript
template <class... I>
requires(sizeof...(I) > 0) Array Array::operator[](const IndexHere& first, const I&... others) const {
  return index(*this, {first.part, IndexPart(others)...}, first.where);
}
#endif
template <class... I>
requires(sizeof...(I) == 0 || sizeof...(I) > 6) Array Array::operator()(const I&... parts) const {
  return index(*this, {IndexPart(parts)...});
}
template <class... I>
requires(sizeof...(I) == 0 || sizeof...(I) > 6) At Array::at(const I&... parts)
const { return At(*this, {IndexPart(parts)...}); }

}  // namespace tessera
