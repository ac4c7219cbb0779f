// Programs on files run slab by slab and give what they give in memory.
#include <tessera/debug.hpp>
#include <tessera/io/stream.hpp>
#include <tessera/linalg.hpp>

#include <sys/resource.h>

#include <cstring>
#include <set>
#include <tuple>

#include "base/thresholds.hpp"
#include "io/file.hpp"
#include "io/folder.hpp"
#include "stream/file_source.hpp"
#include "support/compare.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Stream : public InFolder {
 protected:
  // Values that differ everywhere, near 1.
  static Array numbers(Shape shape, Dtype dtype = float64) {
    const Array n = reshape(arange(static_cast<int>(shape.elements())), shape);
    return astype(sin(astype(n, float64)) + 1.5, dtype);
  }
  std::vector<io::FileArray> files_of(const Array& x) const {
    std::vector<io::FileArray> files;
    io::save_npy(path("x.npy"), x);
    files.push_back(io::open(path("x.npy")));
    io::save_hdf5(path("x.h5"), "group/x", x, {.mode = io::Hdf5Mode::replace});
    files.push_back(io::open(path("x.h5"), {.name = "group/x"}));
    io::save_zarr(path("x.zarr"), x,
                  {.chunks = std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 3)});
    files.push_back(io::open(path("x.zarr")));
    return files;
  }
  static void expect_near(const Array& found, const Array& expected, const std::string& what) {
    ASSERT_EQ(found.shape(), expected.shape()) << what;
    ASSERT_EQ(found.dtype(), expected.dtype()) << what;
    const auto a = to_vector<double>(found), b = to_vector<double>(expected);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-11 * (1 + std::abs(b[i]))) << what << " at " << i;
  }
};

