// Layouts chosen by the planner: Python traces, C++ searches.
#include <tessera/jit/advise.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

Advice advise_leaves(const std::vector<Array>& arrays, std::vector<Mesh> meshes,
                     std::int64_t memory_limit_bytes, int best, int most_plans, std::vector<int> keep,
                     const py::function& plan) {
  std::vector<detail::Leaf> leaves;
  for (const auto& x : arrays) leaves.push_back(detail::leaf_of(x));
  const AdviseOptions options{std::move(meshes), memory_limit_bytes, best, most_plans, std::move(keep)};
  return detail::advise(leaves, options, [&](const std::vector<Sharding>& shardings) {
    return plan(py::cast(shardings)).cast<Explanation>();
  });
}

Explanation with_hint_of_leaves(const Explanation& own, const std::vector<Array>& arrays,
                                const py::function& plan) {
  std::vector<detail::Leaf> leaves;
  for (const auto& x : arrays) leaves.push_back(detail::leaf_of(x));
  return detail::with_hint(own, leaves, [&](const std::vector<Sharding>& shardings) {
    return plan(py::cast(shardings)).cast<Explanation>();
  });
}

}  // namespace

void bind_advise(py::module_& m) {
  m.def("meshes_of", &meshes_of, py::arg("ranks"),
        "Abstract meshes of so many ranks: every way to write the number as a product of at most two sizes.");
  m.def("with_hint", &with_hint_of_leaves, "The plan, with a hint if one is due.");
  m.def("advise_leaves", &advise_leaves, "What advise asks, for its flattened arguments.");
}

}  // namespace tessera::python
