// faulty SCENARIO: a small program that fails in one way. expected.py starts it under mpirun and has the
// expected outcome.
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>
#include <tessera/error.hpp>
#include <tessera/mpi.hpp>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "comm/collectives/collectives.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/waiting.hpp"

using namespace tessera;

namespace {

int me() { return process_index(); }
void meet() { comm::barrier(comm::world()); }
void evaluate(const std::string& what) {
  comm::agree(comm::world(), std::hash<std::string>()(what), [&] { return what; });
  meet();
}
void require(bool fact, const char* what) {
  if (fact) return;
  std::fprintf(stderr, "[rank %d] not so: %s\n", me(), what);
  comm::abort_job(99);
}
template <class E> bool throws(const std::function<void()>& call) {
  try {
    call();
  } catch (const E&) {
    return true;
  }
  return false;
}

// The first two ranks factor a matrix that is not positive definite.
void fail_on_a_part() {
  const Mesh two(NdDevices{0, 1}, {"x"});
  if (me() < 2) eval(linalg::cholesky(device_put(eye(4) * -1, two, P("x"))));
}

// Two ranks of the job compute x + 1 five times; rank 1 does so once more.
Array count_on_a_part() {
  const Mesh two(NdDevices{0, 1}, {"x"});
  Array x = device_put(zeros({4}), two, P("x"));
  eval(x);
  for (int i = 0; i < (me() == 1 ? 6 : 5); ++i) {
    x = x + 1;
    eval(x);
  }
  return x;
}

void leave_address_space(long bytes) {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    require(std::fscanf(file, "%ld", &pages) == 1, "statm can be read");
    std::fclose(file);
  }
  const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
  const rlimit limit{most, most};
  require(setrlimit(RLIMIT_AS, &limit) == 0, "ulimit -v can be set");
}

void spin(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  volatile double sum = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds)) sum = sum + 1;
}
void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