using Function = std::function<Array(const Array&)>;
const std::vector<std::pair<const char*, Function>>& functions() {
  static const std::vector<std::pair<const char*, Function>> list = {
      {"chain", [](const Array& x) { return sqrt(x) * 2 + exp(-x); }},
      {"sum", [](const Array& x) { return sum(x); }},
      {"mean of rows", [](const Array& x) { return mean(x, 1); }},
      {"mean of columns", [](const Array& x) { return mean(x, 0); }},
      {"var", [](const Array& x) { return var(x, 0); }},
      {"std of all", [](const Array& x) { return tessera::std(x); }},
      {"min", [](const Array& x) { return min(x, 0); }},
      {"max of all", [](const Array& x) { return max(x); }},
      {"prod", [](const Array& x) { return prod(x, 0); }},
      {"any", [](const Array& x) { return astype(any(x > 2.4), float64); }},
      {"all", [](const Array& x) { return astype(all(x > 0.4, 0), float64); }},
      {"count", [](const Array& x) { return astype(count_nonzero(x > 1.5), float64); }},
      {"logsumexp", [](const Array& x) { return logsumexp(x, 0); }},
      {"centred", [](const Array& x) { return (x - mean(x, 0)) / tessera::std(x, 0); }},
      {"softmax of columns", [](const Array& x) { return softmax(x, 0); }},
      {"transposed", [](const Array& x) { return x.T(); }},
      {"A^T A", [](const Array& x) { return matmul(x.T(), x); }},
      {"A B",
       [](const Array& x) {
         return matmul(
             x, reshape(astype(arange(4 * static_cast<int>(x.shape()[1])), float64), {x.shape()[1], 4}));
       }},
      {"power iteration",
       [](const Array& x) { return matmul(x.T(), matmul(x, ones({x.shape()[1]}, float64))); }},
      {"columns", [](const Array& x) { return x(slice(), slice(1, None, 2)); }},
      {"reversed columns", [](const Array& x) { return flip(x, 1) + x; }},
      {"weights",
       [](const Array& x) {
         return sum(x * reshape(astype(arange(static_cast<int>(x.shape()[0])), float64), {-1, 1}), 0);
       }},
      {"where", [](const Array& x) { return where(x > 1.5, x, zeros_like(x)); }},
      {"sorted rows", [](const Array& x) { return sort(x, 1); }},
      {"argmax of rows", [](const Array& x) { return astype(argmax(x, 1), float64); }},
      {"cumsum of rows", [](const Array& x) { return cumsum(x, 1); }},
      {"fft of rows", [](const Array& x) { return abs(fft::fft(x)); }},
      {"histogram",
       [](const Array& x) { return astype(histogram(x, linspace(0.5, 2.5, 6)).first, float64); }},
      {"gradient",
       [](const Array& x) {
         return grad([](const Array& w, const Array& samples) {
           return mean(log1p(exp(-matmul(samples, w))));
         })(astype(arange(static_cast<int>(x.shape()[1])), float64) / 10, x);
       }},
      {"rows added",
       [](const Array& x) {
         return x.at(array({7, -1, 3, 7})).add(2.5);
       }},
      {"rows set in order",
       [](const Array& x) {
         const Array rows = reshape(astype(arange(3 * static_cast<int>(x.shape()[1])), float64), {3, -1});
         return x.at(array({21, 0, 21})).set(rows) * 2;
       }},
      {"rows and columns",
       [](const Array& x) {
         return x.at(array({9, -2}), array({-1, 0})).multiply(3.0);
       }},
      {"columns",
       [](const Array& x) {
         return sum(x.at(slice(), array({0, 2})).max(1.5), 0);
       }},
      {"rows of a chain twice",
       [](const Array& x) {
         return sqrt(x.at(array({8, 15})).min(1.0)).at(array({8, 16})).divide(2.0);
       }},
      {"a row of updated rows",
       [](const Array& x) {
         return x.at(array({20, 2})).add(1.0)(slice(18, 22));
       }},
      {"a row", [](const Array& x) { return x.at(-3).set(7.0); }},
      {"a box turned",
       [](const Array& x) {
         return x.at(slice(18, 3, -1), slice(1, 4)).set(reshape(astype(arange(45), float64), {15, 3}));
       }},
      {"no rows, joined",
       [](const Array& x) {
         const Array none = take_along_axis(x, zeros({0, x.shape()[1]}, int32), 0);
         return concatenate({none, none}, 1);
       }},
      {"no copies",
       [](const Array& x) {
         return tile(x, {0, 2});
       }},
      {"all rows turned",
       [](const Array& x) {
         return x.at(slice(None, None, -1)).set(reshape(astype(arange(x.size()), float64), x.shape()));
       }},
      {"all columns of a number",
       [](const Array& x) { return x.at(slice(), slice(None, None, -1)).set(2.5); }},
      {"every third row",
       [](const Array& x) { return x.at(slice(1, None, 3)).multiply(x(slice(1, None, 3))); }},
      {"sums from before and beyond",
       [](const Array& x) {
         const Array places = astype(x(slice(), 0) * 100, int32) - 99;
         return x.at(places).add(x);
       }},
      {"new dim", [](const Array& x) { return sum(expand_dims(x, 1) * expand_dims(x, 2), 0); }},
      {"float32", [](const Array& x) { return astype(astype(x, float32) > 1.5f, float64); }},
  };
  return list;
}

// Tried on every format and with shorter and longer slabs.
const std::set<std::string> in_depth = {"chain",   "mean of rows", "mean of columns",
                                        "centred", "transposed",   "reversed columns"};

