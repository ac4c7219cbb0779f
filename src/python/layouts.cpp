// Dtypes, devices, meshes, specs and shardings: local descriptions, without communication.
#include <tessera/error.hpp>
#include <tessera/mesh.hpp>
#include <tessera/sharding.hpp>
#include <tessera/visualize.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

template <class T> std::string printed(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Devices in the shape of the argument: a nested list, or anything that NumPy converts.
NdDevices devices_of(py::handle from) {
  std::vector<int> sizes, ids;
  const py::module_ numpy = py::module_::import("numpy");
  const py::object grid = numpy.attr("asarray")(from, py::arg("dtype") = "object");
  for (const auto size : grid.attr("shape")) sizes.push_back(size.cast<int>());
  for (const auto device : grid.attr("ravel")().attr("tolist")())
    ids.push_back(py::isinstance<Device>(device) ? device.cast<Device>().id : device.cast<int>());
  return NdDevices(std::move(sizes), std::move(ids));
}

PartitionSpec spec_of(py::args entries) {
  std::vector<DimSpec> dims;
  for (const auto entry : entries) {
    NamesValue names;
    if (entry.is_none())
      dims.emplace_back(None);
    else if (read_names(entry, names))
      dims.emplace_back(std::move(names.names));
    else
      throw py::type_error("an entry of a PartitionSpec is None, an axis name or a tuple of names; not " +
                           py::repr(entry).cast<std::string>());
  }
  return PartitionSpec(std::move(dims));
}
py::tuple entries_of(const PartitionSpec& spec) {
  py::list entries;
  for (const auto& dim : spec.dims()) {
    const auto& names = dim.names();
    if (names.empty())
      entries.append(py::none());
    else if (names.size() == 1)
      entries.append(names[0]);
    else
      entries.append(py::tuple(py::cast(names)));
  }
  return entries;
}

py::tuple slices_of(const Index& index) {
  py::tuple slices(index.size());
  for (std::size_t d = 0; d < index.size(); ++d)
    slices[d] = py::slice(py::int_(index[d].start), py::int_(index[d].stop), py::none());
  return slices;
}

// type, char, str, newbyteorder, ...: attributes that programs expect of NumPy's dtypes.
py::object attribute_of_numpys(Dtype dtype, const std::string& name) {
  if (!name.starts_with("_")) return numpy_dtype(dtype).attr(name.c_str());
  PyErr_SetString(PyExc_AttributeError, ("a dtype has no attribute '" + name + "'").c_str());
  throw py::error_already_set();
}

void bind_dtypes(py::module_& m) {
  py::class_<Dtype> type(m, "dtype");
  type.def(py::init([](DtypeValue from) { return from.value; }))
      .def_property_readonly("name", [](Dtype d) { return name(d); })
      .def_property_readonly("itemsize", [](Dtype d) { return itemsize(d); })
      .def_property_readonly("dtype", &numpy_dtype, "NumPy's: numpy takes these dtypes for its own.")
      .def_property_readonly("kind",
                             [](Dtype d) {
                               return is_bool(d)               ? "b"
                                      : is_signed_integer(d)   ? "i"
                                      : is_unsigned_integer(d) ? "u"
                                      : is_floating(d)         ? "f"
                                                               : "c";
                             })
      .def("__repr__", [](Dtype d) { return "tessera." + name(d); })
      .def("__str__", [](Dtype d) { return name(d); })
      .def("__hash__", [](Dtype d) { return py::hash(numpy_dtype(d)); })  // equal, so of equal hash
      .def("__getattr__", &attribute_of_numpys, py::arg("name"))
      .def("__eq__",
           [](Dtype a, py::handle b) {
             DtypeValue other;
             try {
               return !b.is_none() && read_dtype(b, other) && other.value == a;
             } catch (const py::type_error&) {
               return false;  // the name is not a dtype's
             }
           })
      .def("__reduce__",
           [type](Dtype d) -> py::tuple { return py::make_tuple(type, py::make_tuple(name(d))); });
  for (int code = 0; code < dtype_count; ++code)
    m.attr(code == 0 ? "bool" : name(Dtype{code}).c_str()) = Dtype{code};
}

void bind_devices(py::module_& m) {
  py::class_<Device>(m, "Device")
      .def_readonly("id", &Device::id)
      .def_readonly("process_index", &Device::process_index)
      .def_readonly("host", &Device::host)
      .def_property_readonly("platform", [](const Device&) { return "cpu"; })
      .def("__repr__", &printed<Device>)
      .def("__reduce__",
           [](const Device& d) -> py::tuple {
             return py::make_tuple(py::module_::import("tessera._pickling").attr("device"),
                                   py::make_tuple(d.id));
           })
      .def("__hash__", [](const Device& d) { return d.id; })
      .def("__lt__", [](const Device& a, const Device& b) { return a < b; })
      .def(
          "__eq__", [](const Device& a, const Device& b) { return a == b; },
          py::is_operator());  // AllDevices answers for itself
  m.def(
      "devices", [](py::handle) { return devices(); }, py::arg("backend") = py::none(),
      "All of the job, by id.");
  m.def("device_of_id", [](int id) {
    const auto all = devices();
    if (id < 0 || id >= static_cast<int>(all.size()))
      throw ArgumentError("device " + std::to_string(id) + " is none of this job's " +
                          std::to_string(all.size()) + "; it was pickled in a larger one");
    return all[static_cast<std::size_t>(id)];
  });
  m.def("local_devices", &local_devices, "This process's: one.");
  m.def("device_count", &device_count, "How many devices the job has.");
}

void bind_meshes(py::module_& m) {
  py::class_<Mesh>(m, "Mesh")
      .def(py::init([](py::handle devices, NamesValue names) {
             return Mesh(devices_of(devices), names.names, here());
           }),
           py::arg("devices"), py::arg("axis_names"))
      .def_property_readonly(
          "shape",
          [](const Mesh& mesh) {
            py::dict sizes;
            for (const auto& [name, size] : mesh.shape()) sizes[py::str(name)] = size;
            return sizes;
          },
          "Axis name to size, in axis order.")
      .def_property_readonly("axis_names",
                             [](const Mesh& mesh) { return py::tuple(py::cast(mesh.axis_names())); })
      .def_property_readonly("axis_sizes",
                             [](const Mesh& mesh) { return py::tuple(py::cast(mesh.axis_sizes())); })
      .def_property_readonly("size", &Mesh::size)
      .def_property_readonly("ndim", &Mesh::ndim)
      .def_property_readonly("device_ids", &Mesh::device_ids)
      .def_property_readonly(
          "devices",
          [](const Mesh& mesh) {
            const py::module_ numpy = py::module_::import("numpy");
            const py::object flat = numpy.attr("empty")(mesh.size(), py::arg("dtype") = "object");
            const auto all = mesh.devices();
            for (std::size_t i = 0; i < all.size(); ++i) flat[py::int_(i)] = py::cast(all[i]);
            return flat.attr("reshape")(mesh.axis_sizes());
          },
          "An array of NumPy's with the devices.")
      .def_property_readonly("is_abstract", &Mesh::is_abstract)
      .def(
          "axis_size", [](const Mesh& mesh, const std::string& name) { return mesh.axis_size(name); },
          py::arg("name"))
      .def(
          "contains", [](const Mesh& mesh, const Device& device) { return mesh.contains(device); },
          py::arg("device"))
      .def(
          "coords",
          [](const Mesh& mesh, const Device& device) -> py::object {
            const auto place = mesh.coords(device);
            return place ? py::object(py::tuple(py::cast(*place))) : py::none();
          },
          py::arg("device"))
      .def("__enter__", [](py::object mesh) { return mesh; })
      .def("__exit__", [](py::handle, py::args) {})
      .def("__repr__", &printed<Mesh>)
      .def("__reduce__",
           [](const Mesh& mesh) -> py::tuple {
             const py::module_ package = py::module_::import("tessera._pickling");
             if (mesh.is_abstract())
               return py::make_tuple(package.attr("abstract_mesh"),
                                     py::make_tuple(py::tuple(py::cast(mesh.axis_sizes())),
                                                    py::tuple(py::cast(mesh.axis_names()))));
             return py::make_tuple(package.attr("mesh"),
                                   py::make_tuple(py::tuple(py::cast(mesh.device_ids())),
                                                  py::tuple(py::cast(mesh.axis_sizes())),
                                                  py::tuple(py::cast(mesh.axis_names()))));
           })
      .def("__hash__", &Mesh::hash)
      .def("__eq__",
           [](const Mesh& a, py::handle b) { return py::isinstance<Mesh>(b) && b.cast<Mesh>() == a; })
      .def(
          "picture", [](const Mesh& mesh) { return debug::mesh_picture(mesh); },
          "The devices as a text grid.");
  m.def("mesh_of_ids", [](std::vector<int> ids, std::vector<int> sizes, std::vector<std::string> names) {
    return Mesh(NdDevices(std::move(sizes), std::move(ids)), std::move(names));
  });
  m.def(
      "make_mesh",
      [](ShapeValue sizes, NamesValue names, std::optional<std::vector<Device>> given) {
        const std::vector<int> extents(sizes.value.begin(), sizes.value.end());
        return given ? make_mesh(extents, names.names, *given, here())
                     : make_mesh(extents, names.names, here());
      },
      py::arg("axis_shapes"), py::arg("axis_names"), py::arg("devices") = py::none(),
      "The first of the job's devices, as a grid that knows the hosts: the last axis lies inside hosts. Or "
      "of the "
      "given ones, in their order.");
  m.def(
      "abstract_mesh",
      [](ShapeValue sizes, NamesValue names) {
        return abstract_mesh(std::vector<int>(sizes.value.begin(), sizes.value.end()), names.names, here());
      },
      py::arg("axis_shapes"), py::arg("axis_names"), "For planning: any size, no processes behind it.");
  m.def(
      "create_device_mesh",
      [](ShapeValue sizes) {
        const NdDevices grid =
            create_device_mesh(std::vector<int>(sizes.value.begin(), sizes.value.end()), here());
        const py::module_ numpy = py::module_::import("numpy");
        const auto all = devices();
        const py::object flat = numpy.attr("empty")(grid.ids().size(), py::arg("dtype") = "object");
        for (std::size_t i = 0; i < grid.ids().size(); ++i)
          flat[py::int_(i)] = py::cast(all[static_cast<std::size_t>(grid.ids()[i])]);
        return flat.attr("reshape")(grid.sizes());
      },
      py::arg("mesh_shape"), "All devices, ordered so that the last axis stays on one host.");
}

void bind_shardings(py::module_& m) {
  py::class_<PartitionSpec>(m, "PartitionSpec")
      .def(py::init(&spec_of))
      .def_property_readonly_static(
          "automatic", [](py::handle) { return PartitionSpec(P::automatic); },
          "A layout that the planner of jit chooses: tessera.auto.")
      .def_property_readonly("is_automatic", &PartitionSpec::is_automatic)
      .def("__repr__", &printed<PartitionSpec>)
      .def("__reduce__",
           [](py::handle spec) -> py::tuple {
             if (spec.cast<const PartitionSpec&>().is_automatic())
               return py::make_tuple(py::module_::import("builtins").attr("getattr"),
                                     py::make_tuple(py::type::of(spec), "automatic"));
             return py::make_tuple(py::type::of(spec), entries_of(spec.cast<const PartitionSpec&>()));
           })
      .def("__len__", [](const PartitionSpec& spec) { return spec.dims().size(); })
      .def("__iter__", [](const PartitionSpec& spec) { return py::iter(entries_of(spec)); })
      .def("__getitem__",
           [](const PartitionSpec& spec, py::handle i) { return py::object(entries_of(spec)[i]); })
      .def("__hash__", [](const PartitionSpec& spec) { return py::hash(entries_of(spec)); })
      .def("__eq__", [](const PartitionSpec& a, py::handle b) {
        return py::isinstance<PartitionSpec>(b) && b.cast<PartitionSpec>() == a;
      });
  py::class_<Sharding>(m, "Sharding")
      .def_property_readonly("mesh", &Sharding::mesh)
      .def_property_readonly("spec", &Sharding::spec)
      .def_property_readonly("device_set", &Sharding::device_set)
      .def_property_readonly("num_devices", &Sharding::num_devices)
      .def_property_readonly("is_fully_replicated", &Sharding::is_fully_replicated)
      .def(
          "is_equivalent_to",
          [](const Sharding& a, ShardingValue b, int ndim) { return a.is_equivalent_to(b, ndim); },
          py::arg("other"), py::arg("ndim"))
      .def(
          "shard_shape",
          [](const Sharding& s, ShapeValue shape) { return tuple_of(s.shard_shape(shape.value)); },
          py::arg("global_shape"), "Of the first, largest shard.")
      .def(
          "local_shape",
          [](const Sharding& s, ShapeValue shape, const Device& d) {
            return tuple_of(s.local_shape(shape.value, d));
          },
          py::arg("global_shape"), py::arg("device"))
      .def(
          "devices_indices_map",
          [](const Sharding& s, ShapeValue shape) {
            py::dict places;
            for (const auto& [device, index] : s.devices_indices_map(shape.value))
              places[py::cast(device)] = slices_of(index);
            return places;
          },
          py::arg("global_shape"))
      .def(
          "replica_id",
          [](const Sharding& s, ShapeValue shape, const Device& d) { return s.replica_id(shape.value, d); },
          py::arg("global_shape"), py::arg("device"))
      .def(
          "memory_bytes",
          [](const Sharding& s, ShapeValue shape, DtypeValue dtype, const Device& d) {
            return s.memory_bytes(shape.value, dtype.value, d);
          },
          py::arg("global_shape"), py::arg("dtype"), py::arg("device"))
      .def("__repr__", &printed<Sharding>)
      .def("__reduce__",
           [](const Sharding& s) -> py::tuple {
             return py::make_tuple(py::module_::import("tessera._pickling").attr("sharding"),
                                   py::make_tuple(s.mesh(), s.spec()));
           })
      .def("__hash__", &Sharding::hash)
      .def("__eq__", [](const Sharding& a, py::handle b) {
        ShardingValue other;
        return !py::isinstance<Device>(b) && read_sharding(b, other) && a == *other.value;
      });
  m.def(
      "NamedSharding",
      [](Mesh mesh, PartitionSpec spec) { return NamedSharding(std::move(mesh), std::move(spec), here()); },
      py::arg("mesh"), py::arg("spec"),
      "Dimension d is split over the mesh axes that entry d of the spec names.");
  m.def(
      "SingleDeviceSharding", [](Device device) { return SingleDeviceSharding(std::move(device), here()); },
      py::arg("device"), "All of an array on one device.");
  py::class_<PositionalSharding>(m, "PositionalSharding")
      .def(py::init([](py::handle devices) { return PositionalSharding(devices_of(devices)); }),
           py::arg("devices"))
      .def_property_readonly("shape", [](const PositionalSharding& s) { return tuple_of(s.shape()); })
      .def_property_readonly("ndim", &PositionalSharding::ndim)
      .def_property_readonly("device_sets", &PositionalSharding::device_sets)
      .def_property_readonly("T", &PositionalSharding::T)
      .def("reshape",
           [](const PositionalSharding& s, py::args sizes) {
             std::vector<int> flat;
             for (const auto size : sizes)
               if (PyLong_Check(size.ptr()))
                 flat.push_back(size.cast<int>());
               else
                 flat = size.cast<std::vector<int>>();
             return s.reshape(flat);
           })
      .def("transpose", [](const PositionalSharding& s,
                           py::args axes) { return s.transpose(axes.cast<std::vector<int>>()); })
      .def(
          "replicate",
          [](const PositionalSharding& s, std::optional<int> axis, bool keepdims) {
            return axis ? s.replicate(*axis, keepdims) : s.replicate();
          },
          py::arg("axis") = py::none(), py::arg("keepdims") = true)
      .def("__repr__", &printed<PositionalSharding>)
      .def("__eq__", [](const PositionalSharding& a, py::handle b) {
        ShardingValue other;
        return !py::isinstance<Device>(b) && read_sharding(b, other) && Sharding(a) == *other.value;
      });
}

}  // namespace

void bind_layouts(py::module_& m) {
  bind_dtypes(m);
  bind_devices(m);
  bind_meshes(m);
  bind_shardings(m);
}

}  // namespace tessera::python
