// Spellings in the nested namespaces.
#include "surface/gives.hpp"

namespace tessera::test {
namespace {

// The tables of tests/catalogue compile the functions of these libraries; here are the spellings that the
// tables lack.
extern const random::Key key;
GIVES(std::vector<random::Key>, random::split(key));
GIVES(random::Key, random::fold_in(key, x));
GIVES(Array, random::categorical(key, x, -1, Shape{2}));
GIVES(Array, fft::fft(x, {.axes = {0}, .norm = "ortho", .out_sharding = fft::transposed}));
GIVES(Array, fft::fftn(x, {.out_sharding = fft::keep}));
COMPILES(linalg::lu(x).p, linalg::svd(x).s, linalg::eigh(x).w, linalg::slogdet(x).sign);

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
