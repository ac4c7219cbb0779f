// Array as a Python object: properties, operators, indices, values and memory.
#include <tessera/array.hpp>
#include <tessera/debug.hpp>
#include <tessera/error.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "api/local_block.hpp"
#include "graph/node.hpp"
#include "ops/create/scalar.hpp"
#include "python/convert.hpp"
#include "python/guards/views.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

PyTypeObject*& array_type() {
  static PyTypeObject* type = nullptr;
  return type;
}

Block block_of(const HostArray& host) {
  auto keeps = std::make_shared<HostArray>(host);
  const void* data = keeps->bytes();
  return {std::move(keeps), data, host.shape(), host.dtype(), false};
}
Block local_block(const Array& x) {
  const auto where = here();
  const py::gil_scoped_release unlocked;
  const Call call("local", where);
  auto [buffer, shape] = tessera::local_block(x);
  const void* data = buffer.data();
  return {std::make_shared<Buffer>(std::move(buffer)), data, std::move(shape), x.dtype(), true};
}
Block copy_of(const Block& block) {
  HostArray host(block.shape, block.dtype);
  if (host.nbytes() > 0) std::memcpy(host.bytes(), block.data, static_cast<std::size_t>(host.nbytes()));
  return block_of(host);
}
Block whole_value(const Array& x) {
  const auto where = here();
  const py::gil_scoped_release unlocked;
  return block_of(to_host(x, where));
}

py::buffer_info memory_of(const Block& block) {
  // bfloat16 has no format letter: its bits are exported, and _methods.py presents them to NumPy as
  // ml_dtypes' numbers.
  static const char* const formats[] = {"?", "b", "h", "i",  "q",  "B", "H", "I",
                                        "Q", "f", "d", "Zf", "Zd", "H", "e"};
  const auto item = static_cast<py::ssize_t>(itemsize(block.dtype));
  std::vector<py::ssize_t> extents(block.shape.begin(), block.shape.end()), strides(extents.size(), item);
  for (std::size_t d = extents.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<py::ssize_t>(extents[d], 1);
  return py::buffer_info(const_cast<void*>(block.data), item, formats[block.dtype.code],
                         static_cast<py::ssize_t>(extents.size()), extents, strides, block.read_only);
}

// memoryview(x): this process's memory, if it holds all of x. Exceptions must not pass through C, so they
// become a BufferError, after which NumPy tries __array__.
int buffer_of_array(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const auto refuse = [](const char* text) {
    PyErr_SetString(PyExc_BufferError, text);
    return -1;
  };
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE)
    return refuse(
        "arrays do not change through memory that they hand out; ask for a buffer that is only read");
  try {
    const py::object block = py::handle(self).attr("_memory")();
    return PyObject_GetBuffer(block.ptr(), view, flags);
  } catch (py::error_already_set& error) {
    return refuse(error.what());
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}
void hand_out_memory(PyTypeObject* type) {
  auto* const heap = reinterpret_cast<PyHeapTypeObject*>(type);
  heap->as_buffer.bf_getbuffer = buffer_of_array;
  type->tp_as_buffer = &heap->as_buffer;
}

// ---- indices ----

void append_part(py::handle part, std::vector<IndexPart>& parts);
// A list in an index counts as an array, as in NumPy.
void append_list(py::handle list, std::vector<IndexPart>& parts) {
  const py::object array = py::module_::import("tessera._create").attr("asarray")(list);
  if (py::len(list) > 0) return append_part(array, parts);
  Value none;
  read_value(array, none);
  parts.emplace_back(astype(none, int32));
}
void append_part(py::handle part, std::vector<IndexPart>& parts) {
  PyObject* object = part.ptr();
  if (PyList_Check(object)) return append_list(part, parts);
  if (object == Py_None) {
    parts.emplace_back(None);
  } else if (object == Py_Ellipsis) {
    parts.emplace_back(ellipsis);
  } else if (PySlice_Check(object)) {
    SliceValue slice;
    read_slice(part, slice);
    if (slice.value.step == 0) throw py::value_error("slice step cannot be zero");
    parts.emplace_back(slice.value);
  } else if (PyBool_Check(object)) {
    throw py::type_error("a bool is no index: write x[None] for x[True], or index by an array of bools");
  } else if (PyLong_CheckExact(object) || (array_in(part) == nullptr && PyIndex_Check(object) &&
                                           PyObject_HasAttrString(object, "__len__") != 1)) {
    parts.emplace_back(*slice_bound(object));
  } else {
    Value value;
    if (!read_value(part, value))
      throw py::type_error(
          line_text(here()) +
          ": an index is an integer, a slice, ..., None, or an array of integers or bools; not " +
          py::repr(part).cast<std::string>());
    parts.emplace_back(value.array);
  }
}
std::vector<IndexPart> parts_of(py::handle index) {
  std::vector<IndexPart> parts;
  if (!PyTuple_Check(index.ptr())) {
    append_part(index, parts);
    return parts;
  }
  for (const auto part : py::reinterpret_borrow<py::tuple>(index)) append_part(part, parts);
  return parts;
}

bool is_mask(const IndexPart& part) {
  return part.kind == IndexPart::Kind::array && is_bool(part.array.dtype());
}
bool is_list_of_places(const IndexPart& part) { return part.kind == IndexPart::Kind::array; }
Array chosen(const Array& x, std::vector<IndexPart> parts, std::source_location where) {
  const py::gil_scoped_release unlocked;  // counting the selected elements waits for other ranks
  return tessera::index(x, std::move(parts), where);
}
// x[True], or a mask without dims: a new axis of extent 1 or 0.
bool is_lone_bool(py::handle part) {
  const Array* array = array_in(part);
  return PyBool_Check(part.ptr()) || (array != nullptr && is_bool(array->dtype()) && array->ndim() == 0);
}
int is_true(py::handle part) {
  const int found = PyObject_IsTrue(part.ptr());
  if (found < 0) throw py::error_already_set();
  return found;
}

struct AtIndexer {
  Array array;
};

using Binary = Array (*)(const Operand&, const Operand&);
struct BinaryOperator {
  const char* name;  // "add": __add__, __radd__
  Binary function;
  binaryfunc PyNumberMethods::*slot;  // nullptr: not one of two operands alone
};
constexpr BinaryOperator binary_operators[] = {
    {"add", &add, &PyNumberMethods::nb_add},
    {"sub", &subtract, &PyNumberMethods::nb_subtract},
    {"mul", &multiply, &PyNumberMethods::nb_multiply},
    {"truediv", &divide, &PyNumberMethods::nb_true_divide},
    {"floordiv", &floor_divide, &PyNumberMethods::nb_floor_divide},
    {"mod", &remainder, &PyNumberMethods::nb_remainder},
    {"pow", &power, nullptr},
    {"matmul", &matmul, &PyNumberMethods::nb_matrix_multiply},
    {"and", &bitwise_and, &PyNumberMethods::nb_and},
    {"or", &bitwise_or, &PyNumberMethods::nb_or},
    {"xor", &bitwise_xor, &PyNumberMethods::nb_xor},
    {"lshift", &bitwise_left_shift, &PyNumberMethods::nb_lshift},
    {"rshift", &bitwise_right_shift, &PyNumberMethods::nb_rshift},
};
struct Comparison {
  const char* name;
  Binary function;
};
constexpr Comparison comparisons[] = {{"__lt__", &less},    {"__le__", &less_equal},
                                      {"__eq__", &equal},   {"__ne__", &not_equal},
                                      {"__gt__", &greater}, {"__ge__", &greater_equal}};
static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);

