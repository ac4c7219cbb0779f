#include "comm/mpi/environment.hpp"

#include <tessera/error.hpp>

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include "base/child_process.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/host/host_page.hpp"
#include "comm/host/host_sharing.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/group_cache.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/transport.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/failure.hpp"
#include "comm/watch/flight_record.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {
namespace {

struct Environment {
  bool started = false;
  bool finalizes = false;  // start() began MPI, so finish() ends it
  HostPage page;           // shows what each rank of this host waits for
  JobPosition job;
};
Environment& environment() { return state<Environment>(); }

// The last runtime started MPI and ended without finalizing it: the next runtime finalizes it.
bool next_one_finalizes = false;

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : 0;
}

// Cores that the host lets this job use: the cgroup's quota counts, the binding of this rank does not.
int usable_cores() {
  auto cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  double quota = 0, period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && period > 0)
    cores = std::min(cores, quota / period);
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
      v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0)
    cores = std::min(cores, quota / period);
  return std::max(1, static_cast<int>(cores));
}

// Ranks that share a core must yield it while they wait: otherwise an 8-byte all-reduce costs milliseconds.
// Open MPI detects this only when mpirun is given --oversubscribe.
void yield_when_cores_are_short() {
  int host_ranks = number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (host_ranks == 0) host_ranks = number_in_environment("SLURM_STEP_TASKS_PER_NODE");
  if (host_ranks <= usable_cores()) return;
  if (setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0) == 0 &&
      number_in_environment("OMPI_COMM_WORLD_RANK") == 0)
    log_once(LogLevel::info, std::to_string(host_ranks) + " ranks share " +
                                 format_count(usable_cores(), "core") + ": they yield while they wait");
}

void require_whole_job(int world_size) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const int promised = number_in_environment(name);
    if (promised > world_size)
      throw ArgumentError(
          "the launcher started " + std::to_string(promised) + " processes (" + name + ") but MPI knows " +
          std::to_string(world_size) +
          ": launcher and MPI library do not match. Use the mpirun of the MPI that tessera is "
          "linked with, or srun --mpi=pmix");
  }
}

std::string host_name() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  mpi::Get_processor_name(name, &length);
  return name;
}

void require_same_build(const std::string& build) {
  const auto builds = gather_texts(world(), build);
  for (const auto& other : builds)
    if (other != builds[0])
      throw ArgumentError("the ranks run different builds of tessera:\n" +
                          list_by_text(builds, world().device_ids()) +
                          "\nStart one program, built once, on all hosts");
}

// Data that rank 0 sends to all ranks at the start.
struct Shared {
  double timeout_s;
  std::uint64_t job;  // the job's number, unique on these hosts
};

std::uint64_t number_of_this_job() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return mix(mix(static_cast<std::uint64_t>(now.tv_sec), static_cast<std::uint64_t>(now.tv_nsec)),
             static_cast<std::uint64_t>(getpid()));
}

// All ranks use rank 0's settings; ranks with other settings are reported once.
Shared share_settings(double timeout_s) {
  const std::string mine = settings_text();
  const auto texts = gather_texts(world(), mine);  // texts of a few hundred bytes, once per job
  const auto replaced = adopt_settings(texts[0]);
  const auto lists = gather_texts(world(), join(replaced, " "));
  std::vector<std::string> differ(lists);
  if (std::any_of(lists.begin(), lists.end(), [](const auto& list) { return !list.empty(); })) {
    for (auto& list : differ)
      if (list.empty()) list = "as rank 0";
    log_once(LogLevel::warn,
             "settings that must be equal differ between the ranks: rank 0's hold for all.\n" +
                 list_by_text(differ, world().device_ids()));
  }
  Shared shared{timeout_s, number_of_this_job()};
  check(mpi::Bcast(&shared, sizeof shared, MPI_BYTE, 0, world().impl().handle), "MPI_Bcast", world());
  return shared;
}

