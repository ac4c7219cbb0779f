// All ranks of the job at one file: all succeed, or all raise the same error.
//
// What io does is collective over every rank of the runtime. The members, the devices of the array's mesh,
// move the data; the others take part in each agreement, so that they hold a handle on what was loaded, and
// find a file that was saved.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::io {

class Team {
 public:
  // All ranks meet in `call`, which says everything that they must have in common (path, dataset, layout):
  // DisagreementError on all where one is elsewhere. Nothing was opened yet.
  explicit Team(const std::string& call);
  // Who moves the data; the same on every rank. Without it: all.
  void set_members(const std::vector<int>& device_ids);
  bool is_member() const { return is_member_; }
  bool is_first() const;  // the member that does what is done once
  int first() const { return first_; }

  // Runs `work` on this rank; when it threw on any rank, throws on all of them what the lowest one says,
  // as the same kind of error.
  void together(const std::function<void()>& work) const;
  // ... on the members, or on the first of them; the others wait for the outcome.
  void members(const std::function<void()>& work) const;
  void once(const std::function<void()>& work) const;

  std::int64_t from_first(std::int64_t value) const;
  std::string from_first(const std::string& text) const;
  // IoError unless all ranks bring the same text: ranks that see different files under one path.
  void same(const std::string& call, const std::string& path, const std::string& facts) const;

 private:
  int first_ = 0;
  bool is_member_ = true;
};

}  // namespace tessera::io
