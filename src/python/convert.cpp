#include "python/convert.hpp"

#include <tessera/error.hpp>

#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "ops/create/scalar.hpp"
#include "python/module.hpp"
#include "python/place.hpp"

namespace tessera::python {
namespace {

py::module_ numpy() { return py::module_::import("numpy"); }

bool is_type_of_numpy(py::handle type) {
  const py::object module = py::getattr(type, "__module__", py::none());
  return py::isinstance<py::str>(module) && module.cast<std::string>() == "numpy";
}

bool has_dtype(py::handle object) {
  return !PyType_Check(object.ptr()) && PyObject_HasAttrString(object.ptr(), "__array_interface__") == 1;
}

Array plain_integer(PyObject* number, const std::source_location& where) {
  int overflow = 0;
  const auto value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) return make_plain_integer(static_cast<std::uint64_t>(value), value < 0, where);
  const auto bits = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : 0;
  if (overflow > 0 && PyErr_Occurred() == nullptr) return make_plain_integer(bits, false, where);
  PyErr_Clear();
  PyErr_SetString(PyExc_OverflowError,
                  (line_text(where) + ": the number " + py::str(number).cast<std::string>() +
                   " does not fit 64 bits: write it as a float")
                      .c_str());
  throw py::error_already_set();
}

// NumPy's arrays and scalars have their own dtype; plain numbers are weakly typed.
bool read_number(py::handle from, Value& into) {
  PyObject* object = from.ptr();
  if (PyBool_Check(object)) {
    into.array = Array(object == Py_True, into.where);
  } else if (PyLong_Check(object)) {
    into.array = plain_integer(object, into.where);
  } else if (PyFloat_CheckExact(object)) {
    into.array = Array(PyFloat_AS_DOUBLE(object), into.where);
  } else if (PyComplex_CheckExact(object)) {
    into.array = Array(std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)),
                       into.where);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool read_value(py::handle from, Value& into) {
  into.where = here();
  if (const Array* array = array_in(from)) {
    into.array = *array;
    return true;
  }
  if (read_number(from, into)) return true;
  if (!has_dtype(from)) return false;
  const HostArray host = host_array(from);
  into.array = array_from_host(host.bytes(), host.shape(), host.dtype(), into.where);
  return true;
}

bool read_dtype(py::handle from, DtypeValue& into) {
  if (py::isinstance<Dtype>(from)) {
    into.value = from.cast<Dtype>();
    return true;
  }
  PyObject* object = from.ptr();
  const std::pair<PyTypeObject*, Dtype> plain[] = {
      {&PyBool_Type, bool_}, {&PyLong_Type, int32}, {&PyFloat_Type, float32}, {&PyComplex_Type, complex64}};
  for (const auto& [type, dtype] : plain)
    if (object == reinterpret_cast<PyObject*>(type)) {
      into.value = dtype;
      return true;
    }
  // The map holds NumPy's types, so that each is asked once what it means.
  static auto* const known_types = new std::map<PyObject*, Dtype>();
  if (const auto known = known_types->find(object); known != known_types->end()) {
    into.value = known->second;
    return true;
  }
  std::string text;
  if (PyUnicode_Check(object)) {
    text = from.cast<std::string>();
  } else if (PyType_Check(object) || PyObject_HasAttrString(object, "itemsize")) {
    try {
      text = py::str(numpy().attr("dtype")(from).attr("name"));
    } catch (py::error_already_set&) {
      return false;
    }
  } else {
    return false;
  }
  try {
    into.value = text == "bool_" ? bool_ : dtype_from_name(text);
  } catch (const ArgumentError& error) {
    throw py::type_error(line_text(here()) + ": " + error.what());
  }
  if (PyType_Check(object) && is_type_of_numpy(from)) known_types->emplace(from.inc_ref().ptr(), into.value);
  return true;
}

bool read_shape(py::handle from, ShapeValue& into) {
  std::vector<std::int64_t> extents;
  const auto append = [&](py::handle extent) {
    if (PyBool_Check(extent.ptr()) || !PyIndex_Check(extent.ptr())) return false;
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(extent.ptr()));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    extents.push_back(PyLong_AsLongLongAndOverflow(number.ptr(), &overflow));
    if (overflow != 0)
      throw ShapeError(line_text(here()) + ": the number " + py::str(number).cast<std::string>() +
                       " in a shape or an axis does not fit 64 bits");
    return true;
  };
  if (PyTuple_Check(from.ptr()) || PyList_Check(from.ptr())) {
    for (const auto extent : py::reinterpret_borrow<py::sequence>(from))
      if (!append(extent)) return false;
  } else if (array_in(from) != nullptr || !append(from)) {
    return false;
  }
  into.value = Shape(std::move(extents));
  return true;
}

