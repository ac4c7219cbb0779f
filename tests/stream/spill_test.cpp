// Programs in several stages, with temporary files between them, give what they give in memory.
#include <tessera/io/stream.hpp>
#include <tessera/linalg.hpp>

#include <sys/resource.h>

#include "io/folder.hpp"
#include "stream/spill/spill_file.hpp"
#include "support/compare.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Function = std::function<Array(const Array&)>;

class Spill : public InFolder {
 protected:
  // Values in no order, some of them equal.
  Array mixed(Shape shape) const {
    const Array n = reshape(arange(static_cast<int>(shape.elements())), shape);
    return astype(remainder(n * 7919, 1009), float64) / 100 + 1;
  }
  io::FileArray file_of(const Array& x, const std::string& name = "x.npy") const {
    io::save_npy(path(name), x);
    return io::open(path(name));
  }
  static void expect_near(const Array& found, const Array& expected, const std::string& what) {
    ASSERT_EQ(found.shape(), expected.shape()) << what;
    ASSERT_EQ(found.dtype(), expected.dtype()) << what;
    const auto a = to_vector<double>(found), b = to_vector<double>(expected);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-10 * (1 + ::std::abs(b[i]))) << what << " at " << i;
  }
  // Stores f of a file of x, whose peak must stay within the plan's and this within the limit, and compares
  // it with f(x), up to an error of `most` of the largest element.
  io::StreamPlan stored_within(std::int64_t limit, const Array& x, const Function& f, double most) const {
    const auto file = file_of(x);
    const auto plan = io::explain_store(path("y.npy"), f(file), {.memory_limit = limit});
    EXPECT_LE(plan.peak_bytes, limit) << to_string(plan);
    reset_peak_memory();
    const auto before = memory_use().live_bytes;
    io::store(path("y.npy"), f(file), {.memory_limit = limit});
    EXPECT_LE(memory_use().peak_bytes - before, plan.peak_bytes) << to_string(plan);
    const Array found = io::load_npy(path("y.npy")), expected = f(x);
    EXPECT_EQ(found.dtype(), expected.dtype());
    EXPECT_EQ(found.shape(), expected.shape());
    EXPECT_LT(item<double>(astype(max(abs(found - expected)) / max(abs(expected)), float64)), most);
    return plan;
  }
};

