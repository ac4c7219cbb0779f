// custom_op: kernels in Python, which see NumPy views of a rank's blocks.
#include <tessera/custom_op.hpp>
#include <tessera/error.hpp>

#include <pybind11/numpy.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

using HaloValue = std::tuple<int, int, std::optional<std::string>, double>;  // before, after, boundary, value

// The block with its margins, in place.
py::array view_of(const detail::BlockData& block, bool is_writeable) {
  const auto size = static_cast<py::ssize_t>(itemsize(block.dtype));
  std::vector<py::ssize_t> shape, strides;
  auto* data = static_cast<std::byte*>(block.data);
  for (std::size_t d = 0; d < block.shape.size(); ++d) {
    const auto& [before, after] = block.margins[d];
    shape.push_back(block.shape[d] + before + after);
    strides.push_back(block.strides[d] * size);
    data -= before * strides[d];
  }
  const py::capsule nobody(data, [](void*) {});  // the memory is the library's
  py::array view(py::dtype::from_args(numpy_dtype(block.dtype)), shape, strides, data, nobody);
  if (!is_writeable) view.attr("flags").attr("writeable") = false;
  return view;
}

std::string type_text(const py::array& a) {
  return py::str(a.dtype()).cast<std::string>() + " " +
         py::str(py::tuple(py::cast(std::vector<py::ssize_t>(a.shape(), a.shape() + a.ndim()))))
             .cast<std::string>();
}

void take_result(py::handle given, const detail::BlockData& block, std::size_t number) {
  const py::array result = py::array::ensure(given);
  py::array into = view_of(block, true);
  if (!result || !result.dtype().equal(into.dtype()) || result.ndim() != into.ndim() ||
      !std::equal(result.shape(), result.shape() + result.ndim(), into.shape()))
    throw UserError("it gave " + (result ? type_text(result) : std::string("no array")) + " as result " +
                    std::to_string(number) + ", whose block is " + type_text(into));
  py::module_::import("numpy").attr("copyto")(into, result);
}

// The index of the first result's block in the global array.
py::tuple index_of(const detail::BlockData& block) {
  py::tuple index(block.shape.size());
  for (std::size_t d = 0; d < block.shape.size(); ++d)
    index[d] = py::slice(block.start[d], block.start[d] + block.shape[d], 1);
  return index;
}

void call_kernel(const py::function& kernel, bool passes_index, const Blocks& blocks) {
  py::tuple views(blocks.inputs());
  for (std::size_t i = 0; i < blocks.inputs(); ++i) views[i] = view_of(blocks.all_in()[i], false);
  py::dict names;
  if (passes_index) names["index"] = index_of(blocks.all_out()[0]);
  {
    const py::object returned = kernel(*views, **names);
    const bool is_tuple = PyTuple_Check(returned.ptr());
    const auto count = is_tuple ? py::len(returned) : 1;
    if (count != blocks.outputs())
      throw UserError("it gave " + std::to_string(count) + " results, the sharding rule has " +
                      std::to_string(blocks.outputs()));
    for (std::size_t i = 0; i < count; ++i)
      take_result(is_tuple ? py::tuple(returned)[i] : returned, blocks.all_out()[i], i);
  }
  for (std::size_t i = 0; i < blocks.inputs(); ++i)
    if (Py_REFCNT(PyTuple_GET_ITEM(views.ptr(), static_cast<py::ssize_t>(i))) > 1)
      throw UserError("it keeps a view of operand " + std::to_string(i) +
                      " beyond the call, whose memory goes; keep a copy");
}

BlockKernel kernel_of(const py::function& f, bool passes_index) {
  return [held = kept(f), passes_index](const Blocks& blocks) {
    const py::gil_scoped_acquire locked;
    try {
      call_kernel(*held, passes_index, blocks);
    } catch (py::error_already_set& error) {  // may not leave while other locks are held
      throw UserError(error.what());
    }
  };
}

py::tuple tuple_of_arrays(std::span<const Array> arrays) {
  py::tuple tuple(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) tuple[i] = py::cast(arrays[i]);
  return tuple;
}

