/// @file
/// Array: a handle on an n-d array that is distributed over a mesh of devices.
#pragma once
#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/detail/never.hpp>
#include <tessera/dtype.hpp>
#include <tessera/ops/axes.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>

namespace tessera {

struct Node;
class At;
struct Shard;
struct IndexPart;
struct IndexHere;
namespace detail {
// An extent with its source location: no defaulted parameter can follow a parameter pack.
struct ExtentHere {
  template <std::integral I> ExtentHere(I value, std::source_location place = std::source_location::current())
      : extent(static_cast<std::int64_t>(value)), where(place) {}
  std::int64_t extent;
  std::source_location where;
};
// Copies the extents; ShapeError unless their number matches.
void copy_extents(const Shape&, std::span<std::int64_t> extents, std::source_location);
// ArgumentError unless the numbers match.
void check_bindings(std::size_t given, std::size_t wanted, const char* call, std::source_location);
const IndexPart& no_part();  // the value of an index part that was not given
}  // namespace detail

/// Shape and dtype of an array without its value.
struct ShapeDtype {
  Shape shape;  ///< extents
  Dtype dtype;  ///< element type
};

/// A handle on an n-d array that is distributed over a mesh of devices: a value, cheap to copy, row-major.
///
/// Ops on arrays are recorded; values are computed when they are requested (eval, to_host, item, print,
/// files). Shape, dtype and sharding are known at once and never depend on when the value is computed. A dim
/// of n split into p parts has blocks of ceil(n / p); the last ones may be shorter or empty, and every
/// function accepts such arrays.
///
/// *Committed* arrays (device_put, constrained, computed from committed ones) keep their layout.
/// *Uncommitted* ones (zeros, arange, array, random draws) take the layout of the committed operands in the
/// same op, and each rank computes only its own block; one that is read by itself is computed on every rank.
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
  Array() = default;  ///< holds nothing; any use except assignment is an ArgumentError
  Array(const Array&) = default;
  Array(Array&&) = default;
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & = default;
  /// x(0) = v does not compile: x(0) is a new array, and x itself is immutable.
  template <class T> void operator=(T&&) && {
    static_assert(detail::never<T>,
                  "x(i) = v would change nothing: arrays do not change. Write x = x.at(i).set(v)");
  }

  const Shape& shape() const&;  ///< extents of the global array
  Shape shape() const&&;
  /// The extents of n dims, for structured bindings: auto [rows, columns] = x.shape<2>(). ShapeError unless x
  /// has n dims.
  template <std::size_t n>
  std::array<std::int64_t, n> shape(std::source_location where = std::source_location::current()) const {
    std::array<std::int64_t, n> extents{};
    detail::copy_extents(shape(), extents, where);
    return extents;
  }
  int ndim() const;              ///< number of dimensions
  std::int64_t size() const;     ///< number of elements of the global array
  Dtype dtype() const;           ///< element type
  bool is_weakly_typed() const;  ///< whether an op gives it the other operand's dtype, as plain numbers
  std::int64_t nbytes() const;   ///< bytes of the global array; sharding().memory_bytes() for one device
  /// The layout of the value. An uncommitted array that is read is computed on every rank, so its sharding is
  /// shown as replicated over all devices.
  Sharding sharding() const;
  bool is_committed() const;         ///< whether it keeps its layout
  bool is_fully_replicated() const;  ///< whether every device holds the whole array
  /// The dims in reverse order.
  Array T(std::source_location where = std::source_location::current()) const;
  /// This process's blocks, none on a process outside of the mesh. Computes the value. Collective over the
  /// devices of the array.
  std::vector<Shard> addressable_shards(std::source_location where = std::source_location::current()) const;
  std::set<Device> devices() const;  ///< the devices that hold a block
  bool is_deleted() const;           ///< whether delete_ or donation took the value
  /// Frees the memory on this rank, for all handles on the array; later uses raise ArgumentError. Memory that
  /// is still viewed remains until the last view is released: Python's views, DLPack tensors, and local()'s
  /// spans; and memory that earlier calls still read, until they are computed.
  void delete_(std::source_location where = std::source_location::current());