bool read_axes(py::handle from, AxesValue& into) {
  if (from.is_none()) return true;
  ShapeValue numbers;
  if (!read_shape(from, numbers)) return false;
  for (const auto axis : numbers.value) {
    if (!std::in_range<int>(axis))
      throw IndexError(line_text(here()) + ": axis " + std::to_string(axis) + " is out of range");
    into.value.values.push_back(static_cast<int>(axis));
  }
  return true;
}

bool read_key(py::handle from, KeyValue& into) {
  if (py::isinstance<random::Key>(from)) {
    into.value = from.cast<random::Key>();
    return true;
  }
  Value value;
  if (PyLong_Check(from.ptr()) || !read_value(from, value)) return false;
  into.value = random::wrap_key_data(value.array, value.where);
  return true;
}

bool read_sharding(py::handle from, ShardingValue& into) {
  if (py::isinstance<Sharding>(from))
    into.value = from.cast<Sharding>();
  else if (py::isinstance<PositionalSharding>(from))
    into.value = Sharding(from.cast<PositionalSharding>());
  else if (py::isinstance<Device>(from))
    into.value = SingleDeviceSharding(from.cast<Device>());
  else if (py::isinstance<PartitionSpec>(from) && from.cast<const PartitionSpec&>().is_automatic())
    into.value = Sharding::automatic();
  return into.value.has_value();
}

bool read_names(py::handle from, NamesValue& into) {
  if (PyUnicode_Check(from.ptr())) {
    into.names = {from.cast<std::string>()};
    return true;
  }
  if (!PyTuple_Check(from.ptr()) && !PyList_Check(from.ptr())) return false;
  for (const auto name : py::reinterpret_borrow<py::sequence>(from)) {
    if (!PyUnicode_Check(name.ptr())) return false;
    into.names.push_back(name.cast<std::string>());
  }
  return true;
}

std::optional<std::int64_t> slice_bound(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(object));
  if (!number) throw py::error_already_set();
  int overflow = 0;
  const auto value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN + 1 : value;
}
bool read_path(py::handle from, PathValue& into) {
  auto path = py::reinterpret_steal<py::object>(PyOS_FSPath(from.ptr()));
  if (path && PyUnicode_Check(path.ptr()))
    path = py::reinterpret_steal<py::object>(PyUnicode_EncodeFSDefault(path.ptr()));
  if (!path) {
    PyErr_Clear();
    return false;
  }
  into.value =
      std::string(PyBytes_AS_STRING(path.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(path.ptr())));
  return true;
}

bool read_slice(py::handle from, SliceValue& into) {
  if (!PySlice_Check(from.ptr())) return false;
  const auto* slice = reinterpret_cast<PySliceObject*>(from.ptr());
  into.value = {slice_bound(slice->start), slice_bound(slice->stop), slice_bound(slice->step)};
  return true;
}

// The dtype of a buffer's format, if that is in native order.
static std::optional<Dtype> dtype_of_format(const Py_buffer& memory) {
  if (memory.format == nullptr) return std::nullopt;
  const std::string_view format = memory.format;
  const auto of_size = [&](std::initializer_list<Dtype> dtypes) -> std::optional<Dtype> {
    for (const Dtype dtype : dtypes)
      if (static_cast<Py_ssize_t>(itemsize(dtype)) == memory.itemsize) return dtype;
    return std::nullopt;
  };
  if (format == "?") return bool_;
  if (format == "e") return float16;
  if (format == "f" || format == "d") return of_size({float32, float64});
  if (format == "Zf" || format == "Zd") return of_size({complex64, complex128});
  if (format.size() == 1 && std::string_view("bhilq").find(format[0]) != std::string_view::npos)
    return of_size({int8, int16, int32, int64});
  if (format.size() == 1 && std::string_view("BHILQ").find(format[0]) != std::string_view::npos)
    return of_size({uint8, uint16, uint32, uint64});
  return std::nullopt;
}