using Body = std::function<void()>;
const std::map<std::string, Body> inside_run = {
    {"nothing", [] { evaluate("x + y"); }},
    {"throw_on_one",
     [] {
       evaluate("x + y");
       if (me() == 2) throw std::runtime_error("broken sensor");
       meet();
     }},
    {"throw_an_int",
     [] {
       if (me() == 0) throw 42;
       meet();
     }},
    {"throw_on_all", [] { throw ShardingError("spec P('q') uses the unknown axis 'q'"); }},
    {"throw_own_words", [] { throw IoError("cannot open part " + std::to_string(me())); }},
    {"throw_on_some",
     [] {
       if (me() < 2) throw ShapeError("(3, 4) and (5,)");
     }},
    {"memory", [] { throw MemoryError("needs 37 GiB"); }},
    {"return_early",
     [] {
       evaluate("x + y");
       if (me() == 1) return;
       evaluate("x * y");
     }},
    {"return_early_into_a_collective",
     [] {
       if (me() != 1) meet();
     }},
    {"different_records", [] { evaluate(me() == 3 ? "sum(x, axis=1)" : "sum(x, axis=0)"); }},
    {"sleeper",
     [] {
       evaluate("x + y");
       if (me() == 1) sleep(60);
       const comm::Purpose purpose("matmul at model.cpp:12");
       meet();
     }},
    {"settings_of_each",
     [] {
       const Mesh mesh = make_mesh({device_count()}, {"x"});
       const Array x = device_put(arange(50000 * device_count()), mesh, P("x"));
       const int n = 50000 * device_count();
       require(
           item<std::int64_t>(sum(astype(device_put(x, mesh, P()), int64))) == std::int64_t{n} * (n - 1) / 2,
           "a gathered value");
       require(item<std::int64_t>(sum(astype(x, int64))) == std::int64_t{n} * (n - 1) / 2, "a sum");
     }},
    {"moves_and_computes",  // reads, maps and generates code, with known sums
     [] {
       const Mesh mesh = make_mesh({device_count()}, {"x"});
       const int n = 300 * device_count();
       const Array x = device_put(reshape(astype(arange(n * n) % 7, float32), {n, n}), mesh, P("x", None));
       const Array y = device_put(x, mesh, P(None, "x"));
       require(item<float>(sum(abs(device_put(y, mesh, P("x", None)) - x))) == 0, "there and back");
       const Array chained = jit([](const Array& a) { return maximum(a * 2 + 1, 4) * 0.5f - a; })(x);
       const auto host = to_vector<float>(x);
       double expected = 0;
       for (const float v : host) expected += std::max(v * 2 + 1, 4.f) * 0.5f - v;
       require(item<float>(sum(chained)) == static_cast<float>(expected), "a chain");
       const Array product = matmul(x, y) * 0.5f + 1;
       std::vector<double> rows(n), columns(n);
       for (int i = 0; i < n; ++i)
         for (int j = 0; j < n; ++j) rows[i] += host[i * n + j], columns[j] += host[i * n + j];
       double total = 0;  // sum of all entries of x y: column sums of x times row sums of y
       for (int k = 0; k < n; ++k) total += columns[k] * rows[k];
       const double found = item<double>(sum(astype(product, float64)));
       require(std::abs(found - (total * 0.5 + double(n) * n)) < 1e-6 * found,
               "a product with a chain behind");
       const Array back = real(fft::ifft2(fft::fft2(astype(x, complex64))));
       require(item<float>(max(abs(back - x))) < 1e-3f, "a transform and its inverse");
     }},
    {"computes_alike",  // every rank computes on its own values that other kernels would round differently
     [] {
       const Mesh own(NdDevices{me()}, {"own"});
       const auto values = [&](std::int64_t n, Dtype dtype) {
         return device_put(astype(sin(astype(arange(n * n), float64) * 0.37), dtype).reshape(n, n), own, P());
       };
       std::string bits;
       for (const Dtype dtype : {float32, float64})
         for (const std::int64_t n : {65, 700}) {
           const Array x = values(n, dtype), y = matmul(x, x);
           for (const Array& result :
                {y, sum(x, 1), exp(x) * log(abs(x) + 1) + tanh(x), linalg::inv(x + 3 * eye(n, n, 0, dtype)),
                 einsum("ij,kj->ik", x, x), cumsum(x, 1)}) {
             const auto bytes = dtype == float32 ? std::as_bytes(local<float>(result))
                                                 : std::as_bytes(local<double>(result));
             bits += std::to_string(std::hash<std::string_view>()(
                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) +
                     " ";
           }
         }
       const auto all = comm::gather_texts(comm::world(), bits);
       require(std::all_of(all.begin(), all.end(), [&](const auto& one) { return one == all[0]; }),
               "the same bits");
     }},
    {"callback_calls_tessera",
     [] { debug::callback([](const HostArray&) { item<float>(sum(ones({4}) * 2)); }, ones({3})); }},
    {"callback_calls_tessera_in_jit",
     [] {
       const Array x = device_put(ones({12}), make_mesh({device_count()}, {"x"}), P("x"));
       eval(jit([](const Array& a) {
         debug::callback(
             [](const HostArray& values) { (void)to_host(Array(values.as<float>()[0]) + ones({4})); },
             sum(a));
         return a * 2;
       })(x));
     }},
    {"replicas_differ",
     [] {
       const Mesh mesh = make_mesh({device_count()}, {"x"});
       const Array x = make_array_from_callback({2}, NamedSharding(mesh, P()), [](const Index&) -> HostArray {
         return HostArray(std::vector<float>{1, me() == 2 ? 3.5f : 2.5f}, {2});
       });
       const Array y = device_put(ones({4}), mesh, P("x"));
       eval(y);
       eval(sum(y) + sum(x));
     }},
    {"different_collectives",
     [] {
       float in = 1, out = 0;
       if (me() == 1)
         comm::all_reduce(comm::world(), ReduceKind::max, float32, &in, &out, 1);
       else
         comm::all_reduce(comm::world(), ReduceKind::sum, float32, &in, &out, 1);
     }},
    {"different_jitted_functions",
     [] {
       const Mesh mesh = make_mesh({2, 2}, {"x", "y"});
       const Array x = device_put(ones({8, 8}), mesh, P("x", "y"));
       eval(x);
       const auto along = [](int dim) { return jit([dim](Array v) { return sum(v, dim); }); };
       eval(along(me() == 3 ? 1 : 0)(x));
     }},
    {"too_much_for_one",
     [] {
       const Mesh mesh = make_mesh({device_count()}, {"x"});
       const Array x = device_put(ones({1 << 20}), mesh, P("x"));
       eval(x);
       require(throws<MemoryError>([&] { eval(device_put(x, mesh, P()) + 1); }), "all ranks refuse");
       require(item<float>(sum(x)) == 1 << 20, "arrays survive");
       const auto twice = jit([&](Array v) { return device_put(v, mesh, P()) * 2; });
       require(throws<MemoryError>([&] { eval(twice(x)); }), "all ranks refuse a compiled function");
       require(item<float>(sum(x)) == 1 << 20, "arrays survive that too");
     }},
    {"address_space_of_one",
     [] {
       const Mesh mesh = make_mesh({device_count()}, {"x"});
       const Array x = device_put(ones({1 << 20}), mesh, P("x"));
       eval(x);
       if (me() == 1) leave_address_space(64 << 20);
       require(throws<MemoryError>([&] {
                 eval(broadcast_to(device_put(x, mesh, P()), {64, 1 << 20}) + 1);
               }),
               "all ranks refuse what one rank's ulimit -v does not leave");
       require(item<float>(sum(x)) == 1 << 20, "arrays survive");
     }},
    {"group_of_little_memory",
     [] {
       const Array x = device_put(ones({1 << 20}), make_mesh({device_count()}, {"x"}), P("x"));
       eval(x);
       require(throws<MemoryError>([&] {
                 eval(broadcast_to(device_put(x, x.sharding().mesh(), P()), {64, 1 << 20}) + 1);
               }),
               "all ranks refuse what their cgroup does not hold");
       require(item<float>(sum(x)) == 1 << 20, "arrays survive");
     }},
    {"circle_of_parts",
     [] {
       const int a = me(), b = (a + 1) % device_count();
       const Mesh two(NdDevices{std::min(a, b), std::max(a, b)}, {"x"});
       eval(sum(device_put(ones({12}), two, P("x"))));
     }},
    {"part_against_all",
     [] {
       const Mesh two(NdDevices{0, 1}, {"x"}), all = make_mesh({device_count()}, {"x"});
       const Array x = device_put(ones({12}), all, P("x"));
       eval(x);
       if (me() < 2) eval(device_put(ones({12}), two, P("x")) * 2);  // makes the communicator
       if (me() == 0)
         eval(sum(device_put(ones({12}), two, P("x"))));
       else
         eval(sum(x));
     }},
    {"ended_beside_a_part",
     [] {
       const Mesh two(NdDevices{0, 1}, {"x"});
       if (me() == 1) eval(sum(device_put(ones({12}), two, P("x"))));
     }},
    {"error_on_a_part",
     [] {
       fail_on_a_part();
       eval(sum(device_put(ones({12}), make_mesh({device_count()}, {"x"}), P("x"))));
     }},
    {"error_on_a_part_before_a_save",
     [] {
       const Array x = device_put(ones({12}), make_mesh({device_count()}, {"x"}), P("x"));
       eval(x);
       fail_on_a_part();
       io::save_npy("x.npy", x);
     }},
    {"error_on_a_part_at_the_end", [] { fail_on_a_part(); }},
    {"error_caught_on_a_part",
     [] {
       const bool caught = throws<LinAlgError>(fail_on_a_part);
       require(caught == (me() < 2), "the ranks of the mesh see the error, the others pass by");
       const Array x = device_put(ones({12}), make_mesh({device_count()}, {"x"}), P("x"));
       require(item<float>(sum(x)) == 12, "all ranks go on together");
     }},
    {"part_that_differs",
     [] { print(device_put(count_on_a_part(), make_mesh({device_count()}, {"w"}), P())); }},
    {"part_that_differs_at_the_end", [] { count_on_a_part(); }},
    {"verdicts_differ",
     [] {
       const Mesh mesh = make_mesh({device_count()}, {"x"});
       const auto own = [&](float mine) {  // declared replicated
         return make_array_from_callback({1}, NamedSharding(mesh, P()), [&](const Index&) -> HostArray {
           return HostArray(std::vector<float>{mine}, {1});
         });
       };
       const Array limit = reshape(own(me() == 2 ? 7 : 3), {});
       const Array x = device_put(ones({12}), mesh, P("x"));
       const auto steps = jit([](Array until, Array block) {
         return while_loop([&](Array i) { return i < until; },
                           [&](Array i) { return i + sum(minimum(block, i + 1)) / 12; }, zeros({}, float32));
       });
       require(item<float>(steps(limit, x)) == 3, "all ranks stop when the first one does");
       const auto chosen = jit([](Array until, Array block) {
         return cond(
             until < 5.0f, [&](Array b) { return sum(b); }, [&](Array b) { return sum(b * b) * 2; }, block);
       });
       require(item<float>(chosen(limit, x)) == 12, "all ranks take the first one's branch");
     }},
    {"segmentation_fault",
     [] {
       if (me() == 1) std::raise(SIGSEGV);
       meet();
     }},
    {"abort",
     [] {
       if (me() == 1) std::abort();
       meet();
     }},
    {"works_alone",
     [] {
       evaluate("x + y");
       if (me() == 0) spin(6);
       meet();
     }},
    {"own_barrier",
     [] {
       evaluate("x + y");
       if (me() == 0) MPI_Barrier(MPI_COMM_WORLD);
       meet();
     }},
    {"own_receive_beside_a_thread",
     [] {
       evaluate("x + y");
       int word = 0;
       if (me() == 1) std::thread([] { spin(60); }).detach();
       if (me() == 1) MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       meet();
     }},
    {"pause_beside_a_thread",
     [] {
       evaluate("x + y");
       if (me() == 1) std::thread([] { spin(60); }).detach();
       if (me() == 1) pause();
       meet();
     }},
    {"own_messages",  // between two ranks, while the third waits: longer than TESSERA_TIMEOUT in all
     [] {
       evaluate("x + y");
       int word = 0;
       for (int i = 0; i < 10 && me() == 0; ++i) {
         sleep_ms(400);
         MPI_Send(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
       }
       for (int i = 0; i < 10 && me() == 1; ++i)
         MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       meet();
     }},
    {"works_too_long",
     [] {
       evaluate("x + y");
       if (me() == 0) spin(60);
       meet();
     }},
    {"long_kernel",
     [] {
       evaluate("x + y");
       const Array x = device_put(ones({200, 200}) / 200, SingleDeviceSharding(devices()[0]));
       const auto many = jit([](const Array& a) {
         return fori_loop(
             0, 30000, [&](const Array&, const Array& b) { return matmul(b, a); }, a);
       });
       if (me() == 0) eval(many(x));
       meet();
     }},
    {"sleeps_12_s",
     [] {
       evaluate("x + y");
       if (me() == 1) sleep(12);
       meet();
     }},
    {"many_short_waits",  // longer in total than the first warning takes, but each one is short
     [] {
       const auto start = std::chrono::steady_clock::now();
       while (comm::all_ok(comm::world(), std::chrono::steady_clock::now() - start < std::chrono::seconds(5)))
         sleep_ms(me() == 0 ? 20 : 0);
     }},
    {"long_epilogue",
     [] {
       evaluate("x + y");
       if (me() == 0) sleep(5);
     }},
    {"stopped",
     [] {
       evaluate("x + y");
       if (me() == 1) std::raise(SIGSTOP);
       meet();
     }},
    {"exit_zero",
     [] {
       evaluate("w");
       if (me() == 1) std::exit(0);
       evaluate("x");
     }},
    {"exit_three",
     [] {
       if (me() == 1) std::exit(3);
       meet();
     }},
    {"exit_on_all",
     [] {
       evaluate("x");
       std::exit(5);
     }},
    {"exit_zero_on_all",
     [] {
       evaluate("x");
       std::exit(0);
     }},
    {"save_on_one",
     [] {
       const Array x = device_put(ones({12}), make_mesh({device_count()}, {"x"}), P("x"));
       eval(x);
       if (me() == 0) io::save_npy("x.npy", x);
       evaluate("x");
     }},
    {"callback_on_one",
     [] {
       (void)make_array_from_callback({device_count()},
                                      NamedSharding(make_mesh({device_count()}, {"x"}), P("x")),
                                      [](const Index&) -> HostArray {
                                        if (me() == 1) throw std::runtime_error("no such part");
                                        return HostArray(std::vector<float>{1}, {1});
                                      });
     }},
    {"different_constants", [] { eval(sum(array(std::vector<double>{me() == 1 ? 3.5 : 2.5}, {1}) * 2)); }},
    {"killed",
     [] {
       if (me() == 1) std::raise(SIGKILL);
       meet();
     }},
    {"slow_but_right",
     [] {
       if (me() == 1) sleep(2);
       meet();
     }},
    {"second_runtime",
     [] {
       int argc = 0;
       char** argv = nullptr;
       require(throws<ArgumentError>([&] { Runtime again(argc, argv); }), "a second runtime is refused");
       meet();
     }},
};

void unwind(int argc, char** argv, bool everywhere) {
  try {
    Runtime runtime(argc, argv);
    if (everywhere || me() == 1) throw std::runtime_error("thrown through the scope");
    meet();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "caught: %s\n", e.what());
    std::exit(5);
  }
}

// Runs the same program in several runtimes: nothing bound in one may be used in the next.
void same_work_again(const std::function<Array(Array)>& doubled) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const auto n = 10 * device_count();
  const Array x = device_put(arange(n), mesh, P("x"));
  require(item<int>(sum(x)) == n * (n - 1) / 2, "the sum in this runtime");
  require(item<int>(sum(doubled(x))) == n * (n - 1), "a function that was compiled in another runtime");
}

