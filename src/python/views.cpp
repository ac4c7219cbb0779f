#include "python/views.hpp"

#include "python/module.hpp"

namespace tessera::python {
namespace {

// Arrays that would share memory own one token together: others live while it has more owners than one.
PyObject* token_name() {
  static PyObject* const name = PyUnicode_InternFromString("_storage");
  return name;
}
PyObject* view_name() {
  static PyObject* const name = PyUnicode_InternFromString("_view");
  return name;
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

}  // namespace

void link_view(py::handle base, py::handle view) {
  const py::object of_base = dict_of(base), of_view = dict_of(view);
  PyObject* token = PyDict_GetItemWithError(of_base.ptr(), token_name());
  PyDict_SetItem(of_view.ptr(), view_name(), Py_True);
  if (token == nullptr) {
    const auto made = py::reinterpret_steal<py::object>(
        PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
    PyDict_SetItem(of_base.ptr(), token_name(), made.ptr());
    PyDict_SetItem(of_view.ptr(), token_name(), made.ptr());
    return;
  }
  PyDict_SetItem(of_view.ptr(), token_name(), token);
}

bool is_linked(py::handle array) {
  const py::object dict = dict_of(array);
  PyObject* token = PyDict_GetItemWithError(dict.ptr(), token_name());
  return token != nullptr && Py_REFCNT(token) > 1;
}

void bind_views(py::module_& m) {
  m.def("_link_view", &link_view);
  m.def("_is_linked", &is_linked);
  m.def("_rebind", &rebind);
  m.def("_handle", [](py::handle array) { return Array(*array_in(array)); });
}

}  // namespace tessera::python
