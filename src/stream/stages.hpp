// The stages of a program on files: each streams its own dim, and leaves values in temporary files for the
// next ones.
//
//   y = fftn(x)      stage 1: slabs of rows: FFT of each row           -> temporary file, in tiles
//                    stage 2: slabs of columns of that file: FFT of each column -> y
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "stream/panels.hpp"
#include "stream/plan.hpp"
#include "stream/spill/file_views.hpp"

namespace tessera::stream {

struct Request {
  std::vector<Array> values;
  bool is_stored = false;         // the values go to files, if they have the streamed dim
  std::int64_t memory_limit = 0;  // 0: this rank's share
  std::int64_t slab = 0;          // extent of a slab; 0: chosen
  std::int64_t number = 0;        // of the plan, if it is to be run
  std::vector<std::optional<TargetChunks>> chunks = {};  // of these files; one with chunks takes no panels
};

// The fate of a wanted value of a stage: one of these.
struct Outcome {
  int result = -1;               // the number of the value that the user asked for
  SpillFilePtr spill = nullptr;  // its slabs go there
  Array placeholder = {};        // stands for it in the next stages; it stays in memory
  SpillFilePtr keys = nullptr;   // of argsort: `spill` has the positions that belong to these sorted runs
};
struct PlannedStage {
  Stage stage;
  std::vector<Outcome> outcomes;      // of stage.wanted
  std::optional<Panels> panels = {};  // the only wanted value is computed so; the stage has its facts alone
};
struct Plan {
  std::vector<PlannedStage> stages;
  io::StreamPlan facts;
};
// MemoryError with what the program would need, ArgumentError where no stages are found.
Plan plan_of(const Request&);

}  // namespace tessera::stream
