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
  py::class_<AdvisedLayout>(m, "AdvisedLayout")
      .def_readonly("shardings", &AdvisedLayout::shardings)
      .def_readonly("predicted_seconds", &AdvisedLayout::predicted_seconds)
      .def_readonly("bytes", &AdvisedLayout::bytes)
      .def_readonly("peak_bytes", &AdvisedLayout::peak_bytes)
      .def_readonly("reason", &AdvisedLayout::reason)
      .def_readonly("is_within_memory_limit", &AdvisedLayout::is_within_memory_limit);
  py::class_<Advice>(m, "Advice")
      .def_readonly("best", &Advice::best)
      .def_readonly("given", &Advice::given)
      .def_readonly("is_exhaustive", &Advice::is_exhaustive)
      .def_readonly("plans", &Advice::plans)
      .def("__str__", [](const Advice& advice) { return to_string(advice); })
      .def("__repr__", [](const Advice& advice) { return to_string(advice); });
  m.def("meshes_of", &meshes_of, py::arg("ranks"),
        "Abstract meshes of so many ranks: every way to write the number as a product of at most two sizes.");
  m.def("with_hint", &with_hint_of_leaves, "The plan, with a hint if one is due.");
  m.def("advise_leaves", &advise_leaves, "What advise asks, for its flattened arguments.");
}

}  // namespace tessera::python
