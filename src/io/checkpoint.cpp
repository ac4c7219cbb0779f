// Checkpoints: dir/step_00000042/{manifest.json, rank_00000.bin, ...}.
//
//   rank file   the rank's blocks (replica 0 only), one after the other; then a 64-bit XXH3 sum per MiB of
//     them
//   manifest    {"body": {...}, "xxh3": sum of body}: for each leaf shape, dtype and blocks (box, file,
//     offset); for each file its
//               bytes and the sum of its sums
//
// Written into step_00000042.tmp-<pid>, the manifest last, then renamed: what has the final name is complete.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include <tessera/runtime.hpp>

#include "api/evaluate.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/mpi/communicator.hpp"
#include "graph/op.hpp"
#include "io/team.hpp"

namespace tessera::io::checkpoint {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;
constexpr int format_version = 1;

std::string step_name(int step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08d", step);
  return name;
}
std::string rank_file(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank_%05d.bin", rank);
  return name;
}
std::vector<int> all_ids() {
  std::vector<int> ids;
  for (int r = 0; r < device_count(); ++r) ids.push_back(r);
  return ids;
}
std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}
std::int64_t pieces_of(std::int64_t bytes) { return (bytes + piece_bytes - 1) / piece_bytes; }

// The sums of a rank's blocks, taken as one stream of bytes.
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

struct RankFile {
  std::int64_t data_bytes = 0;
  std::uint64_t sum = 0;  // of the piece sums
};

// Blocks of one leaf by the rank that writes them, in mesh order: replica 0 of each.
struct LeafBlock {
  Box box;
  int rank;
  std::int64_t offset;
};
std::vector<LeafBlock> blocks_of(const Array& x, std::vector<std::int64_t>& end_of_rank) {
  std::vector<LeafBlock> blocks;
  const auto& layout = output_of(x).stored->layout;
  for (const auto& [device, box] : layout.devices_indices_map(x.shape())) {
    if (layout.replica_id(x.shape(), device) != 0 || is_empty(box)) continue;
    auto& end = end_of_rank[device.id];
    blocks.push_back({box, device.id, end});
    end += box_elements(box) * static_cast<std::int64_t>(itemsize(x.dtype()));
  }
  return blocks;
}

RankFile write_rank_file(const std::string& path, const std::vector<Array>& leaves,
                         const std::vector<std::vector<LeafBlock>>& blocks) {
  File file("checkpoint::save", path, File::Mode::create);
  PieceSums sums;
  RankFile result;
  for (std::size_t n = 0; n < leaves.size(); ++n)
    for (const auto& block : blocks[n]) {
      if (block.rank != process_index()) continue;
      const auto& buffer = output_of(leaves[n]).stored->buffer;
      const auto bytes = box_elements(block.box) * static_cast<std::int64_t>(itemsize(leaves[n].dtype()));
      file.write(buffer.data(), bytes, block.offset);
      sums.add(buffer.data(), bytes);
      result.data_bytes += bytes;
    }
  const auto pieces = sums.finish();
  const auto sums_bytes = static_cast<std::int64_t>(pieces.size() * sizeof(std::uint64_t));
  file.write(pieces.data(), sums_bytes, result.data_bytes);
  file.sync();
  result.sum = XXH3_64bits(pieces.data(), sums_bytes);
  return result;
}

json box_json(const Box& box) {
  json ranges = json::array();
  for (const auto& range : box) ranges.push_back({range.start, range.stop});
  return ranges;
}