// Arrays, numbers and None (zeros) of a rule: one by itself, or a tuple.
std::vector<Array> arrays_in(const py::object& returned) {
  std::vector<Array> arrays;
  const auto add = [&](py::handle one) {
    Value value;
    if (one.is_none())
      arrays.emplace_back();
    else if (read_value(one, value))
      arrays.push_back(value.array);
    else
      throw py::type_error("a rule of a custom_op gave " + py::repr(one).cast<std::string>() +
                           "; it gives an array or a tuple of arrays, None for zeros");
  };
  if (PyTuple_Check(returned.ptr()) || PyList_Check(returned.ptr()))
    for (const auto one : returned) add(one);
  else
    add(returned);
  return arrays;
}

DerivativeRule derivative_of(const std::optional<py::function>& f) {
  if (!f) return {};
  return [held = kept(*f)](std::span<const Array> operands, std::span<const Array> results,
                           std::span<const Array> directions) {
    const py::gil_scoped_acquire locked;
    return arrays_in(
        (*held)(tuple_of_arrays(operands), tuple_of_arrays(results), tuple_of_arrays(directions)));
  };
}

BatchingRule batching_of(const std::optional<py::function>& f) {
  if (!f) return {};
  return [held = kept(*f)](std::span<const Array> operands, std::span<const int> dims, std::int64_t size) {
    const py::gil_scoped_acquire locked;
    py::tuple places(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
      places[i] = dims[i] < 0 ? py::object(py::none()) : py::object(py::int_(dims[i]));
    return arrays_in((*held)(tuple_of_arrays(operands), places, size));
  };
}

// f(*operands' shapes and dtypes) -> a shape and dtype, or a list of them.
ResultRule result_of(const std::optional<py::function>& f) {
  if (!f) return {};
  return [held = kept(*f)](std::span<const ShapeDtype> operands) {
    const py::gil_scoped_acquire locked;
    const py::object type = py::module_::import("tessera").attr("ShapeDtypeStruct");
    py::tuple given(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i)
      given[i] = type(tuple_of(operands[i].shape), py::cast(operands[i].dtype));
    const py::object returned = (*held)(*given);
    std::vector<ShapeDtype> results;
    const auto add = [&](py::handle one) {
      results.push_back(
          {one.attr("shape").cast<ShapeValue>().value, one.attr("dtype").cast<DtypeValue>().value});
    };
    if (PyTuple_Check(returned.ptr()) || PyList_Check(returned.ptr()))
      for (const auto one : returned) add(one);
    else
      add(returned);
    return results;
  };
}

std::vector<Halo> halos_of(const std::map<std::string, HaloValue>& given) {
  std::vector<Halo> halos;
  for (const auto& [dim, halo] : given) {
    const auto& [before, after, boundary, value] = halo;
    halos.push_back({dim, before, after, std::nullopt, value});
    if (boundary)
      halos.back().boundary = choose<Boundary>("boundary", *boundary,
                                               {{"wrap", Boundary::wrap},
                                                {"constant", Boundary::constant},
                                                {"edge", Boundary::edge},
                                                {"reflect", Boundary::reflect},
                                                {"symmetric", Boundary::symmetric}});
  }
  return halos;
}

py::object call_op(const CustomOp& op, const std::vector<Value>& operands) {
  const auto results = op.results(arrays_of(operands), here());
  return results.size() == 1 ? py::cast(results[0]) : py::object(tuple_of_arrays(results));
}

}  // namespace

void bind_custom_op(py::module_& m) {
  py::class_<CustomOp>(m, "CustomOp")
      .def(
          "__call__",
          [](const CustomOp& op, const py::args& operands) {
            return call_op(op, operands.cast<std::vector<Value>>());
          },
          "The result on these arrays and numbers, or a tuple of the results.")
      .def_property_readonly("name", &CustomOp::name)
      .def_property_readonly("rule", &CustomOp::rule)
      .def("__repr__",
           [](const CustomOp& op) { return "<custom_op " + op.name() + " by \"" + op.rule() + "\">"; });
  m.def(
      "custom_op_of",
      [](const py::function& kernel, std::string name, std::string rule,
         const std::map<std::string, HaloValue>& halo, std::optional<py::function> result,
         std::optional<py::function> vjp, std::optional<py::function> jvp, std::optional<py::function> batch,
         bool passes_index) {
        return CustomOp({.name = std::move(name),
                         .rule = std::move(rule),
                         .kernel = kernel_of(kernel, passes_index),
                         .halo = halos_of(halo),
                         .result = result_of(result),
                         .vjp = derivative_of(vjp),
                         .jvp = derivative_of(jvp),
                         .batch = batching_of(batch)},
                        here());
      },
      "What custom_op makes, with its options in order.");
}

}  // namespace tessera::python
