// Ranks that read or write one file together: all succeed, or all raise the same IoError.
#pragma once
#include <tessera/io.hpp>

#include <functional>
#include <string>

#include "io/file.hpp"

namespace tessera::comm {
class Communicator;
}

namespace tessera::io {

class Team {
 public:
  // Its members meet in `call`: a member that is elsewhere is an error on all of them.
  Team(const std::vector<int>& device_ids, const std::string& call);
  bool is_member() const { return group_ != nullptr; }
  bool is_first() const;  // the rank that does what is done once
  // Runs `work` on this rank; when it failed on any member, throws on all of them what the first one says.
  void together(const std::function<void()>& work) const;
  // ... on the first rank alone; the others wait for its outcome.
  void once(const std::function<void()>& work) const;
  std::int64_t from_first(std::int64_t value) const;
  // IoError unless all members bring the same text: ranks that see different files under one path.
  void same(const std::string& call, const std::string& path, const std::string& facts) const;
  const comm::Communicator& group() const { return *group_; }

 private:
  const comm::Communicator* group_ = nullptr;
};

// Reads what the header says on every rank, then each member's box of it.
struct Reader {
  std::function<FileInfo()> header;                       // may throw IoError on this rank alone
  std::function<void(const Box&, std::byte* out)> block;  // the same
};
Array load_blocks(const std::string& call, const std::string& path, const Sharding&, const Reader&);

// Creates the file `temporary` with everything but the array's data, and gives the place of the data; called
// on one rank.
using Prepare = std::function<std::int64_t(const std::string& temporary)>;
void save_blocks(const std::string& call, const std::string& path, const Array&, const Prepare&);

}  // namespace tessera::io