TEST_F(Stream, a_file_is_opened_without_being_loaded_and_parts_are_read) {
  const Array x = numbers({11, 7});
  for (const auto& file : files_of(x)) {
    EXPECT_EQ(file.shape(), x.shape());
    EXPECT_EQ(file.dtype(), float64);
    expect_near(file.load(all_rows()), x, file.detail());
    expect_near(file.load(), x, file.detail());
    const auto part = file.part({slice(2, 9, 2), slice(1, 6)});
    EXPECT_EQ(part.shape(), (Shape{4, 5}));
    expect_near(part.load(), x(slice(2, 9, 2), slice(1, 6)), file.detail());
    expect_near(part.part({slice(1, None)}).load(all_rows()), x(slice(4, 9, 2), slice(1, 6)), file.detail());
    expect_near(io::compute(mean(part, 0), {.slab = 1}), mean(x(slice(2, 9, 2), slice(1, 6)), 0),
                file.detail());
  }
  io::save_npy(path("large.npy"), zeros({1 << 18}, float64));
  const auto before = memory_use().live_bytes;
  const auto large = io::open(path("large.npy"));
  EXPECT_EQ(large.nbytes(), 1 << 21);
  EXPECT_LT(memory_use().live_bytes, before + 4096);
}

// There is no dim to stream: the file is read, and the program runs in memory.
TEST_F(Stream, files_of_single_elements_are_computed_with) {
  const Array rows = numbers({9, 2});
  io::save_npy(path("rows.npy"), rows);
  for (const Shape& shape : {Shape{}, Shape{1, 1}}) {
    const Array x = numbers(shape);
    for (const auto& file : files_of(x)) expect_near(io::compute(file * 2 + 1), x * 2 + 1, file.detail());
    const auto file = io::open(path("x.npy"));
    EXPECT_EQ(io::explain_compute({file + 1}).bytes_read, 8);
    for (const char* name : {"y.npy", "y.zarr"}) {
      io::store(path(name), sqrt(file));
      expect_near(io::open(path(name)).load(), sqrt(x), name);
    }
    expect_near(io::compute(io::open(path("rows.npy")) * file, {.slab = 4}), rows * x, "with rows");
  }
  io::save_npy(path("none.npy"), numbers({0}));
  expect_near(io::compute(io::open(path("none.npy")) + 1), numbers({0}), "no elements");
}

TEST_F(Stream, functions_of_files_are_those_of_arrays_in_memory) {
  const Array x = numbers({23, 5});
  const auto files = files_of(x);
  for (const auto& [name, f] : functions())
    for (std::size_t n = 0; n < files.size(); ++n)
      for (const std::int64_t slab : {1, 8, 23}) {
        if ((n > 0 || slab != 8) && !in_depth.contains(name)) continue;
        SCOPED_TRACE(name);
        expect_near(io::compute(f(files[n]), {.slab = slab}), f(x),
                    std::string(name) + " of " + files[n].detail());
      }
}

// The calls and bytes that a pass sends do not grow with its slabs.
TEST_F(Stream, ranks_send_large_sums_once_in_a_pass) {
  const LowThresholds low(1 << 20);
  const Array x = numbers({24 * device_count(), 130});
  io::save_npy(path("x.npy"), x);
  const auto file = io::open(path("x.npy"));
  const std::vector<std::tuple<const char*, Array, std::int64_t>> sums = {
      {"mean", mean(file, 0), 1},
      {"A^T A", matmul(file.T(), file), 1},
      {"std", tessera::std(file, 0), 3}};  // 3: also the shift and the distances
  for (const auto& [name, value, calls] : sums) {
    std::vector<std::int64_t> bytes;
    for (const std::int64_t slab : {24, 8, 1}) {
      const debug::CommStats stats;
      io::compute(value, {.slab = slab * device_count()});
      EXPECT_EQ(stats.calls("all-reduce"), device_count() > 1 ? calls : 0) << name << ", slab " << slab;
      bytes.push_back(stats.bytes("all-reduce"));
    }
    EXPECT_EQ(bytes[1], bytes[0]) << name;
    EXPECT_EQ(bytes[2], bytes[0]) << name;
  }
}

