// The files of a checkpoint step, one per rank: its blocks in sequence, then one 64-bit XXH3 sum per MiB of
// them.
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

// Writes the pieces in order and returns the file's entry for the manifest. `call` opens the messages.
Manifest::File write_rank_file(const std::string& call, const std::string& path,
                               const std::vector<std::pair<const std::byte*, std::int64_t>>& pieces);

// Returns only verified bytes: each piece is read once, checked and copied from. The last piece is cached, so
// that neighbouring reads share it.
class RankReader {
 public:
  RankReader(const std::string& folder, int rank, const Manifest::File&);
  void read(std::int64_t offset, std::int64_t bytes, std::byte* out);
  void check_all();

 private:
  std::int64_t bytes_of(std::int64_t piece) const;
  void read_piece(std::int64_t piece, std::byte* out) const;  // the whole piece, checked
  const std::byte* kept(std::int64_t piece);
  File file_;
  std::int64_t data_bytes_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::byte> last_;
  std::int64_t last_piece_ = -1;
};

class StepReader {
 public:
  StepReader(std::string folder, const Manifest& manifest)
      : folder_(std::move(folder)), manifest_(manifest) {}
  // Reads a box of a leaf, dense, from the blocks that it touches.
  Buffer read(std::size_t leaf, const Box& mine);

 private:
  RankReader& reader_of(int rank);
  std::string folder_;
  const Manifest& manifest_;
  std::map<int, RankReader> readers_;
};

}  // namespace tessera::io::checkpoint
