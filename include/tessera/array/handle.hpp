/// @file
/// Array: a handle on an n-d array that is spread over a mesh of devices.
#pragma once
#include <complex>
#include <cstdint>
#include <memory>
#include <set>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>

namespace tessera {

struct Node;
class At;
struct Shard;
struct IndexPart;
namespace detail {
const IndexPart& no_part();                              // stands for a part that was not given
template <class T> inline constexpr bool never = false;  // so that an assertion waits for its template's use
}  // namespace detail

/// A handle on an n-d array that is spread over a mesh of devices: a value, cheap to copy, row-major.
///
/// Ops on arrays record; values are computed when they are asked for (eval, to_host, item, print, files).
/// Shape, dtype and sharding are known at once and never depend on when the value is computed. A dimension
/// of n that is split into p parts has blocks of ceil(n / p); the last ones may be shorter or empty, and
/// every function takes such arrays.
///
/// *Committed* arrays (device_put, constrained, computed from committed ones) stay where they are.
/// *Uncommitted* ones (zeros, arange, array, random draws) follow the committed operands that they meet,
/// and each rank computes only its own block; one that is read by itself is computed on every rank.
///
/// Not collective unless said otherwise. A deleted or empty handle raises ArgumentError.
class Array {
 public:
  /// A scalar, weakly typed: x + 1 keeps x's dtype.
  template <class S>
  requires(std::is_arithmetic_v<S>) Array(S value, std::source_location where = {}) {
    if constexpr (std::is_same_v<S, bool>)
      *this = weak_bool(value, where);
    else if constexpr (std::is_integral_v<S>)
      *this = weak_integer(static_cast<std::int64_t>(value), where);
    else
      *this = weak_floating(static_cast<double>(value), where);
  }
  template <class R> Array(std::complex<R> value, std::source_location where = {}) {
    *this = weak_complex(std::complex<double>(value), where);
  }
  /// For the library: one output of a recorded op.
  Array(std::shared_ptr<Node> node, int output) : node_(std::move(node)), output_(output) {}
  Array() = default;  ///< holds nothing; any use but assignment is an ArgumentError
  Array(const Array&) = default;
  Array(Array&&) = default;
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & = default;
  /// x(0) = v does not compile: x(0) is a new array, and x itself never changes.
  template <class T> void operator=(T&&) && {
    static_assert(detail::never<T>,
                  "x(i) = v would change nothing: arrays do not change. Write x = x.at(i).set(v)");
  }

  const Shape& shape() const;    ///< extents of the global array
  int ndim() const;              ///< number of dimensions
  std::int64_t size() const;     ///< number of elements of the global array
  Dtype dtype() const;           ///< element type
  bool is_weakly_typed() const;  ///< whether it takes the dtype of what it meets, as plain numbers do
  std::int64_t nbytes() const;   ///< bytes of the global array; sharding().memory_bytes() for one device
  /// Where the value lies. An uncommitted array that is read is computed on every rank: it shows as
  /// replicated over all devices.
  Sharding sharding() const;
  bool is_committed() const;         ///< whether it stays where it is
  bool is_fully_replicated() const;  ///< whether every device holds all of it
  /// The dims in reverse order.
  Array T(std::source_location where = std::source_location::current()) const;
  /// This process's blocks, none on a process outside of the mesh. Collective over the devices of the
  /// array: computes the value.
  std::vector<Shard> addressable_shards(std::source_location where = std::source_location::current()) const;
  std::set<Device> devices() const;  ///< that hold a part
  bool is_deleted() const;           ///< whether delete_ or donation took the value
  /// Frees the memory on this rank, for all handles on the array; later uses raise ArgumentError.
  void delete_(std::source_location where = std::source_location::current());

  /// The indexed part, x(0, slice(), newaxis, indices): see IndexPart. Dims that come through keep their
  /// splits; ranks that lack an element get it from its owner. Not collective: records. IndexError for a
  /// number out of range or too many parts. Of up to six parts error messages know the user's line.
  Array operator()(const IndexPart& a, const IndexPart& b = detail::no_part(),
                   const IndexPart& c = detail::no_part(), const IndexPart& d = detail::no_part(),
                   const IndexPart& e = detail::no_part(), const IndexPart& f = detail::no_part(),
                   std::source_location where = std::source_location::current()) const;
  template <class... I>
  requires(sizeof...(I) == 0 || sizeof...(I) > 6) Array operator()(const I&... parts) const;
  /// The part that is to be replaced, x.at(0, slice()).set(v): see At.
  [[nodiscard]] At at(const IndexPart& a, const IndexPart& b = detail::no_part(),
                      const IndexPart& c = detail::no_part(), const IndexPart& d = detail::no_part(),
                      const IndexPart& e = detail::no_part(), const IndexPart& f = detail::no_part(),
                      std::source_location where = std::source_location::current()) const;
  template <class... I>
  requires(sizeof...(I) == 0 || sizeof...(I) > 6) At at(const I&... parts)
  const;

  const std::shared_ptr<Node>& node() const { return node_; }  ///< for the library: the recorded op
  int output() const { return output_; }                       ///< for the library: which of its outputs

 private:
  static Array weak_bool(bool, std::source_location);
  static Array weak_integer(std::int64_t, std::source_location);
  static Array weak_floating(double, std::source_location);
  static Array weak_complex(std::complex<double>, std::source_location);
  std::shared_ptr<Node> node_;
  int output_ = 0;
};

/// Whether one of both is an Array.
template <class A, class B> inline constexpr bool either_is_array =
    std::is_same_v<A, Array> || std::is_same_v<B, Array>;
/// a && b on arrays does not compile: it could not leave out the right side.
template <class A, class B>
requires(either_is_array<A, B>) void operator&&(const A&, const B&) {
  static_assert(detail::never<A>, "&& takes no arrays: write a & b, or logical_and(a, b)");
}
/// a || b on arrays does not compile either.
template <class A, class B>
requires(either_is_array<A, B>) void operator||(const A&, const B&) {
  static_assert(detail::never<A>, "|| takes no arrays: write a | b, or logical_or(a, b)");
}

/// One block of an array, as its device holds it.
struct Shard {
  Device device;   ///< the device
  Index index;     ///< the block's place in the global array
  int replica_id;  ///< 0 for the first device, in mesh order, that holds this block
  Array data;      ///< the block itself, on that device alone
};

/// An array argument, or a plain number, that remembers where in the user's program it was passed: what
/// error messages and program texts cite. Users pass arrays and numbers; the conversion happens at the
/// call.
class Operand {
 public:
  using Place = std::source_location;
  /// From an array or a number.
  Operand(const Array& value, Place written = Place::current()) : array(value), where(written) {}
  Operand(Array&& value, Place written = Place::current()) : array(std::move(value)), where(written) {}
  template <class S>
  requires(std::is_arithmetic_v<S>) Operand(S value, Place written = Place::current())
      : array(value, written), where(written) {}
  template <class R> Operand(std::complex<R> value, Place written = Place::current())
      : array(value, written), where(written) {}
  Array array;                 ///< the array
  std::source_location where;  ///< the line of the call
};

}  // namespace tessera