std::string manifest_text(int step, const std::string& structure, const std::vector<Array>& leaves,
                          const std::vector<std::vector<LeafBlock>>& blocks,
                          const std::vector<RankFile>& files) {
  json body = {
      {"format", format_version}, {"step", step}, {"structure", structure}, {"piece_bytes", piece_bytes}};
  for (std::size_t n = 0; n < leaves.size(); ++n) {
    json leaf = {
        {"shape", leaves[n].shape().vector()}, {"dtype", name(leaves[n].dtype())}, {"blocks", json::array()}};
    for (const auto& block : blocks[n])
      leaf["blocks"].push_back(
          {{"box", box_json(block.box)}, {"rank", block.rank}, {"offset", block.offset}});
    body["leaves"].push_back(std::move(leaf));
  }
  for (std::size_t r = 0; r < files.size(); ++r)
    body["files"].push_back({{"name", rank_file(static_cast<int>(r))},
                             {"data_bytes", files[r].data_bytes},
                             {"xxh3_of_sums", hex(files[r].sum)}});
  const auto text = body.dump();
  return json{{"body", body}, {"xxh3", hex(XXH3_64bits(text.data(), text.size()))}}.dump(1) + "\n";
}

// The steps that have a manifest, by number.
std::map<int, std::string> steps_in(const std::string& dir) {
  std::map<int, std::string> steps;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir, none)) {
    const auto name = entry.path().filename().string();
    int step = 0, used = 0;
    if (std::sscanf(name.c_str(), "step_%d%n", &step, &used) == 1 &&
        static_cast<std::size_t>(used) == name.size() && fs::exists(entry.path() / "manifest.json", none))
      steps[step] = entry.path().string();
  }
  return steps;
}

[[noreturn]] void damaged(const std::string& path, const std::string& facts) {
  throw IoError("checkpoint::restore: " + tessera::quoted(path) + " " + facts +
                "; restore another step, or write this one again");
}

json read_manifest(const std::string& folder) {
  const auto path = folder + "/manifest.json";
  const auto text = read_text("checkpoint::restore", path);
  const json whole = json::parse(text, nullptr, false);
  if (whole.is_discarded() || !whole.is_object() || !whole.contains("body") || !whole.contains("xxh3"))
    damaged(path, "is no manifest");
  const auto body = whole["body"].dump();
  if (whole["xxh3"] != hex(XXH3_64bits(body.data(), body.size())))
    damaged(path, "does not have the checksum that it names");
  if (whole["body"].value("format", 0) != format_version)
    damaged(path, "has the format " + std::to_string(whole["body"].value("format", 0)) +
                      ", this library reads " + std::to_string(format_version));
  return whole["body"];
}

// One rank's file: pieces are read and checked when they are needed, once.
class RankReader {
 public:
  RankReader(const std::string& folder, const json& facts)
      : file_("checkpoint::restore", folder + "/" + facts["name"].get<std::string>(), File::Mode::read),
        data_bytes_(facts["data_bytes"]) {
    sums_.resize(pieces_of(data_bytes_));
    const auto sums_bytes = static_cast<std::int64_t>(sums_.size() * sizeof(std::uint64_t));
    if (file_.bytes() != data_bytes_ + sums_bytes)
      damaged(file_.path(), "has " + std::to_string(file_.bytes()) + " bytes instead of " +
                                std::to_string(data_bytes_ + sums_bytes));
    file_.read(sums_.data(), sums_bytes, data_bytes_);
    if (hex(XXH3_64bits(sums_.data(), sums_bytes)) != facts["xxh3_of_sums"])
      damaged(file_.path(), "has damaged checksums");
    checked_.resize(sums_.size());
  }
  void read(std::int64_t offset, std::int64_t bytes, std::byte* out) {
    if (offset < 0 || offset + bytes > data_bytes_) damaged(file_.path(), "is shorter than its blocks");
    for (auto piece = offset / piece_bytes; bytes > 0 && piece * piece_bytes < offset + bytes; ++piece)
      check(piece);
    file_.read(out, bytes, offset);
  }

