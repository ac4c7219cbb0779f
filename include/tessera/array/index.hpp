// Index expressions: x(0, slice(), slice(2, 10, 2), newaxis, ellipsis) and x.at(...).set(v).
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array/handle.hpp>

namespace tessera {

struct SliceBound {
  SliceBound(NoneType) {}
  SliceBound(std::int64_t bound) : value(bound) {}
  std::optional<std::int64_t> value;
};
struct Slice {
  std::optional<std::int64_t> start, stop, step;
};
inline Slice slice(SliceBound start = None, SliceBound stop = None, SliceBound step = None) {
  return {start.value, stop.value, step.value};
}
struct Ellipsis {};

struct IndexPart {
  enum class Kind { integer, slice, ellipsis, newaxis, array };
  template <class I>
  requires(std::is_integral_v<I> && !std::is_same_v<I, bool>) IndexPart(I i)
      : kind(Kind::integer), integer(static_cast<std::int64_t>(i)) {}
  IndexPart(const Slice& s) : kind(Kind::slice), slice(s) {}
  IndexPart(const Ellipsis&) : kind(Kind::ellipsis) {}
  IndexPart(NoneType) : kind(Kind::newaxis) {}
  IndexPart(const Array& a) : kind(Kind::array), array(a) {}
  Kind kind;
  std::int64_t integer = 0;
  Slice slice;
  Array array;
};
inline constexpr Ellipsis ellipsis{};
inline constexpr NoneType newaxis{};

Array index(const Array& x, std::vector<IndexPart> parts,
            std::source_location where = std::source_location::current());

// x.at(0, slice()).set(v): a new array in which the indexed part is replaced; x itself does not change. v
// broadcasts to the part and takes x's dtype. The result has x's sharding; v travels to where it is put. Of
// an index array, entries out of range are skipped and repeated ones all count (`set`: one of them wins).
// at(mask) with one bool array chooses elements.
class At {
 public:
  At(Array x, std::vector<IndexPart> parts, std::source_location where = std::source_location::current())
      : x_(std::move(x)), parts_(std::move(parts)), where_(where) {}
  Array get() const;
  Array set(const Operand&) const;
  Array add(const Operand&) const;  // repeated indices add up
  Array subtract(const Operand&) const;
  Array multiply(const Operand&) const;
  Array divide(const Operand&) const;
  Array min(const Operand&) const;
  Array max(const Operand&) const;

 private:
  Array x_;
  std::vector<IndexPart> parts_;
  std::source_location where_;
};

template <class... I>
requires(sizeof...(I) == 0 || sizeof...(I) > 6) Array Array::operator()(const I&... parts) const {
  return index(*this, {IndexPart(parts)...});
}
template <class... I>
requires(sizeof...(I) == 0 || sizeof...(I) > 6) At Array::at(const I&... parts)
const { return At(*this, {IndexPart(parts)...}); }

}  // namespace tessera
