// Transforms of split arrays beside FFTW's MPI transforms in the same run: fft_bench [rounds] [n of 3-D f64] [n of 3-D f32] [log2 of 1-D].
//
// One JSON line per case: seconds are the least of `rounds`, of the slowest rank. FFTW plans with MEASURE; tessera as it does by itself,
// after two runs. Natural order in and out, transposed output, and, on one rank, FFTW's own 3-D plan.
#include <fftw3-mpi.h>
#include <sched.h>
#include <tessera/fft.hpp>
#include <tessera/runtime.hpp>
#include <tessera/tree.hpp>

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

using namespace tessera;

namespace {

int rounds = 5;

// With FFT_BENCH_REALTIME=1 nothing else runs meanwhile: for machines that are shared (needs the right to ask for it).
void undisturbed(bool on) {
  static const bool wanted = std::getenv("FFT_BENCH_REALTIME") != nullptr;
  if (!wanted) return;
  sched_param parameter{};
  parameter.sched_priority = on ? 1 : 0;
  if (sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &parameter) != 0) std::fprintf(stderr, "fft_bench: no real-time scheduling\n");
}

// Runs the contestants in turn, so that noise hits them alike; the least time of each, of the slowest rank.
std::vector<double> race(const std::vector<std::function<void()>>& contestants) {
  std::vector<double> best(contestants.size(), 1e9);
  undisturbed(true);
  for (const auto& run : contestants) run(), run();
  for (int r = 0; r < rounds; ++r)
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      contestants[i]();
      double mine = MPI_Wtime() - start, slowest = 0;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      best[i] = std::min(best[i], slowest);
    }
  undisturbed(false);
  return best;
}

void report(const std::string& what, const std::vector<std::string>& names, const std::vector<double>& seconds) {
  if (!is_main_process()) return;
  std::printf("{\"case\": \"%s\", \"ranks\": %d", what.c_str(), process_count());
  for (std::size_t i = 0; i < names.size(); ++i) std::printf(", \"%s\": %.5f", names[i].c_str(), seconds[i]);
  std::printf("}\n");
  std::fflush(stdout);
}

