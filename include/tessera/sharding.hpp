/// @file
/// Partition specs and shardings: which device holds which part of an array. Pure descriptions: nothing here
/// is collective or communicates.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/dtype.hpp>
#include <tessera/mesh.hpp>
#include <tessera/shape.hpp>

namespace tessera {

/// The type of None.
struct NoneType {};
inline constexpr NoneType None{};  ///< not split; not mapped; no bound

/// How one dim is split: None, one mesh axis, or several (the first name is the major one).
class DimSpec {
 public:
  /// None, an axis name, or names: {"x", "y"}.
  DimSpec(NoneType) {}
  DimSpec(const char* name);  ///< ShardingError where it is a null pointer
  DimSpec(std::string name) : names_{std::move(name)} {}
  DimSpec(std::initializer_list<std::string> names) : names_(names) {}
  explicit DimSpec(std::vector<std::string> names) : names_(std::move(names)) {}
  /// The axes, the major one first; empty for None.
  const std::vector<std::string>& names() const { return names_; }
  friend bool operator==(const DimSpec&, const DimSpec&) = default;

 private:
  std::vector<std::string> names_;
};
/// axes("x", "y"): one dim split over several mesh axes, the first name the major one.
template <class... Names>
requires(std::is_convertible_v<Names, std::string>&&...) DimSpec axes(Names... names) {
  std::vector<std::string> all;
  (all.push_back(DimSpec(names).names().at(0)), ...);
  return DimSpec(std::move(all));
}

/// The type of P::automatic.
class AutomaticSpec {
 public:
  explicit constexpr AutomaticSpec(NoneType) {}  ///< for P::automatic alone
};

/// How an array is split, one entry per dim; dims after the last entry are not split. More entries than dims
/// are a ShardingError.
///
/// P("x", "y")  P("x", None)  P(axes("x", "y"), None)  P()  P{"x", {"y", "z"}}. Equal by meaning: P("x") ==
/// P("x", None).
class PartitionSpec {
 public:
  PartitionSpec() = default;
  /// From one entry per dimension, in braces, as arguments or in a vector.
  PartitionSpec(std::initializer_list<DimSpec> dims) : dims_(dims) {}
  template <class... D>
  requires(sizeof...(D) > 0 && (std::is_convertible_v<D, DimSpec> && ...)) PartitionSpec(D&&... dims)
      : dims_{DimSpec(std::forward<D>(dims))...} {}
  explicit PartitionSpec(std::vector<DimSpec> dims) : dims_(std::move(dims)) {}
  PartitionSpec(AutomaticSpec) : dims_{DimSpec{"", ""}} {}  // no mesh has such axes
  /// A layout that the planner of jit chooses: in in_shardings, out_shardings and with_sharding_constraint,
  /// alone or as NamedSharding(mesh, P::automatic). No layout anywhere else: a ShardingError.
  static constexpr AutomaticSpec automatic{NoneType()};
  bool is_automatic() const;                                  ///< whether it is P::automatic
  const std::vector<DimSpec>& dims() const { return dims_; }  ///< the entries as given
  friend bool operator==(const PartitionSpec&, const PartitionSpec&);

 private:
  std::vector<DimSpec> dims_;
};
using P = PartitionSpec;                                        ///< the usual short name
std::ostream& operator<<(std::ostream&, const PartitionSpec&);  ///< P('x', None)

class PositionalSharding;

/// A map from devices to the blocks of an array. A value; cheap to copy.
///
/// A dim of n over p parts has blocks of ceil(n / p): the last ones may be shorter or empty. Every kind of
/// sharding is a mesh plus, for each dim of the array, the mesh axes that split it: a PositionalSharding is
/// one over a mesh with unnamed axes.
///
/// `a == b`: for every array both give the same blocks to the same devices, listed in the same order,
/// regardless of notation: P("x") equals P("x", None), mesh axes of size 1 and axis names are ignored, P("x")
/// on ('x': 4) equals P(("a", "b")) on ('a': 2, 'b': 2), and a PositionalSharding equals the equivalent
/// NamedSharding. `a.is_equivalent_to(b, ndim)`: the same for arrays of ndim dims, after checking that both
/// can describe one (ShardingError).
class Sharding {
 public:
  /// The sharding equivalent to a PositionalSharding.
  Sharding(const PositionalSharding&);
  /// The sharding that NamedSharding(mesh, spec) creates.
  explicit Sharding(Mesh, PartitionSpec, std::source_location where = std::source_location::current());

