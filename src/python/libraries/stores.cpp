// Zarr stores and netCDF files: listing their contents, and writing them piece by piece. Programs on files.
#include <tessera/io/netcdf.hpp>
#include <tessera/io/stream.hpp>
#include <tessera/io/zarr.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/families.hpp"
#include "python/libraries/file_writer.hpp"
#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

io::ZarrOptions zarr_options(const py::kwargs& words) {
  io::ZarrOptions options;
  for (const auto& [key, value] : words) {
    const auto name = key.cast<std::string>();
    if (value.is_none()) continue;
    if (name == "chunks")
      options.chunks = value.cast<std::vector<std::int64_t>>();
    else if (name == "shards")
      options.shards = value.cast<std::vector<std::int64_t>>();
    else if (name == "compression")
      options.compression = value.cast<std::string>();
    else if (name == "level")
      options.level = value.cast<int>();
    else if (name == "checksum")
      options.checksum = value.cast<bool>();
    else if (name == "dims")
      options.dims = value.cast<std::vector<std::string>>();
    else if (name == "fill")
      options.fill = value.cast<double>();
    else
      throw py::type_error("there is no option '" + name +
                           "'; there are chunks, shards, compression, level, checksum, dims, fill");
  }
  return options;
}

void bind_zarr(py::module_& part) {
  auto type = bind_writer<io::Zarr, io::ZarrOpenOptions, io::ZarrOpen>(part, "Zarr",
                                                                       "Writes a Zarr store array by array");
  type.def(
          "write",
          [](io::Zarr& out, const std::string& name, Value x, const py::kwargs& words) {
            const auto options = zarr_options(words);
            unlocked([&](auto) { out.write(name, x.array, options, x.where); });
          },
          py::arg("name"), py::arg("x"), "Makes an array, or replaces it; options as of save_zarr.")
      .def(
          "append",
          [](io::Zarr& out, const std::string& name, Value x, int dim, const py::kwargs& words) {
            const auto options = zarr_options(words);
            unlocked([&](auto) { out.append(name, x.array, dim, options, x.where); });
          },
          py::arg("name"), py::arg("x"), py::arg("dim") = 0,
          "Adds x behind what an array holds, or makes it.")
      .def(
          "overwrite",
          [](io::Zarr& out, const std::string& name, Value x, const std::vector<std::int64_t>& start) {
            unlocked([&](auto) { out.overwrite(name, x.array, start, x.where); });
          },
          py::arg("name"), py::arg("x"), py::arg("start"),
          "Puts x into an array, from the element `start` on.")
      .def(
          "group",
          [](io::Zarr& out, const std::string& name) {
            unlocked([&](auto where) { out.group(name, where); });
          },
          py::arg("name"), "Makes a group, and those on the way to it.")
      .def(
          "attribute",
          [](io::Zarr& out, const std::string& name, const std::string& key, const io::Attribute& value) {
            unlocked([&](auto where) { out.attribute(name, key, value, where); });
          },
          py::arg("name"), py::arg("key"), py::arg("value"),
          "Sets an attribute of an array, a group or the store (\"\").")
      .def(
          "attributes_json",
          [](io::Zarr& out, const std::string& name, const std::string& json) {
            unlocked([&](auto where) { out.attributes_json(name, json, where); });
          },
          py::arg("name"), py::arg("json"), "Sets all attributes to those of a JSON object.")
      .def(
          "flush", [](io::Zarr& out) { unlocked([&](auto where) { out.flush(where); }); },
          "A new store gets its name.");
}

io::NetcdfVariableOptions variable_options(int compression, const std::optional<DtypeValue>& packed,
                                           std::optional<double> scale_factor,
                                           std::optional<double> add_offset, std::optional<double> fill) {
  io::NetcdfVariableOptions options{compression, {}, scale_factor, add_offset, fill};
  if (packed) options.packed = packed->value;
  return options;
}

using Put = void (io::Netcdf::*)(const std::string&, const Array&, const std::vector<std::string>&,
                                 const io::NetcdfVariableOptions&, std::source_location);
template <Put put> void bind_put(py::class_<io::Netcdf>& type, const char* name, const char* doc) {
  type.def(
      name,
      [](io::Netcdf& out, const std::string& variable, Value x, const std::vector<std::string>& dims,
         int compression, std::optional<DtypeValue> packed, std::optional<double> scale_factor,
         std::optional<double> add_offset, std::optional<double> fill) {
        const auto options = variable_options(compression, packed, scale_factor, add_offset, fill);
        unlocked([&](auto) { (out.*put)(variable, x.array, dims, options, x.where); });
      },
      py::arg("name"), py::arg("x"), py::arg("dims"), py::arg("compression") = 0,
      py::arg("packed") = py::none(), py::arg("scale_factor") = py::none(),
      py::arg("add_offset") = py::none(), py::arg("fill") = py::none(), doc);
}

