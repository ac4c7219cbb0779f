// Checkpoints: dir/step_00000042/{manifest.json, rank_00000.bin, ...} (manifest.hpp, rank_file.hpp).
//
// Written into step_00000042.tmp-<random> under the lock dir/save.lock, the manifest last, then renamed: what
// has the final name is complete.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include <tessera/runtime.hpp>

#include "api/evaluate.hpp"
#include "base/call.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "graph/op.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/rank_file.hpp"
#include "io/save_place.hpp"
#include "io/team.hpp"

namespace tessera::io::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string step_name(int step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08d", step);
  return name;
}

// What all ranks must have in common, in words.
std::string tree_text(const std::vector<Array>& leaves, const std::string& structure) {
  std::string text = ", a tree " + structure;
  for (const auto& x : leaves)
    text += ", " + name(x.dtype()) + to_string(x.shape()) + layout_text(x.sharding());
  return text;
}

// Blocks of one leaf by the rank that writes them, in mesh order: replica 0 of each.
std::vector<Manifest::Block> blocks_of(const Array& x, std::vector<std::int64_t>& end_of_rank) {
  std::vector<Manifest::Block> blocks;
  const auto& layout = output_of(x).stored->layout;
  for (const auto& [device, box] : layout.devices_indices_map(x.shape())) {
    if (layout.replica_id(x.shape(), device) != 0 || is_empty(box)) continue;
    auto& end = end_of_rank[device.id];
    blocks.push_back({box, device.id, end});
    end += box_elements(box) * static_cast<std::int64_t>(itemsize(x.dtype()));
  }
  return blocks;
}

Manifest planned(int step, const std::string& structure, const std::vector<Array>& leaves) {
  Manifest manifest{step, structure, {}, std::vector<Manifest::File>(device_count())};
  std::vector<std::int64_t> end_of_rank(device_count(), 0);
  for (const auto& x : leaves) manifest.leaves.push_back({x.shape(), x.dtype(), blocks_of(x, end_of_rank)});
  return manifest;
}

Manifest::File write_own_file(const std::string& folder, const Manifest& manifest,
                              const std::vector<Array>& leaves) {
  std::vector<std::pair<const std::byte*, std::int64_t>> pieces;
  for (std::size_t n = 0; n < leaves.size(); ++n)
    for (const auto& block : manifest.leaves[n].blocks)
      if (block.rank == process_index())
        pieces.push_back({output_of(leaves[n]).stored->buffer.data(),
                          box_elements(block.box) * static_cast<std::int64_t>(itemsize(leaves[n].dtype()))});
  return write_rank_file(folder + "/" + rank_file(process_index()), pieces);
}

// What each rank wrote, on every rank.
void gather_files(Manifest& manifest, const Manifest::File& mine) {
  struct Facts {
    std::int64_t data_bytes;
    char sum[16];
  };
  Facts own{mine.data_bytes, {}};
  std::memcpy(own.sum, mine.sum_of_sums.data(), sizeof own.sum);
  std::vector<Facts> all(manifest.files.size());
  comm::all_gather(comm::world(), &own, sizeof own, all.data());
  for (std::size_t r = 0; r < all.size(); ++r)
    manifest.files[r] = {all[r].data_bytes, std::string(all[r].sum, sizeof all[r].sum)};
}

// The folder that a step is written into, on the first rank.
class StepPlace {
 public:
  StepPlace(const std::string& dir, int step) : target_(dir + "/" + step_name(step)) {
    make_folder(dir);
    lock_.emplace(call_text(), dir, dir + "/save.lock");
    fault_point("locked");
    std::error_code error;
    if (lock_->is_inherited()) remove_dead(dir);
    if (fs::exists(target_, error))
      throw IoError(call_text() + ": " + quoted(target_) +
                    " exists; remove it first, or save under another step");
    temporary_ = target_ + ".tmp-" + random_name();
  }
  ~StepPlace() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  const std::string& make_temporary() const {
    make_folder(temporary_);
    fault_point("prepared");
    return temporary_;
  }

  void commit(const Manifest& manifest) {
    const auto text = to_text(manifest);
    const auto path = temporary_ + "/manifest.json";
    File file(call_text(), path, File::Mode::create);
    file.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
    file.sync();
    sync_folder_of(call_text(), path);
    fault_point("renaming");
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
      throw IoError(call_text() + ": " + quoted(temporary_) + " cannot be renamed to " + quoted(target_) +
                    ": " + std::strerror(errno) + "; check the permissions of the folder");
    temporary_.clear();
    fault_point("renamed");
    sync_folder_of(call_text(), target_);
  }

 private:
  static std::string quoted(const std::string& text) { return tessera::quoted(text); }
  static void make_folder(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
      throw IoError(call_text() + ": the folder " + quoted(path) + " cannot be made: " + error.message() +
                    "; check the path and its permissions");
  }
  static void remove_dead(const std::string& dir) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(dir, none)) {
      const auto name = entry.path().filename().string();
      if (name.starts_with("step_") && is_temporary(name, name.substr(0, name.find(".tmp-"))))
        fs::remove_all(entry.path(), none);
    }
  }
  std::string target_, temporary_;
  std::optional<FileLock> lock_;
};