// FFTW's MPI interface in both precisions.
template <class R> struct Mpi;
#define FFTW_MPI(R, p)                                                                                         \
  template <> struct Mpi<R> {                                                                                  \
    using Plan = p##plan;                                                                                      \
    static void* alloc(std::size_t bytes) { return p##malloc(bytes); }                                         \
    static void free(void* m) { p##free(m); }                                                                  \
    static std::ptrdiff_t size(int rank, const std::ptrdiff_t* n) {                                            \
      std::ptrdiff_t a, b, c, d;                                                                               \
      return p##mpi_local_size_transposed(rank, n, MPI_COMM_WORLD, &a, &b, &c, &d);                            \
    }                                                                                                          \
    static std::ptrdiff_t size_1d(std::ptrdiff_t n, unsigned flags) {                                          \
      std::ptrdiff_t a, b, c, d;                                                                               \
      return p##mpi_local_size_1d(n, MPI_COMM_WORLD, FFTW_FORWARD, flags, &a, &b, &c, &d);                     \
    }                                                                                                          \
    static Plan c2c(int rank, const std::ptrdiff_t* n, void* in, void* out, unsigned flags) {                  \
      return p##mpi_plan_dft(rank, n, (p##complex*)in, (p##complex*)out, MPI_COMM_WORLD, FFTW_FORWARD, flags); \
    }                                                                                                          \
    static Plan r2c(int rank, const std::ptrdiff_t* n, void* in, void* out, unsigned flags) {                  \
      return p##mpi_plan_dft_r2c(rank, n, (R*)in, (p##complex*)out, MPI_COMM_WORLD, flags);                    \
    }                                                                                                          \
    static Plan serial(int rank, const int* n, void* in, void* out, unsigned flags) {                          \
      return p##plan_dft(rank, n, (p##complex*)in, (p##complex*)out, FFTW_FORWARD, flags);                     \
    }                                                                                                          \
    static void run(Plan plan) { p##execute(plan); }                                                           \
  };
FFTW_MPI(double, fftw_)
FFTW_MPI(float, fftwf_)

template <class R> struct Blocks {
  explicit Blocks(std::ptrdiff_t complex_elements) {
    const auto bytes = static_cast<std::size_t>(complex_elements) * 2 * sizeof(R) + 64;
    in = Mpi<R>::alloc(bytes), out = Mpi<R>::alloc(bytes);
    std::fill_n(static_cast<R*>(in), bytes / sizeof(R), R(0.5)), std::fill_n(static_cast<R*>(out), bytes / sizeof(R), R(0));
  }
  ~Blocks() { Mpi<R>::free(in), Mpi<R>::free(out); }
  void *in, *out;
};

// FFTW's MPI planner needs the same wisdom on all ranks; what the ranks learnt about local transforms differs.
void forget() { fftw_forget_wisdom(), fftwf_forget_wisdom(); }

Array split_cube(std::int64_t n, Dtype dtype) {
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  Array x = device_put(full(Shape{n, n, n}, 0.5, dtype), mesh, P("x"));
  eval(x);
  return x;
}

template <class R> void cube(std::int64_t n, bool is_real) {
  forget();
  const Dtype dtype = is_real ? dtype_of<R>() : dtype_of<std::complex<R>>();
  const Array x = split_cube(n, dtype);
  const auto transform = [&](fft::OutSharding where) {
    fft::FftOptions options;
    options.out_sharding = where;
    eval(is_real ? fft::rfftn(x, options) : fft::fftn(x, options));
  };
  std::vector<std::ptrdiff_t> extents(3, n), padded = extents;
  if (is_real) padded[2] = n / 2 + 1;
  Blocks<R> blocks(Mpi<R>::size(3, padded.data()));
  const auto plan = [&](unsigned flags) {
    return is_real ? Mpi<R>::r2c(3, extents.data(), blocks.in, blocks.out, FFTW_MEASURE | flags)
                   : Mpi<R>::c2c(3, extents.data(), blocks.in, blocks.out, FFTW_MEASURE | flags);
  };
  const auto natural = plan(0), moved = plan(FFTW_MPI_TRANSPOSED_OUT);
  std::vector<std::function<void()>> contestants = {[&] { transform(fft::keep); }, [&] { Mpi<R>::run(natural); },
                                                    [&] { transform(fft::transposed); }, [&] { Mpi<R>::run(moved); }};
  std::vector<std::string> names = {"tessera_natural_s", "fftw_natural_s", "tessera_transposed_s", "fftw_transposed_s"};
  if (process_count() == 1 && !is_real) {
    const int sizes[] = {static_cast<int>(n), static_cast<int>(n), static_cast<int>(n)};
    const auto serial = Mpi<R>::serial(3, sizes, blocks.in, blocks.out, FFTW_MEASURE);
    contestants.push_back([serial] { Mpi<R>::run(serial); });
    names.push_back("fftw_serial_s");
  }
  report(std::to_string(n) + "^3 " + name(dtype), names, race(contestants));
}

void line(int log2_points) {
  forget();
  const std::int64_t n = std::int64_t{1} << log2_points;
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const Array x = device_put(full(Shape{n}, 0.5, complex128), mesh, P("x"));
  eval(x);
  Blocks<double> blocks(Mpi<double>::size_1d(n, FFTW_MEASURE));
  const auto plan =
      fftw_mpi_plan_dft_1d(n, (fftw_complex*)blocks.in, (fftw_complex*)blocks.out, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE);
  report("1-D 2^" + std::to_string(log2_points) + " complex128", {"tessera_natural_s", "fftw_natural_s"},
         race({[&] { eval(fft::fft(x)); }, [&] { fftw_execute(plan); }}));
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [&] {
    const auto argument = [&](int i, int fallback) { return argc > i ? std::atoi(argv[i]) : fallback; };
    fftw_mpi_init();
    fftwf_mpi_init();
    rounds = argument(1, 5);
    cube<double>(argument(2, 256), false);
    cube<float>(argument(3, 128), false);
    cube<float>(argument(3, 128), true);
    line(argument(4, 24));
  });
}
