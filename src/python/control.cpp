// cond, while_loop, fori_loop and scan on Python functions: the counterpart of control.hpp's templates.
#include <tessera/control.hpp>
#include <tessera/detail/trace.hpp>

#include <string>
#include <utility>
#include <vector>

#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::python {
namespace {

using Leaves = std::vector<Array>;

detail::LoopSite site_of(const char* call, std::source_location where, const Tree& init) {
  detail::LoopSite site{call, where, {}};
  append_leaf_names(init, "", site.leaf_names);
  return site;
}
Leaves leaves_like(const detail::LoopSite& site, const Tree& given, py::handle returned) {
  Leaves leaves;
  detail::check_same_structure(site, text_of(given), text_of(flatten(returned, leaves, Numbers::leaves)));
  return leaves;
}
bool is_true(const Array& x, std::source_location where) {
  const py::gil_scoped_release unlocked;
  return item<bool>(x, where);
}
Array one_array(py::handle returned, const char* what) {
  Value value;
  if (!read_value(returned, value)) throw py::type_error(std::string(what) + " must be one array");
  return value.array;
}

py::object fori_loop_of(int lo, int hi, py::function body, py::object init) {
  const auto where = here();
  Leaves leaves;
  const Tree tree = flatten(init, leaves, Numbers::leaves);
  if (!leaves.empty() && detail::is_compiled_loop(std::int64_t{hi} - lo, leaves)) {
    const auto site = site_of("fori_loop", where, tree);
    return rebuild(tree, detail::compiled_fori(
                             site, lo, hi,
                             [&](const Array& i, const Leaves& values) {
                               return leaves_like(site, tree, body(i, rebuild(tree, values)));
                             },
                             leaves));
  }
  py::object value = init;
  for (int i = lo; i < hi; ++i) value = body(i, value);
  return value;
}

// With `in_program` a loop of a trace is an op of its program, even if all its values are known while it is
// traced; otherwise such a loop runs at once, step by step.
py::object while_loop_of(py::function condition, py::function body, py::object init, bool in_program) {
  const auto where = here();
  Leaves leaves;
  Tree tree = flatten(init, leaves, Numbers::leaves);
  py::object value = rebuild(tree, leaves);
  if (!detail::any_unknown(leaves) && !(in_program && detail::inside_trace({}))) {
    while (true) {
      const Array go_on = one_array(condition(value), "while_loop: what the condition returns");
      detail::check_condition(go_on, where);
      if (detail::is_unknown(go_on)) break;  // the condition closes over a traced value
      if (!is_true(go_on, where)) return value;
      value = body(value);
    }
  }
  leaves.clear();
  tree = flatten(value, leaves, Numbers::leaves);
  const auto site = site_of("while_loop", where, tree);
  return rebuild(
      tree, detail::compiled_while(
                site,
                [&](const Leaves& values) {
                  return Leaves{
                      one_array(condition(rebuild(tree, values)), "while_loop: what the condition returns")};
                },
                [&](const Leaves& values) { return leaves_like(site, tree, body(rebuild(tree, values))); },
                leaves));
}

py::object cond_of(Value predicate, py::function f, py::function g, py::args args) {
  detail::check_predicate(predicate.array, "cond", predicate.where);
  if (!detail::is_unknown(predicate.array))
    return is_true(predicate.array, predicate.where) ? f(*args) : g(*args);
  Tree tree;
  const auto results = detail::compiled_cond(
      predicate,
      [&] {
        Leaves leaves;
        tree = flatten(f(*args), leaves, Numbers::leaves);
        return leaves;
      },
      [&] {
        Leaves leaves;
        const Tree other = flatten(g(*args), leaves, Numbers::leaves);
        detail::check_same_structure({"cond", predicate.where, {}}, text_of(tree), text_of(other));
        return leaves;
      });
  return rebuild(tree, results);
}

// The pair (carry, y) that f returned.
py::tuple two(const py::object& returned) {
  if (!PyTuple_Check(returned.ptr()) || PyTuple_GET_SIZE(returned.ptr()) != 2)
    throw py::type_error(line_text(here()) + ": the function of scan must return (carry, y), not " +
                         py::repr(returned).cast<std::string>());
  return returned;
}

py::tuple scan_in_steps(const py::function& f, py::object carry, const Tree& entries, const Leaves& xs,
                        std::int64_t steps, std::source_location where) {
  std::vector<Leaves> rows;
  Tree y;
  for (std::int64_t i = 0; i < steps; ++i) {
    Leaves slices, results;
    for (const auto& x : xs) slices.push_back(detail::leading_entry(x, i, where));
    const py::tuple returned = two(f(carry, rebuild(entries, slices)));
    carry = returned[0];
    y = flatten(returned[1], results, Numbers::leaves);
    rows.push_back(std::move(results));
  }
  return py::make_tuple(carry, rebuild(y, detail::stack_leaves(rows, xs, where)));
}

py::tuple scan_of(py::function f, py::object init, py::object xs) {
  const auto where = here();
  Leaves carried, leaves;
  const Tree tree = flatten(init, carried, Numbers::leaves), entries = flatten(xs, leaves, Numbers::leaves);
  const auto steps = detail::leading_size(leaves, where);
  Leaves both = carried;
  both.insert(both.end(), leaves.begin(), leaves.end());
  if (steps != 0 && !detail::is_compiled_loop(steps, both))
    return scan_in_steps(f, rebuild(tree, carried), entries, leaves, steps, where);
  const auto site = site_of("scan", where, tree);
  Tree y;
  const auto results = detail::compiled_scan(
      site,
      [&](const Leaves& values, const Leaves& slices) {
        const py::tuple returned = two(f(rebuild(tree, values), rebuild(entries, slices)));
        Leaves all = leaves_like(site, tree, returned[0]);
        y = flatten(returned[1], all, Numbers::leaves);
        return all;
      },
      carried, leaves);
  std::size_t next = 0;
  py::object carry = rebuild(tree, results, next);
  py::object ys = rebuild(y, results, next);
  return py::make_tuple(carry, ys);
}

}  // namespace

void bind_control(py::module_& m) {
  py::module_ part = m.def_submodule("control");
  part.def("fori_loop", &fori_loop_of);
  part.def("while_loop", &while_loop_of, py::arg("condition"), py::arg("body"), py::arg("init"),
           py::arg("in_program") = false);
  part.def("cond", &cond_of);
  part.def("scan", &scan_of);
}

}  // namespace tessera::python