struct Case {
  const char* name;
  Function f;
  bool spills;
};
const std::vector<Case>& of_matrices() {
  static const std::vector<Case> list = {
      {"fft of both dims", [](const Array& x) { return abs(fft::fft2(x)); }, true},
      {"real fft of both dims", [](const Array& x) { return abs(fft::rfft2(x)); }, true},
      {"fft and back", [](const Array& x) { return fft::irfft2(fft::rfft2(x) * 2); }, true},
      {"sorted in both dims", [](const Array& x) { return sort(sort(x, 1), 0); }, true},
      {"plus its transpose", [](const Array& x) { return matmul(x.T(), x) + x(slice(0, 6)).T(); }, false},
      {"sums of columns sorted", [](const Array& x) { return sort(sort(x, 0), 1) - mean(x, 0); }, true},
      {"running sums from the end", [](const Array& x) { return cumsum(x * 2, 0, {.reverse = true}); },
       false},
      {"other dims",
       [](const Array& x) {
         return sum(reshape(x, {-1, 2, 3}), 1) + 1;
       },
       false},
      {"running sums of columns", [](const Array& x) { return cumsum(x * 2, 0) + 1; }, false},
      {"median of all", [](const Array& x) { return median(x); }, false},
      {"repeated rows", [](const Array& x) { return repeat(x, 2, 0) + 1; }, false},
      {"places in a table",
       [](const Array& x) {
         return searchsorted(array({2., 5., 9.}), x) * 2;
       },
       false},
      {"quantiles of all",
       [](const Array& x) {
         return quantile(x, array({0.1, 0.5, 0.95}));
       },
       true},
      {"differences of columns",
       [](const Array& x) {
         return x(slice(1, None)) - x(slice(None, -1)) + x(slice(1, None), slice(None, 1));
       },
       false},
      {"five points",
       [](const Array& x) {
         const auto in = slice(1, -1);
         return x(slice(2, None), in) + x(slice(None, -2), in) + x(in, slice(2, None)) +
                x(in, slice(None, -2)) - 4 * x(in, in);
       },
       false},
  };
  return list;
}
const std::vector<Case>& of_vectors() {
  static const std::vector<Case> list = {
      {"sort", [](const Array& v) { return sort(v); }, true},
      {"sort of a chain", [](const Array& v) { return sort(-sqrt(v)); }, true},
      {"chain of a sort", [](const Array& v) { return sort(v) * 2 - mean(v); }, true},
      {"argsort", [](const Array& v) { return astype(argsort(v), float64); }, true},
      {"argsort of a chain", [](const Array& v) { return argsort(-sqrt(v)) * 2.0; }, true},
      {"cumsum from the end", [](const Array& v) { return cumsum(v, 0, {.reverse = true}); }, true},
      {"cummax from the end", [](const Array& v) { return cummax(v, 0, true) - v; }, false},
      {"median", [](const Array& v) { return median(v); }, false},
      {"quantiles",
       [](const Array& v) {
         return quantile(v, array({0.0, 0.25, 1.0}));
       },
       true},
      {"cumsum", [](const Array& v) { return cumsum(v, 0); }, false},
      {"cumprod", [](const Array& v) { return cumprod(v / 5, 0); }, false},
      {"cumulative maximum", [](const Array& v) { return cummax(v, 0); }, false},
      {"difference", [](const Array& v) { return v(slice(1, None)) - v(slice(None, -1)); }, false},
      {"difference of a chain",
       [](const Array& v) {
         const Array y = sqrt(v);
         return y(slice(1, None)) - y(slice(None, -1));
       },
       true},
      {"roll", [](const Array& v) { return roll(v, 5) + v; }, false},
      {"flip", [](const Array& v) { return flip(v, 0) * v; }, false},
      {"pad",
       [](const Array& v) {
         return pad(v, {{3, 2}});
       },
       false},
      {"every third", [](const Array& v) { return v(slice(1, None, 3)) + 1; }, false},
      {"an element set", [](const Array& v) { return v.at(3).set(1.0) * 2; }, false},
      {"a part added to", [](const Array& v) { return v.at(slice(10, 900)).add(v(slice(0, 890))); }, false},
      {"a part of a chain turned",
       [](const Array& v) { return sqrt(v).at(slice(9, 4, -1)).set(arange(5.)) - mean(v); }, false},
      {"joined",
       [](const Array& v) {
         return concatenate({v, v(slice(None, 9))}, 0) * 2;
       },
       false},
      {"cumsum of a sort", [](const Array& v) { return cumsum(sort(v), 0); }, true},
  };
  return list;
}

TEST_F(Spill, functions_of_matrices_are_those_in_memory) {
  const Array x = mixed({23, 6});
  const auto file = file_of(x);
  for (const auto& [name, f, spills] : of_matrices())
    for (const std::int64_t slab : {3, 8}) {
      SCOPED_TRACE(name);
      EXPECT_EQ(io::explain_compute({f(file)}, {.slab = slab}).bytes_spilled > 0, spills);
      expect_near(io::compute(f(file), {.slab = slab}), f(x), name);
    }
}

TEST_F(Spill, functions_of_vectors_are_those_in_memory) {
  const Array v = mixed({1500});
  const auto file = file_of(v);
  for (const auto& [name, f, spills] : of_vectors())
    for (const std::int64_t slab : {64, 701}) {
      SCOPED_TRACE(name);
      EXPECT_EQ(io::explain_compute({f(file)}, {.slab = slab}).bytes_spilled > 0, spills);
      expect_near(io::compute(f(file), {.slab = slab}), f(v), name);
    }
}

// The rows beside the box are read, and the box is neither read nor held.
TEST_F(Spill, a_number_put_into_a_box_of_a_file_takes_no_memory) {
  const Array x = mixed({4001, 30});
  const auto f = [](const Array& v) { return v.at(slice(7, 3999)).set(2.5); };
  const auto plan = stored_within(300000, x, f, 1e-15);
  EXPECT_EQ(plan.stages, 1) << to_string(plan);
  EXPECT_LE(plan.bytes_read, x.nbytes() / 100);
  stored_within(
      300000, astype(x, int32), [](const Array& v) { return v.at(slice(7, 3999)).set(2) * 3; }, 1e-15);
}

