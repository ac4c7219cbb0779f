#include "compile/pipeline.hpp"

#include <cstdio>
#include <fstream>

#include <tessera/runtime.hpp>
#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "compile/cost.hpp"
#include "compile/passes.hpp"

namespace tessera {
namespace {

#ifdef NDEBUG
constexpr bool verify_stages = false;
#else
constexpr bool verify_stages = true;
#endif

// TESSERA_DUMP=PREFIX writes PREFIX.0003.2-partition.txt and so on, on rank 0.
void dump(int number, const char* stage, const std::string& text) {
  const auto& prefix = settings().dump;
  if (prefix.empty() || process_index() != 0) return;
  char name[64];
  std::snprintf(name, sizeof name, ".%04d.%s.txt", number, stage);
  std::ofstream file(prefix + name);
  file << text;
  if (!file.flush() && number == 1 && *stage == '1')
    log_once(LogLevel::warn, "TESSERA_DUMP: " + in_quotes(prefix + name) +
                                 " cannot be written; does its folder exist, and is there space?");
}

}  // namespace

Program compile(const Graph& graph, const Layouts& layouts,
                const std::vector<std::optional<Sharding>>& root_layouts, Scalars scalars) {
  static int number = 0;  // number of the dump, never reused, so that a second runtime adds files
  ++number;
  const bool dumps = !settings().dump.empty();
  if (verify_stages) verify(graph);
  if (dumps) dump(number, "1-recorded", graph_text(graph));
  const auto next = [&](Program program, const char* stage) {
    if (verify_stages) verify(program);
    if (dumps) dump(number, stage, program_text(program));
    return program;
  };
  Program program = next(partition(graph, layouts, root_layouts), "2-partitioned");
  if (scalars == Scalars::constants) program = simplify_scalars(std::move(program), graph.leaves);
  program = next(choose_algorithms(share_common(std::move(program))), "3-shared");
  program = next(sink_reductions(merge_loops(std::move(program))), "4-loops");
  program = next(fuse(move_dims_of_one(shrink_constants(std::move(program)))), "5-fused");
  return next(schedule(std::move(program)), "6-scheduled");
}

}  // namespace tessera
