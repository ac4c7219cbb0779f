// vmap, pmap and shard_map: a MapRule (detail/mapped.hpp) around Python functions.
#include <tessera/maps.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

AxesTree axes_tree(py::handle from) {
  return options_tree<AxesTree>(from, "in_axes and out_axes are an axis, None", [](py::handle leaf) {
    const bool is_axis = PyLong_Check(leaf.ptr()) && !PyBool_Check(leaf.ptr());
    return leaf.is_none() ? std::optional(AxesTree(None))
           : is_axis      ? std::optional(AxesTree(leaf.cast<int>()))
                          : std::nullopt;
  });
}
SpecTree spec_tree(py::handle from) {
  return options_tree<SpecTree>(from, "in_specs and out_specs are a PartitionSpec", [](py::handle leaf) {
    return leaf.is_none()                        ? std::optional(SpecTree(PartitionSpec()))
           : py::isinstance<PartitionSpec>(leaf) ? std::optional(SpecTree(leaf.cast<PartitionSpec>()))
                                                 : std::nullopt;
  });
}

class MappedFunction {
 public:
  MappedFunction(py::function f, std::shared_ptr<const detail::MapRule> rule)
      : f_(std::move(f)), rule_(std::move(rule)) {}
  py::object operator()(py::args args, py::kwargs kwargs) const {
    Arguments arguments;
    detail::MappedCall call;
    for (const auto argument : args) {
      arguments.add(argument, Numbers::structure);
      call.args.children.push_back(shape_of(arguments.trees.back()));
      append_text(arguments.trees.back(), Text::exact, call.structure);
    }
    call.leaves = arguments.leaves;
    Tree result;
    call.body = [&](const std::vector<Array>& leaves) {
      std::vector<Array> results;
      result = flatten(f_(*arguments.rebuilt(leaves), **kwargs), results, Numbers::leaves);
      call.result = shape_of(result);
      return results;
    };
    const auto leaves = rule_->apply(call);
    return rebuild(result, leaves);
  }
  const py::function& function() const { return f_; }

 private:
  py::function f_;
  std::shared_ptr<const detail::MapRule> rule_;
};

}  // namespace

void bind_maps(py::module_& m) {
  py::class_<MappedFunction>(m, "MappedFunction", py::dynamic_attr())
      .def("__call__", &MappedFunction::operator())
      .def_property_readonly("__wrapped__", &MappedFunction::function);
  m.def("vmap", [](py::function f, py::handle in_axes, py::handle out_axes, std::string axis_name,
                   std::optional<int> axis_size) {
    return MappedFunction(
        f, detail::vmap_rule({axes_tree(in_axes), axes_tree(out_axes), std::move(axis_name), axis_size},
                             here()));
  });
  m.def("pmap", [](py::function f, std::string axis_name, py::handle in_axes, py::handle out_axes,
                   std::vector<Device> devices, std::vector<int> donate) {
    return MappedFunction(f, detail::pmap_rule({std::move(axis_name), axes_tree(in_axes), axes_tree(out_axes),
                                                std::move(devices), std::move(donate)},
                                               here()));
  });
  m.def("shard_map", [](py::function f, Mesh mesh, py::handle in_specs, py::handle out_specs, bool check_vma,
                        std::vector<std::string> axis_names) {
    return MappedFunction(f,
                          detail::shard_map_rule(std::move(mesh), spec_tree(in_specs), spec_tree(out_specs),
                                                 {std::move(axis_names), check_vma}, here()));
  });
}

}  // namespace tessera::python