// In memory a line of 5,000 elements is partitioned without a sort: only element 7 and the extremes of both
// sides are the same as those of the merged runs.
TEST_F(Spill, a_partition_is_a_merge_of_sorted_runs) {
  const Array v = mixed({5000});
  const auto divided = [](const Array& x) {
    const Array y = partition(x, 7);
    return stack({max(y(slice(None, 7))), y(7), min(y(slice(8, None)))});
  };
  const Array streamed = divided(file_of(v));
  EXPECT_GT(io::explain_compute({streamed}, {.slab = 701}).bytes_spilled, 0);
  expect_near(io::compute(streamed, {.slab = 701}), divided(v), "partition");
}

TEST_F(Spill, an_fft_of_three_dims_is_stored_within_the_limit) {
  const Array x = astype(mixed({48, 40, 36}), complex64);
  const auto file = file_of(x);
  const std::int64_t limit = x.nbytes() / 2;
  const Array y = fft::fftn(file);
  const auto plan = io::explain_store(path("y.npy"), y, {.memory_limit = limit});
  EXPECT_EQ(plan.stages, 2);
  EXPECT_EQ(plan.bytes_spilled, x.nbytes());
  EXPECT_EQ(plan.bytes_written, x.nbytes());
  EXPECT_GE(plan.bytes_read, 2 * x.nbytes());
  EXPECT_THAT(to_string(plan), HasSubstr("2 stages"));
  reset_peak_memory();
  const auto before = memory_use().live_bytes;
  io::store(path("y.npy"), y, {.memory_limit = limit});
  EXPECT_LE(memory_use().peak_bytes - before, plan.peak_bytes) << to_string(plan);
  EXPECT_LE(plan.peak_bytes, limit);
  EXPECT_THAT(entries(), ElementsAre("x.npy", "y.npy"));
  const auto difference = to_vector<float>(abs(io::load_npy(path("y.npy")) - fft::fftn(x)));
  EXPECT_LT(*std::max_element(difference.begin(), difference.end()),
            0.5);  // of sums of 69120 numbers up to 11
}

// As matrices; a chain before, and a part of the line behind, are spilled too.
TEST_F(Spill, an_fft_of_a_long_line_is_stored_within_the_limit) {
  const auto check = [&](const char* name, const Array& x, const Function& f, int spills, double most) {
    SCOPED_TRACE(name);
    const std::int64_t longer = std::max(x.shape()[0], f(x).shape()[0]),
                       limit = 6 * itemsize(complex_dtype(x.dtype())) * longer / 7 / device_count();
    const auto plan = stored_within(limit, x, f, most);
    EXPECT_LE(plan.bytes_spilled, spills * itemsize(complex_dtype(x.dtype())) * x.shape()[0]);
  };
  const std::int64_t n = 240000 * ((device_count() + 3) / 4);
  const Array x = mixed({n}), z = fft::fft(x);
  check(
      "fft", z, [](const Array& v) { return fft::fft(v); }, 2, 1e-14);
  check(
      "ifft of a chain", z, [](const Array& v) { return fft::ifft(v * 2 - 1) * 3; }, 3, 1e-14);
  check(
      "rfft", x, [](const Array& v) { return fft::rfft(v); }, 3, 1e-14);
  for (const std::int64_t odd : {0, 75}) {
    const Array half = fft::rfft(mixed({n + odd}));
    check(
        "irfft", half, [&](const Array& v) { return fft::irfft(v, n + odd); }, 6, 1e-14);
    check(
        "irfft of a chain", half, [&](const Array& v) { return fft::irfft(v * 2, n + odd); }, 8, 1e-14);
  }
  check(
      "fft of float32", astype(mixed({n + 75}), float32), [](const Array& v) { return fft::fft(v); }, 3,
      1e-6);
  check(
      "fft of n points, padded", x, [&](const Array& v) { return fft::fft(v, n + 75); }, 4, 1e-14);
  check(
      "irfft of n points, cut", fft::rfft(x), [&](const Array& v) { return fft::irfft(v, n - 5000); }, 6,
      1e-14);
}

