#include "stream/plan.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "api/memory.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "compile/cost.hpp"
#include "compile/pipeline.hpp"
#include "kernels/reduce/tree.hpp"
#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "stream/file_source.hpp"
#include "stream/recorder.hpp"
#include "stream/spill/selections.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {
namespace {

constexpr std::int64_t tile_bytes_at_most = 1 << 20;    // of a temporary file, which its writer puts together
constexpr std::int64_t chunk_bytes_at_most = 64 << 20;  // of a Zarr array, whose chunks are chosen here

std::int64_t block_bytes(const Type& type, const Sharding& layout) {
  return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
}

// Walks through a program on placeholders: the peak of its memory, its traffic with the disk, its seconds.
// A block takes up to a quarter more memory than it has bytes (shared_capacity, types/free_list.hpp).
class Planner : public Walker {
 public:
  // `held`: bytes of values that earlier stages left.
  Planner(const std::vector<Wanted>& wanted, std::int64_t held) : wanted_(wanted), held_(held) {}

  std::vector<Array> compute(const std::vector<Array>& roots) override {
    auto values = planned(roots, 1, false);
    for (const auto& x : roots) count_whole_files(x);
    for (std::size_t i = 0; i < roots.size(); ++i)
      if (!roots[i].node()->is_evaluated()) held_ += bytes_of(values[i]);
    return values;
  }
  void begin_pass(const std::vector<CutValue>& cut) override { cut_ = cut; }
  void hold(const Array& x, std::int64_t copies) override { held_ += copies * bytes_of(x); }
  std::vector<Range> slabs(std::int64_t extent, std::int64_t length) override {
    extent_ = extent;
    count_ = (extent + length - 1) / length;
    facts.slabs = count_;
    count_reads(length);
    // The first slab, one in the middle, and the last: the others are as the one in the middle.
    std::vector<Range> some{{0, std::min(length, extent)}};
    if (count_ > 2) some.push_back({length, 2 * length});
    if (count_ > 1) some.push_back({(count_ - 1) * length, extent});
    return some;
  }
  std::vector<Array> leaves(const Range& slab) override {
    std::vector<Array> parts;
    prefetched_ = 0;
    for (const auto& cut : cut_) {
      const Array part = placeholder_of_part(cut, slab.size());
      const std::int64_t bytes = bytes_of(part);
      prefetched_ += bytes;
      if (is_file(*cut.of.node()))
        prefetched_ += reading_bytes(cut.of.node()->params->as<FileParams>(),
                                     output_of(part).sharding->shard_shape(part.shape()));
      parts.push_back(part);
    }
    return parts;
  }
  std::vector<Array> compute_slab(const std::vector<Array>& roots, const std::vector<std::size_t>& wanted,
                                  const Range& slab) override {
    const bool is_middle = slab.start > 0 && slab.stop < extent_;
    auto values = planned(roots, is_middle ? static_cast<double>(count_ - 2) : 1, true);
    std::int64_t written = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Written slabs stay while the next one is computed; kept ones until they are joined.
      const double share =
          static_cast<double>(extent_) / static_cast<double>(std::max<std::int64_t>(1, slab.size()));
      const Array& value = values[values.size() - wanted.size() + i];
      const auto bytes = bytes_of(value);
      if (wanted_[wanted[i]].is_stored)
        written += writing_bytes(wanted_[wanted[i]], value);
      else if (slab.start == 0)
        held_ += static_cast<std::int64_t>(2 * share * static_cast<double>(bytes)) + bytes;
    }
    written_ = std::max(written_, written);
    return values;
  }

  io::StreamPlan facts;