void bind_netcdf(py::module_& part) {
  auto type = bind_writer<io::Netcdf, io::Hdf5WriterOptions, io::Hdf5Open>(
      part, "Netcdf", "Writes a netCDF-4 file variable by variable");
  bind_put<&io::Netcdf::write>(type, "write", "Makes a variable over these dimensions.");
  bind_put<&io::Netcdf::append>(type, "append",
                                "Adds x along the first dimension of a variable, or makes it.");
  type.def(
      "attribute",
      [](io::Netcdf& out, const std::string& variable, const std::string& name, const io::Attribute& value) {
        unlocked([&](auto where) { out.attribute(variable, name, value, where); });
      },
      py::arg("variable"), py::arg("name"), py::arg("value"),
      "Sets an attribute of a variable, or of the file (\"\").");
  part.def(
      "save_netcdf",
      [](const PathValue& path, const std::map<std::string, Value>& variables,
         const std::map<std::string, std::vector<std::string>>& dims) {
        const auto arrays = arrays_by_name(variables);
        unlocked([&](auto where) { io::save_netcdf(path, arrays, dims, where); });
      },
      py::arg("path"), py::arg("variables"), py::arg("dims"),
      "Several variables as one save: values by their names, and the names of each one's dimensions.");
  part.def(
      "netcdf_variables",
      [](const PathValue& path) {
        py::dict found;
        for (const auto& [name, variable] : io::netcdf_variables(path, here()))
          found[py::str(name)] = py::make_tuple(file_info(variable.info), variable.dims);
        return found;
      },
      py::arg("path"), "What each variable holds, and the names of its dimensions. Not collective.");
  part.def(
      "netcdf_dims",
      [](const PathValue& path) {
        py::dict found;
        for (const auto& [name, dim] : io::netcdf_dims(path, here()))
          found[py::str(name)] = py::make_tuple(dim.size, dim.is_unlimited);
        return found;
      },
      py::arg("path"), "The size of each dimension, and whether it is unlimited. Not collective.");
  part.def(
      "netcdf_attributes",
      [](const PathValue& path, const std::string& variable) {
        return io::netcdf_attributes(path, variable, here());
      },
      py::arg("path"), py::arg("variable") = "",
      "The attributes of a variable, a group or the file. Not collective.");
  part.def(
      "zarr_attributes", [](const PathValue& path) { return io::zarr_attributes(path, here()); },
      py::arg("path"),
      "The attributes of an array or a group that are numbers, texts or lists of them. Not collective.");
}

void bind_file_array(py::module_& part) {
  py::class_<io::FileArray, Array>(part, "FileArray")
      .def_property_readonly("path", &io::FileArray::path)
      .def_property_readonly("detail", &io::FileArray::detail)
      .def_property_readonly("chunks", [](const io::FileArray& x) { return py::tuple(py::cast(x.chunks())); })
      .def(
          "part",
          [](const io::FileArray& x, const py::args& slices) {
            std::vector<Slice> parts;
            for (const auto& given : slices) parts.push_back(given.cast<SliceValue>().value);
            return x.part(parts, here());
          },
          "A part of the array: slices of its first dims. Nothing is read.")
      .def(
          "load",
          [](const io::FileArray& x, const std::optional<ShardingValue>& sharding) {
            std::optional<Array> loaded;
            unlocked(
                [&](auto where) { loaded = sharding ? x.load(*sharding->value, where) : x.load(where); });
            return *loaded;
          },
          py::arg("sharding") = py::none())
      .def("__str__", [](const io::FileArray& x) { return to_string(x); })
      .def("__repr__", [](const io::FileArray& x) { return "<FileArray " + to_string(x) + ">"; });
  part.def(
      "open",
      [](const PathValue& path, const std::string& name, bool unpack, bool other_files) {
        std::optional<io::FileArray> opened;
        unlocked([&](auto where) { opened.emplace(io::open(path, {name, unpack, other_files}, where)); });
        return *opened;
      },
      py::arg("path"), py::arg("name") = "", py::arg("unpack") = true, py::arg("other_files") = false);
}

io::StoreOptions store_options(const std::string& name, const py::kwargs& words) {
  io::StoreOptions options{name};
  for (const auto& [key, value] : words) {
    const auto word = key.cast<std::string>();
    if (word == "dims")
      options.dims = value.cast<std::vector<std::string>>();
    else if (word == "chunks")
      options.chunks = value.cast<std::vector<std::int64_t>>();
    else if (word == "shards")
      options.shards = value.cast<std::vector<std::int64_t>>();
    else if (word == "compression")
      options.compression = value.cast<std::string>();
    else
      throw py::type_error("there is no option '" + word +
                           "'; there are name, memory_limit, slab, dims, chunks, shards, compression");
  }
  return options;
}

