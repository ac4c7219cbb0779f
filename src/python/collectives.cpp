// Collectives by axis name, leaf by leaf; the package maps them over trees.
#include <tessera/collectives.hpp>

#include <utility>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

AxisName axis_of(const NamesValue& names) { return AxisName(DimSpec(names.names)); }
using GroupsValue = std::optional<Groups>;

}  // namespace

void bind_collectives(py::module_& m) {
  py::module_ part = m.def_submodule("collectives");
  const std::pair<const char*, detail::ReducedLeaf> reductions[] = {{"psum", &detail::psum_leaf},
                                                                    {"pmean", &detail::pmean_leaf},
                                                                    {"pmax", &detail::pmax_leaf},
                                                                    {"pmin", &detail::pmin_leaf}};
  for (const auto& [name, function] : reductions) {
    const auto f = function;
    part.def(name, [f](Value x, NamesValue axis, GroupsValue groups) {
      return f(x.array, axis_of(axis), groups.value_or(Groups()), x.where);
    });
  }
  part.def("psum_scatter", [](Value x, NamesValue axis, int dimension, GroupsValue groups, bool tiled) {
    return detail::psum_scatter_leaf(x.array, axis_of(axis), {dimension, tiled, groups.value_or(Groups())},
                                     x.where);
  });
  part.def("all_gather", [](Value x, NamesValue axis, GroupsValue groups, int dimension, bool tiled) {
    return detail::all_gather_leaf(x.array, axis_of(axis), {dimension, tiled, groups.value_or(Groups())},
                                   x.where);
  });
  part.def("all_to_all",
           [](Value x, NamesValue axis, int split_axis, int concat_axis, GroupsValue groups, bool tiled) {
             return detail::all_to_all_leaf(x.array, axis_of(axis), split_axis, concat_axis,
                                            {tiled, groups.value_or(Groups())}, "all_to_all", x.where);
           });
  part.def("ppermute", [](Value x, NamesValue axis, std::vector<std::pair<int, int>> perm) {
    return detail::ppermute_leaf(x.array, axis_of(axis), perm, "ppermute", x.where);
  });
  part.def("pshuffle", [](Value x, NamesValue axis, std::vector<int> perm) {
    const auto name = axis_of(axis);
    return detail::ppermute_leaf(x.array, name, detail::pairs_of_shuffle(name, perm, x.where), "pshuffle",
                                 x.where);
  });
  part.def("pswapaxes", [](Value x, NamesValue axis, int dim) {
    return detail::all_to_all_leaf(x.array, axis_of(axis), dim, dim, {}, "pswapaxes", x.where);
  });
  part.def("pbroadcast", [](Value x, NamesValue axis, int source) {
    return detail::pbroadcast_leaf(x.array, axis_of(axis), source, x.where);
  });
  part.def("pargmax", [](Value x, NamesValue axis) { return pargmax(x.array, axis_of(axis), x.where); });
  part.def("pargmin", [](Value x, NamesValue axis) { return pargmin(x.array, axis_of(axis), x.where); });
  part.def("axis_index", [](NamesValue axis) { return axis_index(axis_of(axis), here()); });
  part.def("axis_size", [](NamesValue axis) { return axis_size(axis_of(axis), here()); });
}

}  // namespace tessera::python