// Sums of products, and reductions, of which each rank adds up its own part until the end of the pass.
TEST_F(Stream, ranks_combine_large_results_once_in_a_pass) {
  const LowThresholds low(1 << 20);
  const std::set<std::string> large = {"A^T A",   "mean of columns",   "var",      "min",
                                       "prod",    "centred",           "gradient", "new dim",
                                       "weights", "softmax of columns"};
  const Array x = numbers({24 * device_count() + 5, 130});
  io::save_npy(path("x.npy"), x);
  const auto file = io::open(path("x.npy"));
  for (const auto& [name, f] : functions()) {
    if (!large.contains(name)) continue;
    for (const std::int64_t slab : {8 * device_count(), 8 * device_count() + 1}) {
      SCOPED_TRACE(name);
      expect_near(io::compute(f(file), {.slab = slab}), f(x), name);
    }
  }
  const Array whole = astype(x * 10, int32);
  io::save_npy(path("n.npy"), whole);
  const auto numbers_file = io::open(path("n.npy"));
  for (const auto& f : std::vector<Function>{[](const Array& n) { return matmul(n.T(), n); },
                                             [](const Array& n) { return sum(n, 0); },
                                             [](const Array& n) { return astype(any(n > 20, 0), int32); },
                                             [](const Array& n) { return astype(all(n > 5, 0), int32); }})
    expect_near(io::compute(f(numbers_file), {.slab = 4 * device_count()}), f(whole), "integers");
}

// One pass takes the distances from the first slab's mean.
TEST_F(Stream, variances_are_as_accurate_as_in_memory) {
  const int n = 8 * device_count() + 3;
  const Array noise = numbers({n, 7, 3}), steps = reshape(astype(arange(n) / 5, float64), {n, 1, 1});
  const std::vector<std::pair<Array, double>> cases = {
      {noise + 1e8, 1e-9},           // the squares of the values have no digits of the variance
      {noise + steps * 1e6, 1e-12},  // each slab has another mean
      {astype(noise + 1000, float32), 1e-6},
      {astype(noise * 100, int16), 1e-6},
      {astype(noise, complex128) * std::complex<double>(1, -2) + 1e6, 1e-10},
      {where(steps > 2, noise * 0 + 3, noise * 0 + 3), 1e-15}};
  for (const auto& [x, tolerance] : cases) {
    io::save_npy(path("x.npy"), x);
    const auto file = io::open(path("x.npy"));
    const std::vector<std::pair<std::vector<int>, std::int64_t>> ways = {{{0}, 4 * device_count()},
                                                                         {{0, 1, 2}, 3 * device_count() + 1}};
    for (const auto& [dims, slab] : ways) {
      const auto found =
          io::compute({var(file, Axes(dims), true, 1.), tessera::std(file, Axes(dims))}, {.slab = slab});
      for (std::size_t i = 0; i < 2; ++i) {
        const Array expected = i == 0 ? var(x, Axes(dims), true, 1.) : tessera::std(x, Axes(dims));
        ASSERT_EQ(found[i].shape(), expected.shape());
        ASSERT_EQ(found[i].dtype(), expected.dtype());
        const auto a = to_vector<double>(astype(found[i], float64)),
                   b = to_vector<double>(astype(expected, float64));
        for (std::size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], tolerance * (1e-3 + std::abs(b[k]))) << name(x.dtype()) << " slab " << slab;
      }
    }
  }
  // The variance is not what these compute: they have another divisor, another array, or other dims.
  const Array x = noise + 5;
  io::save_npy(path("x.npy"), x);
  for (const auto& f : std::vector<Function>{
           [&](const Array& y) { return sum(square(y - sum(y, 0, true) / double(n + 1)), 0); },
           [&](const Array& y) { return sum(square(y - mean(y * 2, 0, true)), 0); },
           [&](const Array& y) {
             return sum(square(y - mean(y, {0, 1}, true)), 0);
           },
           [&](const Array& y) { return sum(square(mean(y, 0, true) - y), 0); },
           [&](const Array& y) {
             return sum(square(y - mean(y, 0, true)), {0, 1});
           }})
    expect_near(io::compute(f(io::open(path("x.npy"))), {.slab = 5}), f(x), "not a variance");
}

