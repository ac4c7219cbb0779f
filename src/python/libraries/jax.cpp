// Functions that tessera.jax needs besides the public ones: factorizations in JAX's form, callbacks of the
// program that return values, and barriers of recomputation.
#include <tessera/detail/recording.hpp>
#include <tessera/linalg.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "ops/effect/host_call.hpp"
#include "ops/factor/functions.hpp"
#include "python/families.hpp"
#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

HostArray host_of(const EffectValue& value) {
  HostArray host(value.shape, value.dtype);
  if (host.nbytes() > 0) std::memcpy(host.bytes(), value.data, static_cast<std::size_t>(host.nbytes()));
  return host;
}

// f(*arrays) -> a list of arrays of the promised types, checked here; their memory is copied.
void call_python(const py::function& f, const std::vector<Type>& types,
                 const std::vector<EffectValue>& values, const std::vector<std::byte*>& results) {
  py::tuple arguments(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) arguments[i] = whole(host_of(values[i]));
  const py::list returned = f(*arguments);
  if (returned.size() != types.size())
    throw std::runtime_error("the function gave " + std::to_string(returned.size()) + " results instead of " +
                             std::to_string(types.size()));
  for (std::size_t i = 0; i < types.size(); ++i) {
    const HostArray host = host_array(returned[i]);
    if (host.shape() != types[i].shape || host.dtype() != types[i].dtype)
      throw std::runtime_error("result " + std::to_string(i) + " of the function is " +
                               to_string(host.shape()) + " and not " + to_string(types[i].shape));
    if (host.nbytes() > 0) std::memcpy(results[i], host.bytes(), static_cast<std::size_t>(host.nbytes()));
  }
}

std::vector<Array> host_call(const py::function& f, const std::vector<Value>& values,
                             const std::vector<std::pair<ShapeValue, DtypeValue>>& promised,
                             Callers callers) {
  const Call call("host_call", here());
  std::vector<Type> types;
  for (const auto& [shape, dtype] : promised) types.push_back({shape.value, dtype.value});
  HostFunction function{"a function of the program", {}};
  function.call = [held = kept(f), types](const std::vector<EffectValue>& given,
                                          const std::vector<std::byte*>& results) {
    const py::gil_scoped_acquire locked;
    try {
      call_python(*held, types, given, results);
    } catch (const std::exception& error) {  // Python's must not propagate while other locks are held
      throw UserError(error.what());  // a kind that every rank raises alike, after which the job goes on
    }
  };
  return record_host_call(std::make_shared<const HostFunction>(std::move(function)), arrays_of(values), types,
                          callers);
}

}  // namespace

void bind_jax(py::module_& m) {
  py::module_ part = m.def_submodule("jax");
  part.def(
      "cholesky",
      [](Value a) {
        const Call call("cholesky", a.where);
        return factor::cholesky(a.array, {.nan_for_failure = true});
      },
      "The lower factor; NaN of a matrix that is not positive definite.");
  part.def(
      "solve",
      [](Value a, Value b) {
        const Call call("solve", a.where);
        return factor::solve(a.array, b.array, {.divide_by_zero = true});
      },
      "The x (..., n, k) of a x = b; infinities and NaN for a singular matrix.");
  part.def(
      "pivots_to_permutation",
      [](Value pivots, std::int64_t rows) {
        const Call call("lu", pivots.where);
        return factor::pivots_to_permutation(pivots.array, rows);
      },
      "Which row of the matrix stands at each row of its factor.");
  part.def(
      "computed_together",
      [](const std::vector<Value>& values) {
        const auto arrays = arrays_of(values);
        return detail::computed_after(arrays, arrays, here());
      },
      "The values, none of which is used before all of them are there: what is computed from them is not "
      "shared with what was computed from them before.");
  py::enum_<Callers>(part, "Callers")
      .value("all", Callers::all)
      .value("one", Callers::one)
      .value("each", Callers::each);
  part.def("host_call", &host_call,
           "The results of a Python function of whole values: called by every rank, or by the first alone.");
}

}  // namespace tessera::python
