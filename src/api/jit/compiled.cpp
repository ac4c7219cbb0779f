// Compiled programs of traced functions, and what they tell about themselves.
#include <algorithm>

#include "api/evaluate.hpp"
#include "api/jit/core.hpp"
#include "compile/cost.hpp"
#include "compile/propagate.hpp"
#include "simulate/simulation.hpp"

namespace tessera::detail {

void make_program(CompiledCore& core) {
  const auto& traced = *core.traced;
  core.key = key_of(traced.graph);
  core.plan_key = mix(core.key.agreed, traced.root_layouts.size());
  for (const auto& layout : traced.root_layouts)
    core.plan_key = mix(core.plan_key, layout ? layout->hash() : 0);
  core.participants = participants(traced.graph);
  const auto layouts = propagate_backward(traced.graph, traced.root_layouts);
  core.program = compile(traced.graph, layouts, traced.root_layouts, Scalars::constants);
  core.bound.reset();
  core.source.clear(), core.constants.clear();
  for (const auto& leaf : traced.graph.leaves) {
    int source = -1;
    for (std::size_t i = 0; i < traced.placeholders.size(); ++i)
      if (traced.placeholders[i].node() == leaf.node()) source = static_cast<int>(i);
    core.source.push_back(source);
    core.constants.push_back(source < 0 ? leaf : Array());
  }
}

CompiledPtr compile_traced(const TracedPtr& traced) {
  const Call call("jit", traced->where);
  auto core = std::make_shared<CompiledCore>();
  core->traced = traced;
  make_program(*core);
  return core;
}

std::string compiled_text(const CompiledCore& core) { return program_text(core.program); }

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
