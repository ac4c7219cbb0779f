// Traces: placeholders for the arguments of a user's function, and the graph of what it records.
#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "api/jit/core.hpp"
#include "base/session.hpp"
#include "ops/collective/prefix.hpp"
#include "ops/create/scalar.hpp"
#include "ops/effect/effect.hpp"
#include "ops/functions.hpp"
#include "ops/place/automatic.hpp"

namespace tessera::detail {
namespace {

struct Traces {
  int open = 0;
  // Scopes of traces that are no plain calls.
  struct Scopes {
    explicit Scopes(bool is_reproducible) {
      if (is_reproducible) same_bits.emplace();
    }
    std::optional<ReproducibleScope> same_bits;
    EffectScope effects;
    BackwardPasses backward;
  };
  std::vector<std::unique_ptr<Scopes>> scopes;
};
int& open_traces() { return state<Traces>().open; }
std::vector<std::unique_ptr<Traces::Scopes>>& open_scopes() { return state<Traces>().scopes; }

using LeafShardings = std::vector<std::optional<Sharding>>;

// The shardings that an options tree assigns to the arrays of the arguments or of the result.
LeafShardings shardings_of(const ShardingTree& options, const TreeShape& tree, const char* option,
                           const char* of) {
  LeafShardings shardings;
  spread_prefix(options, tree, call_text() + ": " + option, of, shardings);
  return shardings;
}
// The arrays of the arguments: in_shardings may omit arguments that are numbers.
TreeShape of_arrays(const ShardingTree& options, const TreeShape& arguments) {
  if (options.children().size() == arguments.children.size()) return arguments;
  TreeShape arrays = arguments;
  std::erase_if(arrays.children, [](const TreeShape& argument) { return count_leaves(argument) == 0; });
  return arrays;
}

void check_argnums(const std::vector<int>& argnums, const char* option, int count) {
  for (const int n : argnums)
    if (n < -count || n >= count)
      throw ArgumentError(call_text() + ": " + option + " names argument " + std::to_string(n) +
                          ", but the function was called with " + std::to_string(count) +
                          "; arguments are counted from 0");
}
void check_static(const TraceRequest& request, std::size_t count) {
  for (std::size_t i = 0; i < request.leaves.size(); ++i)
    if (names_argument(request.options.static_argnums, request.leaf_argument[i], count))
      throw ArgumentError(call_text() + ": argument " + std::to_string(request.leaf_argument[i]) +
                          " is named in static_argnums, but holds an array, " + describe(request.leaves[i]) +
                          ". Static arguments are numbers and what else the function may look at while it is "
                          "traced; pass item<T>(x)");
}

void check_in_sharding(const Array& leaf, const Sharding& wanted, int argument) {
  const auto& own = output_of(leaf).sharding;
  if (!own || own->is_equivalent_to(wanted, leaf.ndim())) return;
  std::ostringstream text;
  text << call_text() << ": argument " << argument
       << " is committed to a sharding that disagrees with in_shardings.\n  argument: " << describe(leaf)
       << "\n  in_shardings: " << wanted.spec() << " over " << wanted.mesh()
       << "\nMove it first: device_put(argument, in_sharding), or leave in_shardings out to follow the "
          "argument.";
  throw ShardingError(text.str());
}

// The layout chosen for P::automatic; committed arguments keep their layouts.
std::optional<Sharding> chosen_layout(const char* of, std::size_t number, const Array& x,
                                      const Sharding& asked, bool may_stay_open) {
  auto* layouts = open_layouts();
  if (layouts == nullptr) return std::nullopt;
  return layouts->layout_of(of + (" " + std::to_string(number)), x, asked, may_stay_open);
}

}  // namespace

void note_layouts(TracedCore& traced, std::vector<ChosenLayout> layouts, std::string reason) {
  traced.layouts = std::move(layouts);
  traced.layouts_reason = std::move(reason);
}

void widen_numbers(TraceRequest& request) {
  const auto has = [&](auto&& is_wanted) {
    return std::ranges::any_of(request.leaves, [&](const Array& x) {
      return x.node() && !output_of(x).type.weak && is_wanted(output_of(x).type.dtype);
    });
  };
  const bool has_double = has([](Dtype d) { return d == float64 || d == complex128; }),
             has_long = has([](Dtype d) { return d == int64 || d == uint64; }),
             has_int = has([](Dtype d) { return is_integer(d); });
  for (Array& x : request.leaves) {
    if (!x.node() || !output_of(x).type.weak) continue;
    const auto number = scalar_value(x);
    const Dtype dtype = output_of(x).type.dtype;
    if (!number) continue;
    if (is_integer(dtype) && !std::in_range<std::int32_t>(number->integer)) {
      const Call call("jit", request.where);
      if (has_int && !has_long) make_scalar(*number, int32, false);  // throws: it does not fit
      x = make_scalar(*number, int64, true);
    } else if (has_double && (dtype == float32 || dtype == complex64)) {
      x = make_scalar(*number, dtype == float32 ? float64 : complex128, true);
    }
  }
}

bool inside_trace(const std::vector<Array>& leaves) {
  check_thread("jit");
  if (open_traces() > 0) return true;
  return std::any_of(leaves.begin(), leaves.end(),
                     [](const Array& x) { return x.node() && (x.node()->traced || x.node()->region); });
}

bool names_argument(const std::vector<int>& argnums, int n, std::size_t count) {
  return std::any_of(argnums.begin(), argnums.end(),
                     [&](int named) { return named == n || named + static_cast<int>(count) == n; });
}

std::vector<Array> start_trace(const TraceRequest& request, const TreeShape& arguments) {
  const Call call("jit", request.where);
  const int count = static_cast<int>(arguments.children.size());
  check_argnums(request.options.donate_argnums, "donate_argnums", count);
  check_argnums(request.options.static_argnums, "static_argnums", count);
  check_static(request, arguments.children.size());
  const auto& in_shardings = request.options.in_shardings;
  const auto wanted_shardings =
      shardings_of(in_shardings, of_arrays(in_shardings, arguments), "in_shardings", "the list of arguments");
  std::vector<Array> placeholders;
  for (std::size_t i = 0; i < request.leaves.size(); ++i) {
    const auto& leaf = request.leaves[i];
    check_usable(leaf);
    const auto& output = output_of(leaf);
    const int argument = request.leaf_argument[i];
    auto sharding = output.sharding;
    if (const auto& wanted = wanted_shardings[i]; wanted && wanted->is_automatic()) {
      if (!sharding) sharding = chosen_layout("argument", i, leaf, *wanted, false);
    } else if (wanted) {
      check_in_sharding(leaf, *wanted, argument);
      wanted->check_fits(leaf.shape(), (call_text() + ": in_shardings").c_str());
      if (!sharding) sharding = wanted;
    }
    placeholders.push_back(make_placeholder(output.type, sharding, leaf.node()->region, output.varying));
  }
  ++open_traces();
  open_scopes().push_back(std::make_unique<Traces::Scopes>(request.options.reproducible));
  return placeholders;
}
void abandon_trace() {
  --open_traces();
  open_scopes().pop_back();
}
namespace {
// A placeholder of a traced function that the array depends on; nullptr if there is none.
const Node* placeholder_below(const Array& x) {
  std::vector<const Node*> waiting{x.node().get()};
  std::set<const Node*> seen(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (is_parameter(*node)) return node;
    for (const auto& input : node->inputs)
      if (input.node()->has_placeholder && seen.insert(input.node().get()).second)
        waiting.push_back(input.node().get());
  }
  return nullptr;
}
}  // namespace

void check_not_leaked(const Array& x) {
  if (open_traces() > 0) return;
  const Node* placeholder = placeholder_below(x);
  if (placeholder == nullptr || std::string_view(placeholder->call) != "jit") return;
  throw ArgumentError(
      call_text() + ": " + describe(x) + " was made while jit at " + site(placeholder->where) +
      " traced its function, which has ended, so that it has no value. Return it from the function "
      "instead of storing it outside, or print it inside with debug::print");
}

InlinedTrace::InlinedTrace(bool is_reproducible) {
  if (is_reproducible) same_bits_.emplace();
  ++open_traces();
}
InlinedTrace::~InlinedTrace() { --open_traces(); }

TracedPtr finish_trace(const TraceRequest& request, const std::vector<Array>& placeholders,
                       const std::vector<Array>& results, const TreeShape& result) {
  const Call call("jit", request.where);
  auto traced = std::make_shared<TracedCore>();
  traced->placeholders = placeholders;
  traced->where = request.where;
  auto out_shardings = shardings_of(request.options.out_shardings, result, "out_shardings", "the result");
  for (std::size_t i = 0; i < results.size(); ++i) {
    check_usable(results[i]);
    auto& layout = out_shardings[i];
    if (layout && layout->is_automatic()) layout = chosen_layout("result", i, results[i], *layout, true);
    if (layout) layout->check_fits(results[i].shape(), (call_text() + ": out_shardings").c_str());
    traced->committed_roots.push_back(layout || output_of(results[i]).sharding);
    traced->root_layouts.push_back(std::move(layout));
  }
  auto roots = results;
  if (open_scopes().back()->effects.has_effects()) {  // effects run although no value is requested
    roots.push_back(open_scopes().back()->effects.token());
    traced->root_layouts.emplace_back();
    traced->committed_roots.push_back(false);
  }
  traced->results = results.size();
  traced->graph = collect(roots, false);
  traced->kept = kept_values(traced->graph, placeholders, open_scopes().back()->backward);
  return traced;
}

std::string traced_text(const TracedCore& traced) { return graph_text(traced.graph); }

}  // namespace tessera::detail
