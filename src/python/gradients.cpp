// grad and related functions: a recording of one call (detail/recording.hpp) around Python functions.
#include <tessera/grad.hpp>
#include <tessera/grad/forward.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

// One call whose selected arguments are watched.
class WatchedCall {
 public:
  WatchedCall(const char* name, std::source_location where, std::vector<int> argnums, bool strict)
      : recording(name, where), name_(name), argnums_(std::move(argnums)), strict_(strict) {}

  py::object run(const py::function& f, const py::args& args, const py::kwargs& kwargs) {
    for (int& n : argnums_) {
      if (n < -static_cast<int>(args.size()) || n >= static_cast<int>(args.size()))
        throw py::value_error(std::string(name_) + " at " + line_text(here()) + ": argnum " +
                              std::to_string(n) + " is named, but the function is called with " +
                              std::to_string(args.size()) + " positional arguments");
      if (n < 0) n += static_cast<int>(args.size());
    }
    py::tuple seen(args.size());
    trees_.resize(args.size());
    first_leaf_.resize(args.size());
    for (std::size_t i = 0; i < args.size(); ++i)
      seen[i] =
          is_watched(static_cast<int>(i)) ? watch(args[i], i) : py::reinterpret_borrow<py::object>(args[i]);
    return f(*seen, **kwargs);
  }
  // The leaves of the selected arguments, in the shape of their trees: one tree, or a tuple in the order of
  // argnums.
  py::object picked(const std::vector<Array>& leaves, bool one) const {
    py::list trees;
    for (const int n : argnums_) {
      std::size_t next = first_leaf_[static_cast<std::size_t>(n)];
      trees.append(rebuild(trees_[static_cast<std::size_t>(n)], leaves, next));
    }
    return one ? py::object(trees[0]) : py::tuple(trees);
  }
  std::vector<std::size_t> picked_leaves() const {
    std::vector<std::size_t> leaves;
    for (const int n : argnums_)
      for (std::size_t i = 0; i < counts_[static_cast<std::size_t>(n)]; ++i)
        leaves.push_back(first_leaf_[static_cast<std::size_t>(n)] + i);
    return leaves;
  }

  // The original leaves of all watched arguments, in order.
  const std::vector<Array>& watched_leaves() const { return watched_leaves_; }
  const std::vector<Tree>& trees() const { return trees_; }

  detail::Recording recording;

 private:
  bool is_watched(int n) const { return std::find(argnums_.begin(), argnums_.end(), n) != argnums_.end(); }
  py::object watch(py::handle argument, std::size_t i) {
    std::vector<Array> leaves;
    trees_[i] = flatten(argument, leaves, Numbers::leaves);
    first_leaf_[i] = recording.watched();
    counts_.resize(trees_.size());
    counts_[i] = leaves.size();
    watched_leaves_.insert(watched_leaves_.end(), leaves.begin(), leaves.end());
    for (Array& leaf : leaves) leaf = recording.watch(leaf, static_cast<int>(i), strict_);
    return rebuild(trees_[i], leaves);
  }

  const char* name_;
  std::vector<int> argnums_;
  bool strict_;
  std::vector<Tree> trees_;
  std::vector<Array> watched_leaves_;
  std::vector<std::size_t> first_leaf_, counts_;
};

Array one_array(const char* call, py::handle result) {
  Value value;
  if (!read_value(result, value))
    throw py::type_error(
        std::string(call) + ": the function must return one array, not " +
        py::repr(result).cast<std::string>() +
        (PyTuple_Check(result.ptr()) ? "; with has_aux=True it may return (value, aux)" : ""));
  return value.array;
}

struct GradientOptions {
  std::vector<int> argnums;
  bool is_one;  // argnums was a number: the gradient is one tree instead of a tuple
  bool has_aux, with_value;
  std::source_location where;
};

std::vector<int> all_arguments(std::size_t count) {
  std::vector<int> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<int>(i);
  return numbers;
}

py::object gradient(const py::function& f, const GradientOptions& options, const py::args& args,
                    const py::kwargs& kwargs) {
  const char* name = options.with_value ? "value_and_grad" : "grad";
  WatchedCall call(name, options.where, options.argnums, true);
  const py::object result = call.run(f, args, kwargs);
  py::object value = result, aux = py::none();
  std::vector<Array> others;
  if (options.has_aux) {
    if (!PyTuple_Check(result.ptr()) || PyTuple_GET_SIZE(result.ptr()) != 2)
      throw py::type_error(std::string(name) + ": with has_aux=True the function must return (value, aux)");
    value = py::tuple(result)[0];
    aux = py::tuple(result)[1];
    flatten(aux, others, Numbers::structure);
  }
  const Array scalar = one_array(name, value);
  call.recording.finish({scalar}, others);
  call.recording.check_scalar();
  py::object gradients = call.picked(call.recording.gradient(), options.is_one);
  py::object front = py::cast(scalar);
  if (options.has_aux) front = py::make_tuple(front, aux);
  if (options.with_value) return py::make_tuple(front, gradients);
  if (options.has_aux) return py::make_tuple(gradients, aux);
  return gradients;
}

