// The type-erased half of jit: traces, compiled programs, calls.
#include <tessera/jit.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "api/evaluate.hpp"
#include "api/failures.hpp"
#include "api/kept_values.hpp"
#include "base/log.hpp"
#include "base/recent.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/watch/agreement.hpp"
#include "compile/cost.hpp"
#include "compile/pipeline.hpp"
#include "compile/propagate.hpp"
#include "mesh/devices.hpp"
#include "ops/collective/prefix.hpp"
#include "ops/effect/effect.hpp"
#include "ops/functions.hpp"
#include "ops/place/automatic.hpp"
#include "run/replicas.hpp"
#include "simulate/simulation.hpp"

#include <tessera/runtime.hpp>

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

class TracedCore {
 public:
  Graph graph;
  std::vector<Array> placeholders;
  std::vector<std::optional<Sharding>> root_layouts;  // out_shardings
  std::vector<bool> committed_roots;
  std::size_t results = 0;            // number of roots that are results; a token of effects may follow
  std::vector<ChosenLayout> layouts;  // for P::automatic
  std::string layouts_reason;
  std::vector<KeptValue> kept;  // for backward passes
  std::source_location where;
};

void note_layouts(TracedCore& traced, std::vector<ChosenLayout> layouts, std::string reason) {
  traced.layouts = std::move(layouts);
  traced.layouts_reason = std::move(reason);
}

class CompiledCore {
 public:
  TracedPtr traced;
  Program program;
  std::vector<int> source;            // program input -> leaf of the arguments; -1: a constant of the trace
  std::vector<Array> constants;       // per program input
  std::unique_ptr<Executable> bound;  // created at the first call: abstract meshes have no ranks to bind to
  int bound_in = 0;                   // session_number()
  GraphKey key;
  std::uint64_t plan_key = 0;
  std::vector<int> participants;
  bool bound_once = false;
};

bool inside_trace(const std::vector<Array>& leaves) {
  check_thread("jit");
  if (open_traces() > 0) return true;
  return std::any_of(leaves.begin(), leaves.end(),
                     [](const Array& x) { return x.node() && (x.node()->traced || x.node()->region); });
}

namespace {

// The properties of an argument that select its program.
struct ArgumentKind {
  Type type;
  bool is_committed;
  std::optional<Sharding> layout;
  friend bool operator==(const ArgumentKind&, const ArgumentKind&) = default;
};
struct ArgumentKindHash {
  std::size_t operator()(const ArgumentKind& kind) const {
    const auto& type = kind.type;
    const auto code =
        static_cast<std::uint64_t>(type.dtype.code) * 4 + (type.weak ? 2 : 0) + kind.is_committed;
    return mix(mix(field_hash(type.shape), code), kind.layout ? kind.layout->hash() : 0);
  }
};
ArgumentKind kind_of(const Output& output) {
  if (output.stored) return {output.type, output.sharding.has_value(), output.stored->layout};
  return {output.type, output.sharding.has_value(), output.sharding};
}

struct KindNumbers {
  RecentMap<ArgumentKind, std::int64_t, ArgumentKindHash> known{4096};
};

// Numbers kinds uniquely: signatures hold these numbers instead of hashes, so that different ones never
// compare equal. A kind that was evicted gets a new number.
std::int64_t number_of(const ArgumentKind& kind) {
  static std::int64_t last_number = 0;
  auto& known = state<KindNumbers>().known;
  if (const auto* number = known.find(kind)) return *number;
  return known.insert(kind, ++last_number);
}

}  // namespace

