// Array: a handle on an n-d array that is spread over a mesh of devices.
//
// Ops on arrays record; values are computed when they are asked for (eval, to_host, item, print, I/O).
// Shape, dtype and sharding are known at once and never depend on when the value is computed.
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
const IndexPart& no_part();  // stands for a part that was not given
}

class Array {
 public:
  // A scalar is weakly typed: x + 1 keeps x's dtype.
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
  Array(std::shared_ptr<Node> node, int output) : node_(std::move(node)), output_(output) {}
  Array() = default;  // holds nothing; any use but assignment is an ArgumentError

  const Shape& shape() const;
  int ndim() const;
  std::int64_t size() const;
  Dtype dtype() const;
  bool is_weakly_typed() const;
  std::int64_t nbytes() const;
  // Where the value lies. An uncommitted array that is read is computed on every rank: it shows as
  // replicated over all devices.
  Sharding sharding() const;
  bool is_committed() const;
  bool is_fully_replicated() const;
  Array T(std::source_location where = std::source_location::current()) const;
  // This process's blocks; computes the value (collective over the devices of the array).
  std::vector<Shard> addressable_shards(std::source_location where = std::source_location::current()) const;
  std::set<Device> devices() const;
  bool is_deleted() const;
  void delete_(
      std::source_location where =
          std::source_location::current());  // frees the memory on this rank; later uses raise ArgumentError

  // The indexed part, x(0, slice(), newaxis, indices): see array/index.hpp. Of up to six parts error messages
  // know the user's line.
  Array operator()(const IndexPart& a, const IndexPart& b = detail::no_part(),
                   const IndexPart& c = detail::no_part(), const IndexPart& d = detail::no_part(),
                   const IndexPart& e = detail::no_part(), const IndexPart& f = detail::no_part(),
                   std::source_location where = std::source_location::current()) const;
  template <class... I>
  requires(sizeof...(I) == 0 || sizeof...(I) > 6) Array operator()(const I&... parts) const;
  // The part to be replaced, x.at(0, slice()).set(v): see At.
  At at(const IndexPart& a, const IndexPart& b = detail::no_part(), const IndexPart& c = detail::no_part(),
        const IndexPart& d = detail::no_part(), const IndexPart& e = detail::no_part(),
        const IndexPart& f = detail::no_part(),
        std::source_location where = std::source_location::current()) const;
  template <class... I>
  requires(sizeof...(I) == 0 || sizeof...(I) > 6) At at(const I&... parts)
  const;

  const std::shared_ptr<Node>& node() const { return node_; }
  int output() const { return output_; }

 private:
  static Array weak_bool(bool, std::source_location);
  static Array weak_integer(std::int64_t, std::source_location);
  static Array weak_floating(double, std::source_location);
  static Array weak_complex(std::complex<double>, std::source_location);
  std::shared_ptr<Node> node_;
  int output_ = 0;
};

struct Shard {
  Device device;
  Index index;  // its place in the global array
  int replica_id;
  Array data;  // the block itself, on that device alone
};

// An array argument that remembers where in the user's program it was passed: what error messages and
// program texts cite.
class Operand {
 public:
  using Place = std::source_location;
  Operand(const Array& value, Place written = Place::current()) : array(value), where(written) {}
  Operand(Array&& value, Place written = Place::current()) : array(std::move(value)), where(written) {}
  template <class S>
  requires(std::is_arithmetic_v<S>) Operand(S value, Place written = Place::current())
      : array(value, written), where(written) {}
  template <class R> Operand(std::complex<R> value, Place written = Place::current())
      : array(value, written), where(written) {}
  Array array;
  std::source_location where;
};

}  // namespace tessera
