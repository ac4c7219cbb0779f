#include "stream/panels.hpp"

#include <tessera/array/index.hpp>
#include <tessera/device.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "ops/build.hpp"
#include "stream/file_source.hpp"
#include "stream/spill/simplify.hpp"

namespace tessera::stream {
namespace {

Array slice_of_file(const Array& x, int dim, const Range& range) {
  FileParams p = x.node()->params->as<FileParams>();
  const auto d = static_cast<std::size_t>(dim);
  p.start[d] += range.start * p.step[d];
  p.count[d] = range.size();
  return record_file(std::move(p));
}

// Whether every value with the dim can be made part by part, in any order, and nothing is summed over it.
bool is_pure(const Roles& roles, const DimClasses& dims, const Array& value) {
  return roles.refusal.empty() && roles.passes == 1 && roles.role(value).kind == Role::slab &&
         std::none_of(roles.of.begin(), roles.of.end(), [&](const auto& entry) {
           const auto& [node, role] = entry;
           return role.kind == Role::partial ||
                  (role.kind == Role::slab && is_in_sequence(*node, dims.dim_in(roles.dim_class, *node, 0)));
         });
}

std::optional<Array> cut_along(const Array& value, int dim, const Range& range) {
  const Graph graph = collect({value}, false);
  const DimClasses dims(graph);
  const Roles roles = roles_in(graph, dims, dims.of(*value.node(), value.output(), dim));
  if (!is_pure(roles, dims, value)) return std::nullopt;
  WholeValues wholes(roles);
  const SlabRecorder::Carries nothing;
  const auto cut = [&](const Array& x, int d) {
    if (is_file(*x.node())) return slice_of_file(x, d, range);
    std::vector<IndexPart> parts(static_cast<std::size_t>(d), slice());
    parts.emplace_back(slice(range.start, range.stop));
    return index(x, std::move(parts));
  };
  return SlabRecorder(roles, dims, wholes, range.size(), cut, nothing).of(value);
}

// The dims of the value that can be cut: the two longest.
std::vector<int> dims_to_cut(const Array& value) {
  const Graph graph = collect({value}, false);
  const DimClasses dims(graph);
  std::vector<int> found;
  for (int d = 0; d < value.ndim(); ++d)
    if (value.shape()[static_cast<std::size_t>(d)] > 1 &&
        is_pure(roles_in(graph, dims, dims.of(*value.node(), value.output(), d)), dims, value))
      found.push_back(d);
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
    return value.shape()[static_cast<std::size_t>(a)] > value.shape()[static_cast<std::size_t>(b)];
  });
  found.resize(std::min<std::size_t>(found.size(), 2));
  return found;
}

// Bytes of the files that are read again for each cut along the first dim, along the second, along any.
struct Readings {
  double by_first = 0, by_second = 0, by_any = 0;
  Readings(const Array& value, const std::vector<int>& cut) {
    const Graph graph = collect({value}, false);
    const DimClasses dims(graph);
    for (const auto& node : graph.nodes) {
      if (!is_file(*node)) continue;
      const auto has = [&](std::size_t i) {
        return i >= cut.size() || dims.dim_in(dims.of(*value.node(), value.output(), cut[i]), *node, 0) >= 0;
      };
      const auto bytes = static_cast<double>(Array(node, 0).nbytes());
      (has(0) ? has(1) ? never : by_second : has(1) ? by_first : by_any) += bytes;
    }
  }
  double of(std::int64_t first, std::int64_t second) const {
    const auto p = static_cast<double>(first), q = static_cast<double>(second);
    return by_first * p + by_second * q + by_any * p * q;
  }

 private:
  double never = 0;
};

// Extents of a panel for at least `count` panels, with the least to read.
std::vector<std::int64_t> extents_for(std::int64_t count, const Shape& shape, const std::vector<int>& cut,
                                      const Readings& readings) {
  const auto extent = [&](std::size_t i) {
    return i < cut.size() ? shape[static_cast<std::size_t>(cut[i])] : std::int64_t{1};
  };
  std::int64_t first = 0, second = 0;
  const auto most = std::min(count, extent(0));
  for (std::int64_t p = 1; p <= most; ++p) {
    const auto q = std::min((count + p - 1) / p, extent(1));
    if (p * q < count && p < most) continue;
    if (first == 0 || readings.of(p, q) < readings.of(first, second)) first = p, second = q;
  }
  auto extents = shape.vector();
  const auto divide = [&](std::size_t i, std::int64_t parts) {
    if (i < cut.size())
      extents[static_cast<std::size_t>(cut[i])] = (extent(i) + parts - 1) / std::max<std::int64_t>(1, parts);
  };
  divide(0, first), divide(1, second);
  return extents;
}

// Whether the smallest panel fits.
bool fits_at_all(const Array& value, const std::vector<int>& cut, const Room& room) {
  Box one = whole_box(value.shape());
  for (const int d : cut) one[static_cast<std::size_t>(d)] = {0, 1};
  const auto panel = panel_of(value, one);
  const auto stage = panel ? stage_of_panel(*panel, room) : std::nullopt;
  return stage && stage->facts.peak_bytes <= room.bytes;
}

