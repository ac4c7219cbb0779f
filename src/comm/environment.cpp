#include "comm/environment.hpp"

#include <tessera/error.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/group_cache.hpp"
#include "comm/mpi_call.hpp"
#include "comm/waiting.hpp"

namespace tessera::comm {
namespace {

struct Environment {
  bool started = false;
  bool finalizes = false;             // start() began MPI, so finish() ends it
  MPI_Comm farewell = MPI_COMM_NULL;  // for leave() alone: what was left under way elsewhere cannot disturb it
  MPI_Win places = MPI_WIN_NULL;      // of this host's ranks, for the watchdog
  JobPlace job;
};
Environment environment;

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : 0;
}

// Cores that the host lets this job use: the cgroup's quota counts, the binding of this rank does not.
int usable_cores() {
  auto cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  double quota = 0, period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && period > 0) cores = std::min(cores, quota / period);
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0) cores = std::min(cores, quota / period);
  return std::max(1, static_cast<int>(cores));
}

// Ranks that share a core must give it up while they wait: without that an 8-byte all-reduce costs milliseconds. Open MPI finds this
// out by itself only when mpirun says --oversubscribe.
void yield_when_cores_are_short() {
  int host_ranks = number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (host_ranks == 0) host_ranks = number_in_environment("SLURM_STEP_TASKS_PER_NODE");
  if (host_ranks <= usable_cores()) return;
  if (setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0) == 0 && number_in_environment("OMPI_COMM_WORLD_RANK") == 0)
    log_once(LogLevel::info,
             std::to_string(host_ranks) + " ranks share " + format_count(usable_cores(), "core") + ": they yield while they wait");
}

void require_whole_job(int world_size) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const int promised = number_in_environment(name);
    if (promised > world_size)
      throw ArgumentError("the launcher started " + std::to_string(promised) + " processes (" + name + ") but MPI knows " +
                          std::to_string(world_size) +
                          ": launcher and MPI library do not match. Use the mpirun of the MPI that tessera is "
                          "linked with, or srun --mpi=pmix");
  }
}

std::string host_name() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  return name;
}

void require_same_build(const std::string& build) {
  const auto builds = gather_texts(world(), build);
  for (const auto& other : builds)
    if (other != builds[0])
      throw ArgumentError("the ranks run different builds of tessera:\n" + list_by_text(builds, world().device_ids()) +
                          "\nStart one program, built once, on all hosts");
}

// Maps one page that all ranks of the host see, and starts the watchdog on it.
void watch_this_host(double timeout_s) {
  if (environment.job.size == 1) return;
  MPI_Comm host;
  const std::string where = world().name();
  check(MPI_Comm_split_type(world().impl().handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type", where);
  MPI_Comm_rank(host, &environment.job.host_rank);
  MPI_Comm_size(host, &environment.job.host_size);

  const bool first = environment.job.host_rank == 0;
  const auto bytes = static_cast<MPI_Aint>(first ? place_bytes() * static_cast<std::size_t>(environment.job.host_size) : 0);
  void* mine = nullptr;
  void* places = nullptr;
  MPI_Aint size = 0;
  int unit = 0;
  check(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, host, &mine, &environment.places), "MPI_Win_allocate_shared", where);
  check(MPI_Win_shared_query(environment.places, 0, &size, &unit, &places), "MPI_Win_shared_query", where);
  if (first) std::memset(places, 0, static_cast<std::size_t>(bytes));
  check(MPI_Barrier(host), "MPI_Barrier", where);
  MPI_Comm_free(&host);
  start_watchdog(environment.job.rank, places, environment.job.host_size, environment.job.host_rank, timeout_s);
}

void start_on(MPI_Comm application, const StartOptions& options) {
  MPI_Comm handle;
  check(MPI_Comm_dup(application, &handle), "MPI_Comm_dup", "the application's communicator");
  MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  set_world(handle);
  check(MPI_Comm_dup(handle, &environment.farewell), "MPI_Comm_dup", world().name());

  auto& job = environment.job;
  job = {};
  job.rank = world().rank();
  job.size = world().size();
  job.cores = usable_cores();
  job.hosts = gather_texts(world(), host_name());
  set_log_rank(job.rank, job.size);
  environment.started = true;
  require_same_build(options.build);
  watch_this_host(options.timeout_s);
}

void refuse_second_start() {
  if (environment.started) throw ArgumentError("the runtime is running already: one tessera::run or tessera::Runtime at a time");
}

}  // namespace

