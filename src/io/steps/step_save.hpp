// The save of one step in three parts, of which the middle one needs no other rank:
//
//   begin    all ranks   compute the values, assign their blocks to ranks, create the folder
//   write    each rank   writes its file, on any thread; may already name the step (commit_alone)
//   finish   all ranks   exchange errors; write the manifest and name the step, if that is not done
#pragma once
#include <tessera/array.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/steps/marks.hpp"
#include "io/steps/step_folder.hpp"
#include "io/team.hpp"
#include "types/buffer.hpp"

namespace tessera::io::checkpoint {

// The structure as text, which must be the same on all ranks.
std::string tree_text(const std::vector<Array>& leaves, const std::string& structure);

class StepSave {
 public:
  // Collective. `call` opens every message. keep: number of newest steps to keep; 0: all.
  StepSave(const Team& team, std::string call, const std::string& dir, int step, int keep,
           const std::vector<Array>& leaves, const std::string& structure);
  int step() const { return manifest_.step; }

  // Writes this rank's file. Errors are kept for finish(). Makes no calls of MPI or the session.
  void write() noexcept;
  // Called after write() in a background save: leaves a mark for the first rank's thread, which gives the
  // step its name when it has found the marks of all ranks. The step is then complete without further calls.
  void commit_alone() noexcept;
  // Stops the first rank's thread from looking for marks; a commit that has begun is completed.
  void stop_looking();

  // Collective. IoError on all ranks if some could not write.
  void finish(const Team& team);
  // Replaces finish() when the ranks cannot communicate, after the thread has ended. IoError: this rank could
  // not write, or (on the first) other ranks kept the step from its name. The next save removes leftovers.
  void finish_alone();

 private:
  struct PendingWrite {
    Buffer buffer;  // shared with the array, which may be destroyed meanwhile
    std::int64_t bytes = 0;
  };
  std::optional<Mark> mark_of(int rank) const;
  bool found_all_marks();
  bool is_stopped_after(int milliseconds);
  void commit();

  std::string call_, folder_;
  Manifest manifest_;
  int keep_ = 0, rank_ = 0;
  std::optional<StepFolder> place_;  // on the first rank, until the step has its name
  bool is_committed_ = false;
  std::vector<PendingWrite> pieces_;
  Manifest::File mine_;
  std::exception_ptr wrong_, wrong_at_commit_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool is_stopped_ = false;
};

}  // namespace tessera::io::checkpoint
