// tessera's errors in Python: each also derives from the built-in type that Python users expect.
#include <tessera/error.hpp>
#include <tessera/preemption.hpp>

#include <string>
#include <utility>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

struct Kind {
  const char* name;
  bool (*is)(const Error*);
  const char* parent;  // another of these types, or a built-in one
  PyObject* built_in;
};
template <class T> bool is_a(const Error* error) { return dynamic_cast<const T*>(error) != nullptr; }

// The most specific first: the library has kinds of its own below those of error.hpp.
struct Types {
  std::vector<std::pair<bool (*)(const Error*), PyObject*>> known;
};
Types& types() {
  static auto* const all = new Types();
  return *all;
}

PyObject* python_type_of(const Error& error) {
  const auto& known = types().known;
  for (auto kind = known.rbegin(); kind != known.rend(); ++kind)
    if (kind->first(&error)) return kind->second;
  return PyExc_RuntimeError;
}

}  // namespace

void bind_errors(py::module_& m) {
  const Kind kinds[] = {
      {"Error", &is_a<Error>, nullptr, PyExc_Exception},
      {"UserError", &is_a<UserError>, "Error", nullptr},
      {"ShapeError", &is_a<ShapeError>, "UserError", PyExc_ValueError},
      {"DtypeError", &is_a<DtypeError>, "UserError", PyExc_TypeError},
      {"ShardingError", &is_a<ShardingError>, "UserError", PyExc_ValueError},
      {"AxisNameError", &is_a<AxisNameError>, "UserError", PyExc_NameError},
      {"IndexError", &is_a<IndexError>, "UserError", PyExc_IndexError},
      {"ArgumentError", &is_a<ArgumentError>, "UserError", PyExc_ValueError},
      {"ThreadError", &is_a<ThreadError>, "UserError", PyExc_RuntimeError},
      {"SystemError", &is_a<SystemError>, "Error", nullptr},
      {"CommError", &is_a<CommError>, "SystemError", PyExc_RuntimeError},
      {"DisagreementError", &is_a<DisagreementError>, "CommError", nullptr},
      {"FailedJobError", &is_a<FailedJobError>, "CommError", nullptr},
      {"IoError", &is_a<IoError>, "SystemError", PyExc_OSError},
      {"MemoryError", &is_a<MemoryError>, "SystemError", PyExc_MemoryError},
      {"LinAlgError", &is_a<LinAlgError>, "SystemError", PyExc_ArithmeticError},
      {"NanError", &is_a<NanError>, "SystemError", PyExc_FloatingPointError},
      {"InternalError", &is_a<InternalError>, "Error", PyExc_RuntimeError},
      {"Preempted", &is_a<Preempted>, "Error", nullptr},
  };
  py::module_ errors = m.def_submodule("errors");
  for (const Kind& kind : kinds) {
    py::list bases;
    if (kind.parent != nullptr) bases.append(errors.attr(kind.parent));
    if (kind.built_in != nullptr) bases.append(py::handle(kind.built_in));
    const std::string full_name = std::string("tessera.") + kind.name;
    PyObject* type = PyErr_NewException(full_name.c_str(), py::tuple(bases).ptr(), nullptr);
    if (type == nullptr) throw py::error_already_set();
    types().known.emplace_back(kind.is, type);
    errors.attr(kind.name) = py::reinterpret_steal<py::object>(type);
    Py_INCREF(type);
  }
  errors.attr("Preempted").attr("exit_status") = status_preempted;  // for programs that raise it themselves
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
