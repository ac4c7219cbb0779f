#include "python/contracts.hpp"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

namespace tessera::python {

namespace py = pybind11;

namespace {

using Words = std::map<std::string, const char*>;  // by member

// The Python name of a type or member, if it differs.
std::string python_name(std::string_view type, std::string_view member) {
  if (member.empty() && type == "profile") return "Profile";
  if (member.empty() && type == "Dtype") return "dtype";
  if (member == "is_committed") return "committed";
  if (member == "delete_") return "delete";
  if (member == "is_weakly_typed") return "weak_type";
  return std::string(member.empty() ? type : member);
}

std::map<std::string, Words> words_by_class() {
  std::map<std::string, Words> all;
  for (std::size_t i = 0; i < contract_count; ++i) {
    const auto& [type, member, words] = contracts[i];
    auto& of_class = all[python_name(type, "")];
    of_class.emplace(*member == 0 ? "" : python_name(type, member), words);
  }
  return all;
}

bool says_something(const py::handle& doc, bool has_signature) {
  if (doc.is_none()) return false;
  const auto text = doc.cast<std::string>();
  if (!has_signature) return !text.empty();
  const auto behind = text.find("\n\n");  // pybind11 writes the signature first, then the text
  return behind != std::string::npos && behind + 3 < text.size();
}

void document_property(const py::handle& type, const std::string& name, const py::handle& property,
                       const char* words) {
  // pybind11 refuses to replace a property of the class itself.
  if (std::string(Py_TYPE(property.ptr())->tp_name).ends_with("pybind11_static_property")) return;
  if (says_something(property.attr("__doc__"), false)) return;
  const auto make = py::module_::import("builtins").attr("property");
  py::setattr(type, name.c_str(), make(property.attr("fget"), property.attr("fset"), py::none(), words));
}

// Documents a function as pybind11 does after adding an overload: the text is stored in the function's
// record.
void document_function(const py::handle& function, const char* words) {
  if (says_something(function.attr("__doc__"), true)) return;
  PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml;
  const std::string text =
      std::string(definition->ml_doc == nullptr ? "" : definition->ml_doc) + "\n" + words + "\n";
  std::free(const_cast<char*>(definition->ml_doc));
  definition->ml_doc = ::strdup(text.c_str());
}
void document_method(const py::handle& method, const char* words) {
  if (!PyInstanceMethod_Check(method.ptr())) return;
  const py::handle function = PyInstanceMethod_GET_FUNCTION(method.ptr());
  if (PyCFunction_Check(function.ptr())) document_function(function, words);
}

void document_class(const py::handle& type, const Words& words) {
  const auto members = py::dict(type.attr("__dict__"));
  const auto own = words.find("");
  if (own != words.end() && !says_something(type.attr("__doc__"), false)) type.attr("__doc__") = own->second;
  for (const auto& [name, member] : members) {
    const auto said = words.find(name.cast<std::string>());
    if (said == words.end() || said->first.empty()) continue;
    if (py::hasattr(member, "fget"))
      document_property(type, said->first, member, said->second);
    else
      document_method(member, said->second);
  }
}

void document_within(const py::handle& m, const std::map<std::string, Words>& all) {
  const auto functions = all.find("");
  for (const auto& [name, value] : py::dict(m.attr("__dict__"))) {
    if (PyModule_Check(value.ptr())) document_within(value, all);
    if (PyCFunction_Check(value.ptr()) && functions != all.end())
      if (const auto words = functions->second.find(name.cast<std::string>());
          words != functions->second.end())
        document_function(value, words->second);
    if (!PyType_Check(value.ptr())) continue;
    const auto words = all.find(name.cast<std::string>());
    if (words != all.end()) document_class(value, words->second);
  }
}

}  // namespace

void document(py::module_& m) { document_within(m, words_by_class()); }

}  // namespace tessera::python
