// interrupted FOLDER FORMAT ERRORS [MOST]: under failing_files.cpp, fails the n-th call of the file system,
// for every n of a save, then for every n of a load, with each of the ERRORS ("EIO,short"), on each rank in
// turn.
//
// After a save the complete old or new version must be there, and the new one if no error was raised; an
// error is raised on all ranks. A load returns the saved data or raises an error. Interrupted and short calls
// must not raise an error. Prints violations and counts.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "formats.hpp"

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

void arm(const std::string& spec) {
  reinterpret_cast<void (*)(const char*)>(dlsym(RTLD_DEFAULT, "test_files_arm"))(spec.c_str());
}
long calls() { return reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "test_files_calls"))(); }

Array small(int number) {
  return device_put(reshape(arange(101 * 7), {101, 7}) + number * 1000000, layout());
}

struct Trial {
  std::string folder, format, what;
  int n = 0, rank = 0, wrong = 0;
  bool was_reached = true;

  void complain(const std::string& words) {
    ++wrong;
    if (is_main_process())
      std::printf("%s: %s at call %d of rank %d: %s\n", format.c_str(), what.c_str(), n, rank, words.c_str());
  }
  bool goes_on() const { return what == "EINTR" || what == "short"; }

  // Returns "" if the work succeeded; otherwise its error, equal on all ranks.
  std::string outcome(const std::function<void()>& work) {
    std::string text;
    arm("any:" + std::to_string(n) + ":" + what + ":" + std::to_string(rank));
    try {
      work();
    } catch (const IoError& error) {
      text = error.what();
    }
    was_reached = !comm::all_ok(comm::world(), process_index() != rank || calls() < n);
    arm("");
    const bool has_failed = !comm::all_ok(comm::world(), text.empty());
    if (has_failed && !comm::all_ok(comm::world(), !text.empty())) complain("the error is not everybody's");
    return text;
  }
  int held() {
    try {
      return version_in(load(folder, format, small(0)), small(0));
    } catch (const IoError& error) {
      complain(std::string("nothing is left: ") + error.what());
      return -1;
    }
  }
  void save_fails() {
    if (is_main_process()) fs::remove_all(folder), fs::create_directories(folder);
    comm::barrier(comm::world());
    save(folder, format, small(1), 1);
    const auto error = outcome([&] { save(folder, format, small(2), 2); });
    const int found = held();
    if (found != 2 && (found != 1 || error.empty()))
      complain("holds version " + std::to_string(found) + " after " + (error.empty() ? "no error" : error));
    if (goes_on() && !error.empty()) complain("is an error: " + error);
  }
  void load_fails() {
    int found = 0;
    const auto error = outcome([&] { found = version_in(load(folder, format, small(0)), small(0)); });
    const bool may_be_older = what == "flip" && (format == "checkpoint" || format == "manager");
    if (error.empty() && found != 2 && !(may_be_older && found == 1))
      complain("loads version " + std::to_string(found));
    if (goes_on() && !error.empty()) complain("is an error: " + error);
  }
  void prepare_load() {
    if (is_main_process()) fs::remove_all(folder), fs::create_directories(folder);
    comm::barrier(comm::world());
    for (const int number : {1, 2}) save(folder, format, small(number), number);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 98;
  Trial trial;
  trial.folder = argv[1], trial.format = argv[2];
  return run(argc, argv, [&] {
    std::istringstream errors(argv[3]);
    int saves = 0, loads = 0;
    for (std::string what; std::getline(errors, what, ',');)
      for (trial.rank = 0; trial.rank < device_count(); ++trial.rank) {
        trial.what = what;
        for (trial.n = 1, trial.was_reached = what != "flip"; trial.was_reached; ++trial.n, ++saves)
          trial.save_fails();
        for (trial.n = 1, trial.was_reached = true; trial.was_reached; ++trial.n, ++loads) {
          if (trial.n == 1 || what == "flip") trial.prepare_load();
          trial.load_fails();
        }
      }
    if (is_main_process()) std::printf("%d saves and %d loads, %d wrong\n", saves, loads, trial.wrong);
    if (trial.wrong > 0) throw InternalError("files are not what they should be");
  });
}
