#include <tessera/error.hpp>
#include <tessera/runtime.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "api/evaluate.hpp"
#include "api/job_profile.hpp"
#include "api/measure_rates.hpp"
#include "base/child_process.hpp"
#include "base/log.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/in_use.hpp"
#include "comm/watch/agreement.hpp"
#include "kernels/dense/blas_target.hpp"
#include "kernels/threads.hpp"
#include "mesh/devices.hpp"

extern "C" {
void openblas_set_num_threads(int) __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));
}

namespace tessera {

extern const char* const build_id;

namespace {

void report_unknown_settings() {
  for (const auto& name : unknown_settings())
    log_once(LogLevel::warn, "there is no setting " + name + "; it is ignored");
}

// The number of threads of BLAS: OPENBLAS_NUM_THREADS, or the rank's.
int threads_of_blas(int threads, int of_kernels) {
  if (const char* own = std::getenv("OPENBLAS_NUM_THREADS")) return std::atoi(own);
  return of_kernels > 1 ? 1 : threads;
}

// Gives BLAS the rank's threads if kernels use one; if kernels use several (TESSERA_THREADS), each of them
// calls a BLAS of one thread.
void set_threads_of_blas(int threads, int of_kernels) {
  if (openblas_set_num_threads != nullptr && std::getenv("OPENBLAS_NUM_THREADS") == nullptr)
    openblas_set_num_threads(of_kernels > 1 ? 1 : threads);
  if (omp_set_num_threads != nullptr && (of_kernels > 0 || std::getenv("OMP_NUM_THREADS") == nullptr))
    omp_set_num_threads(threads);
  if (of_kernels > 1 && !kernels::blas_takes_callers())
    log_once(
        LogLevel::warn,
        "this OpenBLAS is built for one thread, without locks: its products and factorizations stay on one "
        "of TESSERA_THREADS=" +
            std::to_string(of_kernels) + "; libopenblas0-pthread shares them");
}

// Asked once, before the first kernel runs.
std::string setting_of_cpu() {
  for (const auto& row : settings_table())
    if (row.name == "TESSERA_CPU") return row.value;
  return "";
}

// Hosts of several CPU types: all ranks use the kernels of the weakest one.
void take_common_kernels() {
  if (comm::world().size() == 1) return;
  std::vector<kernels::OwnKernels> by_rank;
  for (const auto& text : comm::gather_at_start(kernels::own_kernels().text()))
    by_rank.push_back(kernels::OwnKernels::from(text));
  const auto common = kernels::common_kernels(by_rank);
  const bool are_alike =
      common.blas.empty() && std::all_of(by_rank.begin(), by_rank.end(),
                                         [&](const auto& one) { return one.vectors == common.vectors; });
  if (are_alike) return;
  kernels::use_kernels(common.vectors, common.blas);
  log_once(LogLevel::info,
           "the hosts have CPUs of several types; all ranks compute with " + kernels::cpu_text());
}

// Warns about hosts with different kernels or thread counts, which round sums of floats differently:
// replicated values may then differ in their last bits between hosts, and so may decisions based on them.
void warn_of_unlike_hosts(int threads) {
  if (comm::world().size() == 1) return;
  const std::string mine = kernels::cpu_text() + ", " + format_count(threads, "thread");
  const auto texts = comm::gather_at_start(mine);
  if (std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return text == texts[0]; })) return;
  log_once(LogLevel::warn,
           "the ranks compute with different kernels:\n" +
               comm::list_by_text(texts, comm::world().device_ids()) +
               "\nReplicated products, factorizations and reductions may differ in their last bits between "
               "these ranks. Set OPENBLAS_CORETYPE, and OPENBLAS_NUM_THREADS or TESSERA_THREADS, to the same "
               "everywhere, or shard what must be equal");
}

// Divides a host's cores among its ranks: otherwise each rank's BLAS would start as many threads as there are
// cores.
void share_cores(int wanted) {
  const auto& job = comm::place_in_job();
  if (wanted == 0) wanted = settings().threads;
  wanted = std::min(wanted, std::min(job.cores, kernels::cores_to_run_on()));
  const int threads = wanted > 0 ? wanted : std::max(1, job.cores / job.host_size);
  kernels::set_threads(wanted);  // kernels use one unless more are requested
  if (const auto target = kernels::retarget_blas(); !target.empty())
    log_once(LogLevel::info, "OpenBLAS does not know this CPU; it uses its kernels for " + target);
  kernels::limit_kernels(setting_of_cpu());
  take_common_kernels();
  set_threads_of_blas(threads, wanted);
  warn_of_unlike_hosts(threads_of_blas(threads, wanted));
  log_once(LogLevel::info, format_count(job.size, "rank") + ", " + format_count(threads, "thread") +
                               " each, build " + build_id);
}

