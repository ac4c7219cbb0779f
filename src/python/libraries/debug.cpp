// Drawings, traffic counts, profiles.
#include <tessera/debug.hpp>
#include <tessera/io.hpp>
#include <tessera/progress.hpp>

#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "ops/effect/effect.hpp"
#include "python/families.hpp"
#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

debug::VisualizeOptions visualize_options(bool use_color, double scale, int min_width, int max_width) {
  debug::VisualizeOptions options;
  options.use_color = use_color;
  options.scale = scale;
  options.min_width = min_width;
  options.max_width = max_width;
  return options;
}

// Arrays and numbers keep their type, so that formats apply to them; other objects are printed as Python
// shows them.
debug::Printed printed_value(const py::object& value) {
  if (py::isinstance<Array>(value)) return value.cast<Array>();
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<std::int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  return std::string(py::str(value));
}

}  // namespace

py::object whole(const HostArray& host) {
  const py::module_ numpy = py::module_::import("numpy");
  const py::object flat = numpy.attr("frombuffer")(
      py::bytes(reinterpret_cast<const char*>(host.bytes()), static_cast<std::size_t>(host.nbytes())),
      py::arg("dtype") = numpy_dtype(host.dtype()));
  return flat.attr("reshape")(tuple_of(host.shape())).attr("copy")();
}

void bind_debug(py::module_& m) {
  py::module_ part = m.def_submodule("debug");
  part.def(
      "sharding_text",
      [](ShapeValue shape, ShardingValue sharding, bool use_color, double scale, int min_width,
         int max_width) {
        return debug::visualize_sharding(shape.value, *sharding.value,
                                         visualize_options(use_color, scale, min_width, max_width), here());
      },
      py::arg("shape"), py::arg("sharding"), py::arg("use_color") = true, py::arg("scale") = 1.0,
      py::arg("min_width") = 9, py::arg("max_width") = 80, "What visualize_sharding prints.");
  part.def("sharding_html", [](ShapeValue shape, ShardingValue sharding) {
    return debug::sharding_html(shape.value, *sharding.value, here());
  });
  part.def("sharding_svg", [](ShapeValue shape, ShardingValue sharding) {
    return debug::sharding_svg(shape.value, *sharding.value, here());
  });
  part.def("prints_later", &effects_wait, "Whether what is printed here is printed when the program runs.");
  part.def("print_values", [](const std::string& format, const std::vector<py::object>& values) {
    std::vector<debug::Printed> printed;
    for (const py::object& value : values) printed.push_back(printed_value(value));
    const debug::Format written(format, here());
    const py::gil_scoped_release unlocked;
    debug::print_values(written, std::move(printed));
  });
  part.def("callback_values", [](py::function f, const std::vector<Value>& values) {
    const auto where = here();
    const auto call = [held = kept(f)](const std::vector<HostArray>& hosts) {
      const py::gil_scoped_acquire locked;
      py::tuple arguments(hosts.size());
      for (std::size_t i = 0; i < hosts.size(); ++i) arguments[i] = whole(hosts[i]);
      try {
        (*held)(*arguments);
      } catch (py::error_already_set& error) {  // must not propagate while other locks are held
        throw std::runtime_error(error.what());
      }
    };
    auto arrays = arrays_of(values);
    const py::gil_scoped_release unlocked;
    debug::callback_values(call, std::move(arrays), where);
  });
  part.def("mesh_picture", &debug::mesh_picture, py::arg("mesh"),
           "The devices of a mesh as a text grid under its axis names.");
  part.def("set_nan_check", &debug::set_nan_check, py::arg("on"),
           "From now on every computed value is searched for NaN.");
  py::class_<debug::CommStats>(part, "CommStats")
      .def(py::init<>())
      .def(
          "calls", [](const debug::CommStats& s, const std::string& kind) { return s.calls(kind); },
          py::arg("kind") = "")
      .def(
          "bytes", [](const debug::CommStats& s, const std::string& kind) { return s.bytes(kind); },
          py::arg("kind") = "")
      .def("kinds", &debug::CommStats::kinds)
      .def("host_crossing_bytes", &debug::CommStats::host_crossing_bytes,
           "Bytes that came from ranks on other hosts.")
      .def("restart", &debug::CommStats::restart)
      .def("__repr__",
           [](const debug::CommStats& s) {
             std::vector<std::string> parts;
             for (const std::string& kind : s.kinds())
               parts.push_back(kind + ": " + format_count(s.calls(kind), "call") + ", " +
                               format_bytes(s.bytes(kind)));
             return "CommStats(" + (parts.empty() ? "no collectives" : join(parts, "; ")) + ")";
           })
      .def("__enter__", [](py::object self) { return self.attr("restart")(), self; })
      .def("__exit__", [](py::handle, py::args) {});
  py::class_<debug::profile>(part, "Profile")
      .def(py::init<std::string>(), py::arg("trace_path") = "")
      .def("table", &debug::profile::table)
      .def("report", &debug::profile::report, py::call_guard<py::gil_scoped_release>(),
           "Of all ranks: least, mean and most seconds, imbalance, bytes, memory. Collective over all ranks.")
      .def("write_all", &debug::profile::write_all, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
           "One trace of all ranks, which rank 0 writes. Collective over all ranks.")
      .def("seconds", &debug::profile::seconds)
      .def("steps", &debug::profile::steps)
      .def("write", &debug::profile::write);
  py::class_<Progress>(m, "Progress",
                       "A bar on a terminal, a line a minute in a log; written by rank 0. Not collective.")
      .def(py::init<std::string, std::int64_t>(), py::arg("what"), py::arg("total") = 0)
      .def("advance", &Progress::advance, py::arg("steps") = 1, py::arg("note") = "",
           "So many steps more are done; `note` follows the figures.")
      .def("done", &Progress::done, "Steps so far.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](py::handle, py::args) {});
}

}  // namespace tessera::python
