// A traced function and its compiled program, as the parts of jit share them.
#pragma once
#include <tessera/jit.hpp>

#include "api/jit/kept_values.hpp"
#include "compile/pipeline.hpp"
#include "run/executable.hpp"

namespace tessera::detail {

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

// From the trace's graph: all but `traced`.
void make_program(CompiledCore&);

}  // namespace tessera::detail
