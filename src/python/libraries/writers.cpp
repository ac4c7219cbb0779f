// Files that stay open between writes.
#include <tessera/io/hdf5_writer.hpp>

#include <map>
#include <optional>
#include <string>

#include "python/libraries/file_writer.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

io::Hdf5DatasetOptions dataset_options(int compression, bool shuffle,
                                       const std::optional<ShapeValue>& chunk) {
  io::Hdf5DatasetOptions options;
  options.compression = compression;
  options.shuffle = shuffle;
  if (chunk) options.chunk = chunk->value;
  return options;
}

using Store = void (io::Hdf5Writer::*)(const std::string&, const Array&, const io::Hdf5DatasetOptions&,
                                       std::source_location);
template <Store store> void bind_store(py::class_<io::Hdf5Writer>& type, const char* name, const char* doc) {
  type.def(
      name,
      [](io::Hdf5Writer& out, const std::string& dataset, Value x, int compression, bool shuffle,
         std::optional<ShapeValue> chunk) {
        const auto options = dataset_options(compression, shuffle, chunk);
        unlocked([&](auto) { (out.*store)(dataset, x.array, options, x.where); });
      },
      py::arg("dataset"), py::arg("x"), py::arg("compression") = 0, py::arg("shuffle") = true,
      py::arg("chunk") = py::none(), doc);
}

}  // namespace

void bind_writers(py::module_& m) {
  py::module_ part = m.def_submodule("io");
  auto type = bind_writer<io::Hdf5Writer, io::Hdf5WriterOptions, io::Hdf5Open>(
      part, "Hdf5Writer", "Writes one HDF5 file piece by piece");
  bind_store<&io::Hdf5Writer::write>(type, "write", "Makes a dataset.");
  bind_store<&io::Hdf5Writer::append>(type, "append", "Adds x behind what a dataset holds, or makes it.");
  type.def(
          "group",
          [](io::Hdf5Writer& out, const std::string& path) {
            unlocked([&](auto where) { out.group(path, where); });
          },
          py::arg("path"), "Makes a group, and those on the way to it.")
      .def(
          "attribute",
          [](io::Hdf5Writer& out, const std::string& object, const std::string& name,
             const io::Hdf5Attribute& value) {
            unlocked([&](auto where) { out.attribute(object, name, value, where); });
          },
          py::arg("object"), py::arg("name"), py::arg("value"),
          "Sets an attribute of a dataset, a group or the file (\"/\").")
      .def(
          "flush", [](io::Hdf5Writer& out) { unlocked([&](auto where) { out.flush(where); }); },
          "What was written so far stands under the final name.");
  part.def(
      "hdf5_attributes",
      [](const PathValue& path, const std::string& object) {
        return io::hdf5_attributes(path, object, here());
      },
      py::arg("path"), py::arg("object") = "/",
      "The attributes of a dataset, a group or the file that are numbers or texts. Not collective.");
}

}  // namespace tessera::python
