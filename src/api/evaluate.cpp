#include "api/evaluate.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include <tessera/runtime.hpp>
#include "base/log.hpp"
#include "base/recent.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/agreement.hpp"
#include "compile/pipeline.hpp"
#include "graph/hooks.hpp"

namespace tessera {
namespace {

// The most that a rank may take of the host's memory.
std::int64_t memory_share() {
  if (settings().memory_limit_bytes > 0) return settings().memory_limit_bytes;
  const auto pages = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  return pages * page / std::max(1, comm::place_in_job().host_size);
}

struct Plan {
  GraphForm form;  // what tells graphs of one hash apart
  std::vector<int> participants;
  std::shared_ptr<Executable> executable;
};
class Plans {
 public:
  Plans() { comm::world(); }  // made first, so that plans go before the communicators that they hold

  Plan* find(const Graph& graph, const GraphKey& key) {
    if (auto* alike = by_hash_.find(key.hash))
      for (auto& plan : *alike)
        if (plan.form.is_of(graph)) return &plan;
    return nullptr;
  }
  Plan& add(const GraphKey& key, Plan plan) {
    auto* alike = by_hash_.find(key.hash);
    if (alike == nullptr) alike = &by_hash_.insert(key.hash, {});
    return alike->emplace_back(std::move(plan));
  }

 private:
  static constexpr std::size_t most_hashes = 1024;
  RecentMap<std::uint64_t, std::vector<Plan>> by_hash_{most_hashes};
};

// Loops that record without ever asking for a value do not grow without bound.
const bool pending_hook = (
    compute_pending = [](const std::vector<Array>& arrays) { evaluate(arrays); }, true);

void store(const Graph& graph, const Program& program, std::vector<Buffer> buffers) {
  for (std::size_t i = 0; i < graph.roots.size(); ++i) {
    auto& output = mutable_output_of(graph.roots[i]);
    output.stored = Stored{program.values[program.outputs[i]].layout, std::move(buffers[i])};
  }
  for (const auto& root : graph.roots) {
    auto& node = *root.node();
    if (!node.traced) node.inputs.clear();
  }
}

}  // namespace

std::vector<int> participants(const Graph& graph) {
  std::set<int> ids;
  const auto everywhere = replicated_everywhere().mesh().device_ids();
  const Mesh* last = nullptr;
  const auto add = [&](const std::optional<Sharding>& sharding) {
    if (!sharding) return;
    const Mesh mesh = sharding->mesh();
    if (last != nullptr && *last == mesh) return;
    ids.insert(mesh.device_ids().begin(), mesh.device_ids().end());
  };
  for (const auto& node : graph.nodes)
    for (const auto& output : node->outputs) add(output.sharding);
  for (const auto& leaf : graph.leaves) add(output_of(leaf).sharding);
  bool uncommitted = false;
  for (const auto& root : graph.roots) uncommitted |= !output_of(root).sharding;
  if (uncommitted || ids.size() == everywhere.size()) return everywhere;
  return {ids.begin(), ids.end()};
}

void check_memory(std::int64_t bytes, const std::string& what) {
  const auto limit = memory_share();
  if (bytes <= limit) return;
  throw MemoryError(
      what + " needs " + format_bytes(bytes) + " (" + std::to_string(bytes) +
      " bytes) on each rank, but a rank may use " + format_bytes(limit) + " (" +
      std::to_string(comm::place_in_job().host_size) +
      " ranks share the host). Use more hosts, a smaller dtype, or a sharding that splits more dimensions");
}

void agree_on(const Graph& graph, const GraphKey& key, const std::vector<int>& ids) {
  if (settings().check == 0 || ids.size() <= 1 ||
      std::find(ids.begin(), ids.end(), process_index()) == ids.end())
    return;
  comm::agree(comm::group(ids), key.agreed, [&] { return "evaluates\n" + graph_text(graph); });
}

void evaluate(const std::vector<Array>& arrays) {
  check_thread("eval");
  std::vector<Array> roots;
  for (const auto& x : arrays) {
    check_usable(x);
    if (x.node()->has_placeholder)
      throw ArgumentError(call_text() + ": the value of " + describe(x) +
                          " is asked for inside a function that is being traced (jit, vmap, shard_map, pmap "
                          "or eval_shape): it is not known yet. "
                          "Return it instead, use where/cond for decisions, or debug::print to see it");
    if (output_of(x).sharding && output_of(x).sharding->mesh().is_abstract())
      throw ShardingError(
          call_text() + ": the value of " + describe(x) +
          " is asked for, but its mesh is abstract: no processes stand behind it. Use explain or "
          "lower(...).compile().as_text() to plan on it");
    if (!x.node()->is_evaluated()) roots.push_back(x);
  }
  if (roots.empty()) return;
  const Graph graph = collect(roots, true);
  const GraphKey key = key_of(graph);
  auto& plans = state<Plans>();
  Plan* plan = plans.find(graph, key);
  agree_on(graph, key, plan == nullptr ? participants(graph) : plan->participants);
  if (plan == nullptr) {
    auto executable = std::make_shared<Executable>(compile(graph), process_index());
    check_memory(executable->peak_bytes(), call_text() + ": computing " + describe(roots[0]));
    plan = &plans.add(key, {GraphForm(graph), participants(graph), std::move(executable)});
  }
  std::vector<Buffer> inputs;
  inputs.reserve(graph.leaves.size());
  for (const auto& leaf : graph.leaves) {
    const auto& output = output_of(leaf);
    if (output.deleted) check_usable(leaf);
    inputs.push_back(output.stored->buffer);
  }
  const auto executable =
      plan->executable;  // a callback inside may compute so much that the plan is forgotten
  store(graph, executable->program(), executable->run(std::move(inputs)));
}

}  // namespace tessera
