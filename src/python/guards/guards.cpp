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

// Replaces the binding's error text, which lists all overloads in C++ terms, by a sentence on the wrong
// argument and the accepted types (_mistakes.py). `arguments` gives the positional ones and those by name.
template <class Arguments> PyObject* in_own_words(PyObject* result, const Arguments& arguments) {
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  try {
    const auto text = py::str(py::handle(value)).cast<std::string>();
    if (text.find("incompatible function arguments") != std::string::npos ||
        text.find("incompatible constructor arguments") != std::string::npos) {
      const std::pair<py::object, py::object> given = arguments();
      const py::object sentence =
          py::module_::import("tessera._mistakes").attr("sentence")(text, given.first, given.second);
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

py::object borrowed(PyObject* value) {
  return value == nullptr ? py::none() : py::reinterpret_borrow<py::object>(value);
}

// How the binding is called: with a tuple and a dict up to pybind11 3.0, with a list of values since then.
PyCFunctionWithKeywords dispatcher = nullptr;
PyObject* call_in_own_words(PyObject* self, PyObject* args, PyObject* kwargs) {
  return in_own_words(dispatcher(self, args, kwargs), [&] {
    return std::pair{borrowed(args), borrowed(kwargs)};
  });
}

using FastDispatcher = PyObject* (*)(PyObject* self, PyObject* const* values, Py_ssize_t count,
                                     PyObject* names);
FastDispatcher fast_dispatcher = nullptr;
PyObject* call_fast_in_own_words(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return in_own_words(fast_dispatcher(self, values, count, names), [&] {
    const Py_ssize_t positional = PyVectorcall_NARGS(static_cast<std::size_t>(count));
    py::list args;
    for (Py_ssize_t i = 0; i < positional; ++i) args.append(borrowed(values[i]));
    py::dict kwargs;
    for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i)
      kwargs[borrowed(PyTuple_GET_ITEM(names, i))] = borrowed(values[positional + i]);
    const py::object named = names == nullptr ? py::object(py::none()) : py::object(kwargs);
    return std::pair<py::object, py::object>{py::tuple(args), named};
  });
}

// A method's function, of one of the two types.
template <class To, class From> To as_function(From* function) {
  return reinterpret_cast<To>(reinterpret_cast<void (*)()>(function));
}
// Puts `own` into the method if it calls the binding's dispatcher; the first one found is that.
template <class Function> void replace(PyMethodDef* method, Function own, Function& known) {
  const auto found = as_function<Function>(method->ml_meth);
  if (found == own) return;
  if (known == nullptr) known = found;
  if (found == known) method->ml_meth = as_function<PyCFunction>(own);
}

void speak_own_words(py::handle value) {
  PyObject* function = value.ptr();
  if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
  if (!PyCFunction_Check(function)) return;
  PyMethodDef* const method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  if ((method->ml_flags & METH_KEYWORDS) == 0) return;
  if ((method->ml_flags & METH_FASTCALL) != 0)
    replace<FastDispatcher>(method, call_fast_in_own_words, fast_dispatcher);
  else
    replace<PyCFunctionWithKeywords>(method, call_in_own_words, dispatcher);
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