// A plain number beside a float array becomes one of its dtype at once.
Operand operand_of(PyObject* object, PyObject* other, std::source_location where) {
  if (const Array* array = array_in(object)) return {*array, where};
  const Array* const beside = array_in(other);
  if (beside != nullptr && (beside->dtype() == float32 || beside->dtype() == float64) &&
      !beside->is_weakly_typed()) {
    const Call call("Array", where);
    if (PyFloat_CheckExact(object))
      return {make_scalar({PyFloat_AS_DOUBLE(object), 0, false}, beside->dtype(), false), where};
    int overflow = 0;
    if (const auto value = PyLong_AsLongLongAndOverflow(object, &overflow); overflow == 0)
      return {make_scalar({0, value, true}, beside->dtype(), false), where};
  }
  Value number;
  read_value(object, number);
  return {number.array, where};
}
// Records an operator of arrays and plain numbers without the search for a method and its argument tuple;
// nullptr for other operands and after an error, which the bound method then raises in Python's terms.
PyObject* record_at_once(Binary function, PyObject* a, PyObject* b) {
  const auto is_plain = [](PyObject* x) {
    return array_in(x) != nullptr || PyFloat_CheckExact(x) || PyLong_CheckExact(x);
  };
  if (!is_plain(a) || !is_plain(b)) return nullptr;
  try {
    const auto where = here();
    return py::cast(function(operand_of(a, b, where), operand_of(b, a, where))).release().ptr();
  } catch (...) {
    PyErr_Clear();
    return nullptr;
  }
}
PyObject* interned(const char* prefix, std::size_t n) {  // never released: the interpreter may end first
  return PyUnicode_InternFromString((prefix + std::string(binary_operators[n].name) + "__").c_str());
}
template <std::size_t n> PyObject* operate(PyObject* a, PyObject* b) {
  static PyObject* const forward = interned("__", n);
  static PyObject* const reflected = interned("__r", n);
  if (PyObject* const result = record_at_once(binary_operators[n].function, a, b)) return result;
  const bool is_left = array_in(a) != nullptr;
  return PyObject_CallMethodObjArgs(is_left ? a : b, is_left ? forward : reflected, is_left ? b : a, nullptr);
}
PyObject* compare(PyObject* a, PyObject* b, int operation) {
  const auto& [name, function] = comparisons[operation];
  if (PyObject* const result = record_at_once(function, a, b)) return result;
  return PyObject_CallMethod(a, name, "O", b);
}
template <std::size_t... n> void set_slots(PyHeapTypeObject* type, std::index_sequence<n...>) {
  const auto set = [&](binaryfunc PyNumberMethods::*slot, binaryfunc function) {
    if (slot != nullptr) type->as_number.*slot = function;
  };
  (set(binary_operators[n].slot, &operate<n>), ...);
  type->ht_type.tp_richcompare = &compare;
}