TEST_F(Stream, results_are_stored_slab_by_slab) {
  const Array x = numbers({23, 5});
  const auto file = files_of(x)[2];
  for (const auto& [name, f] : functions()) {
    if (!in_depth.contains(name)) continue;
    io::store(path("y.npy"), f(file), {.slab = 4});
    expect_near(io::load_npy(path("y.npy")), f(x), name);
    io::store(path("y.h5"), f(file), {.name = "a/y", .slab = 5});
    expect_near(io::load_hdf5(path("y.h5"), "a/y"), f(x), name);
  }
}

TEST_F(Stream, the_plan_is_told_before_anything_is_read) {
  io::save_npy(path("x.npy"), numbers({4000, 50}));
  const auto x = io::open(path("x.npy"));
  const std::int64_t bytes = 4000 * 50 * 8;
  const auto plan = io::explain_compute({sum(abs(x - mean(x, 0)), 0)}, {.memory_limit = 400000});
  EXPECT_EQ(plan.passes, 2);
  EXPECT_GE(plan.slabs, 2);
  EXPECT_LE(plan.peak_bytes, 400000);
  EXPECT_EQ(plan.bytes_read, 2 * bytes);
  EXPECT_EQ(plan.bytes_written, 0);
  EXPECT_EQ(plan.bytes_spilled, 0);
  EXPECT_THAT(plan.streamed, HasSubstr("dim 0 of '"));
  EXPECT_THAT(plan.streamed, HasSubstr("4000 long"));
  const auto stored = io::explain_store(path("y.npy"), sqrt(x), {.slab = 1000});
  EXPECT_EQ(stored.passes, 1);
  EXPECT_EQ(stored.bytes_written, bytes);
  EXPECT_THAT(to_string(stored),
              HasSubstr("1 pass of 4 slabs of 1000\nreads 1.5 MiB, writes 1.5 MiB, spills 0 B"));
  // One pass for several results, and for what is centred by a mean of that pass.
  for (const Array& y : {var(x, 0), tessera::std(x), var(x, 1, true), sum(square(x - mean(x, 0, true)), 0)})
    EXPECT_EQ(io::explain_compute({y, mean(x, 0)}, {.memory_limit = 400000}).bytes_read, bytes);
  EXPECT_EQ(io::explain_compute({sum((x - mean(x)) / tessera::std(x), 0)}).passes, 2);
  EXPECT_EQ(io::explain_compute({sum(x), max(x, 0)}, {.memory_limit = 400000}).bytes_read, bytes);
}

TEST_F(Stream, the_predicted_peak_is_within_the_limit_and_not_exceeded) {
  io::save_npy(path("x.npy"), numbers({60000, 16}));
  const auto x = io::open(path("x.npy"));
  const std::int64_t limit = 20 << 20 >> 3;
  ASSERT_GT(x.nbytes(), 2 * limit);
  for (const auto& [name, f] : functions()) {
    if (!in_depth.contains(name)) continue;
    SCOPED_TRACE(name);
    const Array y = f(x);
    const auto plan = io::explain_store(path("y.npy"), y, {.memory_limit = limit});
    EXPECT_LE(plan.peak_bytes, limit);
    EXPECT_GT(plan.slabs, 1);
    reset_peak_memory();
    const auto before = memory_use().live_bytes;
    io::store(path("y.npy"), y, {.memory_limit = limit});
    const auto most = memory_use().peak_bytes - before;
    EXPECT_LE(most, plan.peak_bytes) << to_string(plan);
    EXPECT_GT(most, plan.peak_bytes / 4) << to_string(plan);  // no slab is needlessly short
  }
}

