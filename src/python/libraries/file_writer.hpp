// Bindings that the classes which write files piece by piece share.
#pragma once
#include <pybind11/pybind11.h>

#include <string>

#include "python/convert.hpp"

namespace tessera::python {

// The result of work(where), computed without the interpreter's lock.
template <class Work> auto unlocked(Work&& work) {
  const auto where = here();
  const py::gil_scoped_release released;
  return work(where);
}

// A class with a constructor (path, mode), close() and a `with` statement that closes. Open: the enumeration
// of modes.
template <class Writer, class Options, class Open>
py::class_<Writer> bind_writer(py::module_& part, const char* name, const std::string& sentence) {
  const std::string doc = sentence + "; with `with` it is closed at the end. Collective over all ranks.";
  py::class_<Writer> type(part, name, doc.c_str());
  type.def(py::init([](const PathValue& path, const std::string& mode) {
             const Options options{choose<Open>(
                 "mode", mode, {{"append", Open::append}, {"replace", Open::replace}, {"fail", Open::fail}})};
             return unlocked([&](auto where) { return Writer(path, options, where); });
           }),
           py::arg("path"), py::arg("mode") = "append");
  type.def(
          "close", [](Writer& out) { unlocked([&](auto where) { out.close(where); }); },
          "Completes the file; nothing can be written afterwards.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](py::object self, const py::object& kind, py::handle, py::handle) {
        if (kind.is_none()) self.attr("close")();
      });
  return type;
}

}  // namespace tessera::python
