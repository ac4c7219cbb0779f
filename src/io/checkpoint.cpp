// Checkpoints: dir/step_00000042/{manifest.json, rank_00000.bin, ...} (manifest.hpp, rank_file.hpp).
//
// Written into step_00000042.tmp-<random> under the lock dir/save.lock, the manifest last, then renamed: a
// folder with the final name is complete.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

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
#include "io/steps/manager.hpp"
#include "io/steps/step_folder.hpp"
#include "io/steps/step_save.hpp"
#include "io/team.hpp"

namespace tessera::io::checkpoint {
namespace {

namespace fs = std::filesystem;

Manifest parsed(const std::string& folder, const std::string& text) {
  try {
    return parse_manifest(text);
  } catch (const IoError& error) {
    throw IoError(call_text() + ": " + in_quotes(folder + "/manifest.json") + " " + error.what());
  }
}
std::string manifest_of(const std::string& folder) {
  return read_text(call_text(), folder + "/manifest.json");
}

// Another tree is not damage: older steps have the same tree, so trying them would not help.
struct OtherTree : IoError {
  using IoError::IoError;
};

// The path of leaf number n in a tree, from the tree's text: "{bias:*,layers:(*,*,),}" has ['bias'],
// ['layers'][0] and ['layers'][1]. "" for a tree that is one array.
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
    const std::string found = in_quotes(manifest.structure);
    throw OtherTree(call_text() + ": " + in_quotes(folder) + " holds the tree " +
                    found.substr(1, found.size() - 2) + ", asked for is " + structure +
                    " (* is an array); give a tree like the one that was saved");
  }
  for (std::size_t n = 0; n < like.size(); ++n) {
    const auto& leaf = manifest.leaves[n];
    if (!(leaf.shape == like[n].shape()) || leaf.dtype != like[n].dtype())
      throw OtherTree(call_text() + ": the array " + name_of_leaf(structure, n) +
                      (structure == "*" ? "" : " ") + "of " + in_quotes(folder) + " is " + name(leaf.dtype) +
                      to_string(leaf.shape) + ", asked for is " + name(like[n].dtype()) +
                      to_string(like[n].shape()) + "; give a tree like the one that was saved");
  }
}

// Reads the manifest once and sends it, so that all ranks use the same step.
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

// Retries an access that the system refuses, since it may be granted a moment later: falling back to an older
// step would silently lose work.
template <class Read> auto patiently(const std::string& folder, Read read) {
  using namespace std::chrono_literals;
  for (const auto pause : {100ms, 400ms, 1500ms}) {
    try {
      return read();
    } catch (const AccessError& error) {
      log_once(LogLevel::warn, std::string(error.what()) + "\n  Trying again");
    }
    std::this_thread::sleep_for(pause);
  }
  try {
    return read();
  } catch (const AccessError& error) {
    const std::string again = " (four times in two seconds. " + in_quotes(folder) +
                              " may be whole, so no older step is taken: restore one by its number where "
                              "this one is lost)";
    throw AccessError(error.what() + again);
  }
}

}  // namespace

std::vector<int> common_steps(const Team& team, const std::string& dir) {
  std::string words;
  patiently(dir, [&] {
    team.once([&] {
      words.clear();
      for (const auto& [number, folder] : steps_in(call_text(), dir))
        words += (words.empty() ? "" : " ") + std::to_string(number);
    });
    return true;
  });
  std::istringstream text(team.from_first(words));
  std::vector<int> steps;
  for (int step = 0; text >> step;) steps.push_back(step);
  return steps;
}

std::vector<StoredStep> candidates(const Team& team, const std::string& dir, std::optional<int> step) {
  const auto steps = common_steps(team, dir);
  if (steps.empty())
    throw IoError(call_text() + ": " + in_quotes(dir) +
                  " holds no complete step; check the path (a step is a folder like " + step_name(0) +
                  " with a manifest.json)");
  if (step && std::find(steps.begin(), steps.end(), *step) == steps.end()) {
    std::vector<std::string> names;
    for (auto number = steps.rbegin(); number != steps.rend(); ++number)
      names.push_back(std::to_string(*number));
    throw IoError(call_text() + ": " + in_quotes(dir) + " has no step " + std::to_string(*step) +
                  "; it has " + join(names));
  }
  std::vector<StoredStep> found;
  for (const int number : steps)
    if (!step || number == *step) found.push_back({number, dir + "/" + step_name(number)});
  return found;
}

