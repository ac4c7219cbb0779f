/// @file
/// jit and explain: functions are traced once, planned as a whole, and can be shown before they run.
#pragma once
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/detail/programs.hpp>
#include <tessera/detail/trace.hpp>
#include <tessera/jit/explain.hpp>
#include <tessera/jit/options.hpp>
#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera {

/// A function compiled for one signature: shapes, dtypes and shardings. Refuses any other: ArgumentError, or
/// ShardingError if only shardings differ, naming the difference. Copies share the program.
template <class R> class Compiled {
 public:
  /// For Lowered::compile.
  Compiled(detail::CompiledPtr core, R result, std::vector<bool> donated)
      : core_(std::move(core)), result_(std::move(result)), donated_(std::move(donated)) {}
  /// Runs the program. Collective over the ranks of its meshes; sends what explanation() lists.
  template <class... A> R operator()(const A&... args) const {
    std::vector<Array> leaves;
    (append(args, leaves), ...);
    return run(leaves);
  }
  /// The same for the arguments' arrays in order.
  R run(const std::vector<Array>& leaves) const {
    return detail::with_leaves(result_, detail::call_compiled(*core_, leaves, donated_));
  }
  /// The program of one rank: one line per instruction with local shapes, collectives by their usual names,
  /// mesh axes, bytes and the source line of each. Like all following functions not collective.
  std::string as_text() const { return detail::compiled_text(*core_); }
  /// One per array of the arguments.
  std::vector<Sharding> input_shardings() const { return detail::compiled_input_shardings(*core_); }
  /// One per array of the result.
  std::vector<Sharding> output_shardings() const { return detail::compiled_output_shardings(*core_); }
  CostAnalysis cost_analysis() const { return detail::compiled_cost(*core_); }  ///< arithmetic and traffic
  MemoryAnalysis memory_analysis() const { return detail::compiled_memory(*core_); }  ///< bytes
  /// All of this, with a row per collective.
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

/// A function traced for one signature, not yet planned. Not collective.
template <class R> class Lowered {
 public:
  /// For Jitted::lower.
  Lowered(detail::TracedPtr core, R result, std::vector<bool> donated)
      : core_(std::move(core)), result_(std::move(result)), donated_(std::move(donated)) {}
  std::string as_text() const { return detail::traced_text(*core_); }  ///< the recorded ops, global shapes
  /// Plans it: propagates shardings, partitions, fuses, schedules.
  Compiled<R> compile() const { return {detail::compile_traced(core_), result_, donated_}; }

 private:
  detail::TracedPtr core_;
  R result_;
  std::vector<bool> donated_;
};

/// The function returned by jit(f): the first call with a signature traces f on placeholders and compiles;
/// later calls only run. f must not depend on values, and must have no effects except its results. Copies
/// share their compiled programs, of which the 512 most recently used are kept.
template <class F> class Jitted {
 public:
  /// For jit.
  Jitted(F f, JitOptions options, std::source_location where)
      : f_(std::make_shared<F>(std::move(f))), options_(std::move(options)), where_(where) {}

  /// f(args...), compiled. Collective over the ranks of the arguments' meshes; a plain call of f inside
  /// another trace. ShardingError if a committed argument has another layout than in_shardings requires;
  /// ArgumentError for option numbers without an argument.
  template <class... A> std::invoke_result_t<F&, const A&...> operator()(const A&... args) const;
  /// Arguments that the function does not accept: too few, too many, or of other types. Does not compile.
  template <class... A>
  requires(!std::is_invocable_v<F&, const A&...>) detail::WrongArguments operator()(const A&...) const {
    static_assert(detail::never<F, A...>,
                  "the transformed function is called with arguments that the function itself does not take: "
                  "too few, too many, or of other types");
    return {};
  }
  /// f traced for these arguments; their values do not matter. Not collective: works on abstract meshes
  /// too.
  template <class... A> Lowered<std::invoke_result_t<F&, const A&...>> lower(const A&... args) const;

 private:
  template <class R, class Args> detail::Programs<Compiled<R>>& programs_of() const;
  template <class Args> static std::string structure_key(const Args& args);
  template <class Args> auto trace(const Args& args, const detail::TraceRequest& request) const;

  std::shared_ptr<F> f_;
  JitOptions options_;
  std::source_location where_;
  std::shared_ptr<std::map<const void*, std::shared_ptr<void>>> programs_ =
      std::make_shared<std::map<const void*, std::shared_ptr<void>>>();
};

/// A function with f's signature that is traced at the first call with a signature (shapes, dtypes,
/// shardings; values of plain numbers), planned as a whole, and only run afterwards. f must not depend on
/// values (see where, cond) or have effects except its results. jit is not collective; calls of its result
/// are. The arguments' shardings and options.out_shardings propagate in both directions; results without a
/// determined layout get the one that moves the fewest bytes.
template <class F>
Jitted<F> jit(F f, JitOptions options = {}, std::source_location where = std::source_location::current()) {
  return Jitted<F>(std::move(f), std::move(options), where);
}

/// The plan of f(args...): collectives with axes, bytes and source lines, arithmetic, peak memory, what
/// P::automatic stands for, what a gradient keeps; a hint where a quick search finds much better layouts for
/// the arguments. Nothing runs. Not collective: also works on abstract meshes of any size.
template <class F, class... A> Explanation explain(F f, const A&... args);
/// The same of a jitted function: its in_shardings, out_shardings and other options count.
template <class F, class... A> Explanation explain(const Jitted<F>& f, const A&... args);

/// Shape and dtype of f(args...) without computing it. Not collective. ShapeDtype of an Array; a tree of
/// them for a tree of results (as a vector, in order of the leaves).
template <class F, class... A> auto eval_shape(F f, const A&... args);

}  // namespace tessera

#include <tessera/detail/jit.hpp>
