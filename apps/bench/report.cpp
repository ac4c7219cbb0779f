#include "report.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "options.hpp"

namespace bench {

namespace {

void add_line(const nlohmann::json& row) {
  std::fflush(stdout);
  if (!options().json_path.empty()) std::ofstream(options().json_path, std::ios::app) << row.dump() << "\n";
}

}  // namespace

void report_times(const std::string& name, const Side& ours, const Peer& peer, const Side& theirs,
                  const Limit& limit) {
  const std::string row = name + options().suffix;
  const double ratio = theirs.seconds / ours.seconds;
  const char* verdict = peer.goal == 0 ? "" : ratio >= peer.goal ? "reached" : "MISSED";
  std::printf("%-28s %2d ranks %12.1f us   %-28s %12.1f us   ratio %6.2f   goal %5.2f %s\n", row.c_str(),
              ranks(), ours.seconds * 1e6, peer.name.c_str(), theirs.seconds * 1e6, ratio, peer.goal,
              verdict);
  nlohmann::json line{{"name", row},
                      {"ranks", ranks()},
                      {"ours_s", ours.seconds},
                      {"ours", ours.samples},
                      {"peer", peer.name},
                      {"peer_s", theirs.seconds},
                      {"ratio", ratio},
                      {"peer_samples", theirs.samples},
                      {"goal", peer.goal}};
  if (limit.seconds > 0) line["limit"] = limit.name, line["limit_s"] = limit.seconds;
  add_line(line);
}

void report_bytes(const std::string& name, double ours, const std::string& what, double asked, double ratio) {
  std::printf("%-28s %2d ranks %12.1f MiB  %-28s %12.1f MiB  ratio %6.2f   %s\n", name.c_str(), ranks(),
              ours / (1 << 20), what.c_str(), asked / (1 << 20), ratio, ratio >= 1 ? "reached" : "MISSED");
  add_line({{"name", name + options().suffix},
            {"ranks", ranks()},
            {"ours_bytes", ours},
            {"peer", what},
            {"peer_bytes", asked},
            {"ratio", ratio},
            {"goal", 1}});
}

}  // namespace bench