// 4999 rows have leaves (kernels/reduce/tree.hpp) where few columns stand beside them; the last slab is short.
TEST_F(Stream, sums_of_a_reproducible_scope_have_the_bits_of_memory) {
  const std::vector<std::pair<const char*, Function>> sums = {
      {"sum of columns", [](const Array& x) { return sum(x, 0); }},
      {"sum of rows", [](const Array& x) { return sum(x, 1); }},
      {"sum", [](const Array& x) { return sum(x); }},
      {"prod", [](const Array& x) { return prod(x, 0); }},
      {"mean", [](const Array& x) { return mean(sin(x), 0); }},
      {"std", [](const Array& x) { return tessera::std(x, 0); }},
      {"product of rows",
       [](const Array& x) {
         return matmul(x, ones({x.shape()[1], 3}, x.dtype()));
       }},
      {"softmax", [](const Array& x) { return max(softmax(x, 0), 1); }},
      {"updates of rows",
       [](const Array& x) {
         return sum(x.at(array({3, 1, 3})).add(x(slice(0, 3)) / 3), 0);
       }},
      {"sums of segments", [](const Array& x) { return segment_sum(x, arange(x.shape()[0]) % 3, 3); }},
      {"running sums", [](const Array& x) { return cumsum(x * 3, 0); }},
      {"running products", [](const Array& x) { return cumprod(x / 1.5f, 0); }},
      {"running sums from the end", [](const Array& x) { return cumsum(x, 0, {.reverse = true}); }},
      {"product of columns", [](const Array& x) { return matmul(sin(x).T(), x); }},
      {"product with a vector",
       [](const Array& x) { return matmul(ones({x.shape()[0]}, x.dtype()) / 3, x); }},
      {"product over both dims", [](const Array& x) { return einsum("ij,ij->", x, x / 3); }},
      {"complex product",
       [](const Array& x) {
         const Array z = astype(x, complex_dtype(x.dtype())) * std::complex<double>(0.5, -1);
         return imag(matmul(z.T(), sqrt(z)));
       }},
      {"product over two dims",
       [](const Array& x) {
         const Array y = reshape(x, {-1, x.shape()[1], 1});
         return tensordot(y * array({2.f, 3.f}), sin(y), {{0, 1}, {0, 1}});
       }},
  };
  const auto bits = [](const Array& x) { return to_vector<double>(astype(x, float64)); };
  struct Case {
    Shape shape;
    Dtype dtype;
    std::int64_t slab;
  };
  for (const Case& c :
       {Case{{4999, 3}, float32, 1500}, Case{{4999, 40}, float64, 2048}, Case{{300, 7}, bfloat16, 100},
        Case{{65, 2}, float64, 64}, Case{{5, 4}, float32, 2}}) {
    const Array x = numbers(c.shape, c.dtype);
    io::save_npy(path("x.npy"), x);
    for (const auto& [name, f] : sums) {
      const ReproducibleScope same;
      const auto found = io::compute(f(io::open(path("x.npy"))), {.slab = c.slab});
      EXPECT_EQ(found.dtype(), f(x).dtype()) << name;
      EXPECT_EQ(bits(found), bits(f(x))) << name << " of " << c.shape << " in slabs of " << c.slab;
    }
  }
  const ReproducibleScope same;
  io::save_npy(path("x.npy"), numbers({4999, 3}));
  const auto file = io::open(path("x.npy"));
  const auto plan = io::explain_compute({sum(file, 0)}, {.slab = 100});
  EXPECT_EQ(plan.slab, 64);
  EXPECT_EQ(plan.slabs, 79);
  // A product adds up 14 parts of nearly one length.
  EXPECT_EQ(io::explain_compute({matmul(file.T(), file)}, {.slab = 1000}).slab, 2 * 368);
  const auto both = [](const Array& x) { return std::vector<Array>{sum(x, 0), matmul(x.T(), x)}; };
  EXPECT_EQ(io::explain_compute(both(file), {.slab = 1000}).stages, 2);
  const auto found = io::compute(both(file), {.slab = 1000}), expected = both(numbers({4999, 3}));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(bits(found[i]), bits(expected[i]));
  const Array a = numbers({301, 900}, float32), b = numbers({900, 250}, float32);
  io::save_npy(path("a.npy"), a), io::save_npy(path("b.npy"), b);
  const Array product = matmul(io::open(path("a.npy")), io::open(path("b.npy")));
  io::store(path("c.npy"), product, {.memory_limit = 900000});
  EXPECT_EQ(bits(io::load_npy(path("c.npy"))), bits(matmul(a, b)));
}