 private:
  static std::int64_t bytes_of(const Array& x) {
    const auto& own = output_of(x);
    return own.sharding ? block_bytes(own.type, *own.sharding) : x.nbytes();
  }
  // Whether chunks may have elements on several ranks. They have none where the dims that ranks share are cut
  // between chunks.
  static bool shares_chunks(const std::vector<std::int64_t>& chunk, const Array& slab) {
    const auto& layout = output_of(slab).sharding;
    if (chunk.empty() || !layout) return true;
    const Shape block = layout->shard_shape(slab.shape());
    for (std::size_t d = 0; d < chunk.size(); ++d)
      if (block[d] < slab.shape()[d] && (block[d] % chunk[d] != 0 || slab.shape()[d] % chunk[d] != 0))
        return true;
    return false;
  }
  // The slab's block, and what writing it takes: a tile; or the parts of chunks that other ranks write, and a
  // chunk put together and packed.
  static std::int64_t writing_bytes(const Wanted& wanted, const Array& slab) {
    const std::int64_t block = bytes_of(slab);
    if (!wanted.chunks) return block + std::min(block, tile_bytes_at_most);
    const auto& extents = wanted.chunks->extents;
    const auto width = static_cast<std::int64_t>(itemsize(wanted.value.dtype()));
    return (shares_chunks(extents, slab) ? 2 : 1) * block +
           2 * (extents.empty() ? std::min(block, chunk_bytes_at_most) : Shape(extents).elements() * width);
  }
  void count_reads(std::int64_t length) {
    bool has_file = false;
    for (const auto& cut : cut_) {
      if (!is_file(*cut.of.node())) continue;
      const std::int64_t block =
          cut.split == cut.dim ? (length + device_count() - 1) / device_count() : length;
      const double times = times_read(cut.of.node()->params->as<FileParams>(), cut.dim, block);
      facts.bytes_read += static_cast<std::int64_t>(times * static_cast<double>(cut.of.nbytes()));
      has_file = true;
    }
    facts.passes += has_file ? 1 : 0;
  }
  void count_whole_files(const Array& root) {
    for (const auto& node : collect({root}, false).nodes)
      if (is_file(*node) && counted_.insert(node->params->hash()).second) {
        const auto& p = node->params->as<FileParams>();
        const double times = p.count.empty() ? 1 : times_read(p, 0, p.count[0]);
        facts.bytes_read += static_cast<std::int64_t>(times * static_cast<double>(Array(node, 0).nbytes()));
      }
  }
  // Keys, what other ranks send, and the memory that merging takes.
  static std::int64_t sorting_bytes(const Graph& graph) {
    std::int64_t bytes = 0;
    for (const auto& node : graph.nodes) {
      if (node->op->name != "sort" && node->op->name != "argsort") continue;
      const Array& x = node->inputs[0];
      const auto with_positions =
          node->op->name == "argsort" ? 8 / static_cast<std::int64_t>(itemsize(x.dtype())) : 0;
      bytes = std::max(bytes, (4 + 4 * with_positions) * bytes_of(x));
    }
    return bytes;
  }
  // FFTW measures its plans at the first calls on a block like the operand's.
  static std::int64_t measuring_bytes(const Graph& graph) {
    std::int64_t bytes = 0;
    for (const auto& node : graph.nodes)
      if (node->op->name == "fft") bytes = std::max(bytes, bytes_of(node->inputs[0]));
    return bytes;
  }
  // Counts what is read at places; gives the memory that this takes.
  std::int64_t count_places(const Graph& graph, double times) {
    std::int64_t temporary = 0;
    for (const auto& node : graph.nodes)
      if (const auto read = read_at_places(*node)) {
        facts.bytes_read += static_cast<std::int64_t>(times * static_cast<double>(read->bytes));
        temporary = std::max(temporary, read->temporary_bytes);
      }
    return temporary;
  }
  void count_peak(std::int64_t bytes) { facts.peak_bytes = std::max(facts.peak_bytes, bytes + bytes / 4); }
  // Compiles the roots' graph; gives placeholders of their values.
  std::vector<Array> planned(const std::vector<Array>& roots, double times, bool in_pass) {
    std::vector<Array> open;
    for (const auto& x : roots)
      if (!x.node()->is_evaluated() && !is_parameter(*x.node())) open.push_back(x);
    if (open.empty()) {  // parts of files as they are
      std::int64_t bytes = held_ + (in_pass ? prefetched_ + written_ : 0);
      for (const auto& x : roots) bytes += is_parameter(*x.node()) ? bytes_of(x) : 0;
      count_peak(bytes);
      return roots;
    }
    const Graph graph = collect(open, false);
    const Program program = compile(graph);
    const auto explanation = explanation_of(program);
    facts.seconds += times * explanation.predicted_seconds;
    const auto bytes = explanation.memory.peak_bytes + sorting_bytes(graph) + measuring_bytes(graph) +
                       count_places(graph, times) + held_ + (in_pass ? prefetched_ + written_ : 0);
    count_peak(bytes);
    std::vector<Array> values;
    std::size_t next = 0;
    for (const auto& x : roots) {
      if (next == open.size() || x.node() != open[next].node() || x.output() != open[next].output()) {
        values.push_back(x);
        continue;
      }
      const auto& layout = program.values[program.outputs[next]].layout;
      const bool is_committed = output_of(x).sharding.has_value();
      values.push_back(
          make_placeholder(type_of(x), is_committed ? std::optional(layout) : std::nullopt, nullptr, 0));
      ++next;
    }
    return values;
  }

