#include "io/steps/step_save.hpp"

#include <tessera/runtime.hpp>

#include <array>
#include <cstring>
#include <utility>

#include "api/evaluate.hpp"
#include "comm/collectives/collectives.hpp"
#include "graph/op.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/rank_file.hpp"
#include "io/save_place.hpp"

namespace tessera::io::checkpoint {
namespace {

std::int64_t bytes_of(const Box& box, Dtype dtype) {
  return box_elements(box) * static_cast<std::int64_t>(itemsize(dtype));
}

// Blocks of one leaf by the rank that writes them, in mesh order: replica 0 of each.
std::vector<Manifest::Block> blocks_of(const Array& x, std::vector<std::int64_t>& end_of_rank) {
  std::vector<Manifest::Block> blocks;
  const auto& layout = output_of(x).stored->layout;
  for (const auto& [device, box] : layout.devices_indices_map(x.shape())) {
    if (layout.replica_id(x.shape(), device) != 0 || is_empty(box)) continue;
    auto& end = end_of_rank[device.id];
    blocks.push_back({box, device.id, end});
    end += bytes_of(box, x.dtype());
  }
  return blocks;
}

Manifest planned(int step, const std::string& structure, const std::vector<Array>& leaves) {
  Manifest manifest{step, structure, {}, std::vector<Manifest::File>(device_count())};
  std::vector<std::int64_t> end_of_rank(device_count(), 0);
  for (const auto& x : leaves) manifest.leaves.push_back({x.shape(), x.dtype(), blocks_of(x, end_of_rank)});
  return manifest;
}

// What each rank wrote, on every rank.
void gather_files(Manifest& manifest, const Manifest::File& mine) {
  struct Facts {
    std::int64_t data_bytes;
    std::array<char, 16> sum;
  };
  Facts own{mine.data_bytes, {}};
  std::memcpy(own.sum.data(), mine.sum_of_sums.data(), own.sum.size());
  std::vector<Facts> all(manifest.files.size());
  comm::all_gather(comm::world(), &own, sizeof own, all.data());
  for (std::size_t r = 0; r < all.size(); ++r)
    manifest.files[r] = {all[r].data_bytes, std::string(all[r].sum.data(), all[r].sum.size())};
}

}  // namespace

std::string tree_text(const std::vector<Array>& leaves, const std::string& structure) {
  std::string text = ", a tree " + structure;
  for (const auto& x : leaves)
    text += ", " + name(x.dtype()) + to_string(x.shape()) + layout_text(x.sharding());
  return text;
}

StepSave::StepSave(const Team& team, std::string call, const std::string& dir, int step,
                   const std::vector<Array>& leaves, const std::string& structure)
    : call_(std::move(call)) {
  team.together([&] { eval(leaves); });
  manifest_ = planned(step, structure, leaves);
  team.once([&] {
    place_.emplace(call_, dir, step);
    folder_ = place_->make_temporary();
  });
  folder_ = team.from_first(folder_);
  for (std::size_t n = 0; n < leaves.size(); ++n)
    for (const auto& block : manifest_.leaves[n].blocks)
      if (block.rank == process_index())
        pieces_.push_back({output_of(leaves[n]).stored->buffer, bytes_of(block.box, leaves[n].dtype())});
}

void StepSave::write() noexcept {
  try {
    const NoSizeSignal size_is_an_error;
    std::vector<std::pair<const std::byte*, std::int64_t>> pieces;
    pieces.reserve(pieces_.size());
    for (const auto& piece : pieces_) pieces.emplace_back(piece.buffer.data(), piece.bytes);
    mine_ = write_rank_file(call_, folder_ + "/" + rank_file(process_index()), pieces);
  } catch (...) {
    wrong_ = std::current_exception();
  }
}

void StepSave::finish(const Team& team, int keep) {
  pieces_.clear();
  team.together([&] {
    if (wrong_) std::rethrow_exception(wrong_);
  });
  gather_files(manifest_, mine_);
  team.once([&] {
    place_->commit(manifest_);
    if (keep > 0) place_->keep_newest(keep);
    place_.reset();
    fault_point("saved");
  });
}

}  // namespace tessera::io::checkpoint
