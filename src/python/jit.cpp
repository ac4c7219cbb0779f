// jit, lower, compile, explain: the type-erased half of jit.hpp for Python calls.
#include <tessera/jit.hpp>
#include <tessera/jit/simulate.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

ShardingTree sharding_tree(py::handle from) {
  constexpr const char* what = "a sharding is a NamedSharding, a PositionalSharding, a device, None";
  return options_tree<ShardingTree>(from, what, [](py::handle leaf) -> std::optional<ShardingTree> {
    if (leaf.is_none()) return ShardingTree();
    ShardingValue sharding;
    if (!read_sharding(leaf, sharding)) return std::nullopt;
    return ShardingTree(*sharding.value);
  });
}

struct Program {
  detail::CompiledPtr core;
  Tree result;
  std::vector<bool> donated;
};
struct Traced {
  detail::TracedPtr core;
  Tree result;
  std::vector<bool> donated;
};

std::vector<Array> call_program(const Program& program, const std::vector<Array>& leaves) {
  const py::gil_scoped_release unlocked;
  return detail::call_compiled(*program.core, leaves, program.donated);
}

// Donated arguments that stay as they are: a traced function may name them in `kept` of its last result.
std::set<int> kept_arguments(const py::object& result) {
  if (!py::isinstance<py::tuple>(result) || py::len(result) == 0) return {};
  const py::object last = py::reinterpret_borrow<py::tuple>(result)[py::len(result) - 1];
  return py::hasattr(last, "kept") ? last.attr("kept").cast<std::set<int>>() : std::set<int>();
}

class JitFunction {
 public:
  JitFunction(py::function f, JitOptions options, std::set<std::string> static_names,
              std::source_location where)
      : f_(std::move(f)),
        options_(std::move(options)),
        static_names_(std::move(static_names)),
        where_(where) {}

  py::object operator()(py::args args, py::kwargs kwargs) {
    Call call = read(args, kwargs);
    if (detail::inside_trace(call.request.leaves)) {
      const detail::InlinedTrace inlined(options_.reproducible);
      return f_(*args, **kwargs);
    }
    detail::signature_of(call.request, call.signature);
    auto program = programs_.find(call.signature);
    if (!program) {
      detail::report_miss(call.signature, programs_.last_signature);
      Traced traced = trace(call);
      program = programs_.add(call.signature, compile(traced));
    }
    return rebuild(program->result, call_program(*program, call.request.leaves));
  }
  // Calls the compiled function on leaves, for callers that have flattened their trees. None if a leaf is no
  // array.
  py::object call_leaves(const py::list& leaves) {
    detail::TraceRequest request;
    request.where = where_;
    request.leaves.reserve(leaves.size());
    for (const auto leaf : leaves) {
      const Array* array = array_in(leaf);
      if (array == nullptr) return py::none();
      request.leaves.push_back(*array);
    }
    std::string signature = start_of_signature();
    for (std::size_t i = 0; i < leaves.size(); ++i) signature += "*;";
    const bool is_plain_call = detail::inside_trace(request.leaves);
    if (!is_plain_call) set_donated_apart(leaves, request.leaves);
    if (!is_plain_call) detail::signature_of(request, signature);
    const auto program = is_plain_call ? nullptr : programs_.find(signature);
    if (!program) return (*this)(py::args(py::tuple(leaves)), py::kwargs());
    return flat_results(program->result, call_program(*program, request.leaves));
  }
  Traced lower(py::args args, py::kwargs kwargs) {
    Call call = read(args, kwargs);
    return trace(call);
  }
  static Program compile(const Traced& traced) {
    Program program{nullptr, traced.result, traced.donated};  // the tree counts references: with the lock
    const py::gil_scoped_release unlocked;
    program.core = detail::compile_traced(traced.core);
    return program;
  }
  const py::function& function() const { return f_; }

 private:
  struct Call {
    Arguments arguments;             // positional ones, then keyword ones
    std::vector<std::string> names;  // names of the keyword arguments
    detail::TraceRequest request;
    std::string signature;
  };

  static std::string start_of_signature() {
    return random::threefry() == random::Threefry::original ? "original bits;" : "";
  }
  // A tuple of arrays and values, without the general code path for nested containers.
  static py::object flat_results(const Tree& tree, const std::vector<Array>& leaves) {
    const auto is_flat = [](const Tree& child) {
      return child.kind == Tree::Kind::array || child.kind == Tree::Kind::other;
    };
    if (tree.kind != Tree::Kind::tuple || !std::all_of(tree.children.begin(), tree.children.end(), is_flat))
      return rebuild(tree, leaves);
    py::tuple results(tree.children.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i] =
          tree.children[i].kind == Tree::Kind::array ? py::cast(leaves[next++]) : tree.children[i].names;
    return results;
  }

