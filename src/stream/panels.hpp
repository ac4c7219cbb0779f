// A value that is too large for one program: it is cut into panels, each of them a program of its own.
//
//   c = a b, all three in files       c[I, J] = a[I, :] b[:, J], streamed along the summed dim
//
//   a is read once for each column of panels, b once for each row of them: of all cuts into panels that fit,
//   that is taken which reads the least.
#pragma once
#include <optional>
#include <vector>

#include "stream/plan.hpp"
#include "stream/spill/file_views.hpp"

namespace tessera::stream {

struct Panels {
  Array value;
  std::vector<std::int64_t> extents;  // of a panel
  std::int64_t slab = 0;              // of the program of a panel
};
std::vector<Box> boxes_of(const Panels&);
// The same value, recorded on parts of the files; nullopt if an op needs a dim whole that is cut.
std::optional<Array> panel_of(const Array& value, const Box& box);
// The program of a panel: streamed along a dim that it does not have. nullopt if there is none.
std::optional<Stage> stage_of_panel(const Array& panel, const Room&);
// Panels whose programs fit the room, with what they do together; nullopt if there are none.
struct PlannedPanels {
  Panels panels;
  io::StreamPlan facts;
};
std::optional<PlannedPanels> panels_within(const Array& value, const Room&, FileNumbers&);

}  // namespace tessera::stream