py::object jacobian(const py::function& f, const GradientOptions& options, const py::args& args,
                    const py::kwargs& kwargs) {
  WatchedCall call("jacrev", options.where, options.argnums, true);
  call.recording.finish({one_array("jacrev", call.run(f, args, kwargs))});
  return call.picked(call.recording.jacobian(0), options.is_one);
}

py::object forward_jacobian(const py::function& f, const GradientOptions& options, const py::args& args,
                            const py::kwargs& kwargs) {
  WatchedCall call("jacfwd", options.where, options.argnums, true);
  call.recording.finish({one_array("jacfwd", call.run(f, args, kwargs))});
  return call.picked(detail::jacobian_by_columns(call.recording, call.watched_leaves(), options.where),
                     options.is_one);
}

py::object hessian_of(const py::function& f, const GradientOptions& options, const py::args& args,
                      const py::kwargs& kwargs) {
  WatchedCall call("hessian", options.where, options.argnums, true);
  const GradientOptions inner{options.argnums, false, false, false, options.where};
  const py::cpp_function gradients([&](py::args a, py::kwargs k) { return gradient(f, inner, a, k); });
  std::vector<Array> leaves;
  flatten(call.run(gradients, args, kwargs), leaves, Numbers::leaves);
  call.recording.finish(leaves);
  std::vector<Array> blocks(call.recording.watched());
  const auto leaf_of_result = call.picked_leaves();
  for (std::size_t i = 0; i < leaf_of_result.size(); ++i)
    blocks[leaf_of_result[i]] = call.recording.jacobian(i)[leaf_of_result[i]];
  return call.picked(blocks, options.is_one);
}

using Differentiate = py::object (*)(const py::function&, const GradientOptions&, const py::args&,
                                     const py::kwargs&);
py::cpp_function differentiated(Differentiate how, py::function f, py::object argnums, bool has_aux,
                                bool with_value) {
  GradientOptions options{{}, PyLong_Check(argnums.ptr()) != 0, has_aux, with_value, here()};
  options.argnums = options.is_one ? std::vector<int>{argnums.cast<int>()} : argnums.cast<std::vector<int>>();
  return py::cpp_function([how, f = std::move(f), options](py::args args, py::kwargs kwargs) {
    return how(f, options, args, kwargs);
  });
}

// pullback(cotangents of the result) -> a tuple of cotangents, one per argument.
struct Pullback {
  WatchedCall call;
  Tree result;
  py::tuple operator()(py::handle cotangents) const {
    std::vector<Array> leaves;
    const Tree given = flatten(cotangents, leaves, Numbers::leaves);
    const auto expected = text_of(result), structure = text_of(given);
    if (expected != structure)
      detail::throw_structure_mismatch("pullback of vjp", here(), "the cotangent", expected, structure);
    return call.picked(call.recording.pull_back(leaves), false);
  }
};

py::tuple vjp_of(py::function f, py::args primals, bool has_aux) {
  WatchedCall call("vjp", here(), all_arguments(primals.size()), false);
  py::object result = call.run(f, primals, {}), aux = py::none();
  std::vector<Array> leaves, others;
  if (has_aux) {
    aux = py::tuple(result)[1];
    result = py::tuple(result)[0];
    flatten(aux, others, Numbers::structure);
  }
  Tree tree = flatten(result, leaves, Numbers::leaves);
  call.recording.finish(leaves, others);
  py::object value = rebuild(tree, leaves);
  py::object pullback = py::cast(std::make_unique<Pullback>(Pullback{std::move(call), std::move(tree)}));
  if (has_aux) return py::make_tuple(value, pullback, aux);
  return py::make_tuple(value, pullback);
}

// linearize's function: tangents of the arguments -> the tangent of the result.
struct Linearized {
  WatchedCall call;
  Tree result;
  py::object operator()(const py::args& tangents) const {
    const auto& arguments = call.trees();
    if (tangents.size() != arguments.size())
      throw py::type_error("linearize: " + std::to_string(tangents.size()) + " tangents for " +
                           std::to_string(arguments.size()) + " arguments");
    std::vector<Array> directions;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto expected = text_of(arguments[i]),
                 given = text_of(flatten(tangents[i], directions, Numbers::leaves));
      if (expected != given)
        detail::throw_structure_mismatch("linearize", here(), "a tangent", expected, given);
    }
    return rebuild(result, call.recording.push_forward(std::move(directions)));
  }
};
py::tuple linearize_of(py::function f, py::args primals) {
  WatchedCall call("linearize", here(), all_arguments(primals.size()), false);
  std::vector<Array> leaves;
  Tree tree = flatten(call.run(f, primals, {}), leaves, Numbers::leaves);
  call.recording.finish(leaves);
  py::object value = rebuild(tree, leaves);
  return py::make_tuple(value,
                        py::cast(std::make_unique<Linearized>(Linearized{std::move(call), std::move(tree)})));
}