// As convolutions of more than twice as many points, where the points have no factors near their root.
TEST_F(Spill, an_fft_of_a_line_of_prime_length_is_stored_within_the_limit) {
  const std::int64_t n = 240007;
  const auto check = [&](const Array& x, const Function& f, double most) {
    const std::int64_t limit = 6 * itemsize(complex_dtype(x.dtype())) * n / 7 / device_count();
    const auto plan = stored_within(limit, x, f, most);
    EXPECT_LE(plan.stages, 6) << to_string(plan);
  };
  const Array x = mixed({n}) - 6;
  check(
      fft::fft(x), [](const Array& v) { return fft::ifft(v); }, 1e-14);
  check(
      fft::rfft(x), [&](const Array& v) { return fft::irfft(v, n); }, 1e-14);
  if (device_count() > 3) return;
  check(
      x, [](const Array& v) { return fft::rfft(v); }, 1e-14);
  check(
      astype(x, float32), [](const Array& v) { return fft::fft(v); }, 3e-6);
}

TEST_F(Spill, a_long_vector_is_sorted_within_the_limit) {
  const Array v = mixed({200000});
  const auto file = file_of(v);
  const std::int64_t limit = v.nbytes() / 2;
  const auto plan = io::explain_store(path("y.npy"), sort(file), {.memory_limit = limit});
  reset_peak_memory();
  const auto before = memory_use().live_bytes;
  io::store(path("y.npy"), sort(file), {.memory_limit = limit});
  EXPECT_LE(memory_use().peak_bytes - before, plan.peak_bytes) << to_string(plan);
  EXPECT_EQ(to_vector<double>(io::load_npy(path("y.npy"))), to_vector<double>(sort(v)));
  EXPECT_EQ(item<double>(io::compute(median(file), {.memory_limit = limit})), item<double>(median(v)));
}

// 0.25 and 0.5 between elements, beside NaN, infinities and many equal elements; nothing is sorted or spilled.
TEST_F(Spill, quantiles_of_a_vector_count_its_digits) {
  for (const Dtype dtype : {float32, float64}) {
    const Array n = arange(20002);
    const Array v =
        astype(where(n % 3 == 0, 0.5, where(n < 9, -INFINITY, remainder(n * 7919, 10007) - 5e3)), dtype);
    const auto file = file_of(v, name(dtype) + ".npy");
    for (const auto* method : {"linear", "higher", "closest_observation"}) {
      const auto of = [&](const Array& x) { return quantile(x, array({0.0, 0.25, 0.5, 1.0}), {}, method); };
      const auto plan = io::explain_compute({of(file)}, {.slab = 5040});
      EXPECT_EQ(plan.bytes_spilled, 0);
      EXPECT_EQ(plan.bytes_read, v.nbytes() * (dtype == float32 ? 2 : 4)) << to_string(plan);
      EXPECT_EQ(to_vector<double>(astype(io::compute(of(file), {.slab = 5040}), float64)),
                to_vector<double>(astype(of(v), float64)))
          << method;
    }
    const Array holed = where(n == 20000, NAN, v);
    EXPECT_TRUE(
        std::isnan(item<double>(astype(io::compute(median(file_of(holed)), {.slab = 5040}), float64))));
  }
}

TEST_F(Spill, a_failure_leaves_no_temporary_file) {
  const Array x = mixed({40, 50});
  const auto file = file_of(x);
  const Array y = abs(fft::fft2(file));
  const auto last = std::to_string(device_count() - 1);
  for (const std::string& point : std::vector<std::string>{"spill@" + last, "slab@0", "written@" + last}) {
    setenv("TESSERA_TEST_FAULT", (point + ":throw").c_str(), 1);
    EXPECT_THAT(text_of_error<IoError>([&] { io::store(path("y.npy"), y, {.slab = 8}); }),
                HasSubstr("the fault at " + point));
    unsetenv("TESSERA_TEST_FAULT");
    EXPECT_THAT(entries(), ElementsAre("x.npy")) << point;
  }
}

TEST_F(Spill, a_full_disk_is_one_error) {
  const Array x = mixed({60, 50});
  const auto file = file_of(x);
  const rlimit none{9000, RLIM_INFINITY};  // simulates a full disk on this rank
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const Array y = sum(abs(fft::fft2(file)));
  if (process_index() == device_count() - 1) setrlimit(RLIMIT_FSIZE, &none);
  setenv("TMPDIR", folder_.c_str(), 1);
  const auto text = text_of_error<IoError>([&] { io::compute(y, {.slab = 2 * device_count()}); });
  setrlimit(RLIMIT_FSIZE, &before);
  unsetenv("TMPDIR");
  EXPECT_THAT(text, HasSubstr("File too large"));
  EXPECT_THAT(entries(), ElementsAre("x.npy"));
}