  /// The indexed part, x(0, slice(), newaxis, indices): see IndexPart. Remaining dims keep their splits;
  /// ranks that lack an element receive it from its owner. Not collective: records. IndexError for a number
  /// out of range or too many parts. Error messages cite the user's line for up to six parts.
  Array operator()(const IndexPart& a, const IndexPart& b = detail::no_part(),
                   const IndexPart& c = detail::no_part(), const IndexPart& d = detail::no_part(),
                   const IndexPart& e = detail::no_part(), const IndexPart& f = detail::no_part(),
                   std::source_location where = std::source_location::current()) const;
  template <class... I>
  requires(sizeof...(I) == 0 || sizeof...(I) > 6) Array operator()(const I&... parts) const;
  /// x[3], x[slice(1, 5)], x[indices]: x(...) with one part; in C++23 also with several, x[0, slice()].
  Array operator[](const IndexHere& part) const;
#ifdef __cpp_multidimensional_subscript
  template <class... I>
  requires(sizeof...(I) > 0) Array operator[](const IndexHere& first, const I&... others) const;
#endif
  /// The part to be replaced, x.at(0, slice()).set(v): see At.
  [[nodiscard]] At at(const IndexPart& a, const IndexPart& b = detail::no_part(),
                      const IndexPart& c = detail::no_part(), const IndexPart& d = detail::no_part(),
                      const IndexPart& e = detail::no_part(), const IndexPart& f = detail::no_part(),
                      std::source_location where = std::source_location::current()) const;
  template <class... I>
  requires(sizeof...(I) == 0 || sizeof...(I) > 6) At at(const I&... parts)
  const;

  /// @name Functions as methods
  /// x.sum(0) is sum(x, 0), x.sum({.axis = 0, .keepdims = true}) the same by name: see the functions.
  /// @{