bool is_step_whole(const Team& team, const std::string& folder) {
  return patiently(folder, [&] {
    try {
      const Manifest manifest = common_manifest(team, folder);
      team.together([&] {  // each rank reads its share of the files
        for (auto r = process_index(); r < static_cast<int>(manifest.files.size()); r += device_count())
          RankReader(folder, r, manifest.files[r]).check_all();
      });
      return true;
    } catch (const AccessError&) {
      throw;
    } catch (const IoError&) {
      return false;
    }
  });
}

Restored restore_first_whole(const Team& team, const std::vector<StoredStep>& steps,
                             const std::vector<Array>& like, const std::string& structure) {
  std::string of_newest;
  std::vector<std::string> damaged;
  for (const auto& [step, folder] : steps) {
    try {
      auto leaves = patiently(folder, [&, &at = folder] { return restore_step(team, at, like, structure); });
      if (!of_newest.empty())
        log_once(LogLevel::warn, of_newest + "\n  Restored instead: " + in_quotes(folder));
      return {step, std::move(leaves), std::move(damaged)};
    } catch (const OtherTree&) {
      throw;
    } catch (const AccessError&) {
      throw;
    } catch (const IoError& error) {
      damaged.push_back(folder);
      if (of_newest.empty()) of_newest = error.what();
    }
  }
  if (steps.size() > 1)
    of_newest += " (of the " + format_count(static_cast<std::int64_t>(steps.size()) - 1, "older step") +
                 " none is whole either)";
  throw IoError(of_newest);
}

namespace detail {

void save_leaves(const std::string& dir, int step, const std::vector<Array>& leaves,
                 const std::string& structure, std::source_location where) {
  const Call call("checkpoint::save", where);
  if (step < 0) throw ArgumentError(call_text() + ": step " + std::to_string(step) + " is negative");
  for (const auto& x : leaves) check_usable(x);
  const Team team("checkpoint::save of step " + std::to_string(step) + " to " + in_quotes(dir) +
                  tree_text(leaves, structure));
  finish_saves_in(team, dir);
  StepSave save(team, call_text(), dir, step, 0, leaves, structure);
  save.write();
  save.finish(team);
}

std::vector<Array> restore_leaves(const std::string& dir, std::optional<int> step,
                                  const std::vector<Array>& like, const std::string& structure,
                                  std::source_location where) {
  const Call call("checkpoint::restore", where);
  const Team team("checkpoint::restore of " +
                  (step ? "step " + std::to_string(*step) : std::string("the latest step")) + " from " +
                  in_quotes(dir) + tree_text(like, structure));
  finish_saves_in(team, dir);
  auto restored = restore_first_whole(team, candidates(team, dir, step), like, structure);
  if (is_managed(dir)) set_aside_what_is_damaged(team, restored);
  return std::move(restored.leaves);
}

}  // namespace detail

std::optional<int> latest_step(const std::string& dir, std::source_location where) {
  const Call call("checkpoint::latest_step", where);
  for (const auto& [step, folder] : steps_in(call_text(), dir))
    if (is_complete(folder)) return step;
  return std::nullopt;
}

std::optional<int> latest_whole_step(const std::string& dir, std::source_location where) {
  const Call call("checkpoint::latest_whole_step", where);
  const Team team("checkpoint::latest_whole_step of " + in_quotes(dir));
  finish_saves_in(team, dir);
  for (const int step : common_steps(team, dir))
    if (is_step_whole(team, dir + "/" + step_name(step))) return step;
  return std::nullopt;
}

}  // namespace tessera::io::checkpoint
