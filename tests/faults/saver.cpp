// saver COMMAND FOLDER FORMAT [...]: a program that saves, and is killed, starved of space or disturbed
// meanwhile. files.py starts it and checks the files.
//
//   fault FOLDER FORMAT FAULT    saves version 1, then version 2 with TESSERA_TEST_FAULT=FAULT
//   check FOLDER FORMAT          for each FOLDER/*: prints its name and the complete version that it holds
//   again FOLDER FORMAT          the same, and then saves version 3 over it
//   loop FOLDER FORMAT SECONDS   versions 1, 2, ...; FOLDER/rank.N has the process number of rank N, and
//                                FOLDER/saved the last version whose save has returned
//   full FOLDER FORMAT           version 1, then one that the disk has no space for
//   last FOLDER FORMAT [BYTES]   version 1, of 2 MiB per rank, as the program's last action; no file may be
//                                longer than BYTES
//   share FOLDER FORMAT JOB      thirty versions of its own, while another job does the same
#include <sys/resource.h>
#include <unistd.h>
#include <tessera/checkpoint.hpp>
#include <tessera/tessera.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "comm/collectives/collectives.hpp"
#include "formats.hpp"

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

std::string held(const std::string& folder, const std::string& format) {
  try {
    return std::to_string(version_in(load(folder, format)));
  } catch (const IoError& error) {
    return std::string("error ") + error.what();
  }
}

void print_line(const std::string& line) {
  if (is_main_process()) std::printf("%s\n", line.c_str()), std::fflush(stdout);
}
void note(const std::string& file, const std::string& text) {
  std::ofstream(file + ".new") << text;
  fs::rename(file + ".new", file);
}

void fault(const std::string& folder, const std::string& format, const std::string& where) {
  save(folder, format, version(1), 1);
  comm::barrier(comm::world());
  ::setenv("TESSERA_TEST_FAULT", where.c_str(), 1);
  try {
    save(folder, format, version(2), 2);
    print_line("saved");
  } catch (const IoError& error) {
    print_line(std::string("error ") + error.what());
  }
}

void check(const std::string& folder, const std::string& format, bool again) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  comm::barrier(comm::world());
  for (const auto& name : names) {
    const auto place = folder + "/" + name;
    std::string line = name + " " + held(place, format);
    if (again) save(place, format, version(3), 3);
    if (again) line += " then " + held(place, format);
    print_line(line);
  }
}

void loop(const std::string& folder, const std::string& format, double seconds) {
  note(folder + "/rank." + std::to_string(process_index()), std::to_string(::getpid()));
  const auto start = std::chrono::steady_clock::now();
  std::int64_t go_on = 1;
  for (int number = 1; go_on != 0; ++number) {
    save(folder, format, version(number), number);
    if (is_main_process()) note(folder + "/saved", std::to_string(number));
    go_on = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds;
    comm::broadcast(comm::world(), &go_on, sizeof go_on, 0);
  }
}

void full(const std::string& folder, const std::string& format) {
  save(folder, format, version(1), 1);
  try {
    save(folder, format, version(2, 100), 2);
    print_line("saved");
  } catch (const IoError& error) {
    print_line(std::string("error ") + error.what());
  }
  print_line("holds " + held(folder, format));
  if (is_main_process())
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      print_line("left " + fs::relative(entry.path(), folder).string());
}

void last(const std::string& folder, const std::string& most_bytes) {
  const rlim_t most = most_bytes.empty() ? RLIM_INFINITY : std::stoull(most_bytes);
  const rlimit limit{most, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  io::checkpoint::Manager(folder + "/steps").save(1, version(1, 15 * device_count()));
}

void share(const std::string& folder, const std::string& format, int job) {
  for (int round = 0; round < 30; ++round) {
    save(folder, format, version(job), job * 100 + round);
    const auto found = version_in(load(folder, format));
    if (found < 1) print_line("mixed");
  }
  print_line("done");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 98;
  const std::string command = argv[1], folder = argv[2], format = argv[3], more = argc > 4 ? argv[4] : "";
  return run(argc, argv, [&] {
    if (command == "fault") fault(folder, format, more);
    if (command == "last") last(folder, more);
    if (command == "check" || command == "again") check(folder, format, command == "again");
    if (command == "loop") loop(folder, format, std::atof(more.c_str()));
    if (command == "full") full(folder, format);
    if (command == "share") share(folder, format, std::atoi(more.c_str()));
  });
}
