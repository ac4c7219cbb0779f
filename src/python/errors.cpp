// tessera's errors as Python's: each is also of the built-in type that Python's users expect.
#include <tessera/error.hpp>

#include <array>
#include <string>
#include <typeinfo>
#include <utility>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

struct Kind {
  const char* name;
  const std::type_info* type;
  const char* parent;  // among these
  PyObject* built_in;
};

struct Types {
  std::vector<std::pair<const std::type_info*, PyObject*>> known;
};
Types& types() {
  static auto* const all = new Types();
  return *all;
}

PyObject* python_type_of(const Error& error) {
  for (const auto& [type, python] : types().known)
    if (*type == typeid(error)) return python;
  return PyExc_RuntimeError;
}

}  // namespace

void bind_errors(py::module_& m) {
  const Kind kinds[] = {
      {"Error", &typeid(Error), nullptr, PyExc_Exception},
      {"UserError", &typeid(UserError), "Error", nullptr},
      {"ShapeError", &typeid(ShapeError), "UserError", PyExc_ValueError},
      {"DtypeError", &typeid(DtypeError), "UserError", PyExc_TypeError},
      {"ShardingError", &typeid(ShardingError), "UserError", PyExc_ValueError},
      {"AxisNameError", &typeid(AxisNameError), "UserError", PyExc_NameError},
      {"IndexError", &typeid(IndexError), "UserError", PyExc_IndexError},
      {"ArgumentError", &typeid(ArgumentError), "UserError", PyExc_ValueError},
      {"ThreadError", &typeid(ThreadError), "UserError", PyExc_RuntimeError},
      {"SystemError", &typeid(SystemError), "Error", nullptr},
      {"CommError", &typeid(CommError), "SystemError", PyExc_RuntimeError},
      {"DisagreementError", &typeid(DisagreementError), "CommError", nullptr},
      {"FailedJobError", &typeid(FailedJobError), "CommError", nullptr},
      {"IoError", &typeid(IoError), "SystemError", PyExc_OSError},
      {"MemoryError", &typeid(MemoryError), "SystemError", PyExc_MemoryError},
      {"LinAlgError", &typeid(LinAlgError), "SystemError", PyExc_ArithmeticError},
      {"NanError", &typeid(NanError), "SystemError", PyExc_FloatingPointError},
      {"InternalError", &typeid(InternalError), "Error", PyExc_RuntimeError},
  };
  py::module_ errors = m.def_submodule("errors");
  for (const Kind& kind : kinds) {
    py::list bases;
    if (kind.parent != nullptr) bases.append(errors.attr(kind.parent));
    if (kind.built_in != nullptr) bases.append(py::handle(kind.built_in));
    const std::string full_name = std::string("tessera.") + kind.name;
    PyObject* type = PyErr_NewException(full_name.c_str(), py::tuple(bases).ptr(), nullptr);
    if (type == nullptr) throw py::error_already_set();
    types().known.emplace_back(kind.type, type);
    errors.attr(kind.name) = py::reinterpret_steal<py::object>(type);
    Py_INCREF(type);
  }
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      std::rethrow_exception(raised);
    } catch (const Error& error) {
      PyObject* type = python_type_of(error);
      py::object made = py::handle(type)(error.what());
      made.attr("exit_status") = error.exit_status();
      PyErr_SetObject(type, made.ptr());
    }
  });
}

}  // namespace tessera::python
