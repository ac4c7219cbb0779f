// jit, explain, control flow (API section 5): functions traced once, planned as a whole, and shown before
// they run.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera {

// None (leave it to the planner), one sharding, or a list with one entry per argument (or member of the
// result), which may be lists again; an entry stands for all arrays below it.
class ShardingTree {
 public:
  ShardingTree() = default;
  ShardingTree(NoneType) {}
  ShardingTree(Sharding sharding) : sharding_(std::move(sharding)) {}
  ShardingTree(PositionalSharding sharding) : sharding_(Sharding(sharding)) {}
  ShardingTree(std::initializer_list<ShardingTree> children) : children_(children) {}
  ShardingTree(std::vector<ShardingTree> children) : children_(std::move(children)) {}
  bool is_leaf() const { return children_.empty(); }
  const std::optional<Sharding>& value() const { return sharding_; }
  const std::vector<ShardingTree>& children() const { return children_; }

 private:
  std::optional<Sharding> sharding_;
  std::vector<ShardingTree> children_;
};

struct JitOptions {
  ShardingTree in_shardings =
      {};  // a committed argument with another sharding is refused; an uncommitted one is placed there
  ShardingTree out_shardings = {};
  std::vector<int> donate_argnums =
      {};  // their memory may be reused; they are deleted by the call. Negative ones count from the end
  std::vector<int> static_argnums =
      {};  // numbers are static anyhow; named here for documentation and checked
};

// What a compiled program costs, per rank (the busiest one).
struct CostAnalysis {
  double flops = 0;
  std::int64_t bytes_accessed = 0;
  std::int64_t communication_bytes = 0;
  std::int64_t communication_calls = 0;
};
struct MemoryAnalysis {
  std::int64_t argument_bytes = 0, output_bytes = 0, temporary_bytes = 0, peak_bytes = 0;
};

// What would run: one row per collective.
struct PlannedCollective {
  std::string kind;        // "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"
  std::string axes;        // mesh axes over which ranks talk
  std::int64_t bytes = 0;  // the busiest rank receives
  double seconds = 0;      // predicted by the alpha-beta model
  std::string what;        // "matmul at train.cpp:12"
};
class Explanation {
 public:
  std::vector<PlannedCollective> collectives;
  std::vector<std::string> outputs;  // type and sharding of each result
  CostAnalysis cost;
  MemoryAnalysis memory;
  double predicted_seconds = 0;  // communication and arithmetic
  std::int64_t bytes() const;    // per rank
  std::int64_t bytes(const std::string& kind) const;
  std::int64_t calls(const std::string& kind = "") const;
  // ShardingError that shows the offending rows when such a collective would run.
  const Explanation& forbid(const std::string& kind) const;
  // ShardingError with the table when more would move per rank.
  const Explanation& limit_bytes(std::int64_t budget) const;
};
std::ostream& operator<<(std::ostream&, const Explanation&);
std::string to_string(const Explanation&);

struct ShapeDtype {
  Shape shape;
  Dtype dtype;
};