// Handles std::exit while the runtime is up, on one rank or on all, as if run's body had ended with that
// status. Otherwise the other ranks would wait for ever, and this process would end in the destructor of its
// own threads.
void leave_at_exit(int status, void*) {
  if (!comm::is_started()) return;
  const std::string words =
      "std::exit(" + std::to_string(status) + ") was called while tessera's runtime was up";
  if (!is_session_thread()) {  // MPI may be busy on its own thread
    log(LogLevel::error, words + ", on another thread; the job ends");
    std::fflush(nullptr);
    _exit(status != 0 ? status : status_failed);
  }
  int common = status_failed;
  try {
    common = comm::leave(status, status != 0 ? words : "");
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
  }
  comm::finish();
  if (common == status) return;  // the remaining exit handlers run
  std::fflush(nullptr);
  _exit(common);
}

void set_up(const RuntimeOptions& options) {
  const auto& job = comm::place_in_job();
  std::vector<Device> all;
  for (int r = 0; r < job.size; ++r) all.push_back({r, r, job.hosts[r]});
  set_devices(std::move(all), job.rank);
  expect_children(job.size > 1);
  report_unknown_settings();
  share_cores(options.threads);
  share_rates();
  start_job_profile();
  // Registered last, so that it runs before the destruction of the objects that it uses.
  static const int registered = on_exit(leave_at_exit, nullptr);
  static_cast<void>(registered);
}

comm::StartOptions start_options(const RuntimeOptions& options) {
  return {build_id, options.timeout_s >= 0 ? options.timeout_s : settings().timeout_s};
}

struct Outcome {
  int status = status_done;
  std::string words;
};

// "ShardingError: ..." and the exit status for the current exception.
Outcome describe_exception() {
  try {
    throw;
  } catch (const Error& e) {
    return {e.exit_status(), std::string(e.kind()) + ": " + e.what()};
  } catch (const std::bad_alloc&) {
    return {status_memory, "out of memory (std::bad_alloc)"};
  } catch (const std::exception& e) {
    return {status_failed, std::string("uncaught exception: ") + e.what()};
  } catch (...) {
    return {status_failed, "uncaught exception that is not a std::exception"};
  }
}

// Flushes standard output, and reports a failure if it cannot be written (a full disk, a closed output).
void check_output(Outcome& outcome) {
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || std::cout.bad();
  if (!lost || outcome.status != status_done) return;
  outcome = {status_io, std::string("IoError: what was printed could not be written to the standard output") +
                            (errno != 0 ? std::string(": ") + std::strerror(errno) : std::string()) +
                            "; check where it goes"};
}

}  // namespace

int run(int argc, char** argv, std::function<void()> body) {
  try {
    comm::start(&argc, &argv, start_options({}));
    set_up({});
  } catch (const std::exception& e) {
    // Errors that every rank sees are printed by rank 0 alone; an MPI error may occur on one rank only.
    const int rank = comm::launched_rank();
    const bool everywhere = dynamic_cast<const CommError*>(&e) == nullptr;
    if (rank <= 0 || !everywhere)
      std::fprintf(stderr, "%stessera: cannot start: %s\n",
                   everywhere ? "" : ("[rank " + std::to_string(std::max(0, rank)) + "] ").c_str(), e.what());
    else  // waits for rank 0's report: a launcher ends the job at the first rank that fails
      sleep(1);
    return status_usage;
  }
  Outcome outcome;
  try {
    body();
    finish_job_profile();
  } catch (...) {
    outcome = describe_exception();
  }
  drop_job_profile();
  check_output(outcome);
  const int status = comm::leave(outcome.status, outcome.words);
  comm::finish();
  return status;
}

Runtime::Runtime(int& argc, char**& argv, RuntimeOptions options)
    : exceptions_before_(std::uncaught_exceptions()) {
  comm::start(&argc, &argv, start_options(options));
  set_up(options);
}

Runtime::Runtime(Attach, const void* mpi_comm, RuntimeOptions options)
    : exceptions_before_(std::uncaught_exceptions()) {
  comm::attach(mpi_comm, start_options(options));
  set_up(options);
}

Runtime::~Runtime() {
  if (!comm::is_started()) return;  // the runtime was not started in a forked child
  const bool unwinding = std::uncaught_exceptions() > exceptions_before_;
  int status = 0;
  try {
    if (!unwinding) finish_job_profile();
    drop_job_profile();
    status = comm::leave(unwinding ? status_failed : status_done,
                         unwinding ? "an exception left the scope of tessera::Runtime" : "");
  } catch (const std::exception& e) {
    log(LogLevel::error, e.what());
    comm::abort_job(status_failed);
  }
  // If every rank failed, each continues in its own catch block. If only some did, the others must not report
  // success.
  if (status != 0 && !unwinding) comm::abort_job(status);
  comm::finish();
}

int process_index() { return own_device_id(); }
int process_count() { return device_count(); }
bool is_main_process() { return own_device_id() == 0; }

}  // namespace tessera