TEST_F(Stream, what_cannot_be_streamed_is_refused_with_the_reason) {
  io::save_npy(path("v.npy"), numbers({50, 50}));
  const auto v = io::open(path("v.npy"));
  EXPECT_THAT(
      text_of_error<ArgumentError>([&] { io::compute(linalg::cholesky(v)); }),
      AllOf(HasSubstr("no dim of the files can be streamed"),
            HasSubstr("a dim of 50: cholesky at stream_test.cpp"), HasSubstr("needs all of the dim")));
  io::save_npy(path("c.npy"), numbers({50}));
  const auto c = io::open(path("c.npy"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] {
                const ReproducibleScope same;
                io::compute(segment_sum(c, arange(50) % 3, 3));
              }),
              HasSubstr("ReproducibleScope"));
  io::save_npy(path("x.npy"), numbers({40, 1000}));
  const auto x = io::open(path("x.npy"));
  EXPECT_THAT(
      text_of_error<MemoryError>([&] { io::compute(sum(x, 0), {.memory_limit = 5000}); }),
      AllOf(HasSubstr("needs"), HasSubstr("with slabs of 1 along dim"), HasSubstr("may use 4.4 KiB")));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(path("y.txt"), x); }),
              HasSubstr("does not end in .npy"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::store(path("y.h5"), x); }), HasSubstr("needs a name"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::open(path("no.npy")); }), HasSubstr("no.npy"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::open(put("t.txt", "a text")); }),
              HasSubstr("is no .npy, HDF5, netCDF-4 or Zarr file"));
}

TEST_F(Stream, a_failure_in_the_middle_leaves_the_old_file_and_the_next_start_cleans_up) {
  const Array x = numbers({23, 5});
  io::save_npy(path("x.npy"), x);
  io::save_npy(path("y.npy"), zeros({3}, float64));
  const auto file = io::open(path("x.npy"));
  const auto last = std::to_string(device_count() - 1);
  for (const std::string& point : std::vector<std::string>{"slab@" + last, "prepared@0", "written@" + last}) {
    setenv("TESSERA_TEST_FAULT", (point + ":throw").c_str(), 1);
    EXPECT_THAT(text_of_error<IoError>([&] { io::store(path("y.npy"), sqrt(file), {.slab = 4}); }),
                HasSubstr("the fault at " + point))
        << point;
    unsetenv("TESSERA_TEST_FAULT");
    EXPECT_EQ(io::load_npy(path("y.npy")).shape(), (Shape{3}));
    EXPECT_THAT(entries(), testing::Not(testing::Contains(HasSubstr(".tmp-")))) << point;
  }
  io::store(path("y.npy"), sqrt(file), {.slab = 4});
  expect_near(io::load_npy(path("y.npy")), sqrt(x), "after failures");
}