namespace detail {

// One traced signature, compiled.
class CompiledCore;
// The graph of a traced function: parameters, results, constants.
class TracedCore;
using CompiledPtr = std::shared_ptr<CompiledCore>;
using TracedPtr = std::shared_ptr<TracedCore>;

struct TraceRequest {
  std::vector<Array> leaves;       // of the arguments
  std::vector<int> leaf_argument;  // the argument that each leaf belongs to
  JitOptions options;
  std::source_location where;
};
// Placeholders in place of the arguments' arrays; call the function on them and hand the results to
// finish_trace.
std::vector<Array> start_trace(const TraceRequest&, const TreeShape& arguments);
TracedPtr finish_trace(const TraceRequest&, const std::vector<Array>& placeholders,
                       const std::vector<Array>& results, const TreeShape& result);
// Whether the options name argument n of `count`.
bool names_argument(const std::vector<int>& argnums, int n, std::size_t count);
void abandon_trace();
std::string traced_text(const TracedCore&);
CompiledPtr compile_traced(const TracedPtr&);
std::string compiled_text(const CompiledCore&);
std::vector<Array> call_compiled(CompiledCore&, const std::vector<Array>& leaves,
                                 const std::vector<bool>& donated);
std::vector<Sharding> compiled_input_shardings(const CompiledCore&);
std::vector<Sharding> compiled_output_shardings(const CompiledCore&);
CostAnalysis compiled_cost(const CompiledCore&);
MemoryAnalysis compiled_memory(const CompiledCore&);
Explanation compiled_explanation(const CompiledCore&);
// Equal for calls that may share a compiled program: shapes, dtypes, shardings, committed or not.
void signature_of(const std::vector<Array>& leaves, std::string& key);
// Whether an array belongs to a surrounding trace (grad, vmap, shard_map, jit): then an inner jit is a plain
// call.
bool inside_trace(const std::vector<Array>& leaves);
// While an inner jit is a plain call: long loops are compiled there too.
struct InlinedTrace {
  InlinedTrace();
  ~InlinedTrace();
  InlinedTrace(const InlinedTrace&) = delete;
  InlinedTrace& operator=(const InlinedTrace&) = delete;
};
void report_miss(const std::string& key, const std::string& last_key);

// A number that the function takes as an Array becomes one; otherwise it is a static argument.
template <class F, class... A> constexpr bool numbers_become_arrays =
    (std::is_arithmetic_v<A> || ...) &&
    std::is_invocable_v<F&, std::conditional_t<std::is_arithmetic_v<A>, Array, A>...>;
template <class F, class... A> using TraceArgs =
    std::conditional_t<numbers_become_arrays<F, A...>,
                       std::tuple<std::conditional_t<std::is_arithmetic_v<A>, Array, A>...>,
                       std::tuple<A...>>;

template <class Tuple>
TraceRequest request_of(const Tuple& args, const JitOptions& options, std::source_location where) {
  TraceRequest request{{}, {}, options, where};
  [&]<std::size_t... n>(std::index_sequence<n...>) {
    ((append_leaves(std::get<n>(args), request.leaves),
      request.leaf_argument.resize(request.leaves.size(), static_cast<int>(n))),
     ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tuple>>{});
  return request;
}

}  // namespace detail

// A function compiled for one signature; refuses any other (ArgumentError naming what differs).
template <class R> class Compiled {
 public:
  Compiled(detail::CompiledPtr core, R result, std::vector<bool> donated)
      : core_(std::move(core)), result_(std::move(result)), donated_(std::move(donated)) {}
  template <class... A> R operator()(const A&... args) const {
    std::vector<Array> leaves;
    (append(args, leaves), ...);
    return run(leaves);
  }
  R run(const std::vector<Array>& leaves) const {
    return detail::with_leaves(result_, detail::call_compiled(*core_, leaves, donated_));
  }
  std::string as_text() const { return detail::compiled_text(*core_); }
  std::vector<Sharding> input_shardings() const { return detail::compiled_input_shardings(*core_); }
  std::vector<Sharding> output_shardings() const { return detail::compiled_output_shardings(*core_); }
  CostAnalysis cost_analysis() const { return detail::compiled_cost(*core_); }
  MemoryAnalysis memory_analysis() const { return detail::compiled_memory(*core_); }
  Explanation explanation() const { return detail::compiled_explanation(*core_); }

 private:
  template <class A> static void append(const A& arg, std::vector<Array>& leaves) {
    if constexpr (std::is_arithmetic_v<A>)
      leaves.push_back(Array(arg));
    else
      detail::append_leaves(arg, leaves);
  }
  detail::CompiledPtr core_;
  R result_;
  std::vector<bool> donated_;  // per leaf
};

// A function traced for one signature.
template <class R> class Lowered {
 public:
  Lowered(detail::TracedPtr core, R result, std::vector<bool> donated)
      : core_(std::move(core)), result_(std::move(result)), donated_(std::move(donated)) {}
  std::string as_text() const { return detail::traced_text(*core_); }
  Compiled<R> compile() const { return {detail::compile_traced(core_), result_, donated_}; }

 private:
  detail::TracedPtr core_;
  R result_;
  std::vector<bool> donated_;
};

// g = jit(f): the first call with a signature traces f on placeholders and compiles; later calls only run. f
// must not depend on values, and has no effects but its results. Copies of g share their compiled programs.
template <class F> class Jitted {
 public:
  Jitted(F f, JitOptions options, std::source_location where)
      : f_(std::make_shared<F>(std::move(f))), options_(std::move(options)), where_(where) {}

  template <class... A> std::invoke_result_t<F&, const A&...> operator()(const A&... args) const {
    using R = std::invoke_result_t<F&, const A&...>;
    using Args = detail::TraceArgs<F, A...>;
    const Args converted(args...);
    auto request = detail::request_of(converted, options_, where_);
    if (detail::inside_trace(request.leaves)) {
      const detail::InlinedTrace inlined;
      return std::apply(*f_, converted);
    }
    auto& cache = cache_of<R, Args>();
    std::string key = structure_key(converted);
    detail::signature_of(request.leaves, key);
    auto found = cache.plans.find(key);
    if (found == cache.plans.end()) {
      detail::report_miss(key, cache.last_key);
      found = cache.plans.emplace(key, trace(converted, request).compile()).first;
      cache.last_key = key;
    }
    return found->second.run(request.leaves);
  }
  template <class... A> Lowered<std::invoke_result_t<F&, const A&...>> lower(const A&... args) const {
    const detail::TraceArgs<F, A...> converted(args...);
    return trace(converted, detail::request_of(converted, options_, where_));
  }

 private:
  template <class R> struct Cache {
    std::map<std::string, Compiled<R>> plans;
    std::string last_key;
  };
  template <class R, class Args> Cache<R>& cache_of() const {
    static const char tag = 0;  // one address per signature type
    auto& slot = (*caches_)[&tag];
    if (!slot) slot = std::make_shared<Cache<R>>();
    return *static_cast<Cache<R>*>(slot.get());
  }
  template <class Args> static std::string structure_key(const Args& args) {
    if constexpr (only_arrays<Args>())
      return {};
    else
      return detail::structure_of(args);
  }
  template <class Args> static constexpr bool only_arrays() {
    return []<std::size_t... n>(std::index_sequence<n...>) {
      return (std::is_same_v<std::tuple_element_t<n, Args>, Array> && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Args>>{});
  }
  template <class Args> auto trace(const Args& args, const detail::TraceRequest& request) const {
    const auto placeholders = detail::start_trace(request, detail::shape_of_tree(args));
    struct Guard {
      ~Guard() { detail::abandon_trace(); }
    } guard;
    std::size_t next = 0;
    Args traced = detail::with_leaves(args, placeholders, next);
    auto result = std::apply(*f_, traced);
    std::vector<bool> donated;
    for (const int argument : request.leaf_argument)
      donated.push_back(detail::names_argument(options_.donate_argnums, argument, std::tuple_size_v<Args>));
    auto core =
        detail::finish_trace(request, placeholders, tree_leaves(result), detail::shape_of_tree(result));
    return Lowered<decltype(result)>(std::move(core), std::move(result), std::move(donated));
  }

  std::shared_ptr<F> f_;
  JitOptions options_;
  std::source_location where_;
  std::shared_ptr<std::map<const void*, std::shared_ptr<void>>> caches_ =
      std::make_shared<std::map<const void*, std::shared_ptr<void>>>();
};
template <class F>
Jitted<F> jit(F f, JitOptions options = {}, std::source_location where = std::source_location::current()) {
  return Jitted<F>(std::move(f), std::move(options), where);
}

// What f(args...) would run, without running it: also on abstract meshes of any size.
template <class F, class... A> Explanation explain(F f, const A&... args) {
  return jit(std::move(f)).lower(args...).compile().explanation();
}

// Shape and dtype of f(args...) without computing it; a tree of them for a tree of results (as a vector, in
// order of the leaves).
template <class F, class... A> auto eval_shape(F f, const A&... args) {
  const detail::TraceArgs<F, A...> converted(args...);
  const auto request = detail::request_of(converted, {}, std::source_location::current());
  const auto placeholders = detail::start_trace(request, detail::shape_of_tree(converted));
  struct Guard {
    ~Guard() { detail::abandon_trace(); }
  } guard;
  std::size_t next = 0;
  const auto result = std::apply(f, detail::with_leaves(converted, placeholders, next));
  if constexpr (std::is_same_v<std::remove_const_t<decltype(result)>, Array>) {
    return ShapeDtype{result.shape(), result.dtype()};
  } else {
    std::vector<ShapeDtype> shapes;
    for (const auto& x : tree_leaves(result)) shapes.push_back({x.shape(), x.dtype()});
    return shapes;
  }
}

}  // namespace tessera
