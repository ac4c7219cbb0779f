#define XXH_INLINE_ALL
#include <xxhash.h>

#include "io/rank_file.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "types/checked.hpp"

namespace tessera::io::checkpoint {
namespace {

// Checksums of a rank's blocks, taken as one stream of bytes cut into pieces.
class PieceSums {
 public:
  void add(const std::byte* data, std::int64_t bytes) {
    while (bytes > 0) {
      if (filled_ == 0) XXH3_64bits_reset(&state_);
      const auto part = std::min(bytes, piece_bytes - filled_);
      XXH3_64bits_update(&state_, data, part);
      data += part, bytes -= part, filled_ += part;
      if (filled_ == piece_bytes) close();
    }
  }
  std::vector<std::uint64_t> finish() {
    if (filled_ > 0) close();
    return sums_;
  }

 private:
  void close() {
    sums_.push_back(XXH3_64bits_digest(&state_));
    filled_ = 0;
  }
  XXH3_state_t state_;
  std::int64_t filled_ = 0;
  std::vector<std::uint64_t> sums_;
};

void copy_common(const Box& from_box, const std::byte* from, const Box& to_box, std::byte* to,
                 const Box& common, std::int64_t width) {
  const auto from_strides = row_major_strides(box_shape(from_box)),
             to_strides = row_major_strides(box_shape(to_box));
  const std::size_t last = common.empty() ? 0 : common.size() - 1;
  const std::int64_t run = common.empty() ? 1 : common[last].size();
  std::vector<std::int64_t> at;
  for (const auto& range : common) at.push_back(range.start);
  for (bool more = !is_empty(common); more;) {
    std::int64_t source = 0, target = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      source += (at[d] - from_box[d].start) * from_strides[d],
          target += (at[d] - to_box[d].start) * to_strides[d];
    std::memcpy(to + target * width, from + source * width, run * width);
    more = false;
    for (std::size_t d = last; d-- > 0 && !more;) {
      if (++at[d] < common[d].stop)
        more = true;
      else
        at[d] = common[d].start;
    }
  }
}

}  // namespace

void damaged(const std::string& path, const std::string& facts) {
  throw IoError(call_text() + ": " + in_quotes(path) + " " + facts +
                "; restore another step, or write this one again");
}

Manifest::File write_rank_file(const std::string& call, const std::string& path,
                               const std::vector<std::pair<const std::byte*, std::int64_t>>& pieces) {
  File file(call, path, File::Mode::create);
  PieceSums sums;
  Manifest::File result;
  for (const auto& [data, bytes] : pieces) {
    file.write(data, bytes, result.data_bytes);
    sums.add(data, bytes);
    result.data_bytes += bytes;
  }
  const auto all = sums.finish();
  const auto sums_bytes = static_cast<std::int64_t>(all.size() * sizeof(std::uint64_t));
  file.write(all.data(), sums_bytes, result.data_bytes);
  file.sync();
  result.sum_of_sums = hex(XXH3_64bits(all.data(), sums_bytes));
  fault_point("written");
  return result;
}

RankReader::RankReader(const std::string& folder, int rank, const Manifest::File& facts)
    : file_(call_text(), folder + "/" + rank_file(rank), File::Mode::read), data_bytes_(facts.data_bytes) {
  if (file_.bytes() != file_bytes(facts))
    damaged(file_.path(), "has " + std::to_string(file_.bytes()) + " bytes instead of " +
                              std::to_string(file_bytes(facts)));
  sums_.resize(pieces_of(data_bytes_));
  const auto sums_bytes = static_cast<std::int64_t>(sums_.size() * sizeof(std::uint64_t));
  file_.read(sums_.data(), sums_bytes, data_bytes_);
  if (hex(XXH3_64bits(sums_.data(), sums_bytes)) != facts.sum_of_sums)
    damaged(file_.path(), "has damaged checksums");
}

std::int64_t RankReader::bytes_of(std::int64_t piece) const {
  return std::min(piece_bytes, data_bytes_ - piece * piece_bytes);
}

void RankReader::read_piece(std::int64_t piece, std::byte* out) const {
  const auto start = piece * piece_bytes, bytes = bytes_of(piece);
  file_.read(out, bytes, start);
  if (XXH3_64bits(out, bytes) != sums_[piece])
    damaged(file_.path(), "is damaged between the bytes " + std::to_string(start) + " and " +
                              std::to_string(start + bytes));
}

const std::byte* RankReader::kept(std::int64_t piece) {
  if (piece != last_piece_) {
    last_piece_ = -1;
    last_.resize(piece_bytes);
    read_piece(piece, last_.data());
    last_piece_ = piece;
  }
  return last_.data();
}

void RankReader::read(std::int64_t offset, std::int64_t bytes, std::byte* out) {
  if (offset < 0 || bytes < 0 || bytes > data_bytes_ - offset)
    damaged(file_.path(), "is shorter than its blocks");
  while (bytes > 0) {
    const auto piece = offset / piece_bytes, inside = offset % piece_bytes;
    const auto part = std::min(bytes, bytes_of(piece) - inside);
    if (part == bytes_of(piece) && piece != last_piece_)
      read_piece(piece, out);
    else
      std::memcpy(out, kept(piece) + inside, part);
    out += part, offset += part, bytes -= part;
  }
}
void RankReader::check_all() {
  for (std::int64_t piece = 0; piece < static_cast<std::int64_t>(sums_.size()); ++piece) kept(piece);
}

RankReader& StepReader::reader_of(int rank) {
  const auto found = readers_.find(rank);
  if (found != readers_.end()) return found->second;
  return readers_
      .emplace(std::piecewise_construct, std::forward_as_tuple(rank),
               std::forward_as_tuple(folder_, rank, manifest_.files[rank]))
      .first->second;
}

Buffer StepReader::read(std::size_t n, const Box& mine) {
  const auto& leaf = manifest_.leaves[n];
  const auto width = static_cast<std::int64_t>(itemsize(leaf.dtype));
  Buffer buffer = Buffer::allocate(checked_bytes(box_shape(mine), leaf.dtype, call_text()));
  for (const auto& block : leaf.blocks) {
    const Box common = intersect(block.box, mine);
    if (is_empty(common)) continue;
    // Reads only the rows of the block that the intersection touches.
    Box rows = block.box;
    if (!rows.empty()) rows[0] = common[0];
    const auto row_bytes = rows.empty() ? width : box_elements(rows) / rows[0].size() * width;
    const auto offset = block.offset + (rows.empty() ? 0 : (rows[0].start - block.box[0].start) * row_bytes);
    const auto bytes = box_elements(rows) * width;
    if (rows == mine) {
      reader_of(block.rank).read(offset, bytes, buffer.data());
      continue;
    }
    std::vector<std::byte> part(bytes);
    reader_of(block.rank).read(offset, bytes, part.data());
    copy_common(rows, part.data(), mine, buffer.data(), common, width);
  }
  return buffer;
}

}  // namespace tessera::io::checkpoint
