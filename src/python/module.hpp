// The parts of the module; each file binds one subject.
#pragma once
#include <pybind11/pybind11.h>

#include <tessera/array.hpp>
#include <tessera/jit/explain.hpp>

namespace tessera::python {

namespace py = pybind11;

void bind_errors(py::module_&);
void bind_runtime(py::module_&);
void bind_layouts(py::module_&);
void bind_arrays(py::module_&);
void bind_create(py::module_&);
void bind_families(py::module_&);  // generated from the public headers, as the next
void bind_results(py::module_&);   // structs of facts: Explanation, Simulation, Advice, StreamPlan
void bind_collectives(py::module_&);
void bind_trees(py::module_&);
void bind_jit(py::module_&);
void bind_advise(py::module_&);
void bind_gradients(py::module_&);
void bind_maps(py::module_&);
void bind_control(py::module_&);
void bind_debug(py::module_&);
void bind_dlpack(py::module_&);
void bind_networks(py::module_&);
void bind_sparse(py::module_&);
void bind_writers(py::module_&);
void bind_stores(py::module_&);
void bind_stablehlo(py::module_&);
void bind_checkpoints(py::module_&);
void bind_scopes(py::module_&);
void bind_jax(py::module_&);
void bind_custom_op(py::module_&);
void bind_views(py::module_&);
void bind_guards(py::module_&);  // for everything that the others have bound

// The array in a Python object, or nullptr. Two loads, since every argument of every op is tested.
const Array* array_in(py::handle);

}  // namespace tessera::python