py::tuple jvp_of(py::function f, py::tuple primals, py::tuple tangents) {
  if (primals.size() != tangents.size()) throw py::type_error("jvp: as many tangents as primals");
  const auto where = here();
  std::vector<Array> directions, ignored;
  for (std::size_t i = 0; i < primals.size(); ++i) {
    const auto expected = text_of(flatten(primals[i], ignored, Numbers::leaves)),
               given = text_of(flatten(tangents[i], directions, Numbers::leaves));
    if (expected != given) detail::throw_structure_mismatch("jvp", where, "a tangent", expected, given);
  }
  WatchedCall call("jvp", where, all_arguments(primals.size()), false);
  const py::object result = call.run(f, py::args(primals), {});
  std::vector<Array> leaves;
  const Tree tree = flatten(result, leaves, Numbers::leaves);
  call.recording.finish(leaves);
  return py::make_tuple(rebuild(tree, leaves),
                        rebuild(tree, call.recording.push_forward(std::move(directions))));
}

// f, whose backward pass records it again when needed.
py::object checkpointed(py::function f, const CheckpointPolicy& policy, py::args args) {
  const auto where = here();
  auto arguments = kept(Arguments());
  for (const auto argument : args) arguments->add(argument, Numbers::leaves);
  auto again = [f = kept(f), arguments, policy](std::span<const Array> operands,
                                                std::span<const Array> cotangents,
                                                std::source_location site) {
    const auto values = detail::computed_after({operands.begin(), operands.end()}, cotangents, site);
    const std::size_t count = arguments->leaves.size();
    detail::Recording recording("checkpoint", site);
    std::vector<Array> watched, recorded;
    for (std::size_t i = 0; i < count; ++i) watched.push_back(recording.watch(values[i], 0, false));
    flatten((*f)(*arguments->rebuilt(watched)), recorded, Numbers::leaves);
    recording.finish_with(recorded, policy, std::span(values).subspan(count));
    return recording.pull_back({cotangents.begin(), cotangents.end()}, detail::Recording::as_cotangents);
  };
  std::vector<Array> operands = arguments->leaves, results;
  if (policy.keeps_nothing()) {
    const Tree tree = flatten(f(*args), results, Numbers::leaves);
    return rebuild(tree, detail::with_second_computation(operands, results, std::move(again), where));
  }
  detail::Recording first("checkpoint", where);
  std::vector<Array> watched;
  for (const auto& leaf : arguments->leaves) watched.push_back(first.watch(leaf, 0, false));
  const Tree tree = flatten(f(*arguments->rebuilt(watched)), results, Numbers::leaves);
  for (auto& value : first.kept_values(results, policy)) operands.push_back(std::move(value));
  first.finish(results);
  return rebuild(tree, detail::with_second_computation(operands, results, std::move(again), where));
}

void bind_policies(py::module_& m) {
  using Kind = CheckpointPolicy::Kind;
  py::class_<CheckpointPolicy>(m, "CheckpointPolicy");
  for (const auto& [name, kind] :
       {std::pair("nothing_saveable", Kind::nothing), std::pair("everything_saveable", Kind::everything),
        std::pair("dots_saveable", Kind::dots),
        std::pair("dots_with_no_batch_dims_saveable", Kind::dots_without_batch)})
    m.attr(name) = CheckpointPolicy(kind);
  const auto by_name = [&m](const char* name, Kind kind) {
    m.def(name,
          [kind](py::args names) { return CheckpointPolicy(kind, names.cast<std::vector<std::string>>()); });
  };
  by_name("save_only_these_names", Kind::named);
  by_name("save_anything_except_these_names", Kind::all_but_named);
}

// The leaves of bwd's result, one tree per argument; None: no gradient.
std::vector<Array> rule_cotangents(const py::object& returned, const std::vector<Tree>& arguments) {
  if (!PyTuple_Check(returned.ptr()) || py::tuple(returned).size() != arguments.size())
    throw py::type_error("custom_vjp: bwd must return a tuple with one cotangent per argument");
  std::vector<Array> leaves;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const py::object one = py::tuple(returned)[i];
    if (!one.is_none()) {
      flatten(one, leaves, Numbers::leaves);
      continue;
    }
    std::vector<std::string> names;
    append_leaf_names(arguments[i], "", names);
    leaves.resize(leaves.size() + names.size());
  }
  return leaves;
}