  const std::vector<Wanted>& wanted_;
  std::int64_t held_;
  std::vector<CutValue> cut_;
  std::set<std::uint64_t> counted_;
  std::int64_t extent_ = 0, count_ = 0, prefetched_ = 0, written_ = 0;
};

io::StreamPlan facts_for(const Stage& stage, std::int64_t held, std::int64_t length) {
  Planner planner(stage.wanted, held);
  const std::map<ValueId, Array> nothing;
  walk({stage.graph, *stage.dims, stage.roles, stage.extent, length, stage.split_class, nothing},
       stage.wanted, planner);
  planner.facts.slab = length;
  return planner.facts;
}

bool has_parts_apart(const Stage& stage) {
  return std::ranges::any_of(stage.graph.nodes, [&](const NodePtr& node) {
    return stage.roles.of.at(node.get()).kind == Role::partial && has_parts_of_ranks(Array(node, 0));
  });
}

// The slab that the user asks for, or the longest within the limit: a multiple of the ranks and, where that
// costs little, of the chunks, so that no chunk is read twice.
void choose_length(Stage& stage, const Room& room) {
  constexpr std::int64_t enough = std::int64_t{128}
                                  << 20;   // of what is read for a slab; longer ones save nothing
  constexpr std::int64_t most_parts = 32;  // that a slab's program adds one after the other
  std::int64_t shortest = 1, in_order = 0;
  bool has_trees = false;
  for (const auto& node : stage.graph.nodes) {
    if (stage.roles.of.at(node.get()).kind != Role::partial) continue;
    if (is_top_k(*node)) shortest = std::max(shortest, node->outputs[0].type.shape.back());
    has_trees |= is_tree(*node);
    if (const auto length = length_in_order(*node))
      in_order = std::lcm(std::max<std::int64_t>(in_order, 1), length);
  }
  const auto power = [](auto bit, std::int64_t n) {
    return static_cast<std::int64_t>(bit(static_cast<std::uint64_t>(n)));
  };
  shortest = std::max(shortest, in_order);
  if (has_trees) shortest = power(std::bit_ceil<std::uint64_t>, std::max(shortest, kernels::least_part));
  // Slabs of trees have 2^k indices, those of products in order whole parts.
  const auto usable = [&](std::int64_t length) {
    if (in_order > 0) length = std::min(length, most_parts * in_order);
    if (length >= stage.extent || (!has_trees && in_order == 0)) return length;
    return std::max(shortest,
                    has_trees ? power(std::bit_floor<std::uint64_t>, length) : length / in_order * in_order);
  };
  const auto take = [&](std::int64_t length) {
    stage.length = std::min(std::max(length, shortest), std::max<std::int64_t>(1, stage.extent));
    stage.facts = facts_for(stage, room.held, stage.length);
    return stage.facts.peak_bytes <= room.bytes;
  };
  if (room.slab > 0) {
    take(usable(room.slab));
    return;
  }
  std::int64_t per_index = 1, chunk = 1, target = 1;
  for (const auto& node : stage.graph.nodes)
    if (is_file(*node) && stage.roles.of.at(node.get()).kind == Role::slab) {
      const int dim = stage.dims->dim_in(stage.roles.dim_class, *node, 0);
      per_index += Array(node, 0).nbytes() / std::max<std::int64_t>(1, stage.extent);
      const auto& chunks = node->params->as<FileParams>().source->chunks;
      if (!chunks.empty()) chunk = std::max(chunk, chunks[static_cast<std::size_t>(dim)]);
    }
  for (const auto& wanted : stage.wanted) {
    const int dim = stage.dims->dim_in(stage.roles.dim_class, wanted.value);
    if (dim >= 0 && wanted.chunks && !wanted.chunks->extents.empty())
      target = std::max(target, wanted.chunks->extents.at(static_cast<std::size_t>(dim)));
  }
  const bool is_short =
      static_cast<double>(chunk) * static_cast<double>(target) <= static_cast<double>(stage.extent);
  const auto both = is_short ? std::lcm(chunk, target) : std::max(chunk, target);
  const auto ranks = static_cast<std::int64_t>(device_count());
  const auto rounded = [&](std::int64_t length) {
    for (const auto unit : {both * ranks, both, target * ranks, target, ranks})
      if (length >= unit) return usable(length / unit * unit);
    return usable(length);
  };
  const auto search = [&] {
    std::int64_t length =
        rounded(std::min(stage.extent, std::max<std::int64_t>(1, enough * ranks / per_index)));
    while (!take(length) && length > shortest) {
      // The peak is nearly a line in the length: aims below the room, and at least a tenth shorter.
      const double ratio = static_cast<double>(room.bytes) / static_cast<double>(stage.facts.peak_bytes);
      const auto aim = static_cast<std::int64_t>(static_cast<double>(length) * std::clamp(ratio, 0.05, 0.9));
      length = std::max(shortest, rounded(aim));
    }
  };
  search();
  // Parts of ranks take memory that does not shrink with the slab: where they leave little, none is kept.
  constexpr std::int64_t little = 256 << 10;
  if (stage.length == stage.extent || stage.length * per_index >= little * ranks || !has_parts_apart(stage))
    return;
  const auto apart = stage.length;
  stage.roles.keeps_parts_apart = false;
  search();
  if (stage.length >= 4 * apart) return;
  stage.roles.keeps_parts_apart = true;
  take(apart);
}

