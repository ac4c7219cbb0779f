// One step that is being saved, in three parts of which the middle one needs no other rank:
//
//   begin    all ranks   the values are computed, their blocks given to ranks, the folder made
//   write    each rank   its file, on any thread
//   finish   all ranks   how it went; the manifest, and the step has its name
#pragma once
#include <tessera/array.hpp>

#include <optional>
#include <string>
#include <vector>

#include "io/steps/step_place.hpp"
#include "io/team.hpp"
#include "types/buffer.hpp"

namespace tessera::io::checkpoint {

// What all ranks must have in common of a tree, in words.
std::string tree_text(const std::vector<Array>& leaves, const std::string& structure);

class StepSave {
 public:
  // Collective. `call` opens every message.
  StepSave(const Team& team, std::string call, const std::string& dir, int step,
           const std::vector<Array>& leaves, const std::string& structure);
  int step() const { return manifest_.step; }
  // This rank's file. What goes wrong is kept for finish(). Calls nothing of MPI and of the session.
  void write() noexcept;
  // Collective. IoError on all ranks where some could not write. keep: newest steps that stay; 0: all.
  void finish(const Team& team, int keep);

  // Instead of finish(), where the ranks cannot meet.
  void abandon() {
    if (place_) place_->abandon();
  }

 private:
  struct Piece {
    Buffer buffer;  // shared with the array, which may go meanwhile
    std::int64_t bytes = 0;
  };
  std::string call_, folder_;
  Manifest manifest_;
  std::optional<StepPlace> place_;  // on the first rank
  std::vector<Piece> pieces_;
  Manifest::File mine_;
  std::exception_ptr wrong_;
};

}  // namespace tessera::io::checkpoint