// Everything an application expects of its own MPI before, while and after tessera runs in it.
void inside_application(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto compiled = jit([](Array x) { return x * 2 + sum(x) - sum(x); });
  const auto doubled = [&](Array x) { return compiled(x); };
  {
    Runtime adopted(argc, argv);
    require(device_count() == size && me() == rank, "the runtime adopts MPI_COMM_WORLD");
    evaluate("x");
    same_work_again(doubled);
  }
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // reversed order
  int half_rank = 0, half_size = 1;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  {
    Runtime runtime = Runtime::attach(half);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(half, &handler);
    require(handler == MPI_ERRORS_ARE_FATAL, "the application's error handler stays");
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&half);
    require(device_count() == half_size && me() == half_rank,
            "the ranks of the communicator are the devices");
    int one = 1, sum = 0;
    comm::all_reduce(comm::world(), ReduceKind::sum, int32, &one, &sum, 1);
    require(sum == half_size, "the halves do not mix, also after the communicator is freed");
    evaluate(rank % 2 ? "odd" : "even");
    same_work_again(doubled);
  }
  for (int again = 0; again < 2; ++again) {
    MPI_Comm other_half;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &other_half);
    Runtime runtime = Runtime::attach(other_half);
    MPI_Comm_free(&other_half);
    same_work_again(doubled);
  }
  int total = 0;
  MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  require(total == size * (size - 1) / 2, "the application's MPI goes on");
  require(throws<ArgumentError>([] { Runtime::attach(MPI_Comm(MPI_COMM_NULL)); }),
          "MPI_COMM_NULL is refused");
  {
    MPI_Comm alone, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &alone);
    MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
    require(throws<ArgumentError>([&] { Runtime::attach(inter); }), "an inter-communicator is refused");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&alone);
    Runtime self = Runtime::attach(MPI_Comm(MPI_COMM_SELF));
    require(device_count() == 1, "MPI_COMM_SELF is one device");
  }
  MPI_Finalize();
}