// Numbers the hosts 0, 1, ... in the order of their first ranks; `first_rank` is given by rank.
void number_hosts(std::vector<int> first_rank) {
  std::vector<int> firsts(first_rank);
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  for (int& host : first_rank)
    host = static_cast<int>(std::lower_bound(firsts.begin(), firsts.end(), host) - firsts.begin());
  set_hosts(std::move(first_rank));
}

// Starts the watchdog on a page that all ranks of the host map, and finds out whether the ranks can map and
// read each other's memory.
void synchronize_host(double timeout_s) {
  auto& job = environment().job;
  if (job.size == 1) return;
  MPI_Comm host;
  check(mpi::Comm_split_type(world().impl().handle, 0, &host), "MPI_Comm_split_type", world());
  mpi::Comm_rank(host, &job.host_rank);
  mpi::Comm_size(host, &job.host_size);
  std::string name = HostPage::new_name();
  const char* const neighbours = "the ranks of this host";
  check(mpi::Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, host), "MPI_Bcast", neighbours);
  const std::size_t bytes = place_bytes() * static_cast<std::size_t>(job.host_size);
  const bool has_neighbours = tape_use() != TapeUse::replays;
  if (job.host_rank == 0 && has_neighbours) environment().page.create(name, bytes);
  check(mpi::Barrier(host), "MPI_Barrier", neighbours);
  if (job.host_rank != 0 && has_neighbours) environment().page.open(name, bytes);
  claim_place(environment().page.data(), job.host_rank, job.rank);
  check(mpi::Barrier(host), "MPI_Barrier", neighbours);
  set_shared_cores(job.host_size > job.cores);
  if (job.host_rank == 0 && has_neighbours) HostPage::unlink(name);
  number_hosts(first_ranks_of_hosts(true, host, world().impl().handle));
  if (host_count() > 1) {
    std::int64_t longest = has_neighbours ? longest_without_handshake() : 0;
    check(mpi::Allreduce(MPI_IN_PLACE, &longest, 1, MPI_INT64_T, MPI_MIN, world().impl().handle),
          "MPI_Allreduce", world());
    set_message_limit_between_hosts(longest);
  }
  find_sharing_ranks(host, world().impl().handle);
  find_readable_ranks(host, world().impl().handle);
  mpi::Comm_free(&host);
  if (has_neighbours)
    start_watchdog(job.rank, environment().page.data(), job.host_size, job.host_rank, timeout_s);
}

void start_on(MPI_Comm application, const StartOptions& options) {
  MPI_Comm handle;
  check(mpi::Comm_dup(application, &handle), "MPI_Comm_dup", "the application's communicator");
  mpi::Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  MPI_Comm control_handle;
  check(mpi::Comm_dup(handle, &control_handle), "MPI_Comm_dup", "the application's communicator");
  set_world(handle, control_handle);

  auto& job = environment().job;
  job = {};
  job.rank = world().rank();
  job.size = world().size();
  job.cores = usable_cores();
  job.hosts = gather_texts(world(), host_name());
  set_log_rank(job.rank, job.size);
  environment().started = true;
  require_same_build(options.build);
  const Shared shared = share_settings(options.timeout_s);
  synchronize_host(shared.timeout_s);
  keep_flight_record({job.rank, job.size, job.hosts[static_cast<std::size_t>(job.rank)], shared.job},
                     settings().flight_record);
}

void refuse_second_start() {
  if (environment().started)
    throw ArgumentError("the runtime is running already: one tessera::run or tessera::Runtime at a time");
}

}  // namespace

