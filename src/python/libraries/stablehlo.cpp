// Programs in StableHLO text.
#include <tessera/jit/stablehlo.hpp>

#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {

void bind_stablehlo(py::module_& m) {
  py::module_ part = m.def_submodule("stablehlo");
  py::class_<stablehlo::LoadedValue>(part, "LoadedValue", "An argument or a result of a program.")
      .def_readonly("name", &stablehlo::LoadedValue::name)
      .def_property_readonly("shape", [](const stablehlo::LoadedValue& x) { return tuple_of(x.shape); })
      .def_readonly("dtype", &stablehlo::LoadedValue::dtype)
      .def_readonly("sharding", &stablehlo::LoadedValue::sharding)
      .def("__repr__", [](const stablehlo::LoadedValue& x) {
        return tessera::name(x.dtype) + to_string(x.shape) + (x.name.empty() ? "" : " " + x.name);
      });
  py::class_<stablehlo::LoadedProgram>(part, "LoadedProgram",
                                       "A program of another language: a function of its arguments' arrays.")
      .def(
          "__call__",
          [](const stablehlo::LoadedProgram& program, const py::args& given) {
            const auto arrays = arrays_of(given.cast<std::vector<Value>>());
            const py::gil_scoped_release unlocked;
            return program(arrays);
          },
          "The results for these arguments, as a list. Collective over the ranks of the arguments.")
      .def_property_readonly("arguments", &stablehlo::LoadedProgram::arguments)
      .def_property_readonly("results", &stablehlo::LoadedProgram::results);
  part.def(
      "load",
      [](const std::string& path, bool ignore_shardings) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return stablehlo::load(path, {ignore_shardings}, where);
      },
      py::arg("path"), py::arg("ignore_shardings") = false);
  part.def(
      "parse",
      [](const std::string& text, const std::string& name, bool ignore_shardings) {
        return stablehlo::parse(text, name, {ignore_shardings}, here());
      },
      py::arg("text"), py::arg("name") = "text", py::arg("ignore_shardings") = false);
}

}  // namespace tessera::python