TEST_F(Spill, a_file_is_copied_to_tiles_where_slabs_would_read_it_many_times) {
  const Array x = mixed({1201, 700});
  const auto file = file_of(x);
  const io::ComputeOptions options{.memory_limit = 900000};
  const auto plan = io::explain_compute({median(file, 0)}, options);
  EXPECT_EQ(plan.stages, 2) << to_string(plan);
  EXPECT_EQ(plan.bytes_spilled, x.nbytes());
  EXPECT_LE(plan.bytes_read, 2 * x.nbytes() + x.nbytes() / 4);
  setenv("TMPDIR", folder_.c_str(), 1);
  expect_near(io::compute(median(file, 0), options), median(x, 0), "median of columns");
  unsetenv("TMPDIR");
  const io::StoreOptions columns{.memory_limit = 900000, .chunks = {1201, 7}};
  const auto stored = io::explain_store(path("y.zarr"), file * 2, columns);
  EXPECT_EQ(stored.stages, 2) << to_string(stored);
  EXPECT_EQ(stored.bytes_written, x.nbytes());
  io::store(path("y.zarr"), file * 2, columns);
  expect_near(io::load_zarr(path("y.zarr")), x * 2, "chunks of columns");
  EXPECT_THAT(entries(), ElementsAre("x.npy", "y.zarr"));
}

TEST_F(Spill, tall_matrices_are_factored_by_blocks_of_rows) {
  const Array x = mixed({523, 5}) + sin(astype(reshape(arange(523 * 5), {523, 5}), float64));
  const auto file = file_of(x);
  for (const std::int64_t slab : {2, 64}) {
    const auto [q, r] = linalg::qr(file);
    const auto found = io::compute({q, r}, {.slab = slab});
    const auto expected = linalg::qr(x);
    expect_near(found[0], expected.q, "q");
    expect_near(found[1], expected.r, "r");
    const auto [u, s, vh] = linalg::svd(file, {.full_matrices = false});
    const auto parts = io::compute({u, s, vh}, {.slab = slab});
    expect_near(parts[1], linalg::svdvals(x), "s");
    expect_near(matmul(parts[0] * parts[1], parts[2]), x, "u s vh");
    expect_near(io::compute(linalg::svdvals(file - mean(file, 0)), {.slab = slab}),
                linalg::svdvals(x - mean(x, 0)), "singular values of a centred matrix");
  }
}

TEST_F(Spill, what_no_stage_can_do_is_refused) {
  const auto file = file_of(mixed({50, 50}));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::compute(linalg::cholesky(file), {.slab = 10}); }),
              HasSubstr("needs all of the dim"));
}

// The first of equals, the first NaN; of a matrix the row-major position.
TEST_F(Spill, positions_of_extremes_take_two_passes) {
  const Array v = astype(arange(1000) * 7 % 100, float32);  // 99 stands at 57, 157, ...
  const Array odd = where(arange(1000) % 400 == 399, full_like(v, NAN), v);
  for (const Array& x : {v, odd, astype(v, int16), astype(v > 90.f, bool_)})
    for (const Shape& shape : {Shape{1000}, Shape{250, 4}, Shape{4, 250}, Shape{1, 1000}, Shape{10, 5, 20}}) {
      const auto file = file_of(reshape(x, shape));
      const io::ComputeOptions options{.slab = 96};
      for (const bool is_max : {true, false}) {
        const auto arg = [&](const Array& y) { return is_max ? argmax(y) : argmin(y); };
        const Array found = io::compute(arg(file), options), expected = arg(reshape(x, shape));
        EXPECT_EQ(item<std::int64_t>(astype(found, int64)), item<std::int64_t>(astype(expected, int64)))
            << to_string(shape) << name(x.dtype());
        EXPECT_EQ(found.dtype(), expected.dtype());
      }
      const Array along = io::compute(argmax(file, 0), options);
      expect_near(along, argmax(reshape(x, shape), 0), "along the streamed dim");
    }
}