void bind_operators(py::class_<Array>& type) {
  for (const auto& [name, function, slot] : binary_operators) {
    const auto f = function;
    type.def((std::string("__") + name + "__").c_str(), [f](Value a, Value b) { return f(a, b); },
             py::is_operator());
    type.def((std::string("__r") + name + "__").c_str(), [f](Value a, Value b) { return f(b, a); },
             py::is_operator());
  }
  for (const auto& [name, function] : comparisons)
    type.def(
        name, [f = function](Value a, Value b) { return f(a, b); }, py::is_operator());
  type.def("__neg__", [](Value x) { return negative(x); });
  type.def("__pos__", [](Value x) { return positive(x); });
  type.def("__abs__", [](Value x) { return tessera::abs(x); });
  type.def("__invert__", [](Value x) { return bitwise_invert(x); });
  type.attr("__hash__") = py::none();  // equality is elementwise
  set_slots(reinterpret_cast<PyHeapTypeObject*>(type.ptr()),
            std::make_index_sequence<std::size(binary_operators)>());
}

void bind_indices(py::module_& m, py::class_<Array>& type) {
  type.def("__getitem__", [](py::handle self, py::handle part) {
    const Array& x = *array_in(self);
    const auto where = here();
    if (is_lone_bool(part))
      return py::cast(tessera::index(tessera::index(x, {None}, where), {slice(0, is_true(part))}, where));
    auto parts = parts_of(part);
    if (std::any_of(parts.begin(), parts.end(), is_mask)) return py::cast(chosen(x, std::move(parts), where));
    const bool gives_view = std::none_of(parts.begin(), parts.end(), is_list_of_places);
    const Array y = tessera::index(x, std::move(parts), where);
    py::object result = py::cast(y);
    if (gives_view && y.ndim() > 0) link_view(self, result);
    return result;
  });
  py::class_<AtIndexer>(m, "AtIndexer").def("__getitem__", [](const AtIndexer& at, py::handle index) {
    return At(at.array, parts_of(index), here());
  });
  type.def_property_readonly(
      "at", [](const Array& x) { return AtIndexer{x}; },
      "x.at[0, :].set(v): a new array in which that part is replaced.");
  py::class_<At> part(m, "At");
  part.def("get", &At::get)
      .def(
          "set",
          [](const At& at, Value v) {
            const py::gil_scoped_release unlocked;  // counting the result waits for other ranks
            return at.set(v);
          },
          py::arg("values"));
  using Update = Array (At::*)(const Operand&) const;
  const std::pair<const char*, Update> updates[] = {
      {"add", &At::add},      {"subtract", &At::subtract}, {"multiply", &At::multiply},
      {"mul", &At::multiply}, {"divide", &At::divide},     {"min", &At::min},
      {"max", &At::max}};
  for (const auto& [name, update] : updates)
    part.def(
        name, [update = update](const At& at, Value v) { return (at.*update)(v); }, py::arg("values"));
}

template <class T> T item_of(const Array& x) {
  const auto where = here();
  const py::gil_scoped_release unlocked;
  return item<T>(x, where);
}
py::object python_item(const Array& x) {
  if (is_bool(x.dtype())) return py::bool_(item_of<bool>(x));
  if (x.dtype() == uint64) return py::int_(item_of<std::uint64_t>(x));
  if (is_integer(x.dtype())) return py::int_(item_of<std::int64_t>(x));
  if (is_complex(x.dtype())) return py::cast(item_of<std::complex<double>>(x));
  return py::float_(item_of<double>(x));
}

