// Tracing a function and calling its compiled program: the implementation of jit.hpp.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/jit/explain.hpp>
#include <tessera/jit/options.hpp>
#include <tessera/ops/reproducible.hpp>
#include <tessera/tree.hpp>

namespace tessera::detail {

// One traced signature, compiled.
class CompiledCore;
// The graph of a traced function: parameters, results, constants.
class TracedCore;
using CompiledPtr = std::shared_ptr<CompiledCore>;
using TracedPtr = std::shared_ptr<TracedCore>;

struct TraceRequest {
  std::vector<Array> leaves;       // leaves of the arguments
  std::vector<int> leaf_argument;  // the argument that each leaf belongs to
  JitOptions options;
  std::source_location where;
};
// Returns placeholders for the arguments' arrays; the caller applies the function to them and passes the
// results to finish_trace.
std::vector<Array> start_trace(const TraceRequest&, const TreeShape& arguments);
TracedPtr finish_trace(const TraceRequest&, const std::vector<Array>& placeholders,
                       const std::vector<Array>& results, const TreeShape& result);
// Whether the options include argument n of `count`.
bool names_argument(const std::vector<int>& argnums, int n, std::size_t count);
void abandon_trace();
// Abandons an unfinished trace on destruction.
struct TraceEnd {
  TraceEnd() = default;
  ~TraceEnd() { abandon_trace(); }
  TraceEnd(const TraceEnd&) = delete;
  TraceEnd& operator=(const TraceEnd&) = delete;
};
// Calls `trace` (start_trace, the function, finish_trace): once where the function and the options have no
// P::automatic, else once for each plan of the search for it, last with the layouts that were found.
TracedPtr trace_with_layouts(const TraceRequest&, const std::function<TracedPtr()>& trace);
void note_layouts(TracedCore&, std::vector<ChosenLayout>, std::string reason);  // for explain
std::string traced_text(const TracedCore&);
CompiledPtr compile_traced(const TracedPtr&);
std::string compiled_text(const CompiledCore&);
// Before they are donated: evaluates them, and gives each handle a value of its own, so that all else that
// was made of these arrays keeps theirs.
void set_apart(const std::vector<Array*>& handles);
std::vector<Array> call_compiled(CompiledCore&, const std::vector<Array>& leaves,
                                 const std::vector<bool>& donated);
std::vector<Sharding> compiled_input_shardings(const CompiledCore&);
std::vector<Sharding> compiled_output_shardings(const CompiledCore&);
CostAnalysis compiled_cost(const CompiledCore&);
MemoryAnalysis compiled_memory(const CompiledCore&);
Explanation compiled_explanation(const CompiledCore&);
// The type and layout of an array argument, for searches of layouts.
struct Leaf {
  Shape shape;
  Dtype dtype;
  std::optional<Sharding> given;
};
using PlanOfLayouts = std::function<Explanation(const std::vector<Sharding>&)>;
Leaf leaf_of(const Array&);
// Adds a hint to the plan if other layouts of the arguments would take much less time. `plan` returns the
// plan for given layouts of the leaves.
Explanation with_hint(Explanation, const std::vector<Leaf>& leaves, const PlanOfLayouts& plan);
// A text that is equal for calls that may share a compiled program: shapes, dtypes, shardings, committed or
// not.
void signature_of(const TraceRequest&, std::string& key);
// Numbers beside arrays of float64 or complex128 get that precision, and integers beyond int32 are int64, as
// where nothing is traced. ArgumentError for an integer that fits no integer array among the arguments.
void widen_numbers(TraceRequest&);
// Whether an array belongs to an enclosing trace (grad, vmap, shard_map, jit): an inner jit is then a plain
// call.
bool inside_trace(const std::vector<Array>& leaves);
// Opened when an inner jit is treated as a plain call: its long loops are still compiled, and its
// ReproducibleScope applies.
struct InlinedTrace {
  explicit InlinedTrace(bool is_reproducible = false);
  ~InlinedTrace();
  InlinedTrace(const InlinedTrace&) = delete;
  InlinedTrace& operator=(const InlinedTrace&) = delete;

 private:
  std::optional<ReproducibleScope> same_bits_;
};
void report_miss(const std::string& key, const std::string& last_key);

// The result type of a transformed function for arguments that the function does not accept.
struct WrongArguments {};
template <class F, class... A>
concept Takes =
    std::is_invocable_v<F, A...> && !std::is_same_v<std::invoke_result_t<F, A...>, WrongArguments>;
// Reports an error in a call once; the rest of the call is omitted, so that no further errors appear.
template <class F, class... A> constexpr bool returns_something() {
  constexpr bool is_void = std::is_void_v<std::invoke_result_t<F&, const A&...>>;
  static_assert(!is_void,
                "the transformed function returns nothing: it is traced, and what it does besides returning "
                "values would be lost. Return the arrays that it computes; print with debug::print");
  return !is_void;
}

// Numbers that the function takes as Arrays become Arrays; others are static arguments.
template <class F, class... A> constexpr bool numbers_become_arrays =
    (std::is_arithmetic_v<A> || ...) && Takes<F&, std::conditional_t<std::is_arithmetic_v<A>, Array, A>...>;
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
  widen_numbers(request);
  return request;
}

template <class Tuple> inline constexpr bool only_arrays = false;
template <class... A> inline constexpr bool only_arrays<std::tuple<A...>> = (std::is_same_v<A, Array> && ...);

}  // namespace tessera::detail