  using Where = std::source_location;  ///< the line of the call
  /// sum(x, axis, keepdims).
  [[nodiscard]] Array sum(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array sum(O options, Where where = Where::current()) const {
    return sum(options.axis, options.keepdims, where);
  }
  /// prod(x, axis, keepdims).
  [[nodiscard]] Array prod(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array prod(O options, Where where = Where::current()) const {
    return prod(options.axis, options.keepdims, where);
  }
  /// mean(x, axis, keepdims).
  [[nodiscard]] Array mean(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array mean(O options, Where where = Where::current()) const {
    return mean(options.axis, options.keepdims, where);
  }
  /// var(x, axis, keepdims).
  [[nodiscard]] Array var(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array var(O options, Where where = Where::current()) const {
    return var(options.axis, options.keepdims, where);
  }
  /// std(x, axis, keepdims).
  [[nodiscard]] Array std(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array std(O options, Where where = Where::current()) const {
    return std(options.axis, options.keepdims, where);
  }
  /// max(x, axis, keepdims).
  [[nodiscard]] Array max(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array max(O options, Where where = Where::current()) const {
    return max(options.axis, options.keepdims, where);
  }
  /// min(x, axis, keepdims).
  [[nodiscard]] Array min(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array min(O options, Where where = Where::current()) const {
    return min(options.axis, options.keepdims, where);
  }
  /// all(x, axis, keepdims).
  [[nodiscard]] Array all(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array all(O options, Where where = Where::current()) const {
    return all(options.axis, options.keepdims, where);
  }
  /// any(x, axis, keepdims).
  [[nodiscard]] Array any(Axes axis = {}, bool keepdims = false, Where where = Where::current()) const;
  template <std::same_as<AxisOptions> O = AxisOptions>
  [[nodiscard]] Array any(O options, Where where = Where::current()) const {
    return any(options.axis, options.keepdims, where);
  }
  /// argmax(x), argmax(x, axis, keepdims).
  [[nodiscard]] Array argmax(Where where = Where::current()) const;
  [[nodiscard]] Array argmax(int axis, bool keepdims = false, Where where = Where::current()) const;
  /// argmin(x), argmin(x, axis, keepdims).
  [[nodiscard]] Array argmin(Where where = Where::current()) const;
  [[nodiscard]] Array argmin(int axis, bool keepdims = false, Where where = Where::current()) const;
  /// cumsum(x, axis).
  [[nodiscard]] Array cumsum(int axis, Where where = Where::current()) const;
  /// cumprod(x, axis).
  [[nodiscard]] Array cumprod(int axis, Where where = Where::current()) const;
  /// reshape(x, shape), or with the extents one by one: x.reshape(2, -1).
  [[nodiscard]] Array reshape(Shape shape, Where where = Where::current()) const;
  template <std::integral... I>
  [[nodiscard]] Array reshape(detail::ExtentHere first, detail::ExtentHere second, I... others) const {
    return reshape(Shape(std::array{first.extent, second.extent, static_cast<std::int64_t>(others)...}),
                   first.where);
  }
  /// ravel(x).
  [[nodiscard]] Array ravel(Where where = Where::current()) const;
  /// transpose(x), transpose(x, permutation).
  [[nodiscard]] Array transpose(Where where = Where::current()) const;
  [[nodiscard]] Array transpose(std::vector<int> permutation, Where where = Where::current()) const;
  /// swapaxes(x, a, b).
  [[nodiscard]] Array swapaxes(int a, int b, Where where = Where::current()) const;
  /// squeeze(x, axes).
  [[nodiscard]] Array squeeze(Axes axes = {}, Where where = Where::current()) const;
  /// astype(x, dtype).
  [[nodiscard]] Array astype(Dtype dtype, Where where = Where::current()) const;
  /// round(x).
  [[nodiscard]] Array round(Where where = Where::current()) const;
  /// real(x).
  [[nodiscard]] Array real(Where where = Where::current()) const;
  /// imag(x).
  [[nodiscard]] Array imag(Where where = Where::current()) const;
  /// conj(x).
  [[nodiscard]] Array conj(Where where = Where::current()) const;
  /// copy(x).
  [[nodiscard]] Array copy(Where where = Where::current()) const;
  /// dot(x, other).
  [[nodiscard]] Array dot(const Array& other, Where where = Where::current()) const;
  /// item<T>(x). Collective over all ranks.
  template <class T> [[nodiscard]] T item(Where where = Where::current()) const;
  /// block_until_ready(x). Collective.
  Array block_until_ready(Where where = Where::current()) const;
  /// to_vector<T>(x). Collective over all ranks.
  template <class T> [[nodiscard]] std::vector<T> to_vector(Where where = Where::current()) const;
  /// @}

  /// if (x), float(x) do not compile: an array is not a number, and reading its value is a collective call.
  template <class T>
  requires(std::is_arithmetic_v<T>) explicit operator T() const {
    static_assert(
        detail::never<T> || !std::is_same_v<T, bool>,
        "an array is no bool: write if (item<bool>(any(x))), or all(x); to choose elements, where(x, "
        "a, b); in jit, cond(x, f, g)");
    static_assert(detail::never<T> || std::is_same_v<T, bool>,
                  "an array is no number: write item<float>(x), which every rank calls");
    return T();
  }

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

/// Whether one of the two types is Array.
template <class A, class B> inline constexpr bool either_is_array =
    std::is_same_v<A, Array> || std::is_same_v<B, Array>;
/// a && b on arrays does not compile: it could not skip the right operand.
template <class A, class B>
requires(either_is_array<A, B>) void operator&&(const A&, const B&) {
  static_assert(detail::never<A>, "&& takes no arrays: write a & b, or logical_and(a, b)");
}
/// a || b on arrays does not compile either.
template <class A, class B>
requires(either_is_array<A, B>) void operator||(const A&, const B&) {
  static_assert(detail::never<A>, "|| takes no arrays: write a | b, or logical_or(a, b)");
}

/// for (float v : x) does not compile: to_vector names the type of the elements, and is collective.
void begin(const Array&) = delete;  // loop over to_vector<float>(x), or local<float>(x)
/// As begin.
void end(const Array&) = delete;  // loop over to_vector<float>(x), or local<float>(x)

/// One block of an array, as its device holds it.
struct Shard {
  Device device;   ///< the device
  Index index;     ///< index range of the block in the global array
  int replica_id;  ///< 0 for the first device, in mesh order, that holds this block
  Array data;      ///< the block itself, on that device alone
};

namespace detail {
/// Marks the value of a subexpression, a * b in exp(a * b): its handle lives until the end of the statement,
/// but its value will not be requested. An evaluation in the same statement does not store it.
class InExpression {
 public:
  InExpression() = default;
  explicit InExpression(const Array& part);
  InExpression(const InExpression&);
  InExpression(InExpression&&) noexcept = default;
  InExpression& operator=(InExpression other) noexcept;
  ~InExpression();

 private:
  std::shared_ptr<Node> node_;
};
}  // namespace detail

/// An array argument, or a plain number, with the line of the user's program that passed it, for error
/// messages and program texts. Users pass arrays and numbers; the conversion happens at the call.
class Operand {
 public:
  using Place = std::source_location;
  /// From an array or a number.
  Operand(const Array& value, Place written = Place::current()) : array(value), where(written) {}
  Operand(Array&& value, Place written = Place::current())
      : array(std::move(value)), where(written), in_expression_(array) {}
  template <class S>
  requires(std::is_arithmetic_v<S>) Operand(S value, Place written = Place::current())
      : array(value, written), where(written) {}
  template <class R> Operand(std::complex<R> value, Place written = Place::current())
      : array(value, written), where(written) {}
  Array array;                 ///< the array
  std::source_location where;  ///< the line of the call

 private:
  detail::InExpression in_expression_;
};

}  // namespace tessera
