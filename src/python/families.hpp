// Functions with the same arguments, as tables that the generated files fill in.
#pragma once
#include <tessera/io.hpp>

#include "python/convert.hpp"

namespace tessera::python {

struct UnaryRow {
  const char* name;
  const char* x;
  Array (*function)(const Operand&);
  const char* doc;
};
struct BinaryRow {
  const char* name;
  const char *a, *b;
  Array (*function)(const Operand&, const Operand&);
  const char* doc;
};

template <std::size_t n> void bind_rows(py::module_& m, const UnaryRow (&rows)[n]) {
  for (const auto& row : rows) {
    const auto f = row.function;
    m.def(
        row.name, [f](Value x) { return f(x); }, row.doc, py::arg(row.x));
  }
}
template <std::size_t n> void bind_rows(py::module_& m, const BinaryRow (&rows)[n]) {
  for (const auto& row : rows) {
    const auto f = row.function;
    m.def(
        row.name, [f](Value a, Value b) { return f(a, b); }, row.doc, py::arg(row.a), py::arg(row.b));
  }
}

// A struct of facts, shown as its text without the line end that print() adds.
template <class T> py::class_<T> result_class(py::module_& m, const char* name) {
  py::class_<T> type(m, name);
  if constexpr (requires(const T& x) { to_string(x); }) {
    const auto text = [](const T& x) {
      std::string lines = to_string(x);
      if (lines.ends_with('\n')) lines.pop_back();
      return lines;
    };
    type.def("__str__", text).def("__repr__", text);
  }
  return type;
}

// The contents of a file, as a named tuple.
inline py::object file_info(const io::FileInfo& info) {
  return named_tuple("FileInfo", "shape dtype detail",
                     py::make_tuple(tuple_of(info.shape), info.dtype, info.detail));
}

// A NumPy array over the memory of a host array.
py::object whole(const HostArray&);

}  // namespace tessera::python
