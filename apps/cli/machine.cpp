// tessera machine: the rates used for all planning, measured between the ranks of this job.
#include <cstdio>
#include <fstream>

#include "api/measure_rates.hpp"
#include "commands.hpp"

namespace cli {

using namespace tessera;

namespace {

std::string link_text(const char* where, const Link& link, bool is_measured) {
  char text[128];
  std::snprintf(text, sizeof text, "%-15s %8.2f us %8.2f GB/s%s\n", where, link.latency_s * 1e6,
                link.bytes_per_s / 1e9, is_measured ? "" : "   (not measured: the built-in value)");
  return text;
}

}  // namespace

int measure_machine(const Order& order) {
  const auto [r, is_disturbed] = measure_rates(rates(), order.thorough ? Effort::thorough : Effort::quick);
  set_rates(r);
  if (!is_main_process()) return 0;
  if (is_disturbed)
    std::fprintf(
        stderr,
        "tessera machine: other programs held the cores during the measurement, so that the machine is "
        "faster than these rates; %s\n",
        order.output.empty() ? "nothing is kept: measure again on an idle machine"
                             : "measure again on an idle machine");
  std::string path = order.output;
  if (path.empty())
    path = !is_disturbed && keep_rates(r) ? machine_path() : "";
  else if (std::ofstream file(path); !(file << rates_text(r)) || !file.flush())
    throw IoError("machine: " + path + " cannot be written; name a file in a folder of yours");
  if (order.json) {
    std::printf("%s", rates_text(r).c_str());
    return 0;
  }
  std::printf(
      "products        %8.1f Gflop/s a rank, float64\nmemory          %8.1f GB/s a rank, read and "
      "written\n%s%s",
      r.flops_per_s / 1e9, r.memory_bytes_per_s / 1e9,
      link_text("inside a host", r.inside, r.has_inside).c_str(),
      link_text("between hosts", r.between, r.has_between).c_str());
  if (path.empty() && is_disturbed)
    std::printf("not kept: the measurement was disturbed\n");
  else if (path.empty())
    std::printf(
        "not kept: TESSERA_MACHINE names other rates, or the user's cache cannot be written; -o FILE "
        "writes a file\n");
  else
    std::printf("kept in %s\n", path.c_str());
  return 0;
}

}  // namespace cli