void start(int* argc, char*** argv, const StartOptions& options) {
  refuse_second_start();
  begin_session();
  choose_tape();
  if (tape_use() != TapeUse::replays) choose_mpi();
  int initialized = 0, finalized = 0;
  mpi::Initialized(&initialized);
  mpi::Finalized(&finalized);
  if (finalized)
    throw ArgumentError(
        "MPI has been finalized in this process and cannot start again: keep one tessera::Runtime for the "
        "whole program");
  if (!initialized) {
    yield_when_cores_are_short();
    int provided = 0;
    check(mpi::Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", "this process");
  }
  environment().finalizes = !initialized;
  start_recording(options.build);
  int size = 1;
  mpi::Comm_size(MPI_COMM_WORLD, &size);
  require_whole_job(size);
  start_on(MPI_COMM_WORLD, options);
}

void attach(const void* mpi_comm, const StartOptions& options) {
  refuse_second_start();
  if (tape_use() != TapeUse::none)
    throw ArgumentError(
        "Runtime::attach: an application that starts MPI by itself is not recorded (TESSERA_RECORD) or "
        "replayed: what its own calls receive is not kept");
  begin_session();
  choose_mpi();
  int initialized = 0, finalized = 0;
  mpi::Initialized(&initialized);
  mpi::Finalized(&finalized);
  if (!initialized || finalized)
    throw ArgumentError(
        "Runtime::attach: MPI is not running; call MPI_Init first, or construct tessera::Runtime(argc, "
        "argv)");
  const MPI_Comm comm = comm_at(mpi_comm);
  if (comm == MPI_COMM_NULL)
    throw ArgumentError(
        "Runtime::attach: the communicator is MPI_COMM_NULL on this rank; only its members attach");
  int is_inter = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter)
    throw ArgumentError(
        "Runtime::attach: an inter-communicator has two groups; merge them with MPI_Intercomm_merge first");
  environment().finalizes = std::exchange(next_one_finalizes, false);
  start_on(comm, options);
}

void broadcast_at_start(void* data, int bytes) {
  if (world().size() == 1) return;
  check(mpi::Bcast(data, bytes, MPI_BYTE, 0, world().impl().handle), "MPI_Bcast", world());
}

std::vector<std::string> gather_at_start(const std::string& mine) {
  using Line = std::array<char, 160>;
  Line line{};
  std::copy_n(mine.begin(), std::min(mine.size(), line.size() - 1), line.begin());
  std::vector<Line> lines(static_cast<std::size_t>(world().size()), line);
  if (world().size() > 1)
    check(mpi::Allgather(line.data(), line.size(), MPI_CHAR, lines.data(), line.size(), MPI_CHAR,
                         world().impl().handle),
          "MPI_Allgather", world());
  std::vector<std::string> texts;
  for (const auto& one : lines) texts.emplace_back(one.data());
  return texts;
}

bool is_started() { return environment().started && !is_child_process(); }
const JobPosition& place_in_job() { return environment().job; }

void finish_but_keep_mpi() {
  next_one_finalizes = std::exchange(environment().finalizes, false);
  finish();
}

void finish() {
  if (!is_started()) return;
  stop_watchdog();
  environment().page.close();
  const bool finalizes = environment().finalizes;
  int finalized = 0;
  mpi::Finalized(&finalized);
  if (finalized)
    log(LogLevel::warn, "MPI was finalized while tessera's runtime was still alive; end the runtime first");
  end_session();
  set_log_rank(0, 1);
  if (finalizes && !finalized) mpi::Finalize();
}

void abort_job(int status) {
  std::fflush(nullptr);
  int initialized = 0, finalized = 0;
  mpi::Initialized(&initialized);
  mpi::Finalized(&finalized);
  if (initialized && !finalized)
    mpi::Abort(environment().started ? control().impl().handle : MPI_COMM_WORLD, status);
  _exit(status);
}

namespace {

struct Farewell {
  std::uint64_t status = 0, words_hash = 0;
};

// Prints the ranks' last words, once per distinct text, by the lowest rank that has it. If a rank failed by
// itself, the others' errors about its absence are not printed, except in a replay.
void print_words(const std::vector<Farewell>& all, const std::string& words) {
  const auto me = static_cast<std::size_t>(environment().job.rank);
  std::vector<int> same;
  bool somebody_failed = false;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].status == all[me].status && all[r].words_hash == all[me].words_hash)
      same.push_back(static_cast<int>(r));
    somebody_failed =
        somebody_failed || (all[r].status != status_done && all[r].status != status_disagreement);
  }
  if (all[me].status == status_done) return;
  if (tape_use() == TapeUse::replays) return log(LogLevel::error, words);  // nobody else reports
  if (same.front() != environment().job.rank) return;
  if (all[me].status == status_disagreement && somebody_failed) return;
  if (same.size() == all.size())
    log_once(LogLevel::error, words);
  else
    log(LogLevel::error, (same.size() == 1 ? "" : "(ranks " + format_ids(same) + ") ") + words);
}

