// All ranks of the job working on one file: all succeed, or all raise the same error.
//
// io is collective over every rank of the runtime. The members, the devices of the array's mesh, move the
// data; the others join each agreement, so that they get a handle on a loaded array and find a saved file.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::io {

class Team {
 public:
  // All ranks agree on `call`, which contains everything that they must have in common (path, dataset,
  // layout): DisagreementError on all ranks otherwise, before any file is opened.
  explicit Team(const std::string& call);
  // Sets the ranks that move the data, the same on every rank. Default: all.
  void set_members(const std::vector<int>& device_ids);
  bool is_member() const { return is_member_; }
  bool is_first() const;  // the member that does the work that is done once
  int first() const { return first_; }

  // Runs `work` on this rank; if it threw on any rank, all ranks throw the lowest rank's error, of the same
  // kind.
  void together(const std::function<void()>& work) const;
  // The same on the members only, or on the first of them; the others wait for the outcome.
  void members(const std::function<void()>& work) const;
  void once(const std::function<void()>& work) const;

  std::int64_t from_first(std::int64_t value) const;
  std::string from_first(const std::string& text) const;
  // IoError unless all ranks have the same text: otherwise they see different files under one path.
  void same(const std::string& call, const std::string& path, const std::string& facts) const;

 private:
  int first_ = 0;
  bool is_member_ = true;
};

}  // namespace tessera::io