// The steps that have a manifest, by number.
std::map<int, std::string, std::greater<>> steps_in(const std::string& dir) {
  std::map<int, std::string, std::greater<>> steps;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir, none)) {
    const auto name = entry.path().filename().string();
    int step = 0;
    if (std::sscanf(name.c_str(), "step_%d", &step) == 1 && name == step_name(step) &&
        fs::exists(entry.path() / "manifest.json", none))
      steps[step] = entry.path().string();
  }
  return steps;
}

Manifest parsed(const std::string& folder, const std::string& text) {
  try {
    return parse_manifest(text);
  } catch (const IoError& error) {
    throw IoError(call_text() + ": " + tessera::quoted(folder + "/manifest.json") + " " + error.what());
  }
}
std::string manifest_of(const std::string& folder) {
  return read_text(call_text(), folder + "/manifest.json");
}

bool is_complete(const std::string& folder) {
  try {
    const auto manifest = parsed(folder, manifest_of(folder));
    for (std::size_t r = 0; r < manifest.files.size(); ++r) {
      std::error_code none;
      const auto bytes = fs::file_size(folder + "/" + rank_file(static_cast<int>(r)), none);
      if (none || static_cast<std::int64_t>(bytes) != file_bytes(manifest.files[r])) return false;
    }
    return true;
  } catch (const IoError&) {
    return false;
  }
}

// Not damage: an older step has no other tree.
struct OtherTree : IoError {
  using IoError::IoError;
};

// Where leaf number n stands in a tree, from the tree's text: "{bias:*,layers:(*,*,),}" has ['bias'],
// ['layers'][0] and ['layers'][1]. "" of a tree that is one array.
std::string name_of_leaf(const std::string& structure, std::size_t n) {
  struct Level {
    bool is_map;
    int number = 0;
    std::string key = {};
  };
  std::vector<Level> levels;
  for (std::size_t i = 0; i < structure.size(); ++i) {
    const char c = structure[i];
    if (c == '\'') i = std::min(structure.find('\'', i + 1), structure.size());
    if (c == ')' || c == '}') levels.pop_back();
    if (c == '(' || c == '{') levels.push_back({c == '{'});
    if (c == ',') ++levels.back().number;
    const bool entry_begins = (c == '{' || c == ',') && levels.back().is_map && structure[i + 1] != '}';
    if (entry_begins) {
      const auto colon = structure.find(':', i);
      levels.back().key = structure.substr(i + 1, colon - i - 1);
      i = colon;
    }
    if (c != '*' || n-- > 0) continue;
    std::string name;
    for (const auto& level : levels)
      name += level.is_map ? "['" + level.key + "']" : "[" + std::to_string(level.number) + "]";
    return name;
  }
  return "";
}

void check_alike(const Manifest& manifest, const std::string& folder, const std::vector<Array>& like,
                 const std::string& structure) {
  if (manifest.structure != structure || manifest.leaves.size() != like.size()) {
    const std::string found = tessera::quoted(manifest.structure);
    throw OtherTree(call_text() + ": " + tessera::quoted(folder) + " holds the tree " +
                    found.substr(1, found.size() - 2) + ", asked for is " + structure +
                    " (* is an array); give a tree like the one that was saved");
  }
  for (std::size_t n = 0; n < like.size(); ++n) {
    const auto& leaf = manifest.leaves[n];
    if (!(leaf.shape == like[n].shape()) || leaf.dtype != like[n].dtype())
      throw OtherTree(call_text() + ": the array " + name_of_leaf(structure, n) +
                      (structure == "*" ? "" : " ") + "of " + tessera::quoted(folder) + " is " +
                      name(leaf.dtype) + to_string(leaf.shape) + ", asked for is " + name(like[n].dtype()) +
                      to_string(like[n].shape()) + "; give a tree like the one that was saved");
  }
}

// The manifest is read once and sent: so all ranks speak of the same step.
Manifest common_manifest(const Team& team, const std::string& folder) {
  std::string text;
  Manifest manifest;
  team.once([&] { text = manifest_of(folder); });
  text = team.from_first(text);
  team.together([&] { manifest = parsed(folder, text); });
  return manifest;
}

std::vector<Array> restore_step(const Team& team, const std::string& folder, const std::vector<Array>& like,
                                const std::string& structure) {
  const Manifest manifest = common_manifest(team, folder);
  check_alike(manifest, folder, like, structure);
  std::vector<Buffer> buffers(like.size());
  team.together([&] {
    StepReader reader(folder, manifest);
    for (std::size_t n = 0; n < like.size(); ++n) {
      const Sharding layout = like[n].sharding();
      if (layout.mesh().position(process_index()) >= 0)
        buffers[n] = reader.read(n, layout.local_box(like[n].shape(), process_index()));
    }
  });
  std::vector<Array> leaves;
  for (std::size_t n = 0; n < like.size(); ++n)
    leaves.push_back(make_leaf({like[n].shape(), like[n].dtype()}, like[n].sharding(), std::move(buffers[n]),
                               like[n].is_committed()));
  return leaves;
}