std::vector<io::StoredResult> one_result(const PathValue& path, const Value& value, const std::string& name,
                                         const py::kwargs& words) {
  return {{path, value.array, store_options(name, words)}};
}
// A key or a value of the dict of several results.
template <class T> T item_of_results(py::handle from, const char* expected) {
  try {
    return from.cast<T>();
  } catch (const py::cast_error&) {
    throw py::type_error("store at " + line_text(here()) + ": the dict holds " +
                         py::repr(from).cast<std::string>() +
                         "; its keys are paths, or (path, name), and its " + "values arrays: " + expected);
  }
}
// Values by their paths, or by (path, name).
std::vector<io::StoredResult> several_results(const py::dict& values, const py::kwargs& words) {
  std::vector<io::StoredResult> results;
  for (const auto& [key, value] : values) {
    const bool is_named = py::isinstance<py::tuple>(key) && py::len(key) == 2;
    const auto pair = is_named ? py::cast<py::tuple>(key) : py::make_tuple(key, "");
    results.push_back({item_of_results<PathValue>(pair[0], "a path is missing"),
                       item_of_results<Value>(value, "an array is missing").array,
                       store_options(item_of_results<std::string>(pair[1], "a name is missing"), words)});
  }
  return results;
}

void bind_stream_plan(py::module_& part) {
  part.def(
      "explain_compute",
      [](const py::object& values, std::int64_t memory_limit, std::int64_t slab) {
        std::vector<Array> leaves;
        flatten(values, leaves, Numbers::leaves);
        return io::explain_compute(leaves, {memory_limit, slab}, here());
      },
      py::arg("values"), py::arg("memory_limit") = 0, py::arg("slab") = 0);
  part.def(
      "explain_store",
      [](const PathValue& path, const Value& value, const std::string& name, std::int64_t memory_limit,
         std::int64_t slab, const py::kwargs& words) {
        return io::explain_store(one_result(path, value, name, words), {memory_limit, slab}, here());
      },
      py::arg("path"), py::arg("value"), py::arg("name") = "", py::arg("memory_limit") = 0,
      py::arg("slab") = 0);
  part.def(
      "explain_store",
      [](const py::dict& results, std::int64_t memory_limit, std::int64_t slab, const py::kwargs& words) {
        return io::explain_store(several_results(results, words), {memory_limit, slab}, here());
      },
      py::arg("results"), py::arg("memory_limit") = 0, py::arg("slab") = 0,
      "The plan of store(results): bytes, passes and the peak, before anything is read. Not collective.");
}

void bind_streams(py::module_& part) {
  bind_file_array(part);
  bind_stream_plan(part);
  // A tree of the structure that is given.
  part.def(
      "compute",
      [](const py::object& values, std::int64_t memory_limit, std::int64_t slab) -> py::object {
        std::vector<Array> given, computed;
        const Tree tree = flatten(values, given, Numbers::leaves);
        unlocked([&](auto where) { computed = io::compute(given, {memory_limit, slab}, where); });
        return rebuild(tree, computed);
      },
      py::arg("values"), py::arg("memory_limit") = 0, py::arg("slab") = 0,
      "The values of expressions on files, in memory, computed slab by slab within memory_limit bytes. "
      "Collective over all ranks.");
  const auto store = [](const std::vector<io::StoredResult>& results, const io::ComputeOptions& options) {
    unlocked([&](auto where) { io::store(results, options, where); });
  };
  part.def(
      "store",
      [store](const PathValue& path, const Value& value, const std::string& name, std::int64_t memory_limit,
              std::int64_t slab, const py::kwargs& words) {
        store(one_result(path, value, name, words), {memory_limit, slab});
      },
      py::arg("path"), py::arg("value"), py::arg("name") = "", py::arg("memory_limit") = 0,
      py::arg("slab") = 0,
      "Writes the value of an expression on files, slab by slab: .npy; HDF5 (.h5, .hdf5) or netCDF-4 (.nc) "
      "with one dataset; Zarr (.zarr). Collective over all ranks.\n\nThere is no mode: the file is a new one "
      "and replaces an older one when all of it is written; a failure leaves the old file or none. dims: "
      "names, for netCDF and Zarr; chunks, shards, compression: for Zarr.");
  part.def(
      "store",
      [store](const py::dict& results, std::int64_t memory_limit, std::int64_t slab,
              const py::kwargs& words) {
        store(several_results(results, words), {memory_limit, slab});
      },
      py::arg("results"), py::arg("memory_limit") = 0, py::arg("slab") = 0,
      "Writes several results, by their paths or by (path, name), which share the passes over the files.");
}

}  // namespace

void bind_stores(py::module_& m) {
  py::module_ part = m.def_submodule("io");
  bind_zarr(part);
  bind_netcdf(part);
  bind_streams(part);
}

}  // namespace tessera::python
