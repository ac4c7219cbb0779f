#include "python/module.hpp"

#include "python/contracts.hpp"

PYBIND11_MODULE(_core, m) {
  using namespace tessera::python;
  m.doc() = "What tessera's package is made of; import tessera instead.";
  bind_errors(m);
  bind_runtime(m);
  bind_layouts(m);
  bind_arrays(m);
  bind_create(m);
  bind_families(m);
  bind_results(m);
  bind_collectives(m);
  bind_trees(m);
  bind_jit(m);
  bind_advise(m);
  bind_gradients(m);
  bind_maps(m);
  bind_control(m);
  bind_debug(m);
  bind_dlpack(m);
  bind_networks(m);
  bind_sparse(m);
  bind_writers(m);
  bind_stores(m);
  bind_stablehlo(m);
  bind_checkpoints(m);
  bind_scopes(m);
  bind_jax(m);
  bind_custom_op(m);
  bind_views(m);
  document(m);
  bind_guards(m);
}
