#include "io/steps/step_folder.hpp"

#include <tessera/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "io/save_target.hpp"

namespace tessera::io::checkpoint {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& call, const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw IoError(call + ": the folder " + in_quotes(path) + " cannot be made: " + error.message() +
                  "; check the path and its permissions");
}

// Renames the folder before removing it: if killed in between, nothing that looks like a step remains.
void remove_step(const std::string& folder) {
  const auto nameless = folder + ".tmp-" + random_name();
  if (uninterrupted([&] { return std::rename(folder.c_str(), nameless.c_str()); }) == 0)
    remove_folder(nameless);
}

// Removes the leftovers of dead jobs.
void remove_dead(const std::string& call, const std::string& dir) {
  for (const auto& name : names_in(call, dir))
    if (name.starts_with("step_") && is_temporary(name, name.substr(0, name.find(".tmp-"))))
      remove_folder(dir + "/" + name);
}

// Whether a file may exist; true if the system gives no answer.
bool may_exist(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) || error;
}

}  // namespace

std::string step_name(int step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08d", step);
  return name;
}

std::map<int, std::string, std::greater<>> steps_in(const std::string& call, const std::string& dir) {
  std::map<int, std::string, std::greater<>> steps;
  for (const auto& name : names_in(call, dir)) {
    int step = 0;
    if (std::sscanf(name.c_str(), "step_%d", &step) == 1 && name == step_name(step) &&
        may_exist(dir + "/" + name + "/manifest.json"))
      steps[step] = dir + "/" + name;
  }
  return steps;
}

bool is_complete(const std::string& folder) {
  try {
    const auto manifest = parse_manifest(read_text("", folder + "/manifest.json"));
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

void set_aside(const std::string& call, const std::string& folder) {
  const auto aside = folder + ".damaged";
  std::error_code none;
  if (fs::exists(aside, none)) remove_step(aside);
  if (uninterrupted([&] { return std::rename(folder.c_str(), aside.c_str()); }) != 0)
    throw IoError(call + ": the damaged step " + in_quotes(folder) + " cannot be renamed to " +
                  in_quotes(aside) + ": " + std::strerror(errno) +
                  "; check the permissions of the folder, or remove the step");
  sync_folder_of(call, folder);
}

StepFolder::StepFolder(std::string call, const std::string& dir, int step)
    : call_(std::move(call)), dir_(dir), target_(dir + "/" + step_name(step)), step_(step) {
  make_folder(call_, dir);
  lock_.emplace(call_, dir, dir + "/save.lock");
  fault_point("locked");
  std::error_code error;
  if (lock_->is_inherited()) remove_dead(call_, dir);
  if (fs::exists(target_, error))
    throw IoError(call_ + ": " + in_quotes(target_) + " exists; remove it first, or save under another step");
  temporary_ = target_ + ".tmp-" + random_name();
}
StepFolder::~StepFolder() {
  if (!temporary_.empty()) remove_folder(temporary_);
}

const std::string& StepFolder::make_temporary() const {
  make_folder(call_, temporary_);
  fault_point("prepared");
  return temporary_;
}

void StepFolder::commit(const Manifest& manifest) {
  const auto text = to_text(manifest);
  const auto path = temporary_ + "/manifest.json";
  File file(call_, path, File::Mode::create);
  file.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
  file.sync();
  sync_folder_of(call_, path);
  fault_point("renaming");
  if (uninterrupted([&] { return std::rename(temporary_.c_str(), target_.c_str()); }) != 0)
    throw IoError(call_ + ": " + in_quotes(temporary_) + " cannot be renamed to " + in_quotes(target_) +
                  ": " + std::strerror(errno) + "; check the permissions of the folder");
  temporary_.clear();
  fault_point("renamed");
  sync_folder_of(call_, target_);
}

void StepFolder::abandon() {
  if (lock_) lock_->abandon();
  temporary_.clear();
}

void StepFolder::keep_newest(int keep) const {
  int kept = 0;
  for (const auto& [step, folder] : steps_in(call_, dir_)) {
    if (step > step_) continue;
    if (step == step_ || kept < keep) {
      kept += step == step_ || is_complete(folder) ? 1 : 0;
      continue;
    }
    remove_step(folder);
    fault_point("removed");
  }
}

}  // namespace tessera::io::checkpoint
