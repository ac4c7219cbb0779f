// The namespaces.
#include "surface/gives.hpp"

namespace tessera::test {
namespace {

#if __has_include(<tessera/random.hpp>)
extern const random::Key key;
GIVES(random::Key, random::key(0));
GIVES(std::vector<random::Key>, random::split(key));
GIVES(std::vector<random::Key>, random::split(key, 3));
GIVES(random::Key, random::fold_in(key, 1));
GIVES(random::Key, random::fold_in(key, x));
GIVES(Array, random::key_data(key));
GIVES(Array, random::bits(key, {2}, uint8));
GIVES(Array, random::uniform(key, {2}, float64, -1, 1));
GIVES(Array, random::normal(key, {2}));
GIVES(Array, random::randint(key, {2}, 0, 10, int64));
GIVES(Array, random::bernoulli(key, 0.25, {2}));
GIVES(Array, random::permutation(key, 5));
GIVES(Array, random::permutation(key, x));
GIVES(Array, random::choice(key, x, {3}, false, y));
GIVES(Array, random::categorical(key, x, -1, Shape{2}));
GIVES(Array, random::gumbel(key, {2}));
GIVES(Array, random::exponential(key, {2}));
GIVES(Array, random::truncated_normal(key, -1, 1, {2}));
GIVES(Array, random::laplace(key, {2}));
GIVES(Array, random::logistic(key, {2}));
GIVES(Array, random::rademacher(key, {2}));
#endif

#if __has_include(<tessera/fft.hpp>)
#define FFT_N(name)               \
  GIVES(Array, fft::name(x));     \
  GIVES(Array, fft::name(x, 16)); \
  GIVES(Array, fft::name(x, {.axes = {0}, .norm = "ortho", .out_sharding = fft::transposed}))
#define FFT(name) GIVES(Array, fft::name(x, {.out_sharding = fft::keep}))
FFT_N(fft);
FFT_N(ifft);
FFT_N(rfft);
FFT_N(irfft);
FFT_N(hfft);
FFT_N(ihfft);
FFT(fft2);
FFT(ifft2);
FFT(rfft2);
FFT(irfft2);
FFT(fftn);
FFT(ifftn);
FFT(rfftn);
FFT(irfftn);
GIVES(Array, fft::fftfreq(8, 0.5));
GIVES(Array, fft::rfftfreq(8));
GIVES(Array, fft::fftshift(x));
GIVES(Array, fft::ifftshift(x, 0));
#endif

#if __has_include(<tessera/linalg.hpp>)
GIVES(Array, linalg::solve(x, y));
COMPILES(linalg::lu(x).p, linalg::lu(x).l, linalg::lu(x).u);
COMPILES(linalg::lu_factor(x).lu, linalg::lu_factor(x).pivots);
GIVES(Array, linalg::lu_solve(linalg::lu_factor(x), y));
GIVES(Array, linalg::cholesky(x));
GIVES(Array, linalg::cholesky_solve(x, y));
GIVES(Array, linalg::triangular_solve(x, y, {.lower = true, .transpose = true, .unit_diagonal = true}));
COMPILES(linalg::qr(x).q, linalg::qr(x).r);
COMPILES(linalg::svd(x, {.full_matrices = false}).u, linalg::svd(x).s, linalg::svd(x).vh);
COMPILES(linalg::eigh(x).w, linalg::eigh(x).v);
GIVES(Array, linalg::eigvalsh(x));
GIVES(Array, linalg::inv(x));
GIVES(Array, linalg::det(x));
COMPILES(linalg::slogdet(x).sign, linalg::slogdet(x).logabsdet);
GIVES(Array, linalg::norm(x));
GIVES(Array, linalg::lstsq(x, y));
GIVES(Array, linalg::matrix_power(x, 3));
GIVES(Array, linalg::matrix_rank(x));
GIVES(Array, linalg::pinv(x));
GIVES(Array, linalg::expm(x));
#endif

#if __has_include(<tessera/multihost.hpp>)
GIVES(HostArray, multihost::process_allgather(host));
GIVES(HostArray, multihost::process_allgather(x, true));
GIVES(HostArray, multihost::broadcast_one_to_all(host));
COMPILES(multihost::sync_global_devices("name"), multihost::assert_equal(host), multihost::assert_equal(x));
#endif

COMPILES(io::save_npy("x.npy", x), io::save_hdf5("x.h5", "/x", x));
GIVES(Array, io::load_npy("x.npy", sharding));
GIVES(Array, io::load_hdf5("x.h5", "/x", sharding));
GIVES(Array, io::load_matrix_market("x.mtx", sharding));
using Weights = std::map<std::string, std::vector<Array>>;
COMPILES(io::checkpoint::save("dir", 3, Weights()));
GIVES(Weights, io::checkpoint::restore("dir", Weights()));
GIVES(std::optional<int>, io::checkpoint::latest_step("dir"));

GIVES(std::string,
      debug::visualize_sharding(shape, sharding,
                                {.use_color = false, .scale = 2.0, .min_width = 5, .max_width = 100}));
GIVES(std::string, debug::visualize_array_sharding(x));
GIVES(std::string, debug::sharding_html(shape, sharding));
GIVES(std::string, debug::sharding_svg(shape, sharding));
extern const debug::CommStats stats;
GIVES(std::int64_t, stats.calls() + stats.calls("all-gather") + stats.bytes() + stats.bytes("all-reduce"));
static_assert(std::is_default_constructible_v<debug::CommStats>);

}  // namespace
}  // namespace tessera::test