TEST_F(Stream, a_full_disk_is_one_error_and_leaves_the_old_file) {
  io::save_npy(path("x.npy"), numbers({400, 5}));
  io::save_npy(path("y.npy"), zeros({3}, float64));
  const auto x = io::open(path("x.npy"));
  const rlimit none{9000, RLIM_INFINITY};  // simulates a full disk on this rank
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  if (process_index() == device_count() - 1) setrlimit(RLIMIT_FSIZE, &none);
  const auto text = text_of_error<IoError>([&] { io::store(path("y.npy"), sqrt(x), {.slab = 40}); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, HasSubstr("File too large"));
  EXPECT_THAT(entries(), ElementsAre("x.npy", "y.npy"));
  EXPECT_EQ(io::load_npy(path("y.npy")).shape(), (Shape{3}));
}

// Slabs of a file in the system's cache are mapped, and computed from there.
TEST_F(Stream, values_stay_when_their_file_changes) {
  const Array x = numbers({500 * device_count() + 1, 100});
  io::save_npy(path("x.npy"), x);
  const auto file = io::open(path("x.npy"));
  const std::string start(std::size_t{64} << 10, '\1');
  const auto kept = io::compute({file, reshape(file, {-1, 10, 10}), max(file(slice(), slice(0, 1)), 1)});
  const Array kept_of_one_slab = io::compute(file.part({slice(0, 500 * device_count())}));
  comm::barrier(comm::world());
  if (is_main_process())
    std::fstream(path("x.npy"), std::ios::in | std::ios::out | std::ios::binary) << start;
  comm::barrier(comm::world());
  expect_near(kept[0], x, "the file");
  expect_near(kept[1], reshape(x, {-1, 10, 10}), "reshaped");
  expect_near(kept[2], x(slice(), 0), "a column");
  expect_near(kept_of_one_slab, x(slice(0, 500 * device_count())), "one slab");
}

TEST_F(Stream, a_file_that_was_cut_short_is_an_error) {
  io::save_npy(path("x.npy"), numbers({500 * device_count() + 1, 100}));
  const auto file = io::open(path("x.npy"));
  comm::barrier(comm::world());
  if (is_main_process()) std::filesystem::resize_file(path("x.npy"), 300000);
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { io::compute(sum(file)); }),
              HasSubstr("ends after 300000 bytes, where"));
}

// The second file, when it is read, cuts the first one short, whose slab is mapped by then.
TEST_F(Stream, a_file_that_is_cut_short_while_its_slab_is_mapped_is_an_error) {
  const Array x = numbers({500 * device_count() + 1, 100});
  io::save_npy(path("x.npy"), x);
  const auto file = io::open(path("x.npy"));
  auto source = std::make_shared<stream::FileSource>();
  source->path = "cuts", source->info = {x.shape(), float64, "test"};
  source->temporary_bytes = [](const Shape&) { return std::int64_t{0}; };
  source->read = [&](const std::string&, const Box& box, std::byte* out) {
    std::memset(out, 0, static_cast<std::size_t>(box_elements(box)) * 8);
    if (is_main_process()) std::filesystem::resize_file(path("x.npy"), 5000);
  };
  const Array cuts =
      stream::record_file({"cuts", "", -1, float64, {0, 0}, {1, 1}, x.shape().vector(), std::move(source)});
  EXPECT_THAT(text_of_error<IoError>([&] { io::compute(sum(file + cuts)); }), HasSubstr("cut short"));
}

TEST_F(Stream, bytes_that_a_mapped_file_loses_are_zeros_and_told) {
  const std::string name = path("x" + std::to_string(process_index()));
  std::ofstream(name, std::ios::binary) << std::string(std::size_t{1} << 20, 'x');
  const io::File file("test", name, io::File::Mode::read);
  const Buffer mapped = file.mapped(std::int64_t{1} << 20, 0);
  ASSERT_TRUE(mapped);
  const auto* const bytes = reinterpret_cast<const volatile char*>(mapped.data());
  EXPECT_EQ(bytes[700000] + 0, 'x');
  EXPECT_FALSE(io::has_lost_bytes(mapped));
  std::filesystem::resize_file(name, 100000);
  EXPECT_EQ(bytes[700000] + 0, 0);
  EXPECT_EQ(bytes[(1 << 20) - 1] + 0, 0);
  EXPECT_EQ(bytes[5000] + 0, 'x');
  EXPECT_TRUE(io::has_lost_bytes(mapped));
  EXPECT_FALSE(file.mapped(std::int64_t{1} << 20, 0));
}

TEST_F(Stream, ranks_that_ask_for_different_programs_are_told) {
  if (device_count() == 1) return;
  io::save_npy(path("x.npy"), numbers({40, 5}));
  const auto x = io::open(path("x.npy"));
  const Array y = is_main_process() ? sum(x, 0) : max(x, 0);
  EXPECT_THAT(text_of_error<Error>([&] { io::compute(y, {.slab = 4}); }), HasSubstr("the ranks disagree"));
}

}  // namespace
}  // namespace tessera::test