void signature_of(const TraceRequest& request, std::string& key) {
  const Call call("jit", request.where);
  if (is_reproducible()) key += "same bits;";
  for (const auto& x : request.leaves) {
    check_usable(x);
    const auto number = number_of(kind_of(output_of(x)));
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
}

void report_miss(const std::string& key, const std::string& last_key) {
  if (!settings().log_compile && !logs(LogLevel::info)) return;
  const char* why = last_key.empty() ? "first call"
                    : key.size() != last_key.size()
                        ? "the arguments have another structure than at the last compilation"
                        : "shapes, dtypes, shardings or static values differ from the last compilation";
  log_once(settings().log_compile ? LogLevel::warn : LogLevel::info,
           std::string("jit: traces and compiles: ") + why);
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

CompiledPtr compile_traced(const TracedPtr& traced) {
  const Call call("jit", traced->where);
  auto core = std::make_shared<CompiledCore>();
  core->traced = traced;
  core->key = key_of(traced->graph);
  core->plan_key = mix(core->key.agreed, traced->root_layouts.size());
  for (const auto& layout : traced->root_layouts)
    core->plan_key = mix(core->plan_key, layout ? layout->hash() : 0);
  core->participants = participants(traced->graph);
  const auto layouts = propagate_backward(traced->graph, traced->root_layouts);
  core->program = compile(traced->graph, layouts, traced->root_layouts);
  for (const auto& leaf : traced->graph.leaves) {
    int source = -1;
    for (std::size_t i = 0; i < traced->placeholders.size(); ++i)
      if (traced->placeholders[i].node() == leaf.node()) source = static_cast<int>(i);
    core->source.push_back(source);
    core->constants.push_back(source < 0 ? leaf : Array());
  }
  return core;
}

std::string compiled_text(const CompiledCore& core) { return program_text(core.program); }

namespace {

// ArgumentError if an argument does not fit the program.
void check_argument(const CompiledCore& core, const std::vector<Array>& leaves, std::size_t i) {
  const auto& expected = output_of(core.traced->placeholders[i]);
  const auto& given = output_of(leaves[i]);
  const bool same_type = expected.type.shape == given.type.shape && expected.type.dtype == given.type.dtype;
  const bool same_place =
      !given.sharding ||
      (expected.sharding && *expected.sharding == *given.sharding);  // an uncommitted argument is placed
  if (same_type && same_place) return;
  std::ostringstream text;
  text << "the compiled function of " << call_text() << " was made for argument array " << i << " as "
       << to_string(expected.type);
  if (expected.sharding)
    text << " " << expected.sharding->spec() << " over " << expected.sharding->mesh();
  else
    text << " (uncommitted)";
  text << ", but was called with " << describe(leaves[i])
       << ". Call the jitted function itself, which compiles once per signature, or convert the argument "
          "with astype/device_put";
  if (same_type) throw ShardingError(text.str());
  throw ArgumentError(text.str());
}

}  // namespace

// Warns about donated arguments whose memory no result or temporary can reuse: a donation needs one of equal
// size on each rank.
static void report_unusable_donations(const CompiledCore& core, const std::vector<bool>& donated) {
  const auto bytes_of = [](const Type& type, const Sharding& layout) {
    return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
  };
  for (std::size_t i = 0; i < donated.size(); ++i) {
    if (!donated[i]) continue;
    const auto& argument = core.traced->placeholders[i];
    const auto bytes = bytes_of(type_of(argument), argument.sharding());
    bool usable = false;
    for (const auto& instruction : core.program.instructions)
      for (const int v : instruction.outputs)
        usable |= bytes_of(core.program.values[v].type, core.program.values[v].layout) == bytes;
    if (!usable)
      log_once(LogLevel::warn,
               call_text() + ": the donated argument array " + std::to_string(i) + " (" +
                   to_string(type_of(argument)) +
                   ") cannot be reused: no result or temporary has its size. It is deleted all the same");
  }
}

static std::vector<Buffer> memory_of_arguments(const CompiledCore& core, const std::vector<Array>& placed) {
  std::vector<Buffer> buffers;
  buffers.reserve(core.source.size());
  for (std::size_t i = 0; i < core.source.size(); ++i) {
    const auto& x = core.source[i] >= 0 ? placed[core.source[i]] : core.constants[i];
    buffers.push_back(output_of(x).stored->buffer);
  }
  return buffers;
}

static std::vector<Array> with_constants(const CompiledCore& core, const std::vector<Array>& placed) {
  auto operands = placed;
  std::copy_if(core.constants.begin(), core.constants.end(), std::back_inserter(operands),
               [](const Array& constant) { return constant.node() != nullptr; });
  return operands;
}

static void give_up_donated(const std::vector<Array>& leaves, const std::vector<bool>& donated) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!donated[i]) continue;
    Array argument = leaves[i];
    if (!argument.is_deleted()) argument.delete_();
  }
}