// Along every dim, of every format: unsorted, repeated, negative, out of range; below a chain, a product, a mean
// of the other dim; by several indices, by a mask, by places that are computed.
TEST_F(Spill, rows_that_are_selected_are_those_in_memory) {
  const Array x = mixed({61, 23, 3});
  io::save_hdf5(path("x.h5"), "x", x);
  io::save_zarr(path("x.zarr"), x, {.chunks = std::vector<std::int64_t>{7, 5, 2}});
  const Array list = array({17, -1, 3, 3, 0, 4}), far = array({99, -99, 5}), pairs = array({{1, 2}, {-3, 1}});
  const Array mask = remainder(arange(61), 9) == 4, weights = mixed({3, 4});
  const std::vector<std::pair<const char*, Function>> cases = {
      {"list", [&](const Array& y) { return take(y, list, 0); }},
      {"columns", [&](const Array& y) { return take(y, list, 1); }},
      {"last dim",
       [&](const Array& y) {
         return take(y, array({2, 0}), 2);
       }},
      {"clamped", [&](const Array& y) { return take(y, far, 0, "clip"); }},
      {"fill", [&](const Array& y) { return nan_to_num(take(y, far, 0, "fill")); }},
      {"two dims of indices", [&](const Array& y) { return take(y, pairs, 1); }},
      {"one index", [&](const Array& y) { return y(array(-2)) + y(5); }},
      {"pairs of indices",
       [&](const Array& y) {
         return y(list, array({1, 2, -1, 4, 5, 22}));
       }},
      {"slices and indices", [&](const Array& y) { return y(slice(2, 40, 19), list, slice(1, None)); }},
      {"mask", [&](const Array& y) { return y(mask); }},
      {"computed mask", [&](const Array& y) { return y(sin(astype(arange(61), float64)) > 0.9); }},
      {"mask of two dims",
       [&](const Array& y) {
         return y(remainder(reshape(arange(61 * 23), {61, 23}), 50) == 4);
       }},
      {"computed places", [&](const Array& y) { return take(y, list * 2 - list, 0); }},
      {"places in a file", [&](const Array& y) { return take(y, argmax(y(slice(), 4), 0), 0); }},
      {"chain", [&](const Array& y) { return sqrt(y * 2)(slice(3, 6)) - sqrt(y)(slice(50, 53)); }},
      {"centred", [&](const Array& y) { return take((y - mean(y, 0)) / tessera::std(y, 0), list, 0); }},
      {"product", [&](const Array& y) { return take(matmul(y, weights), list, 0); }},
      {"means of rows",
       [&](const Array& y) {
         return take(mean(y, {1, 2}), list, 0);
       }},
      {"running sums",
       [&](const Array& y) {
         return take(cumsum(y, 1), array({4, 2}), 1) + y(slice(), slice(1, 3));
       }},
      {"every 29th", [&](const Array& y) { return y(slice(1, None, 29)) * 2; }},
      {"no rows", [&](const Array& y) { return take(y, zeros({0}, int32), 0); }},
  };
  for (const auto& file : {file_of(x), io::open(path("x.h5"), {.name = "x"}), io::open(path("x.zarr"))})
    for (const auto& [name, f] : cases) {
      SCOPED_TRACE(name);
      expect_near(io::compute(f(file), {.slab = 3}), f(x), name + file.detail());
      io::store(path("y.npy"), f(file));
      expect_near(io::load_npy(path("y.npy")), f(x), name + file.detail());
    }
}

TEST_F(Spill, the_bytes_of_selected_rows_are_told) {
  const Array x = mixed({4000, 700});
  const auto file = file_of(x);
  const std::int64_t row = 700 * 8, limit = 4 << 20;
  const auto read = [&](const Array& y) {
    return io::explain_compute({y}, {.memory_limit = limit}).bytes_read;
  };
  EXPECT_EQ(read(file(slice(3, 5))), 2 * row);
  EXPECT_EQ(read(file(7)), row);
  EXPECT_EQ(read(take(file, array({3, 1700, 99}), 0)), 3 * row);
  EXPECT_EQ(read(sqrt(file * 2)(slice(3, 5))), 2 * row);
  EXPECT_EQ(read(take(file, array({3, 5, 3, -1}), 0)), 4 * row);  // with row 4 between them
  EXPECT_EQ(read(file(remainder(arange(4000), 1000) == 4)), 4 * row);
  EXPECT_EQ(read(take(file, array({3, 9}) * 2, 0)), 2 * (row + 4096));
  EXPECT_EQ(read(take(file, array({3, 9}), 0) - mean(file, 0)), x.nbytes() + 7 * row);
  EXPECT_EQ(read(file(slice(None, None, 1000))), 4 * row);
  EXPECT_EQ(io::explain_store(path("y.npy"), take(file, arange(4000), 0), {.memory_limit = limit}).bytes_read,
            4000 * (row + 4096));
  EXPECT_EQ(read(take(file, array({3, 400}), 1)), x.nbytes());  // gaps of a row are read with it
}

