// Transforms of split arrays compared with FFTW: its MPI interface, planned with MEASURE, with the result in
// natural order and transposed; and its own 3-D plan on one rank. scripts/bench --peers adds heFFTe.
#include <fftw3-mpi.h>
#include <tessera/fft.hpp>

#include <algorithm>
#include <complex>

#include "bench.hpp"

namespace {

using namespace tessera;

// FFTW's two precisions under common names.
template <class R> struct Fftw;
// clang-format off
#define TESSERA_BENCH_FFTW(R, p)                                                                                   \
  template <> struct Fftw<R> {                                                                                     \
    using Plan = p##plan;                                                                                          \
    static R* allocate(std::size_t reals) { return p##alloc_real(reals); }                                         \
    static void free(R* memory) { p##free(memory); }                                                               \
    static void execute(Plan plan) { p##execute(plan); }                                                           \
    static void destroy(Plan plan) { p##destroy_plan(plan); }                                                      \
    static void forget() { p##forget_wisdom(); }                                                                   \
    static p##complex* as(R* reals) { return reinterpret_cast<p##complex*>(reals); }                               \
    static Plan serial(const std::ptrdiff_t* n, R* in, R* out) {                                                   \
      return p##plan_dft_3d(static_cast<int>(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]), as(in), as(out), FFTW_FORWARD, FFTW_MEASURE); \
    }                                                                                                              \
    static std::ptrdiff_t elements(int ndim, const std::ptrdiff_t* n) {                                            \
      std::ptrdiff_t a, b, c, d;                                                                                   \
      return p##mpi_local_size_transposed(ndim, n, MPI_COMM_WORLD, &a, &b, &c, &d);                                \
    }                                                                                                              \
    static std::ptrdiff_t elements_1d(std::ptrdiff_t n) {                                                          \
      std::ptrdiff_t a, b, c, d;                                                                                   \
      return p##mpi_local_size_1d(n, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE, &a, &b, &c, &d);                  \
    }                                                                                                              \
    static Plan c2c(int ndim, const std::ptrdiff_t* n, R* in, R* out, unsigned flags) {                            \
      return p##mpi_plan_dft(ndim, n, as(in), as(out), MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE | flags);        \
    }                                                                                                              \
    static Plan r2c(int ndim, const std::ptrdiff_t* n, R* in, R* out, unsigned flags) {                            \
      return p##mpi_plan_dft_r2c(ndim, n, in, as(out), MPI_COMM_WORLD, FFTW_MEASURE | flags);                      \
    }                                                                                                              \
  };
TESSERA_BENCH_FFTW(double, fftw_)
TESSERA_BENCH_FFTW(float, fftwf_)
#undef TESSERA_BENCH_FFTW
// clang-format on

// An FFTW plan between two blocks that it owns.
template <class R> class PeerTransform {
 public:
  template <class MakePlan> PeerTransform(std::ptrdiff_t complex_elements, MakePlan make_plan) {
    const auto reals = static_cast<std::size_t>(complex_elements) * 2 + 16;
    in_ = Fftw<R>::allocate(reals), out_ = Fftw<R>::allocate(reals);
    Fftw<R>::forget();  // its MPI planner needs equal wisdom on all ranks
    plan_ = make_plan(in_, out_);
    std::fill_n(in_, reals, R(0.5)), std::fill_n(out_, reals, R(0));
  }
  PeerTransform(const PeerTransform&) = delete;
  PeerTransform& operator=(const PeerTransform&) = delete;
  ~PeerTransform() { Fftw<R>::destroy(plan_), Fftw<R>::free(in_), Fftw<R>::free(out_); }
  void run() const { Fftw<R>::execute(plan_); }

 private:
  R *in_, *out_;
  typename Fftw<R>::Plan plan_;
};

Array filled(const Shape& shape, Dtype dtype, const Sharding& where) {
  Array x = device_put(full(shape, 0.5, dtype), where);
  eval(x);
  return x;
}

// 3-D, split along the first dim; with real input if `is_real`.
template <class R> void cube(std::int64_t n, bool is_real) {
  const Dtype dtype = is_real ? dtype_of<R>() : dtype_of<std::complex<R>>();
  const std::string what = "fft_" + std::to_string(n) + "^3_" + tessera::name(dtype);
  const auto transform = [is_real](const Array& x, fft::OutSharding place) {
    fft::FftOptions options;
    options.out_sharding = place;
    eval(is_real ? fft::rfftn(x, options) : fft::fftn(x, options));
  };
  const std::ptrdiff_t extents[] = {n, n, n}, halved[] = {n, n, n / 2 + 1};
  const double passed = 2.0 * static_cast<double>(itemsize(dtype) * n * n * n);  // read once, written once
  if (bench::ranks() == 1) {
    if (is_real || !bench::wanted(what)) return;
    const Array x = filled({n, n, n}, dtype, bench::on_one());
    const PeerTransform<R> peer(n * n * n, [&](R* in, R* out) { return Fftw<R>::serial(extents, in, out); });
    bench::compare(what, [&] { transform(x, fft::keep); }, {{"FFTW", [&] { peer.run(); }, 1 / 1.1}}, 7,
                   {0, 64, passed});
    return;
  }
  for (const auto place : {fft::keep, fft::transposed}) {
    const std::string row = what + (place == fft::keep ? "_natural" : "_transposed");
    if (!bench::wanted(row)) continue;
    const Array x = filled({n, n, n}, dtype, bench::split(P("x")));
    const PeerTransform<R> peer(Fftw<R>::elements(3, is_real ? halved : extents), [&](R* in, R* out) {
      const unsigned flags = place == fft::keep ? 0 : FFTW_MPI_TRANSPOSED_OUT;
      return is_real ? Fftw<R>::r2c(3, extents, in, out, flags) : Fftw<R>::c2c(3, extents, in, out, flags);
    });
    bench::compare(row, [&] { transform(x, place); },
                   {{place == fft::keep ? "FFTW-MPI" : "FFTW-MPI TRANSPOSED_OUT", [&] { peer.run(); }, 1.5}},
                   7, {0, 64, passed});
  }
}

void line(int log2_points) {
  const std::int64_t n = std::int64_t{1} << log2_points;
  const std::string row = "fft_1d_2^" + std::to_string(log2_points) + "_complex128";
  if (bench::ranks() == 1 || !bench::wanted(row)) return;
  const Array x = filled({n}, complex128, bench::split(P("x")));
  const PeerTransform<double> peer(Fftw<double>::elements_1d(n), [&](double* in, double* out) {
    const std::ptrdiff_t extents[] = {n};
    return Fftw<double>::c2c(1, extents, in, out, 0);
  });
  bench::compare(
      row, [&] { eval(fft::fft(x)); }, {{"FFTW-MPI", [&] { peer.run(); }, 1}}, 7);
}

// Transforms of unsplit axes with a split batch: nothing is sent.
void batch() {
  const std::string row = "fft_batch_256x256^2_complex128";
  if (bench::ranks() == 1 || !bench::wanted(row)) return;
  const Shape shape{256, 256, 256};
  const Array x = filled(shape, complex128, bench::split(P("x"))),
              alone = filled(shape, complex128, bench::on_one());
  bench::compare(
      row, [&] { eval(fft::fft2(x)); },
      {{"one rank", [&] { eval(fft::fft2(alone)); }, bench::ranks() == 2 ? 1.8 : 0}}, 7);
}

void rows() {
  static const bool once = (fftw_mpi_init(), fftwf_mpi_init(), true);
  (void)once;
  cube<double>(256, false);
  cube<float>(128, false);
  cube<float>(128, true);
  line(24);
  batch();
}

const bench::Group group(rows);

}  // namespace