void bind_values(py::class_<Array>& type) {
  type.def("item", &python_item,
           "The one element of an array of size 1, as a Python number. Collective over all ranks.");
  type.def("__bool__", [](const Array& x) { return item_of<bool>(x); });
  type.def("__float__", [](const Array& x) { return item_of<double>(x); });
  type.def("__complex__", [](const Array& x) { return item_of<std::complex<double>>(x); });
  type.def("__int__", [](const Array& x) {
    return py::reinterpret_steal<py::object>(PyNumber_Long(python_item(x).ptr()));  // also for a bool
  });
  type.def("__index__", [](const Array& x) -> py::object {
    if (!is_integer(x.dtype()) || x.ndim() != 0)
      throw py::type_error("only an array of integers without dimensions is an index");
    return python_item(x);
  });
  type.def("__str__", [](const Array& x) {
    const auto where = here();
    const py::gil_scoped_release unlocked;
    return to_string(x, where);
  });
  type.def("_host", &whole_value);
  type.def(
      "_again", [](const Array& x) { return x; },
      "Another handle of it, which lives on when this one is donated.");
  type.def("_local", &local_block);
  type.def(
      "block_until_ready",
      [](py::object self) {
        const Array x = *array_in(self);
        const auto where = here();
        {
          const py::gil_scoped_release unlocked;
          eval({x}, where);
        }
        return self;
      },
      "Computes the value. Collective over the ranks of the array's mesh.");
  type.def_property_readonly(
      "addressable_shards",
      [](const Array& x) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return x.addressable_shards(where);
      },
      "This process's blocks. Collective over the devices of the array: computes the value.");
  type.def(
      "delete", [](Array& x) { x.delete_(here()); },
      "Frees the memory on this rank; later uses raise ArgumentError.");
}

bool is_traced(const Array& x) { return x.node() && (x.node()->traced || x.node()->region); }

}  // namespace

const Array* array_in(py::handle object) {
  const PyTypeObject* const type = Py_TYPE(object.ptr());
  if (type != array_type() && type->tp_base != array_type())
    return nullptr;  // io.FileArray is derived from it
  auto* instance = reinterpret_cast<py::detail::instance*>(object.ptr());
  return static_cast<const Array*>(instance->simple_value_holder[0]);
}

void bind_arrays(py::module_& m) {
  py::class_<Block>(m, "Block", py::buffer_protocol())
      .def_buffer(&memory_of)
      .def_readonly("dtype", &Block::dtype)
      .def("_copy", &copy_of)
      .def("_dlpack", &dlpack_capsule, py::arg("versioned"));
  py::class_<Array> type(m, "Array", py::dynamic_attr());
  array_type() = reinterpret_cast<PyTypeObject*>(type.ptr());
  hand_out_memory(array_type());
  type.def_property_readonly(
          "shape", [](const Array& x) { return tuple_of(x.shape()); }, "Extents of the global array.")
      .def_property_readonly("ndim", &Array::ndim, "Number of dimensions.")
      .def_property_readonly("size", &Array::size, "Number of elements of the global array.")
      .def_property_readonly("dtype", &Array::dtype, "Element type.")
      .def_property_readonly("weak_type", &Array::is_weakly_typed,
                             "Whether it takes the dtype of what it meets, as plain numbers do.")
      .def_property_readonly("nbytes", &Array::nbytes, "Bytes of the global array.")
      .def_property_readonly(
          "itemsize", [](const Array& x) { return itemsize(x.dtype()); }, "Bytes of one element.")
      .def_property_readonly("sharding", &Array::sharding, "Where the value lies.")
      .def_property_readonly("committed", &Array::is_committed, "Whether it stays where it is.")
      .def_property_readonly("is_fully_replicated", &Array::is_fully_replicated,
                             "Whether every device holds all of it.")
      .def_property_readonly("_traced", &is_traced)
      .def_property_readonly(
          "T", [](const Array& x) { return x.T(here()); }, "The dims in reverse order.")
      .def("devices", &Array::devices, "That hold a part.")
      .def("is_deleted", &Array::is_deleted, "Whether delete or donation took the value.")
      .def("__len__",
           [](const Array& x) {
             if (x.ndim() == 0) throw py::type_error("an array without dimensions has no length");
             return x.shape()[0];
           })
      .def("_describe", [](const Array& x) {
        std::ostringstream text;
        text << x.sharding();
        return text.str();
      });
  bind_operators(type);
  bind_indices(m, type);
  bind_values(type);
  py::class_<Shard>(m, "Shard")
      .def_readonly("device", &Shard::device)
      .def_readonly("replica_id", &Shard::replica_id)
      .def_readonly("data", &Shard::data)
      .def_property_readonly("index", [](const Shard& shard) {
        py::tuple slices(shard.index.size());
        for (std::size_t d = 0; d < shard.index.size(); ++d)
          slices[d] = py::slice(py::int_(shard.index[d].start), py::int_(shard.index[d].stop), py::none());
        return slices;
      });
  m.def("release_memory", &release_memory);
}

}  // namespace tessera::python
