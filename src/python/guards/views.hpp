// Tracks the Python arrays that would share memory in NumPy: x and x[2:5] share it there, but not here. x[i]
// = v checks this, so that a program that writes through a view is refused instead of giving wrong results.
#pragma once
#include <pybind11/pybind11.h>

namespace tessera::python {

// Records `view` as a view of `base`: made by basic indexing, or by a function that returns a view in NumPy.
void link_view(pybind11::handle base, pybind11::handle view);
// Whether a base or a view of the array is alive.
bool is_linked(pybind11::handle array);

}  // namespace tessera::python
