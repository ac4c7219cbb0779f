// tessera replay FOLDER --rank R: runs one rank's recorded program again in a single process; the recording
// supplies everything that came from other ranks.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "comm/tape/tape_file.hpp"
#include "commands.hpp"
#include "launcher.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;
using tessera::comm::TapeHead;

std::string recorded_ranks(const std::string& folder) {
  std::vector<int> ranks;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    int rank = -1;
    if (std::sscanf(entry.path().filename().c_str(), "rank-%d.tape", &rank) == 1) ranks.push_back(rank);
  }
  if (ranks.empty()) return "no recording";
  std::sort(ranks.begin(), ranks.end());
  return "the recordings of " + std::to_string(ranks.size()) + " ranks, " + std::to_string(ranks.front()) +
         " to " + std::to_string(ranks.back());
}

// The command line of the recorded program. It begins with the path that was given where this still leads to
// the program, because an interpreter finds its virtual environment by it; else with the program's own path.
std::vector<std::string> recorded_words(const TapeHead& head) {
  std::vector<std::string> words;
  for (const auto& [name, value] : head)
    if (name == "word") words.push_back(value);
  const std::string program = tessera::comm::value_of(head, "program");
  if (program.empty() || words.empty()) return words;
  const std::string given = path_of(words.front());
  std::error_code none;
  words.front() = fs::canonical(given, none) == program ? given : program;
  return words;
}

// Sets the TESSERA_ variables of the recorded run and removes all others.
void restore_settings(const TapeHead& head) {
  std::vector<std::string> own;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "TESSERA_", 8) == 0)
      own.emplace_back(*entry, static_cast<std::size_t>(std::strcspn(*entry, "=")));
  for (const auto& name : own) unsetenv(name.c_str());
  for (const auto& [name, value] : head)
    if (const auto split = value.find('='); name == "set" && split != std::string::npos)
      setenv(value.substr(0, split).c_str(), value.c_str() + split + 1, 1);
  // With a launcher's variables MPI would treat this process as one rank of several.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
    unsetenv(name);
}

std::vector<std::string> under_debugger(const std::string& debugger, const std::vector<std::string>& words) {
  std::vector<std::string> all = {debugger};
  const std::string name = fs::path(debugger).filename();
  if (name == "gdb")
    all.insert(all.end(), {"-ex", "set breakpoint pending on", "-ex", "break tessera_replay_ends", "--args"});
  if (name == "lldb") all.insert(all.end(), {"-o", "breakpoint set -n tessera_replay_ends", "--"});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

int replay_rank(const Order& order) {
  const std::string folder = fs::absolute(order.operands.at(0));
  const std::string path = tessera::comm::tape_path(folder, order.rank);
  if (!fs::exists(path))
    throw UsageError("replay: there is no " + path + "; the folder has " + recorded_ranks(folder));
  const auto head = tessera::comm::read_tape_head(path);
  auto words = order.words.empty() ? recorded_words(head) : order.words;
  if (words.empty()) throw UsageError("replay: the recording names no program; give it behind --");
  if (words.front().ends_with(".py")) words.insert(words.begin(), python_of_jobs());
  const std::string place = tessera::comm::value_of(head, "folder");
  if (order.words.empty() && chdir(place.c_str()) != 0)
    throw UsageError("replay: the program ran in " + place + ", which cannot be entered: " +
                     std::strerror(errno) + "; go to its files and give the program behind --");
  restore_settings(head);
  setenv("TESSERA_REPLAY", path.c_str(), 1);
  if (!order.debugger.empty()) words = under_debugger(order.debugger, words);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "tessera: %s cannot be started: %s\n", argv[0], std::strerror(errno));
  return 1;
}

}  // namespace cli
