// jit and explain: functions traced once, planned as a whole, and shown before they run.
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

  template <class... A> std::invoke_result_t<F&, const A&...> operator()(const A&... args) const;
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
template <class F>
Jitted<F> jit(F f, JitOptions options = {}, std::source_location where = std::source_location::current()) {
  return Jitted<F>(std::move(f), std::move(options), where);
}

// What f(args...) would run, without running it: also on abstract meshes of any size.
template <class F, class... A> Explanation explain(F f, const A&... args) {
  return jit(std::move(f), {}, std::source_location()).lower(args...).compile().explanation();
}

struct ShapeDtype {
  Shape shape;
  Dtype dtype;
};
// Shape and dtype of f(args...) without computing it; a tree of them for a tree of results (as a vector, in
// order of the leaves).
template <class F, class... A> auto eval_shape(F f, const A&... args);

}  // namespace tessera

#include <tessera/detail/jit.hpp>
