// Creating and placing arrays: the functions that take Python's own values.
#include <tessera/array.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/edit.hpp>

#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/families.hpp"
#include "python/module.hpp"
#include "python/place.hpp"
#include "random/draw.hpp"
#include "types/extents.hpp"

namespace tessera::python {
namespace {

// Takes a plain number with all of its bits, which as an operand would have become float32 or int32.
Array full_of_number(const Shape& shape, PyObject* number, std::optional<Dtype> dtype,
                     std::source_location where) {
  if (PyBool_Check(number)) {
    const bool v = number == Py_True;
    return full_from_host(shape, &v, bool_, dtype.value_or(bool_), "full", where);
  }
  if (PyLong_Check(number)) {
    int overflow = 0;
    const std::int64_t v = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow == 0) return full_from_host(shape, &v, int64, dtype.value_or(int32), "full", where);
    const std::uint64_t large = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return full_from_host(shape, &large, uint64, dtype.value_or(uint64), "full", where);
  }
  if (PyFloat_Check(number)) {
    const double v = PyFloat_AS_DOUBLE(number);
    return full_from_host(shape, &v, float64, dtype.value_or(float32), "full", where);
  }
  const std::complex<double> v(PyComplex_RealAsDouble(number), PyComplex_ImagAsDouble(number));
  return full_from_host(shape, &v, complex128, dtype.value_or(complex64), "full", where);
}
bool is_plain_number(py::handle value) {
  PyObject* object = value.ptr();
  return PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyComplex_CheckExact(object);
}
Array full_of(ShapeValue shape, py::handle fill, std::optional<DtypeValue> dtype) {
  const auto wanted = dtype ? std::optional<Dtype>(dtype->value) : std::nullopt;
  if (is_plain_number(fill)) return full_of_number(shape.value, fill.ptr(), wanted, here());
  Value value;
  if (!read_value(fill, value)) throw py::type_error("full: the value is a number or an array");
  return full(shape.value, wanted ? astype(value, *wanted) : value.array, value.where);
}

void bind_placement(py::module_& m) {
  m.def(
      "device_put_leaf", [](Value x, ShardingValue target) { return device_put(x, *target.value); },
      py::arg("x"), py::arg("device"));
  m.def(
      "with_sharding_constraint_leaf",
      [](Value x, ShardingValue target) { return with_sharding_constraint(x, *target.value); }, py::arg("x"),
      py::arg("shardings"));
  m.def("eval_leaves", [](std::vector<Value> values) {
    const auto arrays = arrays_of(values);
    const auto where = here();
    const py::gil_scoped_release unlocked;
    eval(arrays, where);
  });
  m.def(
      "make_array_from_callback",
      [](ShapeValue shape, ShardingValue sharding, py::function block) {
        const auto where = here();
        const Held function{py::object(block)};
        const py::gil_scoped_release unlocked;
        return make_array_from_callback(
            shape.value, *sharding.value,
            [&](const Index& index) {
              const py::gil_scoped_acquire locked;
              py::tuple slices(index.size());
              for (std::size_t d = 0; d < index.size(); ++d)
                slices[d] = py::slice(py::int_(index[d].start), py::int_(index[d].stop), py::none());
              return host_array(function.get()(slices));
            },
            where);
      },
      py::arg("shape"), py::arg("sharding"), py::arg("data_callback"),
      "A committed array whose blocks the callback makes: it is called with the slices of this process's "
      "block. Collective over all ranks.");
  m.def(
      "make_array_from_process_local_data",
      [](ShardingValue sharding, py::object block, std::optional<ShapeValue> global) {
        const HostArray host = host_array(block);
        const auto where = here();
        const std::optional<Shape> shape = global ? std::optional<Shape>(global->value) : std::nullopt;
        const py::gil_scoped_release unlocked;
        return make_array_from_process_local_data(*sharding.value, host, shape, where);
      },
      py::arg("sharding"), py::arg("local_data"), py::arg("global_shape") = py::none(),
      "A committed array of the blocks that the processes bring. Collective over all ranks.");
}

}  // namespace

