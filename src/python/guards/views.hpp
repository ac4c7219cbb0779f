// Which Python arrays NumPy's programs would expect to share memory: x and x[2:5] do there, and here do not.
// x[i] = v looks, so that a program which writes through a view is refused instead of wrong.
#pragma once
#include <pybind11/pybind11.h>

namespace tessera::python {

// The view, made of the base by basic indexing or by a function that gives a view in NumPy, is noted as one.
void link_view(pybind11::handle base, pybind11::handle view);
// Whether a base or a view of the array lives.
bool is_linked(pybind11::handle array);

}  // namespace tessera::python
