#include "io/steps/step_save.hpp"

#include <tessera/runtime.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "api/evaluate.hpp"
#include "base/log.hpp"
#include "comm/collectives/collectives.hpp"
#include "graph/op.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/rank_file.hpp"
#include "io/save_target.hpp"

namespace tessera::io::checkpoint {
namespace {

std::int64_t bytes_of(const Box& box, Dtype dtype) {
  return box_elements(box) * static_cast<std::int64_t>(itemsize(dtype));
}

// The blocks of one leaf by the rank that writes them, in mesh order: replica 0 of each.
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

// Gathers every rank's file entry on all ranks.
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

StepSave::StepSave(const Team& team, std::string call, const std::string& dir, int step, int keep,
                   const std::vector<Array>& leaves, const std::string& structure)
    : call_(std::move(call)), keep_(keep), rank_(process_index()) {
  team.together([&] { eval(leaves); });
  manifest_ = planned(step, structure, leaves);
  team.once([&] {
    place_.emplace(call_, dir, step);
    folder_ = place_->make_temporary();
  });
  folder_ = team.from_first(folder_);
  for (std::size_t n = 0; n < leaves.size(); ++n)
    for (const auto& block : manifest_.leaves[n].blocks)
      if (block.rank == rank_)
        pieces_.push_back({output_of(leaves[n]).stored->buffer, bytes_of(block.box, leaves[n].dtype())});
}

void StepSave::write() noexcept {
  try {
    const NoSizeSignal size_is_an_error;
    std::vector<std::pair<const std::byte*, std::int64_t>> pieces;
    pieces.reserve(pieces_.size());
    for (const auto& piece : pieces_) pieces.emplace_back(piece.buffer.data(), piece.bytes);
    mine_ = write_rank_file(call_, folder_ + "/" + rank_file(rank_), pieces);
  } catch (...) {
    wrong_ = std::current_exception();
  }
}

bool StepSave::is_stopped_after(int milliseconds) {
  std::unique_lock lock(mutex_);
  return stop_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return is_stopped_; });
}
void StepSave::stop_looking() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  stop_.notify_all();
}

std::optional<Mark> StepSave::mark_of(int rank) const {
  return rank == rank_ ? Mark{false, mine_} : find_mark(folder_, rank);
}

bool StepSave::found_all_marks() {
  int pause_ms = 1;
  for (int r = 0; r < static_cast<int>(manifest_.files.size());) {
    const auto mark = mark_of(r);
    if (mark && mark->has_failed) return false;
    if (mark) {
      manifest_.files[r++] = mark->file;
    } else {
      if (is_stopped_after(pause_ms)) return false;
      pause_ms = std::min(2 * pause_ms, 200);
    }
  }
  return true;
}

void StepSave::commit_alone() noexcept {
  const NoSizeSignal size_is_an_error;
  try {
    if (!place_) return leave_mark(call_, folder_, rank_, {wrong_ != nullptr, mine_});
  } catch (const std::exception&) {  // no mark is needed, since finish() reports the error
    return;
  }
  try {
    if (!wrong_ && found_all_marks()) commit();
  } catch (...) {
    wrong_at_commit_ = std::current_exception();
  }
}

void StepSave::commit() {
  remove_marks(folder_, static_cast<int>(manifest_.files.size()));
  place_->commit(manifest_);
  is_committed_ = true;
  try {
    if (keep_ > 0) place_->keep_newest(keep_);
  } catch (const IoError& error) {
    log(LogLevel::warn, std::string("older steps were not removed: ") + error.what());
  }
  place_.reset();
  fault_point("saved");
}

void StepSave::finish(const Team& team) {
  pieces_.clear();
  team.together([&] {
    if (wrong_) std::rethrow_exception(wrong_);
  });
  gather_files(manifest_, mine_);
  team.once([&] {
    if (wrong_at_commit_) std::rethrow_exception(wrong_at_commit_);
    if (!is_committed_) commit();
  });
}

void StepSave::finish_alone() {
  pieces_.clear();
  const bool has_no_name = place_ && !is_committed_;
  if (place_) place_->abandon();  // other ranks may still write here
  if (wrong_) std::rethrow_exception(wrong_);
  if (wrong_at_commit_) std::rethrow_exception(wrong_at_commit_);
  if (has_no_name)
    throw IoError(call_ + " is given up: the ranks have not all written their parts by the end of it");
}

}  // namespace tessera::io::checkpoint
