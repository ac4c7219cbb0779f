// Error texts for mistakes that Python programs make with bindings: __new__ without __init__, and arguments
// of wrong types.
#include <pybind11/pybind11.h>

#include <string>

#include "python/module.hpp"

namespace tessera::python {
namespace {

// Refuses __new__: an object without a constructor call has no array behind it, and the binding would read
// uninitialised memory. Only the attribute is replaced, not the slot, so calls of the class still work.
void refuse_new(py::handle type) {
  const auto name = type.attr("__name__").cast<std::string>();
  const py::cpp_function refusal([name](const py::args&, const py::kwargs&) -> py::object {
    throw py::type_error(name + ".__new__ makes no " + name +
                         ": call the functions that do, as zeros and asarray for "
                         "arrays, make_mesh for meshes, random.key for keys");
  });
  auto* const object = reinterpret_cast<PyTypeObject*>(type.ptr());
  PyDict_SetItemString(object->tp_dict, "__new__", refusal.ptr());
  PyType_Modified(object);
}

bool is_ours(py::handle value) {
  return PyType_Check(value.ptr()) && Py_TYPE(value.ptr()) == py::detail::get_internals().default_metaclass;
}

// ---- wrong arguments ----

PyCFunctionWithKeywords dispatcher = nullptr;

// Replaces the binding's error text, which lists all overloads in C++ terms, by a sentence on the wrong
// argument and the accepted types (_mistakes.py).
PyObject* call_in_own_words(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* const result = dispatcher(self, args, kwargs);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  try {
    const auto text = py::str(py::handle(value)).cast<std::string>();
    if (text.find("incompatible function arguments") != std::string::npos ||
        text.find("incompatible constructor arguments") != std::string::npos) {
      const py::object sentence =
          py::module_::import("tessera._mistakes")
              .attr("sentence")(text, py::handle(args), kwargs == nullptr ? py::none() : py::handle(kwargs));
      PyErr_SetObject(PyExc_TypeError, sentence.ptr());
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      return nullptr;
    }
  } catch (py::error_already_set&) {
    PyErr_Clear();  // keeps the binding's own text
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

void speak_own_words(py::handle value) {
  PyObject* function = value.ptr();
  if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
  if (!PyCFunction_Check(function)) return;
  PyMethodDef* const method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  if ((method->ml_flags & METH_KEYWORDS) == 0) return;
  const auto own = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_in_own_words));
  if (method->ml_meth == own) return;
  const auto found = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(method->ml_meth));
  if (dispatcher == nullptr) dispatcher = found;
  if (found == dispatcher) method->ml_meth = own;
}

void guard(py::handle dict) {
  for (const auto item : py::reinterpret_borrow<py::dict>(dict)) {
    if (PyModule_Check(item.second.ptr())) {
      if (py::str(item.second.attr("__name__")).cast<std::string>().starts_with("tessera._core"))
        guard(item.second.attr("__dict__"));
    } else if (is_ours(item.second)) {
      refuse_new(item.second);
      for (const auto member : py::dict(item.second.attr("__dict__"))) speak_own_words(member.second);
    } else {
      speak_own_words(item.second);
    }
  }
}

}  // namespace

void bind_guards(py::module_& m) { guard(m.attr("__dict__")); }

}  // namespace tessera::python
