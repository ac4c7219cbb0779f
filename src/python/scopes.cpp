// Scopes of `with`: how products are computed, and whether sums have the same bits on any number of ranks.
#include <tessera/ops/products.hpp>
#include <tessera/ops/reproducible.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

struct Scope {
  explicit Scope(MatmulOptions chosen) : options(chosen) {}
  MatmulOptions options;
  std::optional<MatmulScope> entered;
};
MatmulOptions options_of(const std::string& algorithm, std::int64_t memory_limit_bytes) {
  return {choose<ProductAlgorithm>("algorithm", algorithm,
                                   {{"automatic", ProductAlgorithm::automatic},
                                    {"whole", ProductAlgorithm::whole},
                                    {"inner_panels", ProductAlgorithm::inner_panels},
                                    {"row_panels", ProductAlgorithm::row_panels},
                                    {"column_panels", ProductAlgorithm::column_panels},
                                    {"inner_shared", ProductAlgorithm::inner_shared}}),
          memory_limit_bytes};
}

// A `with` may be nested in another one of the same object.
struct SameBitsScope {
  explicit SameBitsScope(bool chosen) : on(chosen) {}
  bool on;
  std::vector<std::unique_ptr<ReproducibleScope>> entered;
};

}  // namespace

void bind_scopes(py::module_& m) {
  py::class_<SameBitsScope>(m, "ReproducibleScope")
      .def(py::init<bool>(), py::arg("on") = true)
      .def("__enter__",
           [](py::object self) {
             auto& scope = self.cast<SameBitsScope&>();
             scope.entered.push_back(std::make_unique<ReproducibleScope>(scope.on));
             return self;
           })
      .def("__exit__", [](SameBitsScope& scope, py::args) { scope.entered.pop_back(); });
  m.def("is_reproducible", &is_reproducible);
  py::class_<Scope>(m, "MatmulScope")
      .def(py::init([](const std::string& algorithm, std::int64_t memory_limit_bytes) {
             return std::make_unique<Scope>(options_of(algorithm, memory_limit_bytes));
           }),
           py::arg("algorithm") = "automatic", py::arg("memory_limit_bytes") = 0)
      .def("__enter__",
           [](py::object self) {
             auto& scope = self.cast<Scope&>();
             scope.entered.emplace(scope.options);
             return self;
           })
      .def("__exit__", [](Scope& scope, py::args) { scope.entered.reset(); });
}

}  // namespace tessera::python