std::vector<Array> call_compiled(CompiledCore& core, const std::vector<Array>& leaves,
                                 const std::vector<bool>& donated) {
  const Call call("jit", core.traced->where);
  const auto& placeholders = core.traced->placeholders;
  if (leaves.size() != placeholders.size())
    throw ArgumentError("the compiled function of " + call_text() + " takes " +
                        format_count(placeholders.size(), "array") + ", but was called with " +
                        std::to_string(leaves.size()));
  std::vector<Array> pending;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    check_usable(leaves[i]);
    check_argument(core, leaves, i);
    if (!leaves[i].node()->is_evaluated()) pending.push_back(leaves[i]);
  }
  std::vector<Array> placed(leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& expected = output_of(placeholders[i]).sharding;
    if (expected && !output_of(leaves[i]).sharding)
      placed[i] = device_put(leaves[i], *expected), pending.push_back(placed[i]);
  }
  bool constants_matter = false;
  for (const auto& constant : core.constants) {
    if (!constant.node()) continue;
    if (const auto& stored = output_of(constant).stored)
      constants_matter |= stored->content != 0 || stored->failure;
    else
      pending.push_back(constant);
  }
  if (!pending.empty()) evaluate(pending);
  const bool is_ready = core.bound && core.bound_in == session_number();
  auto all = constants_matter ? with_constants(core, placed) : std::vector<Array>();
  const auto& operands = constants_matter ? all : placed;
  Asked asked{core.traced->graph,
              core.key,
              core.plan_key,
              core.participants,
              is_ready ? core.bound.get() : nullptr,
              operands,
              content_of(operands)};
  const Agreed agreed = agree_on(asked);
  if (agreed == Agreed::failed) {
    const auto failure = share_failures(core.participants, with_constants(core, placed));
    give_up_donated(leaves, donated);
    raise(*failure);
  }
  if (agreed == Agreed::not_ready || !is_ready) {
    const auto make = [&] { return core.program; };
    auto bound = make_ready(is_ready ? std::function<Program()>() : make, asked.plan,
                            agreed == Agreed::later ? std::vector<int>() : core.participants,
                            [] { return "the compiled function of " + call_text(); });
    if (!is_ready) core.bound = std::move(bound), core.bound_in = session_number();
    asked.plan = core.bound.get();
    if (agreed == Agreed::not_ready) on_the_way(core.participants, [&] { allow_later(asked); });
  }
  auto buffers = on_the_way(core.participants, [&] {
    auto taken = memory_of_arguments(core, placed);
    if (!core.bound_once) report_unusable_donations(core, donated);
    core.bound_once = true;
    give_up_donated(leaves, donated);
    return taken;
  });
  all.clear();
  placed.clear();
  compare_replicas(*core.bound, buffers, process_index());
  auto result = core.bound->run(std::move(buffers));
  if (result.failure) raise(*result.failure);
  auto& results = result.outputs;
  std::vector<Array> arrays;
  arrays.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& value = core.program.values[core.program.outputs[i]];
    arrays.push_back(
        make_leaf(value.type, value.layout, std::move(results[i]), core.traced->committed_roots[i]));
  }
  return arrays;
}

std::vector<Sharding> compiled_input_shardings(const CompiledCore& core) {
  std::vector<Sharding> shardings;
  for (const auto& p : core.traced->placeholders) shardings.push_back(p.sharding());
  return shardings;
}
std::vector<Sharding> compiled_output_shardings(const CompiledCore& core) {
  std::vector<Sharding> shardings;
  for (std::size_t i = 0; i < core.traced->results; ++i)
    shardings.push_back(core.program.values[core.program.outputs[i]].layout);
  return shardings;
}
CostAnalysis compiled_cost(const CompiledCore& core) { return cost_of(core.program); }
MemoryAnalysis compiled_memory(const CompiledCore& core) { return memory_of(core.program); }
Simulation simulation_of(const TracedPtr& traced, const SimulateOptions& options) {
  return simulation_of_program(compile_traced(traced)->program, options);
}
Explanation compiled_explanation(const CompiledCore& core) {
  auto explanation = explanation_of(core.program);
  explanation.outputs.resize(std::min(explanation.outputs.size(), core.traced->results));
  explanation.layouts = core.traced->layouts;
  explanation.layouts_reason = core.traced->layouts_reason;
  explanation.kept = core.traced->kept;
  return explanation;
}

}  // namespace tessera::detail
