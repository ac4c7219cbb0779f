// The file of one rank's recording (TESSERA_RECORD): a head of named texts, then an entry for each message
// and collective, in the order in which they ended. A file that is cut off anywhere is a shorter recording.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tessera::comm {

enum class TapeKind : std::int32_t {
  send = 1,
  receive,
  all_reduce,
  all_gather,
  all_gather_v,
  reduce_scatter,
  broadcast,
  barrier,
  communicator,
  text,
  limit  // nothing more was kept
};

// Plain data, as stored; the purpose and the payload follow it.
struct TapeEntry {
  std::uint64_t id = 0;             // equal for the same call of the same program
  std::uint64_t payload_bytes = 0;  // bytes received
  std::uint64_t sent_hash = 0;
  std::int64_t sent_bytes = 0, result_bytes = 0;
  std::int64_t detail = 0;  // dtype and reduction
  std::int64_t number = 0;  // among the calls of its kind on its communicator
  TapeKind kind = TapeKind::text;
  std::int32_t peer = -1;  // or the root
  std::int32_t tag = 0;
  std::int32_t ranks = 0;  // number of ranks of the communicator
  std::int32_t purpose_bytes = 0;
  std::int32_t unused = 0;
};

using TapeHead = std::vector<std::pair<std::string, std::string>>;

std::string tape_path(const std::string& folder, int rank);
// The head alone; IoError: no file, or not a recording.
TapeHead read_tape_head(const std::string& path);
std::string value_of(const TapeHead& head, std::string_view name);  // "" if it is not there

// When write() returns, the operating system has the entry: a rank that is killed loses none.
class TapeWriter {
 public:
  // IoError: the file cannot be written.
  TapeWriter(std::string path, const TapeHead& head, std::int64_t most_bytes);
  TapeWriter(const TapeWriter&) = delete;
  TapeWriter& operator=(const TapeWriter&) = delete;
  ~TapeWriter();
  // "", or why this entry and all later ones are not kept.
  std::string write(TapeEntry entry, std::string_view purpose, const void* payload);

 private:
  bool write_all(const void* data, std::size_t bytes) const;
  std::string path_;
  int file_ = -1;
  std::int64_t most_bytes_, written_ = 0;
};

class TapeReader {
 public:
  struct Found {
    TapeEntry entry;
    std::string purpose;
    const std::byte* payload = nullptr;
  };
  explicit TapeReader(const std::string& path);  // IoError
  TapeReader(const TapeReader&) = delete;
  TapeReader& operator=(const TapeReader&) = delete;
  ~TapeReader();
  // Each entry is taken once. False: there is none (left).
  bool take(std::uint64_t id, Found& found);
  bool has(std::uint64_t id) const { return places_.contains(id); }
  // The first entry that nobody has taken or awaits; false: there is none.
  bool first_left(Found& found, const std::unordered_set<std::uint64_t>& awaited) const;
  bool was_limited() const { return was_limited_; }

 private:
  Found at(std::size_t place) const;
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> places_;
  bool was_limited_ = false;
};

// "all-reduce number 3 of 64 bytes among 4 ranks, for sum at main.cpp:7".
std::string text_of(const TapeEntry& entry, std::string_view purpose);

}  // namespace tessera::comm