void bind_create(py::module_& m) {
  m.def("_named_tuple", &named_tuple);
  m.def("array_from_numpy", [](py::object x) {
    const HostArray host = host_array(x);
    return array(host, here());
  });
  m.def(
      "zeros", [](ShapeValue shape, DtypeValue dtype) { return zeros(shape.value, dtype.value, here()); },
      py::arg("shape"), py::arg("dtype") = "float32", "Zeros.");
  m.def(
      "ones", [](ShapeValue shape, DtypeValue dtype) { return ones(shape.value, dtype.value, here()); },
      py::arg("shape"), py::arg("dtype") = "float32", "Ones.");
  m.def("full", &full_of, py::arg("shape"), py::arg("fill_value"), py::arg("dtype") = py::none(),
        "The value everywhere.");
  m.def(
      "eye",
      [](std::int64_t n, std::optional<std::int64_t> columns, int k, DtypeValue dtype) {
        return eye(n, columns.value_or(n), k, dtype.value, here());
      },
      py::arg("n_rows"), py::arg("n_cols") = py::none(), py::arg("k") = 0, py::arg("dtype") = "float32",
      "Ones on diagonal k.");
  m.def("arange_integers", [](std::int64_t start, std::int64_t stop, std::int64_t step, DtypeValue dtype) {
    return arange_of(start, stop, step, dtype.value, here());
  });
  m.def("arange_floats", [](double start, double stop, double step, DtypeValue dtype) {
    return arange_of(start, stop, step, dtype.value, here());
  });
  m.def(
      "linspace",
      [](double start, double stop, std::int64_t num, DtypeValue dtype, bool endpoint) {
        return linspace(start, stop, num, dtype.value, endpoint, here());
      },
      py::arg("start"), py::arg("stop"), py::arg("num") = 50, py::arg("dtype") = "float32",
      py::arg("endpoint") = true, "num values from start to stop.");
  m.def("clip_lower", [](Value x, Value lo) { return clip(x, lo, None); });
  m.def("clip_upper", [](Value x, Value hi) { return clip(x, None, hi); });
  m.def(
      "einsum",
      [](const std::string& expression, py::args operands) {
        std::vector<Array> arrays;
        for (const auto operand : operands) {
          Value value;
          if (!read_value(operand, value)) throw py::type_error("einsum takes arrays behind the expression");
          arrays.push_back(value.array);
        }
        return einsum_of(expression, std::move(arrays), here());
      },
      py::arg("expression"), "numpy.einsum.");
  const auto bind_bits = [&m]<class Bits>(const char* name, Bits bits) {
    m.def(name, bits, py::arg("x"), py::arg("axis"), py::arg("bitorder"));
  };
  bind_bits("packbits", [](Value x, int axis, const std::string& order) { return packbits(x, axis, order); });
  bind_bits("unpackbits",
            [](Value x, int axis, const std::string& order) { return unpackbits(x, axis, order); });
  py::class_<random::Key>(m, "Key")
      .def_property_readonly("data", [](const random::Key& key) { return key.data; })
      .def_property_readonly(
          "shape", [](const random::Key& key) { return tuple_of(without_last(key.data.shape(), 1)); })
      .def("__len__",
           [](const random::Key& key) {
             if (key.data.ndim() < 2) throw py::type_error("a single key has no length");
             return key.data.shape()[0];
           })
      .def("__reduce__",
           [](const random::Key& key) -> py::tuple {
             return py::make_tuple(py::module_::import("tessera._pickling").attr("key"),
                                   py::make_tuple(key.data));
           })
      .def("__array__",
           [](const random::Key&, py::args, py::kwargs) {
             throw py::type_error(line_text(here()) +
                                  ": a key is no array of numbers; random.key_data(key) gives its words");
           })
      .def("__repr__",
           [](const random::Key& key) {
             return "Key(shape=" + to_string(without_last(key.data.shape(), 1)) + ")";
           })
      .def("__iter__",
           [](const random::Key& key) -> py::iterator {
             py::list keys;
             const std::int64_t n = key.data.ndim() < 2 ? 1 : key.data.shape()[0];  // 1 is refused
             for (std::int64_t i = 0; i < n; ++i) keys.append(random::key_at(key, i, here()));
             return py::iter(keys);
           })
      .def(
          "__getitem__",
          [](const random::Key& key, py::object index) {
            if (PyLong_Check(index.ptr())) return random::key_at(key, index.cast<std::int64_t>(), here());
            return random::wrap_key_data(py::cast(key.data)[index].cast<Array>(), here());
          },
          py::arg("index"));
  m.def("key_of_data", [](Value data) { return random::wrap_key_data(data.array, data.where); });
  // Sets how keys become bits, until the next call: jax_threefry_partitionable.
  m.def("set_threefry", [](bool is_partitionable) {
    static auto* const scope = new std::optional<random::ThreefryScope>();
    scope->reset();
    if (!is_partitionable) scope->emplace(random::Threefry::original);
  });
  bind_placement(m);
}

}  // namespace tessera::python
