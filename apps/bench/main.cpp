// tessera_bench [--filter NAME | --row NAME] [--json FILE] [--list] [--seconds S] [--choices FILE] [--avx2]:
// see bench.hpp. scripts/bench starts it at several rank counts.
#include "options.hpp"

#include <hwy/highway.h>

#include <cstdio>
#include <cstdlib>

#include "bench.hpp"

namespace bench {

Options& options() {
  static Options instance;
  return instance;
}

Group::Group(void (*rows)()) { options().groups.push_back(rows); }

bool wanted(const std::string& name) {
  if (options().list && rank() == 0) std::printf("%s\n", name.c_str());
  if (options().list) return false;
  return options().row.empty() ? name.find(options().filter) != std::string::npos : name == options().row;
}

int rank() { return tessera::process_index(); }
int ranks() { return tessera::process_count(); }
tessera::Sharding split(const tessera::PartitionSpec& spec) {
  return tessera::NamedSharding(tessera::make_mesh({ranks()}, {"x"}), spec);
}
tessera::Sharding on_one() { return tessera::SingleDeviceSharding(tessera::devices()[0]); }

namespace {

// Restricts the vector instructions to AVX2; scripts/bench does the same to OpenBLAS. False: this CPU has no
// AVX2.
bool use_avx2() {
  options().suffix = "_avx2";
  if ((hwy::SupportedTargets() & HWY_AVX2) == 0) return false;
  hwy::SetSupportedTargetsForTest(HWY_AVX2);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

// Returns whether this word is known; `value` is the next word, for options that take one.
bool take_word(const std::string& word, const char* value, bool& takes_value) {
  auto& asked = options();
  takes_value = true;
  if (word == "--filter" && value != nullptr) return asked.filter = value, true;
  if (word == "--row" && value != nullptr) return asked.row = value, true;
  if (word == "--json" && value != nullptr) return asked.json_path = value, true;
  if (word == "--choices" && value != nullptr) return asked.choices_path = value, true;
  if (word == "--seconds" && value != nullptr) return (asked.seconds = std::atof(value)) > 0;
  takes_value = false;
  if (word == "--list") return asked.list = true;
  return word == "--avx2" && use_avx2();
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    bool takes_value = false;
    if (!bench::take_word(argv[i], i + 1 < argc ? argv[i + 1] : nullptr, takes_value)) {
      std::fprintf(stderr,
                   "usage: tessera_bench [--filter NAME | --row NAME] [--json FILE] [--list] [--seconds S] "
                   "[--choices FILE] [--avx2 (where the CPU has it)]\n");
      return 2;
    }
    i += takes_value ? 1 : 0;
  }
  return tessera::run(argc, argv, [] {
    for (const auto group : bench::options().groups) group();
  });
}