  // Values made of donated arrays stay, as in JAX, whether they are evaluated already or not.
  void set_donated_apart(const py::list& from, std::vector<Array>& leaves) const {
    std::vector<Array*> handles;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (detail::names_argument(options_.donate_argnums, static_cast<int>(i), leaves.size()))
        handles.push_back(&from[i].cast<Array&>()), leaves[i] = Array();
    if (handles.empty()) return;
    {
      const py::gil_scoped_release unlocked;
      detail::set_apart(handles);
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = *array_in(from[i]);
  }

  bool is_static(int n, std::size_t count) const {
    return detail::names_argument(options_.static_argnums, n, count);
  }

  void add(Call& call, py::handle argument, bool is_static, const std::string& name) {
    auto& arguments = call.arguments;
    if (is_static) {
      arguments.trees.push_back({Tree::Kind::other, {}, py::reinterpret_borrow<py::object>(argument), {}});
    } else {
      arguments.trees.push_back(flatten(argument, call.request.leaves, Numbers::leaves));
      if (!arguments.trees.back().has_only_arrays())
        throw py::type_error("jit: argument " + name + " holds " + py::repr(argument).cast<std::string>() +
                             ", which is no array, number or container of those; name it in static_argnums "
                             "or static_argnames");
    }
    call.request.leaf_argument.resize(call.request.leaves.size(),
                                      static_cast<int>(arguments.trees.size()) - 1);
    append_text(arguments.trees.back(), Text::exact, call.signature);
    call.signature += ';';
  }

  Call read(const py::args& args, const py::kwargs& kwargs) {
    Call call;
    call.request.options = options_;
    call.request.where = where_;
    call.signature = start_of_signature();
    for (std::size_t i = 0; i < args.size(); ++i)
      add(call, args[i], !options_.static_argnums.empty() && is_static(static_cast<int>(i), args.size()),
          std::to_string(i));
    if (kwargs.size() > 0) {
      std::map<std::string, py::handle> by_name;
      for (const auto& [name, value] : kwargs) by_name[name.cast<std::string>()] = value;
      for (const auto& [name, value] : by_name) {
        call.names.push_back(name);
        call.signature += name + "=";
        add(call, value, static_names_.contains(name), name);
      }
    }
    detail::widen_numbers(call.request);
    return call;
  }

  // The function's result with these arrays in place of its array arguments.
  py::object called(Call& call, const std::vector<Array>& arrays) {
    const py::tuple all = call.arguments.rebuilt(arrays);
    const std::size_t positional = all.size() - call.names.size();
    py::dict by_name;
    for (std::size_t i = 0; i < call.names.size(); ++i) by_name[py::str(call.names[i])] = all[positional + i];
    const py::tuple args = all[py::slice(0, static_cast<py::ssize_t>(positional), 1)];
    return f_(*args, **by_name);
  }

  Traced trace(Call& call) {
    detail::TreeShape shape;
    for (const auto& tree : call.arguments.trees) shape.children.push_back(shape_of(tree));
    Tree tree;
    std::set<int> kept;
    auto core = detail::trace_with_layouts(call.request, [&] {
      const auto placeholders = detail::start_trace(call.request, shape);
      const detail::TraceEnd end;
      std::vector<Array> leaves;
      const py::object result = called(call, placeholders);
      kept = kept_arguments(result);
      tree = flatten(result, leaves, Numbers::leaves);
      return detail::finish_trace(call.request, placeholders, leaves, shape_of(tree));
    });
    std::vector<bool> donated;
    for (const int argument : call.request.leaf_argument)
      donated.push_back(detail::names_argument(options_.donate_argnums, argument, shape.children.size()) &&
                        !kept.contains(argument));
    return {std::move(core), std::move(tree), std::move(donated)};
  }

  py::function f_;
  JitOptions options_;
  std::set<std::string> static_names_;
  std::source_location where_;
  detail::Programs<Program> programs_;
};

py::object call_compiled_program(const Program& program, py::args args, py::kwargs kwargs) {
  std::vector<Array> leaves;
  for (const auto argument : args) flatten(argument, leaves, Numbers::leaves);
  std::map<std::string, py::handle> by_name;
  for (const auto& [name, value] : kwargs) by_name[name.cast<std::string>()] = value;
  for (const auto& [name, value] : by_name) flatten(value, leaves, Numbers::leaves);
  return rebuild(program.result, call_program(program, leaves));
}

py::dict cost_of(const Program& program) {
  const auto cost = detail::compiled_cost(*program.core);
  py::dict facts;
  facts["flops"] = cost.flops;
  facts["bytes accessed"] = cost.bytes_accessed;
  facts["communication bytes"] = cost.communication_bytes;
  facts["communication calls"] = cost.communication_calls;
  facts["host crossing bytes"] = cost.host_crossing_bytes;
  return facts;
}

void bind_explanation(py::module_& m) {
  py::class_<Explanation>(m.attr("Explanation"))
      .def("kept_bytes", &Explanation::kept_bytes)
      .def(
          "bytes",
          [](const Explanation& e, const std::string& kind) {
            return kind.empty() ? e.bytes() : e.bytes(kind);
          },
          py::arg("kind") = "")
      .def(
          "calls", [](const Explanation& e, const std::string& kind) { return e.calls(kind); },
          py::arg("kind") = "")
      .def("host_crossing_bytes", &Explanation::host_crossing_bytes)
      .def(
          "forbid",
          [](py::object self, const std::string& kind) {
            return self.cast<const Explanation&>().forbid(kind), self;
          },
          py::arg("kind"))
      .def(
          "limit_bytes",
          [](py::object self, std::int64_t budget) {
            return self.cast<const Explanation&>().limit_bytes(budget), self;
          },
          py::arg("budget"));
}

}  // namespace