// Equal elements, NaN and the least number; slabs shorter than k, and a last one that has fewer than k elements.
TEST_F(Spill, the_largest_of_slabs_are_merged) {
  const Array v = astype(arange(1003) * 7 % 100, float32);
  const Array odd =
      where(arange(1003) % 400 == 399, full_like(v, NAN), where(v < 95, full_like(v, -INFINITY), v));
  for (const Array& x : {v, odd, astype(v, int16), astype(v > 90.f, bool_)})
    for (const Shape& shape : {Shape{1003}, Shape{17, 59}})
      for (const auto& [k, slab] : {std::pair{7, 20}, std::pair{59, 3}}) {
        const auto file = file_of(reshape(x, shape));
        const auto [values, places] = top_k(file + file, k);
        const auto found = io::compute({values, places, sum(file)}, {.slab = slab});
        const auto [a, b] = top_k(reshape(x + x, shape), k);
        EXPECT_EQ(found[1].dtype(), b.dtype());
        EXPECT_EQ(to_vector<std::int64_t>(astype(found[1], int64)),
                  to_vector<std::int64_t>(astype(b, int64)));
        EXPECT_EQ(to_vector<double>(nan_to_num(astype(found[0], float64))),
                  to_vector<double>(nan_to_num(astype(a, float64))));
      }
  io::save_npy(path("y.npy"), mixed({2, 400000}));
  const auto wide = io::open(path("y.npy"));
  const auto plan = io::explain_compute({top_k(wide, 5).second}, {.memory_limit = 400000});
  EXPECT_EQ(plan.bytes_read, wide.nbytes());
  EXPECT_EQ(plan.bytes_spilled, 0);
}

TEST_F(Spill, blocks_of_tall_matrices_follow_the_memory_limit) {
  const Array x = mixed({40000, 8}) + sin(astype(reshape(arange(40000 * 8), {40000, 8}), float64));
  const auto file = file_of(x);
  const std::int64_t limit = 1 << 20;  // the file has 2.4 MiB, and a block of 4 MiB would hold all of it
  const auto [q, r] = linalg::qr(file);
  const auto plan = io::explain_compute({r}, {.memory_limit = limit});
  EXPECT_LE(plan.peak_bytes, limit);
  const auto expected = linalg::qr(x);
  expect_near(io::compute(r, {.memory_limit = limit}), expected.r, "r");
  io::store(path("q.npy"), q, {.memory_limit = 4 * limit});
  expect_near(io::load_npy(path("q.npy")), expected.q, "q");
}

TEST_F(Spill, a_refused_factorization_tells_the_memory_that_it_needs) {
  const auto x = file_of(mixed({90, 90}));
  const std::int64_t ranks = device_count(), needed = 2 * x.nbytes(), limit = needed / ranks / 2,
                     room = limit - limit / 10;
  const auto text =
      text_of_error<ArgumentError>([&] { io::compute(linalg::cholesky(x), {.memory_limit = limit}); });
  EXPECT_THAT(text, testing::AllOf(
                        HasSubstr("cholesky"), HasSubstr("In memory its operands and results take "),
                        HasSubstr(" on each of " + std::to_string(ranks) + " rank"),
                        HasSubstr("on at least " + std::to_string((needed + room - 1) / room) + " ranks")));
  EXPECT_THAT(
      text_of_error<ArgumentError>([&] { io::compute(linalg::cholesky(x), {.memory_limit = 1 << 20}); }),
      HasSubstr("It fits in memory: load the file with FileArray::load(sharding)"));
}

TEST_F(Spill, tiles_follow_the_slabs_of_both_sides) {
  EXPECT_TRUE(stream::tile_for({100}, 0, 10, 8).empty());
  EXPECT_EQ(stream::tile_for({1000, 2000}, 0, 100, 8), (std::vector<std::int64_t>{100, 200}));
  // At most 1 MiB, its longest extents halved.
  const auto tile = stream::tile_for({10000, 10000}, 1, 5000, 8);
  EXPECT_LE(tile[0] * tile[1] * 8, 1 << 20);
  EXPECT_GE(tile[0] * tile[1] * 8, 1 << 18);
}

}  // namespace
}  // namespace tessera::test