 private:
  void check(std::int64_t piece) {
    if (checked_[piece]) return;
    std::vector<std::byte> data(std::min(piece_bytes, data_bytes_ - piece * piece_bytes));
    file_.read(data.data(), static_cast<std::int64_t>(data.size()), piece * piece_bytes);
    if (XXH3_64bits(data.data(), data.size()) != sums_[piece])
      damaged(file_.path(), "is damaged between the bytes " + std::to_string(piece * piece_bytes) + " and " +
                                std::to_string(piece * piece_bytes + static_cast<std::int64_t>(data.size())));
    checked_[piece] = true;
  }
  File file_;
  std::int64_t data_bytes_;
  std::vector<std::uint64_t> sums_;
  std::vector<bool> checked_;
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

Buffer read_leaf(const json& leaf, const Box& mine, std::int64_t width, const std::string& folder,
                 const json& files, std::map<int, RankReader>& readers) {
  Buffer buffer = Buffer::allocate(box_elements(mine) * width);
  std::int64_t found = 0;
  for (const auto& block : leaf["blocks"]) {
    Box box;
    for (const auto& range : block["box"]) box.push_back({range[0], range[1]});
    const Box common = intersect(box, mine);
    if (is_empty(common)) continue;
    const int rank = block["rank"];
    auto reader = readers.find(rank);
    if (reader == readers.end())
      reader = readers
                   .emplace(std::piecewise_construct, std::forward_as_tuple(rank),
                            std::forward_as_tuple(folder, files.at(rank)))
                   .first;
    // Only the rows of the block that the common part touches.
    Box rows = box;
    if (!rows.empty()) rows[0] = common[0];
    const auto row_bytes = box.empty() ? width : box_elements(box) / box[0].size() * width;
    std::vector<std::byte> part(box_elements(rows) * width);
    reader->second.read(
        block["offset"].get<std::int64_t>() + (box.empty() ? 0 : (rows[0].start - box[0].start) * row_bytes),
        static_cast<std::int64_t>(part.size()), part.data());
    copy_common(rows, part.data(), mine, buffer.data(), common, width);
    found += box_elements(common);
  }
  if (found != box_elements(mine))
    damaged(folder, "holds " + std::to_string(found) + " of " + std::to_string(box_elements(mine)) +
                        " elements of a block");
  return buffer;
}

void check_alike(const json& body, const std::string& folder, const std::vector<Array>& like,
                 const std::string& structure) {
  if (body["structure"] != structure)
    throw IoError("checkpoint::restore: " + tessera::quoted(folder) + " holds the tree " +
                  body["structure"].get<std::string>() + ", asked for is " + structure +
                  " (* is an array); give a tree like the one that was saved");
  const auto& leaves = body.contains("leaves") ? body["leaves"] : json::array();
  for (std::size_t n = 0; n < like.size(); ++n) {
    const Shape shape(leaves.at(n)["shape"].get<std::vector<std::int64_t>>());
    const std::string dtype = leaves[n]["dtype"];
    if (!(shape == like[n].shape()) || dtype != name(like[n].dtype()))
      throw IoError("checkpoint::restore: array " + std::to_string(n) + " of " + tessera::quoted(folder) +
                    " is " + dtype + to_string(shape) + ", asked for is " + name(like[n].dtype()) +
                    to_string(like[n].shape()) + "; give a tree like the one that was saved");
  }
}

}  // namespace