  Shape shard_shape(const Shape& global) const;  ///< the shape of the first, largest shard
  /// The shape of this device's block; ShardingError if it is not in the mesh.
  Shape local_shape(const Shape& global, const Device&) const;
  /// The index range of its block; an empty box for a device outside the mesh.
  Index local_box(const Shape& global, int device_id) const;
  std::vector<std::pair<Device, Index>> devices_indices_map(const Shape& global) const;  ///< in mesh order
  /// 0 for the first device in mesh order that holds the block.
  int replica_id(const Shape& global, const Device&) const;
  std::set<Device> device_set() const;  ///< all devices
  int num_devices() const;              ///< number of devices
  bool is_fully_replicated() const;     ///< whether every device holds the whole array
  /// Whether both give the same blocks to the same devices, for arrays of ndim dims.
  bool is_equivalent_to(const Sharding&, int ndim) const;
  std::int64_t memory_bytes(const Shape&, Dtype, const Device&) const;  ///< the memory of the device's block
  PartitionSpec spec() const;                                           ///< the spec given to NamedSharding
  Mesh mesh() const;                                                    ///< the devices, in order
  std::size_t hash() const;                                             ///< equal for equal shardings
  friend bool operator==(const Sharding&, const Sharding&);

  /// ShardingError unless an array of this shape can have this sharding (at most as many spec entries as
  /// dims).
  void check_fits(const Shape& global, const char* call) const;

  /// The sharding applied to an array of ndim dims: a PositionalSharding of more dims is matched from the
  /// last, as JAX promotes it, if its leading dims are not split. Itself otherwise.
  Sharding for_ndim(int ndim) const;

  /// For the planner: the axis numbers that split each of ndim dims, major first; without axes of size 1.
  std::vector<std::vector<int>> dim_axes(int ndim) const;
  /// The inverse of dim_axes.
  static Sharding from_dim_axes(const Mesh&, const std::vector<std::vector<int>>& dim_axes);
  static Sharding replicated(const Mesh&);  ///< every device of the mesh holds the array
  /// For the planner: P::automatic, on the mesh of the arrays used with it.
  static Sharding automatic();
  bool is_automatic() const;      ///< whether its spec is P::automatic
  bool has_mesh_to_find() const;  ///< whether it is automatic()

  struct Impl;
  /// For the library.
  explicit Sharding(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  /// For the library: equal pointers mean equal shardings (not the converse).
  const Impl* identity() const { return impl_.get(); }

 private:
  std::shared_ptr<const Impl> impl_;
};
std::ostream& operator<<(std::ostream&, const Sharding&);

/// Dim d is split over the mesh axes in entry d of the spec; axes that are not named hold replicas.
/// NamedSharding rows(mesh, P("x")), Sharding rows(mesh, P("x")) and auto rows = NamedSharding(mesh, P("x"))
/// mean the same. ShardingError, naming the line, spec, mesh and axis: an axis used twice, an unknown axis.
using NamedSharding = Sharding;
/// One device holds the array.
Sharding SingleDeviceSharding(Device, std::source_location where = std::source_location::current());

/// An array of device sets that can be reshaped like an array. Prints as [[{0 1}] [{2 3}]]. Errors
/// (ShardingError): a device twice, sizes that do not multiply to the number of sets, a wrong permutation
/// or axis.
class PositionalSharding {
 public:
  /// One set per device, in the shape of the grid.
  PositionalSharding(NdDevices);
  PositionalSharding(const std::vector<Device>&);
  Shape shape() const;                                 ///< the shape of the array of device sets
  int ndim() const;                                    ///< its dimensions
  PositionalSharding reshape(std::vector<int>) const;  ///< one size may be -1
  template <class... N>
  requires(sizeof...(N) > 0 && (std::is_integral_v<N> && ...)) PositionalSharding reshape(N... sizes)
  const { return reshape(std::vector<int>{static_cast<int>(sizes)...}); }
  PositionalSharding T() const;                          ///< axes reversed
  PositionalSharding transpose(std::vector<int>) const;  ///< axes in that order
  PositionalSharding replicate() const;                  ///< one position that holds all devices
  PositionalSharding replicate(int axis, bool keepdims = true) const;
  const std::vector<std::vector<int>>& device_sets() const { return sets_; }  ///< row-major
  friend bool operator==(const PositionalSharding&, const PositionalSharding&);

 private:
  friend class Sharding;
  // Unnamed axes, and those that split each dim.
  std::pair<Mesh, std::vector<std::vector<int>>> as_mesh() const;
  NdDevices base_;  // the device order at construction, which reshape, T and replicate keep
  std::vector<int> sizes_;
  std::vector<std::vector<int>> sets_;  // each in base order
};
std::ostream& operator<<(std::ostream&, const PositionalSharding&);

}  // namespace tessera

template <> struct std::hash<tessera::Sharding> {
  std::size_t operator()(const tessera::Sharding& sharding) const { return sharding.hash(); }
};
