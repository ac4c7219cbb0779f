/// @file
/// Meshes: n-d grids of devices with named axes. Pure descriptions: nothing here is collective or
/// communicates.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/device.hpp>

namespace tessera {

class Mesh;

namespace detail {
// The line of a call. It cannot be made from {}, so that {} selects the overload with the other parameter.
struct CallLine {
  CallLine(std::source_location where) : line(where) {}
  std::source_location line;
};
}  // namespace detail

/// A rectangular n-d array of device ids: nested braces or nested vectors of ids or Devices. NdDevices{{0,
/// 2}, {4, 6}} has sizes {2, 2}. ShardingError if the nesting is ragged.
class NdDevices {
 public:
  /// From ids, rows of them, one device, or vectors of any of these.
  NdDevices(std::initializer_list<int> ids);
  NdDevices(std::initializer_list<NdDevices> rows);
  NdDevices(const Device& device);
  NdDevices(int id);
  template <class T> NdDevices(const std::vector<T>& rows)
      : NdDevices(stack_rows(std::vector<NdDevices>(rows.begin(), rows.end()))) {}
  NdDevices(std::vector<int> sizes, std::vector<int> ids);  ///< ids in row-major order

  const std::vector<int>& sizes() const { return sizes_; }  ///< sizes of the grid; empty for a single device
  const std::vector<int>& ids() const { return ids_; }      ///< row-major
  bool is_abstract() const { return abstract_; }            ///< devices of an abstract mesh

 private:
  friend Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names, std::vector<Device> devices,
                        std::source_location);
  friend Mesh abstract_mesh(std::vector<int> sizes, std::vector<std::string> names, std::source_location);
  friend class Mesh;
  friend class PositionalSharding;
  static NdDevices stack_rows(std::vector<NdDevices> rows);
  std::vector<int> sizes_;  // empty for a single device
  std::vector<int> ids_;
  bool abstract_ = false;
};

/// An n-d grid of devices with named axes: any subset of the devices, in any order. Cheap to copy. Errors
/// (ShardingError): a device twice, a device that the job does not have, sizes that do not match the names, a
/// repeated or empty axis name, a size below 1; with the function and the line of its call.
class Mesh {
 public:
  /// The devices as a grid with one name per axis.
  Mesh(NdDevices devices, std::vector<std::string> axis_names,
       std::source_location where = std::source_location::current());

  std::vector<std::pair<std::string, int>> shape() const;  ///< (name, size), in axis order
  const std::vector<std::string>& axis_names() const;      ///< in axis order
  const std::vector<int>& axis_sizes() const;              ///< in axis order
  int axis_size(const std::string& name) const;            ///< ShardingError for an unknown name
  int axis_number(const std::string& name) const;          ///< position of the axis; -1 for an unknown name
  int size() const;                                        ///< number of devices
  int ndim() const;                                        ///< number of axes
  std::vector<Device> devices() const;                     ///< row-major
  const std::vector<int>& device_ids() const;              ///< row-major
  bool contains(const Device&) const;                      ///< whether the device is in the grid
  /// Its coordinate along each axis; nullopt for a device outside.
  std::optional<std::vector<int>> coords(const Device&) const;
  int position(int device_id) const;  ///< row-major position of a device; -1 if the mesh lacks it
  bool is_abstract() const;           ///< made by abstract_mesh: without processes
  std::size_t hash() const;           ///< equal for equal meshes

  bool same_devices(const Mesh&) const;  ///< whether both have equal devices in equal order; axes may differ
  /// The same devices in the same order, with other axes.
  Mesh with_axes(std::vector<int> sizes, std::vector<std::string> names,
                 std::source_location where = std::source_location::current()) const;

  friend bool operator==(const Mesh&, const Mesh&);  ///< axis names, sizes and device order

  struct Impl;
  /// Equal pointers mean equal meshes (not the converse).
  const Impl* identity() const { return impl_.get(); }

 private:
  std::shared_ptr<const Impl> impl_;
};
std::ostream& operator<<(std::ostream&, const Mesh&);  ///< Mesh('x': 4, 'y': 2)

/// The job's first sizes[0]*sizes[1]*... devices as a grid that respects hosts: name the axes in the order of
/// rising traffic, the busiest last. Rows along the last axis are placed inside hosts as far as the hosts'
/// sizes allow, then the last two axes together, and so on; so the first axes cross hosts. On one host, and
/// if hosts hold equal numbers of consecutive ranks, that is the order of the ids. ShardingError, with both
/// numbers, if there are too few devices.
Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names,
               detail::CallLine where = std::source_location::current());
/// The first of these devices as a grid, in the given order: make_mesh(sizes, names, devices()) uses the
/// order of the ids, regardless of hosts.
Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names, std::vector<Device> devices,
               std::source_location where = std::source_location::current());
/// All devices in the order of make_mesh(sizes, names).
NdDevices create_device_mesh(std::vector<int> sizes,
                             std::source_location where = std::source_location::current());
/// A mesh for planning: any size, without processes. Its devices are 0..n-1 on the host "abstract".
Mesh abstract_mesh(std::vector<int> sizes, std::vector<std::string> names,
                   std::source_location where = std::source_location::current());

}  // namespace tessera

template <> struct std::hash<tessera::Mesh> {
  std::size_t operator()(const tessera::Mesh& mesh) const { return mesh.hash(); }
};
