// saver COMMAND FOLDER FORMAT [...]: a program that saves, and is killed, starved of space or disturbed while
// it does. files.py starts it and judges what is left.
//
//   fault FOLDER FORMAT FAULT    saves version 1, then version 2 with TESSERA_TEST_FAULT=FAULT
//   check FOLDER FORMAT          for each FOLDER/*: prints its name and the version that it holds, whole
//   again FOLDER FORMAT          the same, and then saves version 3 over it
//   loop FOLDER FORMAT SECONDS   versions 1, 2, ...; FOLDER/rank.N has the process number of rank N, and
//                                FOLDER/saved the last version whose save has returned
//   full FOLDER FORMAT           version 1, then one that the disk has no room for
//   last FOLDER FORMAT [BYTES]   version 1, of 2 MiB a rank, as the last thing that the program does, where no
//                                file may be longer than BYTES
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

using namespace tessera;
namespace fs = std::filesystem;

namespace {

constexpr int rows = 1009, columns = 37;  // primes: blocks are uneven on every number of ranks

Sharding layout() { return NamedSharding(make_mesh({device_count()}, {"x"}), P("x")); }
Array version(int number, int scale = 1) {
  return device_put(reshape(arange(rows * scale * columns), {rows * scale, columns}) + number * 1000000,
                    layout());
}

// In pieces, as a long run would.
void append(const std::string& file, const Array& x, int compression) {
  io::Hdf5Writer out(file, {.mode = io::Hdf5Open::replace});
  out.attribute("/", "pieces", 3);
  const std::int64_t n = x.shape()[0], third = n / 3;
  for (const auto& piece : {slice(0, third), slice(third, 2 * third), slice(2 * third, n)})
    out.append("group/x", x(piece), {.compression = compression});
  out.close();
}
void saved_beside(const std::string& folder, int number, const Array& x) {
  io::checkpoint::Manager steps(folder + "/steps", {.keep = 1});
  steps.save(number, x);
  steps.wait();
}
// Chunks that are no blocks of any rank.
void store(const std::string& file, const Array& x) {
  io::Zarr out(file, {.mode = io::ZarrOpen::replace});
  out.write("group/x", x, {.chunks = {100, 20}});
  out.close();
}
void save(const std::string& folder, const std::string& format, const Array& x, int number) {
  if (format == "npy")
    io::save_npy(folder + "/x.npy", x);
  else if (format == "writer")
    append(folder + "/x.h5", x, number % 2);
  else if (format == "zarr")
    store(folder + "/x.zarr", x);
  else if (format == "hdf5")
    io::save_hdf5(folder + "/x.h5", "group/x", x, {.mode = io::Hdf5Mode::replace});
  else if (format == "checkpoint")
    io::checkpoint::save(folder + "/steps", number, x);
  else
    saved_beside(folder, number, x);
}
Array load(const std::string& folder, const std::string& format) {
  if (format == "npy") return io::load_npy(folder + "/x.npy", layout());
  if (format == "zarr") return io::load_zarr(folder + "/x.zarr/group/x", layout());
  if (format == "hdf5" || format == "writer") return io::load_hdf5(folder + "/x.h5", "group/x", layout());
  return io::checkpoint::restore(folder + "/steps", version(0));
}

// The version that all elements are of; -1 where they are of several.
int version_in(const Array& x) {
  const Array numbers = (x - version(0)) / 1000000;
  const int first = item<int>(min(x)) / 1000000;
  return item<bool>(all(numbers == first)) ? first : -1;
}
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
