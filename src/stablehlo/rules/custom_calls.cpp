#include "stablehlo/rules/custom_calls.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"
#include "stablehlo/matrices/matrices.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

std::string why_not(const std::string& target) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> reasons{{
      {"xla_python", "it calls back into the Python program that wrote the text"},
      {"xla_ffi_python", "it calls back into the Python program that wrote the text"},
      {"SPMDFullToShardShape", "shard_map in GSPMD's form: write the text with jax_use_shardy_partitioner"},
      {"SPMDShardToFullShape", "shard_map in GSPMD's form: write the text with jax_use_shardy_partitioner"},
      {"tpu_custom_call", "it is a kernel for accelerators"},
      {"__gpu", "it is a kernel for accelerators"},
      {"cu", "it is a kernel for accelerators: export the program for the CPU"},
      {"triton", "it is a kernel for accelerators"},
      {"lapack_", "this function of LAPACK is not among those that are known"},
  }};
  for (const auto& [start, reason] : reasons)
    if (target.starts_with(start)) return ": " + std::string(reason);
  return "";
}

// chlo's operations under the names of their predecessors.
Arrays renamed(OpCall& s, const std::string& target) {
  Operation op;
  op.name = target == "mhlo.topk" ? "chlo.top_k" : "chlo." + target.substr(5);
  op.place = s.op.place, op.operands = s.op.operands, op.results = s.op.results;
  if (const Attribute* attributes = s.find("mhlo.attributes")) op.attributes = *attributes;
  const Attribute* largest = op.attributes.find("largest");
  if (largest != nullptr && largest->text != "true") s.refuse("the smallest elements: sort them");
  const auto rule = rules().find(op.name);
  if (rule == rules().end()) s.refuse("no counterpart of " + in_quotes(target));
  OpCall step{s.run, s.frame, op, s.x, s.is_lifted};
  return rule->second(step);
}

}  // namespace

Arrays custom_call(OpCall& s) {
  auto target = s.word("callee");
  if (target.empty()) target = s.word("call_target_name");
  if (target == "Sharding") return gspmd_sharding(s);
  if (target == "annotate_device_placement" || target == "LayoutConstraint" || target == "MoveToHost" ||
      target == "MoveToDevice")
    return s.x;
  if (target == "ApproxTopK") return approx_top_k(s);
  if (target.starts_with("mhlo.")) return renamed(s, target);
  if (const Rule rule = lapack_rule(target)) return rule(s);
  s.refuse("the function " + shown(target) + " has no counterpart" + why_not(target));
}

}  // namespace tessera::stablehlo
