/// @file
/// Meshes: n-d grids of devices with named axes. Pure descriptions: nothing here is collective or
/// communicates.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/device.hpp>

namespace tessera {

class Mesh;

/// A rectangular n-d array of device ids: nested braces or nested vectors of ids or Devices.
/// NdDevices{{0, 2}, {4, 6}} has sizes {2, 2}. ShardingError when the nesting is ragged.
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

  const std::vector<int>& sizes() const { return sizes_; }  ///< of the grid; empty for a single device
  const std::vector<int>& ids() const { return ids_; }      ///< row-major
  bool is_abstract() const { return abstract_; }            ///< devices of an abstract mesh

 private:
  friend Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names, std::vector<Device> devices);
  friend Mesh abstract_mesh(std::vector<int> sizes, std::vector<std::string> names);
  friend class Mesh;
  friend class PositionalSharding;
  static NdDevices stack_rows(std::vector<NdDevices> rows);
  std::vector<int> sizes_;  // empty for a single device
  std::vector<int> ids_;
  bool abstract_ = false;
};

/// An n-d grid of devices with named axes: any subset of the devices, in any order. Cheap to copy.
/// Errors (ShardingError): a device twice, a device that the job does not have, sizes that do not match the
/// names, an axis name twice or empty, a size below 1.
class Mesh {
 public:
  /// The devices as a grid with one name per axis.
  Mesh(NdDevices devices, std::vector<std::string> axis_names);

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
  /// Its place along each axis; nothing for a device outside.
  std::optional<std::vector<int>> coords(const Device&) const;
  int position(int device_id) const;  ///< row-major position of a device; -1 if the mesh lacks it
  bool is_abstract() const;           ///< made by abstract_mesh: no processes behind it
  std::size_t hash() const;           ///< equal for equal meshes

  bool same_devices(const Mesh&) const;  ///< the same devices in the same order, whatever the axes
  /// These devices in this order, cut into other axes.
  Mesh with_axes(std::vector<int> sizes, std::vector<std::string> names) const;

  friend bool operator==(const Mesh&, const Mesh&);  ///< axis names, sizes and device order

  struct Impl;
  /// Equal pointers mean equal meshes (not the converse).
  const Impl* identity() const { return impl_.get(); }

 private:
  std::shared_ptr<const Impl> impl_;
};
std::ostream& operator<<(std::ostream&, const Mesh&);  ///< Mesh('x': 4, 'y': 2)

/// The job's first sizes[0]*sizes[1]*... devices as a grid that knows the hosts: name the axes by rising
/// traffic, the busiest last. Rows along the last axis lie inside hosts as far as the hosts' sizes allow,
/// then the last two axes together, and so on; so the first axes are those that cross. On one host, and
/// where hosts hold ranks in a row and in equal numbers, that is the order of the ids. ShardingError when
/// there are too few, with both numbers.
Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names);
/// The first of these devices as a grid, in the order given: make_mesh(sizes, names, devices()) is that of
/// the ids, wherever they lie.
Mesh make_mesh(std::vector<int> sizes, std::vector<std::string> names, std::vector<Device> devices);
/// All devices in the order of make_mesh(sizes, names).
NdDevices create_device_mesh(std::vector<int> sizes);
/// For planning: any size, no processes behind it. Its devices are 0..n-1 on the host "abstract".
Mesh abstract_mesh(std::vector<int> sizes, std::vector<std::string> names);

}  // namespace tessera

template <> struct std::hash<tessera::Mesh> {
  std::size_t operator()(const tessera::Mesh& mesh) const { return mesh.hash(); }
};