// The value with products of a file with itself recorded on two openings of it, so that rows of the one are
// not rows of the other.
Array with_own_operands(const Array& value, FileNumbers& numbers) {
  const Graph graph = collect({value}, false);
  Replaced replaced(graph);
  bool has_changed = false;
  for (const auto& node : graph.nodes) {
    if (node->op->name != "dot") continue;
    const Graph first = collect({node->inputs[0]}, false), second = collect({node->inputs[1]}, false);
    std::set<const Node*> files;
    for (const auto& below : first.nodes)
      if (is_file(*below)) files.insert(below.get());
    Replaced own(second);
    bool is_shared = false;
    for (const auto& below : second.nodes) {
      if (!files.contains(below.get())) continue;
      FileParams p = below->params->as<FileParams>();
      p.opening = numbers.take();
      own.set_result(*below, record_file(std::move(p)));
      is_shared = true;
    }
    if (!is_shared) continue;
    const auto results = record_again(*node, node->params, {node->inputs[0], own.of(node->inputs[1])});
    replaced.set_result(*node, results[0]);
    has_changed = true;
  }
  return has_changed ? replaced.of(value) : value;
}

// The largest value that is summed over the streamed dim, and the class of its longest dim; -1: none.
int class_to_share(const Graph& graph, const DimClasses& dims, const Roles& roles) {
  std::int64_t most = 0;
  int found = -1;
  for (const auto& node : graph.nodes) {
    if (roles.of.at(node.get()).kind != Role::partial) continue;
    const Array x(node, 0);
    if (x.ndim() == 0 || x.nbytes() <= most) continue;
    const auto& extents = x.shape();
    const auto longest = std::max_element(extents.begin(), extents.end()) - extents.begin();
    most = x.nbytes(), found = dims.of(*node, 0, static_cast<int>(longest));
  }
  return found;
}

}  // namespace

std::vector<Box> boxes_of(const Panels& panels) {
  const Shape& shape = panels.value.shape();
  std::vector<Box> boxes{{}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<Box> longer;
    for (const auto& box : boxes)
      for (std::int64_t start = 0; start < shape[d]; start += panels.extents[d]) {
        longer.push_back(box);
        longer.back().push_back({start, std::min(shape[d], start + panels.extents[d])});
      }
    boxes = std::move(longer);
  }
  return boxes;
}

std::optional<Array> panel_of(const Array& value, const Box& box) {
  std::optional<Array> panel = value;
  for (std::size_t d = 0; d < box.size() && panel; ++d)
    if (box[d].size() < value.shape()[d]) panel = cut_along(*panel, static_cast<int>(d), box[d]);
  return panel;
}

std::optional<Stage> stage_of_panel(const Array& panel, const Room& room) {
  const Graph graph = collect({panel}, false);
  const DimClasses dims(graph);
  std::optional<Stage> best;
  for (const auto& candidate : candidates_in(graph, dims)) {
    const int dim_class = dims.of(*candidate.file, 0, candidate.dim);
    if (dims.dim_in(dim_class, panel) != -1) continue;
    Roles roles = roles_in(graph, dims, dim_class);
    if (!roles.refusal.empty() || roles.role(panel).kind == Role::slab) continue;
    const int shared = class_to_share(graph, dims, roles);
    Stage stage = stage_along({{panel, true}}, graph, dims, std::move(roles), candidate.extent, room, shared);
    const bool is_better = !best ||
                           (stage.facts.peak_bytes <= room.bytes && best->facts.peak_bytes > room.bytes) ||
                           stage.facts.bytes_read < best->facts.bytes_read;
    if (is_better) best.emplace(std::move(stage));
  }
  return best;
}

namespace {

// The programs of all panels together; nullopt if one does not fit, or has slabs so short that it would spend
// its time on its sums.
std::optional<PlannedPanels> planned(Panels panels, const Room& room) {
  PlannedPanels found{std::move(panels), {}};
  auto& [own, facts] = found;
  const auto longest = *std::max_element(own.extents.begin(), own.extents.end());
  std::map<std::vector<std::int64_t>, io::StreamPlan> known;  // panels of one shape do the same
  for (const auto& box : boxes_of(own)) {
    auto [at, is_new] = known.try_emplace(box_shape(box).vector());
    if (is_new) {
      const bool is_first = known.size() == 1;
      const auto panel = panel_of(own.value, box);
      if (!panel) return std::nullopt;
      // A panel is written while the next one is made.
      const std::int64_t written = panel->nbytes() / static_cast<std::int64_t>(device_count());
      const auto stage =
          stage_of_panel(*panel, {room.bytes, is_first ? room.slab : own.slab, room.held + written});
      if (!stage || (is_first && stage->facts.peak_bytes > room.bytes)) return std::nullopt;
      if (is_first && room.slab == 0 && stage->length < std::min(stage->extent, longest / 16))
        return std::nullopt;
      at->second = stage->facts;
      if (is_first) own.slab = stage->length, facts = stage->facts, facts.bytes_read = 0, facts.seconds = 0;
    }
    facts.bytes_read += at->second.bytes_read, facts.seconds += at->second.seconds;
  }
  facts.panels = std::ssize(boxes_of(own));
  facts.streamed = "panels of " + to_string(Shape(own.extents)) + ", each along " + facts.streamed;
  return found;
}

}  // namespace

// More panels than the fewest may read less: their slabs are longer, and so are the runs of a file's rows.
std::optional<PlannedPanels> panels_within(const Array& given, const Room& room, FileNumbers& numbers) {
  const Array value = with_own_operands(given, numbers);
  const auto cut = dims_to_cut(value);
  if (cut.empty() || !fits_at_all(value, cut, room)) return std::nullopt;
  const Readings readings(value, cut);
  std::int64_t most = 1;
  for (const int d : cut) most *= value.shape()[static_cast<std::size_t>(d)];
  std::optional<PlannedPanels> best;
  for (std::int64_t count = 2; count <= most; count += std::max<std::int64_t>(1, count / 8)) {
    auto other = planned({value, extents_for(count, value.shape(), cut, readings)}, room);
    if (other && (!best || other->facts.bytes_read < best->facts.bytes_read)) best = std::move(other);
    if (best && count > 4 * best->facts.panels) break;
  }
  return best;
}

}  // namespace tessera::stream
