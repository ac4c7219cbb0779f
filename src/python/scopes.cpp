// How products are computed, for those recorded inside of a `with`.
#include <tessera/ops/products.hpp>

#include <memory>
#include <optional>
#include <string>

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

}  // namespace

void bind_scopes(py::module_& m) {
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