py::object with_own_backward(py::function f, py::function fwd, py::function bwd, py::args args) {
  const auto where = here();
  auto arguments = kept(Arguments());
  for (const auto argument : args) arguments->add(argument, Numbers::leaves);
  std::vector<Array> results;
  const Tree tree = flatten(f(*args), results, Numbers::leaves);
  auto rule = [fwd = kept(fwd), bwd = kept(bwd), arguments, shape = kept(tree)](
                  std::span<const Array> values, std::span<const Array> cotangents,
                  std::source_location site) {
    const py::tuple both = (*fwd)(*arguments->rebuilt({values.begin(), values.end()}));
    const py::object returned = (*bwd)(both[1], rebuild(*shape, {cotangents.begin(), cotangents.end()}));
    return detail::checked_rule_result(rule_cotangents(returned, arguments->trees), values, site);
  };
  return rebuild(tree, detail::with_backward_rule(arguments->leaves, results, std::move(rule), where));
}

// f with its own derivative: rule(arguments, tangents) -> (result, its tangent), linear in the tangents; its
// transpose gives the gradients.
py::object with_own_forward(py::function f, py::function rule, py::args args) {
  const auto where = here();
  auto arguments = kept(Arguments());
  for (const auto argument : args) arguments->add(argument, Numbers::leaves);
  std::vector<Array> results;
  const Tree tree = flatten(f(*args), results, Numbers::leaves);
  auto backward = [rule = kept(rule), arguments](std::span<const Array> values,
                                                 std::span<const Array> cotangents,
                                                 std::source_location site) {
    detail::Recording recording("custom_jvp", site);
    const std::vector<Array> primals(values.begin(), values.end());
    std::vector<Array> tangents, found;  // any tangents, since the rule is linear in them
    for (const auto& x : primals) tangents.push_back(recording.watch(zeros_like(x), 0, false));
    const py::object both = (*rule)(arguments->rebuilt(primals), arguments->rebuilt(tangents));
    if (!PyTuple_Check(both.ptr()) || PyTuple_GET_SIZE(both.ptr()) != 2)
      throw py::type_error("custom_jvp: the rule must return (result, tangent of the result)");
    flatten(py::tuple(both)[1], found, Numbers::leaves);
    recording.finish(found);
    return recording.pull_back({cotangents.begin(), cotangents.end()}, detail::Recording::as_cotangents);
  };
  return rebuild(tree, detail::with_backward_rule(arguments->leaves, results, std::move(backward), where));
}

}  // namespace

void bind_gradients(py::module_& m) {
  m.def("grad", [](py::function f, py::object argnums, bool has_aux) {
    return differentiated(&gradient, f, argnums, has_aux, false);
  });
  m.def("value_and_grad", [](py::function f, py::object argnums, bool has_aux) {
    return differentiated(&gradient, f, argnums, has_aux, true);
  });
  m.def("jacrev", [](py::function f, py::object argnums) {
    return differentiated(&jacobian, f, argnums, false, false);
  });
  m.def("jacfwd", [](py::function f, py::object argnums) {
    return differentiated(&forward_jacobian, f, argnums, false, false);
  });
  m.def("hessian", [](py::function f, py::object argnums) {
    return differentiated(&hessian_of, f, argnums, false, false);
  });
  py::class_<Pullback>(m, "Pullback").def("__call__", &Pullback::operator());
  m.def("vjp", [](py::function f, bool has_aux, py::args primals) { return vjp_of(f, primals, has_aux); });
  py::class_<Linearized>(m, "Linearized").def("__call__", &Linearized::operator());
  m.def(
      "linearize", [](py::function f, py::args primals) { return linearize_of(f, primals); },
      "(f(*primals), its derivative there): jvp for many tangents, f being recorded once.");
  m.def("jvp", &jvp_of, py::arg("fun"), py::arg("primals"), py::arg("tangents"),
        "(f(primals), its derivative along the tangents).");
  m.def("checkpointed", &checkpointed);
  py::module_ policies = m.def_submodule("checkpoint_policies");
  bind_policies(policies);
  m.def("checkpoint_name_leaf",
        [](Value x, std::string name) { return checkpoint_name(x, std::move(name)); });
  m.def("with_own_backward", &with_own_backward);
  m.def("with_own_forward", &with_own_forward);
  m.def("stop_gradient_leaf", [](Value x) { return detail::stop_gradient_leaf(x.array, x.where); });
}

}  // namespace tessera::python