void start(int* argc, char*** argv, const StartOptions& options) {
  refuse_second_start();
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized)
    throw ArgumentError("MPI has been finalized in this process and cannot start again: keep one tessera::Runtime for the whole program");
  if (!initialized) {
    yield_when_cores_are_short();
    int provided = 0;
    check(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", "this process");
  }
  environment.finalizes = !initialized;
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  require_whole_job(size);
  start_on(MPI_COMM_WORLD, options);
}

void attach(const void* mpi_comm, const StartOptions& options) {
  refuse_second_start();
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized)
    throw ArgumentError("Runtime::attach: MPI is not running; call MPI_Init first, or construct tessera::Runtime(argc, argv)");
  const MPI_Comm comm = *static_cast<const MPI_Comm*>(mpi_comm);
  if (comm == MPI_COMM_NULL)
    throw ArgumentError("Runtime::attach: the communicator is MPI_COMM_NULL on this rank; only its members attach");
  int is_inter = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter) throw ArgumentError("Runtime::attach: an inter-communicator has two groups; merge them with MPI_Intercomm_merge first");
  environment.finalizes = false;
  start_on(comm, options);
}

bool is_started() { return environment.started; }
const JobPlace& place_in_job() { return environment.job; }

void finish() {
  if (!environment.started) return;
  stop_watchdog();
  environment.started = false;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) {
    log(LogLevel::warn, "MPI was finalized while tessera's runtime was still alive; end the runtime first");
    forget_communicators();
    return;
  }
  if (environment.places != MPI_WIN_NULL) MPI_Win_free(&environment.places);
  free_communicators();
  MPI_Comm_free(&environment.farewell);
  if (environment.finalizes) MPI_Finalize();
}

void abort_job(int status) {
  std::fflush(nullptr);
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized) MPI_Abort(environment.farewell == MPI_COMM_NULL ? MPI_COMM_WORLD : environment.farewell, status);
  _exit(status);
}

namespace {

struct Farewell {
  std::uint64_t status = 0, words_hash = 0;
};

// Prints what the ranks end with, once per distinct text, by the lowest rank that has it.
void print_words(const std::vector<Farewell>& all, const std::string& words) {
  const auto me = static_cast<std::size_t>(environment.job.rank);
  std::vector<int> same;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].status == all[me].status && all[r].words_hash == all[me].words_hash) same.push_back(static_cast<int>(r));
  if (all[me].status == 0 || same.front() != environment.job.rank) return;
  if (same.size() == all.size())
    log_once(LogLevel::error, words);
  else
    log(LogLevel::error, (same.size() == 1 ? "" : "(ranks " + format_ids(same) + ") ") + words);
}

// A rank whose program is over meets the others in the agreement that they would start their next evaluation with.
void agree_on_the_end(int& status, std::string& words) {
  try {
    agree(world(), mix(0xe4d), [] { return std::string("the program has ended"); });
  } catch (const DisagreementError& error) {
    status = status_disagreement;
    words = error.what();
  } catch (const CommError& error) {
    status = status_failed;
    words = error.what();
  }
}

}  // namespace

int leave(int status, const std::string& what_happened) {
  std::string words = what_happened;
  if (environment.job.size == 1) {
    if (status != 0 && !words.empty()) log(LogLevel::error, words);
    return status;
  }
  if (status == 0 && settings().check > 0) agree_on_the_end(status, words);

  const Farewell mine{static_cast<std::uint64_t>(status), hash_bytes(words.data(), words.size())};
  std::vector<Farewell> all(static_cast<std::size_t>(environment.job.size));
  MPI_Request request;
  check(MPI_Iallgather(&mine, 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, environment.farewell, &request), "MPI_Iallgather", world());
  if (status == 0) {
    const Waiting waiting("the end of the program", world(), 0);
    check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait", world());
  } else {
    int arrived = 0;
    for (int ms = 0; ms < 2000 && !arrived; ++ms) {
      check(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test", world());
      if (!arrived) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!arrived) {
      log(LogLevel::error, words + "\n         (on this rank while others go on: the job ends)");
      abort_job(status);
    }
  }
  print_words(all, words);
  for (const Farewell& one : all)
    if (one.status != 0) return static_cast<int>(one.status);
  return 0;
}

}  // namespace tessera::comm