// The numbers of the steps, newest first, as the first rank sees them.
std::vector<int> common_steps(const Team& team, const std::string& dir) {
  std::string words;
  if (team.is_first())
    for (const auto& [number, folder] : steps_in(dir))
      words += (words.empty() ? "" : " ") + std::to_string(number);
  std::istringstream text(team.from_first(words));
  std::vector<int> steps;
  for (int step = 0; text >> step;) steps.push_back(step);
  return steps;
}

// The folders to try, best first.
std::vector<std::string> candidates(const Team& team, const std::string& dir, std::optional<int> step) {
  const auto steps = common_steps(team, dir);
  if (steps.empty())
    throw IoError(call_text() + ": " + tessera::quoted(dir) +
                  " holds no complete step; check the path (a step is a folder like " + step_name(0) +
                  " with a manifest.json)");
  if (step && std::find(steps.begin(), steps.end(), *step) == steps.end()) {
    std::vector<std::string> names;
    for (auto number = steps.rbegin(); number != steps.rend(); ++number)
      names.push_back(std::to_string(*number));
    throw IoError(call_text() + ": " + tessera::quoted(dir) + " has no step " + std::to_string(*step) +
                  "; it has " + join(names));
  }
  std::vector<std::string> folders;
  for (const int number : steps)
    if (!step || number == *step) folders.push_back(dir + "/" + step_name(number));
  return folders;
}

}  // namespace

namespace detail {

void save_leaves(const std::string& dir, int step, const std::vector<Array>& leaves,
                 const std::string& structure, std::source_location where) {
  const Call call("checkpoint::save", where);
  if (step < 0) throw ArgumentError(call_text() + ": step " + std::to_string(step) + " is negative");
  for (const auto& x : leaves) check_usable(x);
  const Team team("checkpoint::save of step " + std::to_string(step) + " to " + tessera::quoted(dir) +
                  tree_text(leaves, structure));
  team.together([&] { eval(leaves); });
  const NoSizeSignal size_is_an_error;
  Manifest manifest = planned(step, structure, leaves);
  std::optional<StepPlace> place;  // on the first rank
  std::string folder;
  team.once([&] {
    place.emplace(dir, step);
    folder = place->make_temporary();
  });
  folder = team.from_first(folder);
  Manifest::File mine;
  team.together([&] { mine = write_own_file(folder, manifest, leaves); });
  gather_files(manifest, mine);
  team.once([&] {
    place->commit(manifest);
    place.reset();
    fault_point("saved");
  });
}

std::vector<Array> restore_leaves(const std::string& dir, std::optional<int> step,
                                  const std::vector<Array>& like, const std::string& structure,
                                  std::source_location where) {
  const Call call("checkpoint::restore", where);
  const Team team("checkpoint::restore of " +
                  (step ? "step " + std::to_string(*step) : std::string("the latest step")) + " from " +
                  tessera::quoted(dir) + tree_text(like, structure));
  const auto folders = candidates(team, dir, step);
  std::string of_newest;
  for (const auto& folder : folders) {
    try {
      auto leaves = restore_step(team, folder, like, structure);
      if (!of_newest.empty())
        log_once(LogLevel::warn, of_newest + "\n  Restored instead: " + tessera::quoted(folder));
      return leaves;
    } catch (const OtherTree&) {
      throw;
    } catch (const IoError& error) {
      if (of_newest.empty()) of_newest = error.what();
    }
  }
  if (folders.size() > 1)
    of_newest += " (of the " + format_count(static_cast<std::int64_t>(folders.size()) - 1, "older step") +
                 " none is whole either)";
  throw IoError(of_newest);
}

}  // namespace detail

std::optional<int> latest_step(const std::string& dir, std::source_location where) {
  const Call call("checkpoint::latest_step", where);
  for (const auto& [step, folder] : steps_in(dir))
    if (is_complete(folder)) return step;
  return std::nullopt;
}

std::optional<int> latest_whole_step(const std::string& dir, std::source_location where) {
  const Call call("checkpoint::latest_whole_step", where);
  const Team team("checkpoint::latest_whole_step of " + tessera::quoted(dir));
  for (const int step : common_steps(team, dir)) {
    try {
      const auto folder = dir + "/" + step_name(step);
      const Manifest manifest = common_manifest(team, folder);
      team.together([&] {  // each rank its share of the files
        for (auto r = process_index(); r < static_cast<int>(manifest.files.size()); r += device_count())
          RankReader(folder, r, manifest.files[r]).check_all();
      });
      return step;
    } catch (const IoError&) {}
  }
  return std::nullopt;
}

}  // namespace tessera::io::checkpoint
