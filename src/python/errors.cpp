// tessera's errors in Python: each also derives from the built-in type that Python users expect.
#include <tessera/error.hpp>
#include <tessera/preemption.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
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

// "true" -> "True", "io::Hdf5Mode::append" -> "\"append\""
std::string value_in_python(std::string_view value) {
  if (const auto scope = value.rfind("::"); scope != std::string_view::npos)
    return '"' + std::string(value.substr(scope + 2)) + '"';
  if (value == "true" || value == "false") return value == "true" ? "True" : "False";
  return std::string(value);
}

// The fields of an options struct as keyword arguments: ".size = 4, .axis = 0" -> "size=4, axis=0"
std::string keywords(std::string_view fields) {
  std::string text;
  while (!fields.empty()) {
    const auto end = std::min(fields.find(", ."), fields.size());
    const auto field = fields.substr(0, end);
    const auto equals = field.find(" = ");
    text += (text.empty() ? "" : ", ") + std::string(field.substr(1, equals - 1)) + "=" +
            value_in_python(field.substr(equals + 3));
    fields.remove_prefix(end == fields.size() ? end : end + 2);
  }
  return text;
}

// Whether a brace opens an options struct of one level: "{.mode = io::Hdf5Mode::append}".
bool is_options(std::string_view inside) {
  return inside.starts_with('.') && inside.find(" = ") != std::string_view::npos &&
         inside.find('{') == std::string_view::npos;
}

// Whether the text ends in the name of a namespace that is a module in Python.
bool ends_in_module(std::string_view text) {
  constexpr std::array modules = {"debug", "fft",    "io",     "linalg", "multihost",
                                  "nn",    "random", "sparse", "viz"};
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return std::any_of(modules.begin(), modules.end(), [&](std::string_view module) {
    return text.ends_with(module) &&
           (text.size() == module.size() || !is_letter(text[text.size() - module.size() - 1]));
  });
}

// An error's text in Python's spelling: options as keyword arguments, linalg::solve as linalg.solve.
std::string in_python(std::string_view text) {
  std::string found;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (end != std::string_view::npos && is_options(text.substr(at + 1, end - at - 1))) {
      found += keywords(text.substr(at + 1, end - at - 1));
      at = end;
    } else if (text.substr(at, 2) == "::" && ends_in_module(text.substr(0, at))) {
      found += '.';
      ++at;
    } else {
      found += text[at];
    }
  }
  return found;
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
      py::object made = py::handle(type)(in_python(error.what()));
      made.attr("exit_status") = error.exit_status();
      PyErr_SetObject(type, made.ptr());
    }
  });
}

}  // namespace tessera::python