void bind_jit(py::module_& m) {
  bind_explanation(m);
  py::class_<Program>(m, "Compiled")
      .def("__call__", &call_compiled_program)
      .def(
          "as_text", [](const Program& p) { return detail::compiled_text(*p.core); },
          "The program of one rank, a line per instruction.")
      .def_property_readonly("input_shardings",
                             [](const Program& p) { return detail::compiled_input_shardings(*p.core); })
      .def_property_readonly("output_shardings",
                             [](const Program& p) { return detail::compiled_output_shardings(*p.core); })
      .def("cost_analysis", &cost_of)
      .def("memory_analysis", [](const Program& p) { return detail::compiled_memory(*p.core); })
      .def("explanation", [](const Program& p) { return detail::compiled_explanation(*p.core); });
  py::class_<Traced>(m, "Lowered")
      .def(
          "as_text", [](const Traced& t) { return detail::traced_text(*t.core); },
          "The recorded ops, with global shapes.")
      .def("compile", &JitFunction::compile, "Plans it: propagates shardings, partitions, fuses, schedules.")
      .def(
          "simulation",
          [](const Traced& t, const std::string& trace_path, int trace_ranks, std::int64_t most_messages) {
            const py::gil_scoped_release unlocked;
            return detail::simulation_of(t.core, {trace_path, trace_ranks, most_messages});
          },
          py::arg("trace_path") = "", py::arg("trace_ranks") = 64, py::arg("most_messages") = 2'000'000'000,
          "What tessera.simulate gives.");
  py::class_<JitFunction>(m, "JitFunction", py::dynamic_attr())
      .def(py::init([](py::function f, py::object in_shardings, py::object out_shardings,
                       std::vector<int> donate, std::vector<int> statics, std::set<std::string> static_names,
                       bool reproducible, std::int64_t memory_limit_bytes) {
             return std::make_unique<JitFunction>(
                 std::move(f),
                 JitOptions{sharding_tree(in_shardings), sharding_tree(out_shardings), std::move(donate),
                            std::move(statics), reproducible, memory_limit_bytes},
                 std::move(static_names), here());
           }),
           py::arg("fun"), py::arg("in_shardings"), py::arg("out_shardings"), py::arg("donate_argnums"),
           py::arg("static_argnums"), py::arg("static_argnames"), py::arg("reproducible") = false,
           py::arg("memory_limit_bytes") = 0)
      .def("__call__", &JitFunction::operator())
      .def("__get__",
           [](py::object self, py::object instance, py::object) -> py::object {
             if (instance.is_none()) return self;
             return py::module_::import("functools").attr("partial")(self, instance);
           })
      .def("call_leaves", &JitFunction::call_leaves,
           "The call with a list's elements as arguments, all of them arrays; None where one is something "
           "else.")
      .def("lower", &JitFunction::lower,
           "The function traced for these arguments; their values do not matter.")
      .def_property_readonly("__wrapped__", &JitFunction::function);
  m.def("eval_shape", [](py::function f, py::args args, py::kwargs kwargs) {
    Arguments arguments;
    for (const auto argument : args) arguments.add(argument, Numbers::leaves);
    detail::TraceRequest request{arguments.leaves, {}, {}, here()};
    detail::widen_numbers(request);
    detail::TreeShape shape;
    for (std::size_t i = 0; i < arguments.trees.size(); ++i) {
      shape.children.push_back(shape_of(arguments.trees[i]));
      request.leaf_argument.resize(arguments.first_leaf[i + 1], static_cast<int>(i));
    }
    const auto placeholders = detail::start_trace(request, shape);
    const detail::TraceEnd end;
    const py::tuple traced = arguments.rebuilt(placeholders);
    const py::object result = f(*traced, **kwargs);
    std::vector<Array> leaves;
    Tree tree = flatten(result, leaves, Numbers::leaves);
    py::list types;
    for (const auto& leaf : leaves) types.append(py::make_tuple(tuple_of(leaf.shape()), leaf.dtype()));
    return py::make_tuple(types, std::move(tree));
  });
}

}  // namespace tessera::python
