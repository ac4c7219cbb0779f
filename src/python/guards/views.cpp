#include "python/guards/views.hpp"

#include "python/module.hpp"

namespace tessera::python {
namespace {

// Arrays that would share memory in NumPy hold one token: if it has several owners, another one is alive. A
// token is a list of the tokens of parts that share memory with the array but not with each other (rows).
PyObject* token_name() {
  static PyObject* const name = PyUnicode_InternFromString("_storage");
  return name;
}
PyObject* view_name() {
  static PyObject* const name = PyUnicode_InternFromString("_view");
  return name;
}
bool has_other_owners(PyObject* token) {
  if (Py_REFCNT(token) > 1) return true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(token); ++i)
    if (has_other_owners(PyList_GET_ITEM(token, i))) return true;
  return false;
}
void drop_unused(PyObject* token) {
  const Py_ssize_t n = PyList_GET_SIZE(token);
  if (n < 16 || (n & (n - 1)) != 0) return;
  for (Py_ssize_t i = n; i-- > 0;)
    if (!has_other_owners(PyList_GET_ITEM(token, i))) PyList_SetSlice(token, i, i + 1, nullptr);
}

py::object dict_of(py::handle array) {
  return py::reinterpret_steal<py::object>(PyObject_GenericGetDict(array.ptr(), nullptr));
}

void rebind(py::handle array, py::handle value) {
  Array* const x = const_cast<Array*>(array_in(array));
  const Array* const v = array_in(value);
  if (x == nullptr || v == nullptr) throw py::type_error("an array is rebound to an array");
  *x = *v;
}

py::object token_of(py::handle array) {
  const py::object dict = dict_of(array);
  if (PyObject* token = PyDict_GetItemWithError(dict.ptr(), token_name()))
    return py::reinterpret_borrow<py::object>(token);
  const py::list made;
  PyDict_SetItem(dict.ptr(), token_name(), made.ptr());
  return made;
}
void set_token(py::handle view, const py::object& token) {
  const py::object dict = dict_of(view);
  PyDict_SetItem(dict.ptr(), view_name(), Py_True);
  PyDict_SetItem(dict.ptr(), token_name(), token.ptr());
}

// Links one of several views that share nothing with each other, such as the rows of an iteration.
void link_row(py::handle base, py::handle row) {
  const py::object token = token_of(base);
  const py::list of_row;
  drop_unused(token.ptr());
  PyList_Append(token.ptr(), of_row.ptr());
  set_token(row, of_row);
}

}  // namespace

void link_view(py::handle base, py::handle view) { set_token(view, token_of(base)); }

bool is_linked(py::handle array) {
  const py::object dict = dict_of(array);
  PyObject* token = PyDict_GetItemWithError(dict.ptr(), token_name());
  return token != nullptr && has_other_owners(token);
}

void bind_views(py::module_& m) {
  m.def("_link_view", &link_view);
  m.def("_link_row", &link_row);
  m.def("_is_linked", &is_linked);
  m.def("_rebind", &rebind);
  m.def("_handle", [](py::handle array) { return Array(*array_in(array)); });
}

}  // namespace tessera::python
