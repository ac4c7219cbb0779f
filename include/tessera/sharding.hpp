// Partition specs and shardings: which device holds which part of an array. Pure
// descriptions.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/dtype.hpp>
#include <tessera/mesh.hpp>
#include <tessera/shape.hpp>

namespace tessera {

struct NoneType {};
inline constexpr NoneType None{};

// How one dimension is split: None, one mesh axis, or several (the first name is the major one).
class DimSpec {
 public:
  DimSpec(NoneType) {}
  DimSpec(const char* name) : names_{name} {}
  DimSpec(std::string name) : names_{std::move(name)} {}
  DimSpec(std::initializer_list<std::string> names) : names_(names) {}
  explicit DimSpec(std::vector<std::string> names) : names_(std::move(names)) {}
  const std::vector<std::string>& names() const { return names_; }
  friend bool operator==(const DimSpec&, const DimSpec&) = default;

 private:
  std::vector<std::string> names_;
};
template <class... Names> DimSpec axes(Names... names) {
  return DimSpec(std::vector<std::string>{std::string(names)...});
}

// P("x", "y")  P("x", None)  P(axes("x", "y"), None)  P()  P{"x", {"y", "z"}}. Equal by meaning: P("x") ==
// P("x", None).
class PartitionSpec {
 public:
  PartitionSpec() = default;
  PartitionSpec(std::initializer_list<DimSpec> dims) : dims_(dims) {}
  template <class... D>
  requires(sizeof...(D) > 0 && (std::is_convertible_v<D, DimSpec> && ...)) PartitionSpec(D&&... dims)
      : dims_{DimSpec(std::forward<D>(dims))...} {}
  explicit PartitionSpec(std::vector<DimSpec> dims) : dims_(std::move(dims)) {}
  const std::vector<DimSpec>& dims() const { return dims_; }
  friend bool operator==(const PartitionSpec&, const PartitionSpec&);

 private:
  std::vector<DimSpec> dims_;
};
using P = PartitionSpec;
std::ostream& operator<<(std::ostream&, const PartitionSpec&);  // P('x', None)

class PositionalSharding;

// Which device holds which block. A value; cheap to copy. Every kind of sharding is a mesh plus, for each
// dimension of the array, the mesh axes that split it: a PositionalSharding is one over a mesh with unnamed
// axes.
//
// `a == b`: for every array both give the same blocks to the same devices, listed in the same order. How
// that was written does not matter: P("x") equals P("x", None), mesh axes of size 1 and axis names are
// ignored, P("x") on ('x': 4) equals P(("a", "b")) on ('a': 2, 'b': 2), and a PositionalSharding equals the
// NamedSharding that means the same. `a.is_equivalent_to(b, ndim)`: the same for arrays of ndim dimensions,
// after checking that both can describe one (ShardingError).
class Sharding {
 public:
  Sharding(const PositionalSharding&);

  Shape shard_shape(const Shape& global) const;  // of the first, largest shard
  Shape local_shape(const Shape& global,
                    const Device&) const;  // of this device's block; ShardingError if it is not in the mesh
  Index local_box(const Shape& global,
                  int device_id) const;  // its place; an empty box for a device outside the mesh
  std::vector<std::pair<Device, Index>> devices_indices_map(const Shape& global) const;  // in mesh order
  int replica_id(const Shape& global,
                 const Device&) const;  // 0 for the first device in mesh order that holds the block
  std::set<Device> device_set() const;
  int num_devices() const;
  bool is_fully_replicated() const;
  bool is_equivalent_to(const Sharding&, int ndim) const;
  std::int64_t memory_bytes(const Shape&, Dtype, const Device&) const;
  PartitionSpec spec() const;
  Mesh mesh() const;
  std::size_t hash() const;
  friend bool operator==(const Sharding&, const Sharding&);

  // ShardingError unless an array of this shape can have this sharding (as many spec entries as dimensions
  // at most).
  void check_fits(const Shape& global, const char* call) const;

  // The sharding that an array of ndim dimensions gets: a PositionalSharding of more dims is matched from
  // the last, as JAX promotes it, when its leading dims are not split. Itself otherwise.
  Sharding for_ndim(int ndim) const;

  // For the planner: the axis numbers that split each of ndim dimensions, major first; axes of size 1 are
  // left out.
  std::vector<std::vector<int>> dim_axes(int ndim) const;
  static Sharding from_dim_axes(const Mesh&, const std::vector<std::vector<int>>& dim_axes);
  static Sharding replicated(const Mesh&);

  struct Impl;
  explicit Sharding(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl* identity() const {
    return impl_.get();
  }  // equal pointers mean equal shardings (not the converse)

 private:
  std::shared_ptr<const Impl> impl_;
};
std::ostream& operator<<(std::ostream&, const Sharding&);

// Errors (ShardingError), each naming spec, mesh and axis: an axis used twice, an unknown axis.
Sharding NamedSharding(Mesh, PartitionSpec);
Sharding SingleDeviceSharding(Device);

// An array of device sets that can be reshaped like an array. Prints as [[{0 1}] [{2 3}]].
// Errors (ShardingError): a device twice, sizes that do not multiply to the number of sets, a wrong
// permutation or axis.
class PositionalSharding {
 public:
  PositionalSharding(NdDevices);
  PositionalSharding(const std::vector<Device>&);
  Shape shape() const;
  int ndim() const;
  PositionalSharding reshape(std::vector<int>) const;  // one size may be -1
  template <class... N>
  requires(sizeof...(N) > 0 && (std::is_integral_v<N> && ...)) PositionalSharding reshape(N... sizes)
  const { return reshape(std::vector<int>{static_cast<int>(sizes)...}); }
  PositionalSharding T() const;
  PositionalSharding transpose(std::vector<int>) const;
  PositionalSharding replicate() const;  // one position that holds all devices
  PositionalSharding replicate(int axis, bool keepdims = true) const;
  const std::vector<std::vector<int>>& device_sets() const { return sets_; }  // row-major
  friend bool operator==(const PositionalSharding&, const PositionalSharding&);

 private:
  friend class Sharding;
  std::pair<Mesh, std::vector<std::vector<int>>> as_mesh()
      const;        // unnamed axes, and those that split each dim
  NdDevices base_;  // as constructed: the device order, which reshape, T and replicate keep
  std::vector<int> sizes_;
  std::vector<std::vector<int>> sets_;  // each in base order
};
std::ostream& operator<<(std::ostream&, const PositionalSharding&);

}  // namespace tessera

template <> struct std::hash<tessera::Sharding> {
  std::size_t operator()(const tessera::Sharding& sharding) const { return sharding.hash(); }
};