// A rank whose program has ended joins the agreement with which the others would start their next evaluation,
// so that all of them learn of it at once.
void synchronize_others(int& status, std::string& words) {
  try {
    const std::string ending = status == 0 ? "the program has ended" : "the program has failed: " + words;
    agree(world(), hash_bytes(ending.data(), ending.size()), [&] { return ending; });
  } catch (const CommError& error) {
    if (status != 0) return;
    status = error.exit_status();
    words = std::string(error.kind()) + ": " + error.what();
  }
}

// Ends the job after two seconds: this rank failed, and ranks that are busy elsewhere would wait for it.
std::unique_ptr<Deadline> end_job_soon(int status, const std::string& words) {
  const auto end = [status, words] {
    log(LogLevel::error, words + "\n         (on this rank while others go on: the job ends)");
    std::fflush(nullptr);
    _exit(status);
  };
  at_end_of_tape(end);
  return std::make_unique<Deadline>(2.0, end);
}

}  // namespace

int leave(int status, const std::string& what_happened) {
  std::string words = what_happened;
  end_what_goes_on();
  if (const auto& unreported = unreported_failure(); unreported.happened && status == 0)
    status = unreported.status, words = unreported.words;
  speak_in_spite_of_failure();
  if (const auto& mine = failure(); mine.happened && environment().job.size > 1) {
    status = mine.status;
    if (!mine.words.empty()) words = mine.words;
    if (words.empty()) words = "this rank failed in the middle of a call, and its program went on";
  }
  int finalized = 0;
  mpi::Finalized(&finalized);
  if (environment().job.size == 1 || finalized) {
    if (status != 0 && !words.empty()) log(LogLevel::error, words);
    return status;
  }
  status == 0 ? wait_patiently() : stay_out_of_circles();
  auto deadline = status == 0 ? nullptr : end_job_soon(status, words);
  if (settings().check > 0 && status != status_disagreement)
    synchronize_others(status, words);  // after a disagreement the ranks are synchronized already
  if (deadline == nullptr && status != 0)
    deadline = end_job_soon(status, words);  // other ranks may continue after the rendezvous

  const Waiting waiting("the end of the program", control(), 0);
  if (status != 0) stay_out_of_circles();
  const std::function<std::string()> ending = [] { return std::string("the program has ended"); };
  const Rendezvous rendezvous(control().impl().set->rendezvous_count, control().device_ids(),
                              RendezvousKind::agreement, ending);
  const Farewell mine{static_cast<std::uint64_t>(status), hash_bytes(words.data(), words.size())};
  std::vector<Farewell> all(environment().job.size);
  try {
    check(mpi::Allgather(&mine, 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, control().impl().handle),
          "MPI_Allgather", control());
  } catch (const CommError& error) {  // other ranks wait for this one, which can no longer send
    log(LogLevel::error, status == 0 ? std::string(error.kind()) + ": " + error.what() : words);
    abort_job(status == 0 ? error.exit_status() : status);
  }
  print_words(all, words);
  int common = 0;  // the status of the first rank that failed by itself, if there is one
  for (const Farewell& one : all)
    if (one.status != 0 && (common == 0 || common == status_disagreement))
      common = static_cast<int>(one.status);
  return common;
}

std::string mpi_library() {
  if (tape_use() == TapeUse::replays) return "none (a replay)";
  choose_mpi();
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line(text);
  return line.substr(0, line.find_first_of("\n,"));
}

}  // namespace tessera::comm