namespace detail {

void save_leaves(const std::string& dir, int step, const std::vector<Array>& leaves,
                 const std::string& structure) {
  if (step < 0) throw ArgumentError("checkpoint::save: step " + std::to_string(step) + " is negative");
  for (const auto& x : leaves) check_usable(x, "checkpoint::save");
  eval(leaves);
  const Team team(all_ids(),
                  "checkpoint::save of step " + std::to_string(step) + " to " + tessera::quoted(dir));
  const std::string target = dir + "/" + step_name(step),
                    temporary = target + ".tmp-" + std::to_string(team.from_first(::getpid()));
  std::vector<std::int64_t> end_of_rank(device_count(), 0);
  std::vector<std::vector<LeafBlock>> blocks;
  for (const auto& x : leaves) blocks.push_back(blocks_of(x, end_of_rank));
  try {
    team.once([&] {
      std::error_code error;
      if (fs::exists(target, error))
        throw IoError("checkpoint::save: " + tessera::quoted(target) +
                      " exists; remove it first, or save under another step");
      fs::remove_all(temporary, error);
      fs::create_directories(temporary, error);
      if (error)
        throw IoError("checkpoint::save: the folder " + tessera::quoted(temporary) +
                      " cannot be made: " + error.message() + "; check the path and its permissions");
    });
    RankFile mine;
    team.together(
        [&] { mine = write_rank_file(temporary + "/" + rank_file(process_index()), leaves, blocks); });
    std::vector<RankFile> files(device_count());
    comm::all_gather(team.group(), &mine, sizeof mine, files.data());
    team.once([&] {
      const auto text = manifest_text(step, structure, leaves, blocks, files);
      File manifest("checkpoint::save", temporary + "/manifest.json", File::Mode::create);
      manifest.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
      manifest.sync();
      sync_folder_of("checkpoint::save", temporary + "/manifest.json");
      if (std::rename(temporary.c_str(), target.c_str()) != 0)
        throw IoError("checkpoint::save: " + tessera::quoted(temporary) + " cannot be renamed to " +
                      tessera::quoted(target) + ": " + std::strerror(errno) +
                      "; check the permissions of the folder");
      sync_folder_of("checkpoint::save", target);
    });
  } catch (...) {
    std::error_code ignored;
    if (team.is_first()) fs::remove_all(temporary, ignored);
    throw;
  }
}

std::vector<Array> restore_leaves(const std::string& dir, std::optional<int> step,
                                  const std::vector<Array>& like, const std::string& structure) {
  const Team team(all_ids(), "checkpoint::restore of " +
                                 (step ? "step " + std::to_string(*step) : std::string("the latest step")));
  std::string folder;
  json body;
  team.together([&] {
    const auto steps = steps_in(dir);
    std::vector<std::string> names;
    for (const auto& [number, path] : steps) names.push_back(std::to_string(number));
    if (steps.empty())
      throw IoError("checkpoint::restore: " + tessera::quoted(dir) +
                    " holds no complete step; check the path (a step is a folder like " + step_name(0) +
                    " with a manifest.json)");
    if (step && !steps.contains(*step))
      throw IoError("checkpoint::restore: " + tessera::quoted(dir) + " has no step " + std::to_string(*step) +
                    "; it has " + join(names));
    folder = step ? steps.at(*step) : steps.rbegin()->second;
    body = read_manifest(folder);
    check_alike(body, folder, like, structure);
  });
  team.same("checkpoint::restore", folder, body.dump());
  std::vector<Buffer> buffers(like.size());
  std::vector<Sharding> layouts;
  for (const auto& x : like) layouts.push_back(x.sharding());
  team.together([&] {
    std::map<int, RankReader> readers;
    for (std::size_t n = 0; n < like.size(); ++n)
      if (layouts[n].mesh().position(process_index()) >= 0)
        buffers[n] =
            read_leaf(body["leaves"][n], layouts[n].local_box(like[n].shape(), process_index()),
                      static_cast<std::int64_t>(itemsize(like[n].dtype())), folder, body["files"], readers);
  });
  std::vector<Array> leaves;
  for (std::size_t n = 0; n < like.size(); ++n)
    leaves.push_back(make_leaf({like[n].shape(), like[n].dtype()}, layouts[n], std::move(buffers[n]),
                               like[n].is_committed(), std::source_location::current()));
  return leaves;
}

}  // namespace detail

std::optional<int> latest_step(const std::string& dir) {
  const auto steps = steps_in(dir);
  if (steps.empty()) return std::nullopt;
  return steps.rbegin()->first;
}

}  // namespace tessera::io::checkpoint