void finalized_too_soon(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Runtime runtime(argc, argv);
  evaluate("x");
  MPI_Finalize();
}

void different_builds(int argc, char** argv) {
  const std::string rank = std::getenv("OMPI_COMM_WORLD_RANK");
  try {
    comm::start(&argc, &argv, {"build " + rank, 5});
  } catch (const ArgumentError& e) {
    if (rank == "0") std::fprintf(stderr, "%s\n", e.what());
    MPI_Finalize();
    std::exit(2);
  }
}

void before_start(int argc, char** argv) {
  require(throws<ArgumentError>([] { comm::world(); }), "a job of several ranks needs a runtime first");
  require(throws<ArgumentError>([] { Runtime::attach(MPI_Comm(MPI_COMM_WORLD)); }), "attach needs MPI");
  std::exit(run(argc, argv, [] { evaluate("x"); }));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  if (const auto found = inside_run.find(scenario); found != inside_run.end())
    return run(argc, argv, found->second);
  if (scenario == "unwind_on_one")
    unwind(argc, argv, false);
  else if (scenario == "unwind_on_all")
    unwind(argc, argv, true);
  else if (scenario == "inside_application")
    inside_application(argc, argv);
  else if (scenario == "finalized_too_soon")
    finalized_too_soon(argc, argv);
  else if (scenario == "different_builds")
    different_builds(argc, argv);
  else if (scenario == "before_start")
    before_start(argc, argv);
  else
    return std::fprintf(stderr, "unknown scenario %s\n", scenario.c_str()), 98;
  return 0;
}
