#include "api/job_profile.hpp"

#include <tessera/error.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/log.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/agreement.hpp"
#include "run/profile/recording.hpp"

namespace tessera {
namespace {

struct JobProfile {
  std::unique_ptr<ProfileRecording> recording;
};

std::string write_report(const std::filesystem::path& folder, const std::string& report) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  std::ofstream file(folder / "report.txt");
  file << report;
  if (file.flush()) return "";
  return "TESSERA_PROFILE: " + in_quotes((folder / "report.txt").string()) +
         " cannot be written: " + (failed ? failed.message() : std::strerror(errno)) +
         "; check the path and its permissions";
}

}  // namespace

void start_job_profile() {
  if (!settings().profile.empty()) state<JobProfile>().recording = std::make_unique<ProfileRecording>();
}
void drop_job_profile() { state<JobProfile>().recording.reset(); }

void finish_job_profile() {
  const auto recording = std::move(state<JobProfile>().recording);
  if (recording == nullptr) return;
  comm::agree_on_call(comm::world(), "the profile of the program");
  const std::filesystem::path folder = settings().profile;
  const auto report = report_of_all(*recording);
  const bool writes = comm::place_in_job().rank == 0;
  const auto error = comm::common_error(comm::world(), writes ? write_report(folder, report) : "");
  if (!error.empty()) throw IoError(error);
  write_trace_of_all(*recording, (folder / "trace.json").string());
  log_once(LogLevel::info, "profile: " + (folder / "report.txt").string() + ", and trace.json for Perfetto");
}

}  // namespace tessera