std::string streamed_text(const Stage& stage) {
  for (const auto& node : stage.graph.nodes) {
    const auto places = read_at_places(*node);
    if ((!places && !is_file(*node)) || stage.roles.of.at(node.get()).kind != Role::slab) continue;
    const auto& p = places ? places->file : node->params->as<FileParams>();
    return "dim " + std::to_string(stage.dims->dim_in(stage.roles.dim_class, *node, 0)) + " of " +
           in_quotes(p.path) + (p.name.empty() ? "" : ", " + in_quotes(p.name)) + ", " +
           std::to_string(stage.extent) + " long";
  }
  return "no dim";
}

}  // namespace

std::int64_t free_share() { return memory_share() - memory_use().live_bytes; }

bool reads_files(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const NodePtr& node) { return is_file(*node) || read_at_places(*node); });
}

// The dims of the files, each class once.
std::vector<StreamableDim> candidates_in(const Graph& graph, const DimClasses& dims) {
  std::vector<StreamableDim> found;
  std::set<int> known;
  for (const auto& node : graph.nodes)
    for (int d = 0; d < node->outputs[0].type.shape.ndim(); ++d) {
      const auto places = read_at_places(*node);
      if (places ? places->dim != d : !is_file(*node)) continue;
      const auto extent = node->outputs[0].type.shape[static_cast<std::size_t>(d)];
      if (extent > 1 && known.insert(dims.of(*node, 0, d)).second) found.push_back({node.get(), d, extent});
    }
  return found;
}

Stage stage_along(const std::vector<Wanted>& wanted, Graph graph, DimClasses dims, Roles roles,
                  std::int64_t extent, const Room& room, int split_class) {
  Stage stage{std::move(graph), std::make_unique<DimClasses>(std::move(dims)),
              std::move(roles), wanted,
              extent,           0,
              split_class,      {}};
  choose_length(stage, room);
  stage.facts.streamed = streamed_text(stage);
  stage.facts.limit_bytes = room.bytes;
  return stage;
}

}  // namespace tessera::stream
