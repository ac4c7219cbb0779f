// Conversion of Python's values to C++: the argument types of all bindings.
//
// Own argument types replace pybind11's where those accept too much or too little: a Value is an array, a
// number or a NumPy array, and never a list; an axis is never a bool; a dtype may be a name, a NumPy dtype or
// a Python type.
#pragma once
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tessera/array.hpp>
#include <tessera/array/index.hpp>
#include <tessera/ops/axes.hpp>
#include <tessera/random.hpp>
#include <tessera/sharding.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/place.hpp"

namespace tessera::python {

namespace py = pybind11;

// An array, or a number (weakly typed, as in an expression), with the user's line.
struct Value {
  Array array;
  std::source_location where;
  operator Operand() const { return Operand(array, where); }
};
struct DtypeValue {
  Dtype value;
};
struct ShapeValue {
  Shape value;
};
struct AxesValue {
  Axes value;
};
struct KeyValue {
  random::Key value;
};
struct ShardingValue {
  std::optional<Sharding> value;
  operator Sharding() const { return *value; }
};
struct SliceValue {
  Slice value;
};
// A str, bytes, or what has __fspath__.
struct PathValue {
  std::string value;
  operator const std::string&() const { return value; }
};
// One name or several, the major one first.
struct NamesValue {
  std::vector<std::string> names;
};

// Each returns whether the object is of its kind, and stores it if so.
bool read_value(py::handle from, Value& into);
bool read_dtype(py::handle from, DtypeValue& into);
bool read_shape(py::handle from, ShapeValue& into);
bool read_axes(py::handle from, AxesValue& into);
bool read_key(py::handle from, KeyValue& into);
bool read_sharding(py::handle from, ShardingValue& into);
bool read_names(py::handle from, NamesValue& into);
bool read_slice(py::handle from, SliceValue& into);
bool read_path(py::handle from, PathValue& into);
// A bound of a slice: None, or an object with __index__; clamped to 64 bits.
std::optional<std::int64_t> slice_bound(PyObject* bound);

// A copy of a NumPy array's memory, or of numpy.asarray(object).
HostArray host_array(py::handle from);

// "float32" as NumPy's dtype.
py::object numpy_dtype(Dtype);
// A named tuple of a type with this name.
py::object named_tuple(const char* type, const char* fields, py::tuple values);
py::tuple tuple_of(const Shape&);

std::vector<Array> arrays_of(const std::vector<Value>& values);
// The values. ArgumentError if there are not `count`.
const std::vector<Value>& exactly(const std::vector<Value>& values, std::size_t count, const char* what);
std::vector<std::vector<Array>> rows_of(const std::vector<std::vector<Value>>& rows);
std::map<std::string, Array> arrays_by_name(const std::map<std::string, Value>& values);

template <class T, class From> void set_option(T& field, const std::optional<From>& given) {
  if (!given) return;
  if constexpr (std::is_same_v<From, DtypeValue> || std::is_same_v<From, ShapeValue> ||
                std::is_same_v<From, AxesValue>)
    field = given->value;
  else if constexpr (std::is_same_v<From, Value>)
    field = given->array;
  else if constexpr (std::is_same_v<From, std::vector<SliceValue>>)
    for (const auto& slice : *given) field.push_back(slice.value);
  else
    field = *given;
}
// The enumerator of that name; ValueError that lists the names.
template <class E>
E choose(const char* what, const std::string& name, std::initializer_list<std::pair<const char*, E>> names) {
  std::string known;
  for (const auto& [text, value] : names) {
    if (name == text) return value;
    known += (known.empty() ? "'" : ", '") + std::string(text) + "'";
  }
  throw py::value_error(std::string(what) + ": there is no '" + name + "'; it is one of " + known);
}

// A Python object held by C++: may be released on any thread, and after the interpreter's end.
class Held {
 public:
  explicit Held(py::object object) : object_(std::move(object)) {}
  Held(const Held& other) : Held(other.copy()) {}
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (!Py_IsInitialized()) {
      object_.release();
      return;
    }
    const py::gil_scoped_acquire lock;
    object_ = py::object();
  }
  const py::object& get() const { return object_; }

 private:
  py::object copy() const {
    const py::gil_scoped_acquire lock;
    return object_;
  }
  py::object object_;
};

}  // namespace tessera::python

namespace pybind11::detail {
template <class T, bool (*read)(handle, T&)> struct ReadingCaster {
  bool load(handle from, bool) { return read(from, value); }
  template <class> using cast_op_type = T;
  operator T() { return std::move(value); }
  T value{};
};
#define TESSERA_CASTER(Type, read, name_text)                                               \
  template <> struct type_caster<tessera::python::Type>                                     \
      : ReadingCaster<tessera::python::Type, tessera::python::read> {                       \
    static constexpr auto name = const_name(name_text);                                     \
    static handle cast(const tessera::python::Type&, return_value_policy, handle) = delete; \
  }
TESSERA_CASTER(Value, read_value, "ArrayLike");
TESSERA_CASTER(DtypeValue, read_dtype, "DtypeLike");
TESSERA_CASTER(ShapeValue, read_shape, "Shape");
TESSERA_CASTER(AxesValue, read_axes, "Axes");
TESSERA_CASTER(KeyValue, read_key, "Key");
TESSERA_CASTER(ShardingValue, read_sharding, "Sharding");
TESSERA_CASTER(NamesValue, read_names, "AxisName");
TESSERA_CASTER(SliceValue, read_slice, "slice");
TESSERA_CASTER(PathValue, read_path, "PathLike");
#undef TESSERA_CASTER
}  // namespace pybind11::detail
