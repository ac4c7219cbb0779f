// One step that is being saved, in three parts of which the middle one needs no other rank:
//
//   begin    all ranks   the values are computed, their blocks given to ranks, the folder made
//   write    each rank   its file, on any thread; the step may get its name here already (commit_alone)
//   finish   all ranks   how it went; the manifest, and the step has its name
#pragma once
#include <tessera/array.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/steps/marks.hpp"
#include "io/steps/step_place.hpp"
#include "io/team.hpp"
#include "types/buffer.hpp"

namespace tessera::io::checkpoint {

// The structure that all ranks must have in common, in words.
std::string tree_text(const std::vector<Array>& leaves, const std::string& structure);

class StepSave {
 public:
  // Collective. `call` opens every message. keep: newest steps that stay; 0: all.
  StepSave(const Team& team, std::string call, const std::string& dir, int step, int keep,
           const std::vector<Array>& leaves, const std::string& structure);
  int step() const { return manifest_.step; }

  // This rank's file. What goes wrong is kept for finish(). Calls nothing of MPI and of the session.
  void write() noexcept;
  // After write(), where the save goes on beside the program: a mark tells the first rank's thread, which
  // gives the step its name when it has found the marks of all ranks. A step that is written needs no other
  // call.
  void commit_alone() noexcept;
  // The first rank's thread looks for marks no longer; a commit that has begun ends.
  void stop_looking();

  // Collective. IoError on all ranks where some could not write.
  void finish(const Team& team);
  // Instead of finish(), where the ranks cannot meet, after the thread has ended. IoError: this rank could
  // not write, or (on the first) the step has no name because of others. What is left the next save removes.
  void finish_alone();

 private:
  struct Piece {
    Buffer buffer;  // shared with the array, which may go meanwhile
    std::int64_t bytes = 0;
  };
  std::optional<Mark> mark_of(int rank) const;
  bool found_all_marks();
  bool is_stopped_after(int milliseconds);
  void commit();

  std::string call_, folder_;
  Manifest manifest_;
  int keep_ = 0, rank_ = 0;
  std::optional<StepPlace> place_;  // on the first rank, until the step has its name
  bool is_committed_ = false;
  std::vector<Piece> pieces_;
  Manifest::File mine_;
  std::exception_ptr wrong_, wrong_at_commit_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool is_stopped_ = false;
};

}  // namespace tessera::io::checkpoint
