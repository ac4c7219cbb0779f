// tessera doctor FOLDER: the diagnosis from the flight records of a job's ranks. tessera profile PROGRAM: the
// time spent per step.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "comm/watch/flight_record.hpp"
#include "commands.hpp"

namespace cli {

using namespace tessera;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int doctor(const Order& order) {
  const std::filesystem::path folder = order.operands.at(0);
  std::error_code failed;
  std::vector<comm::FlightRecord> records;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("rank-") || !name.ends_with(".txt")) continue;
    try {
      records.push_back(comm::parse_flight_record(text_of(entry.path())));
    } catch (const ArgumentError& error) {
      std::fprintf(stderr, "tessera: %s: %s\n", entry.path().c_str(), error.what());
    }
  }
  if (failed) throw IoError("doctor: the folder " + folder.string() + " cannot be read: " + failed.message());
  if (records.empty())
    throw IoError("doctor: in " + folder.string() +
                  " are no flight records (rank-000000.txt ...). Ranks write them to the folder "
                  "TESSERA_FLIGHT_RECORD when they wait too long or crash, and to tessera-flight when mpirun "
                  "gets SIGUSR2");
  std::fputs(comm::diagnose(std::move(records)).c_str(), stdout);
  return 0;
}

}  // namespace cli
