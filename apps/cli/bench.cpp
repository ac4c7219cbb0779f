// tessera bench: replaces this process by the benchmark program, which is in the same folder of a build tree.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "commands.hpp"

namespace cli {

using namespace tessera;

int run_benchmark(const std::vector<std::string>& words) {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) self[0] = '\0';
  const auto program = std::filesystem::path(self).parent_path().parent_path() / "apps/bench/tessera_bench";
  if (!std::filesystem::exists(program))
    throw UsageError(
        "bench: the benchmark is not installed; run scripts/bench in the source tree. tessera machine "
        "measures this machine");
  std::vector<std::string> all = {program.string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (auto& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "tessera: %s cannot be started: %s\n", argv[0], std::strerror(errno));
  return 1;
}

}  // namespace cli
