// Docstrings from the public headers, for functions that are bound by hand.
#pragma once
#include <pybind11/pybind11.h>

#include <cstddef>
#include <iterator>

namespace tessera::python {

struct Contract {
  const char *type, *member, *words;  // member "": the class; type "": a function
};
extern const Contract contracts[];  // generated
extern const std::size_t contract_count;

// Gives the module's functions, classes, methods and properties the headers' texts if they have none of their
// own.
void document(pybind11::module_& m);

}  // namespace tessera::python