// A NumPy scalar, or a contiguous array of native numbers, is read by its buffer, without a call of NumPy.
static std::optional<HostArray> host_array_by_buffer(py::handle from) {
  static const auto* const array_type = new py::object(numpy().attr("ndarray"));
  static const auto* const scalar_type = new py::object(numpy().attr("generic"));
  const bool is_array = Py_TYPE(from.ptr()) == reinterpret_cast<PyTypeObject*>(array_type->ptr());
  if (!is_array && PyObject_TypeCheck(from.ptr(), reinterpret_cast<PyTypeObject*>(scalar_type->ptr())) == 0)
    return std::nullopt;
  Py_buffer memory;
  if (PyObject_GetBuffer(from.ptr(), &memory, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  std::optional<HostArray> host;
  if (const auto dtype = dtype_of_format(memory)) {
    host.emplace(Shape(std::vector<std::int64_t>(memory.shape, memory.shape + memory.ndim)), *dtype, here());
    if (memory.len > 0) std::memcpy(host->bytes(), memory.buf, static_cast<std::size_t>(memory.len));
  }
  PyBuffer_Release(&memory);
  return host;
}

HostArray host_array(py::handle from) {
  if (auto host = host_array_by_buffer(from)) return *std::move(host);
  const py::object dense = numpy().attr("ascontiguousarray")(from);
  const py::object dtype = dense.attr("dtype");
  const auto kind = dtype.attr("kind").cast<std::string>();
  const auto text = dtype.attr("name").cast<std::string>();
  static const char* const known =
      "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 "
      "bfloat16 ";
  const bool is_known_kind = text == "bfloat16" || std::strchr("biufc", kind[0]) != nullptr;
  if (std::strstr(known, (text + " ").c_str()) == nullptr || !is_known_kind) {
    PyErr_SetString(
        PyExc_TypeError,
        ("an array of NumPy's dtype " + text + " has no counterpart; the dtypes are " + known).c_str());
    throw py::error_already_set();
  }
  // Keeps scalars 0-d: ascontiguousarray would make them 1-D.
  const py::object native =
      text == "bfloat16"
          ? py::object(dense.attr("view")("uint16"))  // ml_dtypes' type, whose memory has no format letter
          : py::object(dense.attr("astype")(dtype.attr("newbyteorder")("="), py::arg("copy") = false));
  HostArray host(Shape(py::cast<std::vector<std::int64_t>>(numpy().attr("shape")(from))),
                 dtype_from_name(text), here());
  const py::buffer_info memory = py::buffer(native).request();
  if (host.nbytes() > 0) std::memcpy(host.bytes(), memory.ptr, static_cast<std::size_t>(host.nbytes()));
  return host;
}

// NumPy has no bfloat16: uses that of ml_dtypes if it is installed, otherwise the bits as uint16.
static py::object find_numpy_dtype(Dtype dtype) {
  if (dtype != bfloat16) return numpy().attr("dtype")(name(dtype));
  try {
    return numpy().attr("dtype")(py::module_::import("ml_dtypes").attr("bfloat16"));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return numpy().attr("dtype")("uint16");
  }
}
py::object numpy_dtype(Dtype dtype) {
  static auto* const known = new std::map<int, py::object>();
  py::object& found = (*known)[dtype.code];
  if (!found) found = find_numpy_dtype(dtype);
  return found;
}

py::object named_tuple(const char* type, const char* fields, py::tuple values) {
  static auto* const types = new std::map<std::string, py::object>();
  auto& known = (*types)[type];
  if (!known) {
    known = py::module_::import("collections").attr("namedtuple")(type, fields);
    known.attr("__module__") = "tessera";
  }
  return known(*values);
}

py::tuple tuple_of(const Shape& shape) {
  py::tuple extents(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) extents[i] = py::int_(shape[i]);
  return extents;
}

std::vector<Array> arrays_of(const std::vector<Value>& values) {
  std::vector<Array> arrays;
  for (const auto& value : values) arrays.push_back(value.array);
  return arrays;
}
const std::vector<Value>& exactly(const std::vector<Value>& values, std::size_t count, const char* what) {
  if (values.size() == count) return values;
  throw ArgumentError(std::string(what) + ", has " + std::to_string(count) + " arrays, not " +
                      std::to_string(values.size()));
}
std::vector<std::vector<Array>> rows_of(const std::vector<std::vector<Value>>& rows) {
  std::vector<std::vector<Array>> arrays;
  for (const auto& row : rows) arrays.push_back(arrays_of(row));
  return arrays;
}
std::map<std::string, Array> arrays_by_name(const std::map<std::string, Value>& values) {
  std::map<std::string, Array> arrays;
  for (const auto& [key, value] : values) arrays.emplace(key, value.array);
  return arrays;
}

}  // namespace tessera::python
