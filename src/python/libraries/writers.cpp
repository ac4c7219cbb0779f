// Files that stay open between writes.
#include <tessera/io/hdf5_writer.hpp>

#include <map>
#include <optional>
#include <string>

#include "python/convert.hpp"
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
        const py::gil_scoped_release unlocked;
        (out.*store)(dataset, x.array, options, x.where);
      },
      py::arg("dataset"), py::arg("x"), py::arg("compression") = 0, py::arg("shuffle") = true,
      py::arg("chunk") = py::none(), doc);
}

}  // namespace

void bind_writers(py::module_& m) {
  py::module_ part = m.def_submodule("io");
  py::class_<io::Hdf5Writer> type(part, "Hdf5Writer",
                                  "Writes one HDF5 file piece by piece; with `with` it is closed at the end. "
                                  "Collective over all ranks.");
  type.def(py::init([](const PathValue& path, const std::string& mode) {
             const io::Hdf5WriterOptions options{choose<io::Hdf5Open>("mode", mode,
                                                                      {{"append", io::Hdf5Open::append},
                                                                       {"replace", io::Hdf5Open::replace},
                                                                       {"fail", io::Hdf5Open::fail}})};
             const auto where = here();
             const py::gil_scoped_release unlocked;
             return io::Hdf5Writer(path, options, where);
           }),
           py::arg("path"), py::arg("mode") = "append");
  bind_store<&io::Hdf5Writer::write>(type, "write", "Makes a dataset.");
  bind_store<&io::Hdf5Writer::append>(type, "append", "Adds x behind what a dataset holds, or makes it.");
  type.def(
          "group",
          [](io::Hdf5Writer& out, const std::string& path) {
            const auto where = here();
            const py::gil_scoped_release unlocked;
            out.group(path, where);
          },
          py::arg("path"), "Makes a group, and those on the way to it.")
      .def(
          "attribute",
          [](io::Hdf5Writer& out, const std::string& object, const std::string& name,
             const io::Hdf5Attribute& value) {
            const auto where = here();
            const py::gil_scoped_release unlocked;
            out.attribute(object, name, value, where);
          },
          py::arg("object"), py::arg("name"), py::arg("value"),
          "Sets an attribute of a dataset, a group or the file (\"/\").")
      .def(
          "flush",
          [](io::Hdf5Writer& out) {
            const auto where = here();
            const py::gil_scoped_release unlocked;
            out.flush(where);
          },
          "What was written so far stands under the final name.")
      .def(
          "close",
          [](io::Hdf5Writer& out) {
            const auto where = here();
            const py::gil_scoped_release unlocked;
            out.close(where);
          },
          "flush, and the end of it.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](py::object self, const py::object& kind, py::handle, py::handle) {
        if (kind.is_none()) self.attr("close")();
      });
  part.def(
      "hdf5_attributes",
      [](const PathValue& path, const std::string& object) {
        return io::hdf5_attributes(path, object, here());
      },
      py::arg("path"), py::arg("object") = "/",
      "The attributes of a dataset, a group or the file that are numbers or texts. Not collective.");
}

}  // namespace tessera::python
