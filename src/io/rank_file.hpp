// The files of a checkpoint step, one per rank: its blocks one after the other, then a 64-bit XXH3 sum per
// MiB of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/file.hpp"
#include "io/manifest.hpp"
#include "types/buffer.hpp"

namespace tessera::io::checkpoint {

[[noreturn]] void damaged(const std::string& path, const std::string& facts);

// Writes the pieces in their order, and says what the manifest has to know. `call` opens the messages.
Manifest::File write_rank_file(const std::string& call, const std::string& path,
                               const std::vector<std::pair<const std::byte*, std::int64_t>>& pieces);

// Pieces are read and checked when they are needed, once.
class RankReader {
 public:
  RankReader(const std::string& folder, int rank, const Manifest::File&);
  void read(std::int64_t offset, std::int64_t bytes, std::byte* out);
  void check_all();

 private:
  void check(std::int64_t piece);
  File file_;
  std::int64_t data_bytes_;
  std::vector<std::uint64_t> sums_;
  std::vector<bool> checked_;
};

class StepReader {
 public:
  StepReader(std::string folder, const Manifest& manifest)
      : folder_(std::move(folder)), manifest_(manifest) {}
  // A box of a leaf, dense, from the blocks that it touches.
  Buffer read(std::size_t leaf, const Box& mine);

 private:
  RankReader& reader_of(int rank);
  std::string folder_;
  const Manifest& manifest_;
  std::map<int, RankReader> readers_;
};

}  // namespace tessera::io::checkpoint
