// Products of matrices in files whose results do not fit either: they are made panel by panel.
#include <tessera/io/stream.hpp>

#include "io/folder.hpp"
#include "stream/panels.hpp"
#include "support/compare.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Panels : public InFolder {
 protected:
  static Array numbers(Shape shape, int first = 0) {
    const Array n = reshape(arange(first, first + static_cast<int>(shape.elements())), shape);
    return sin(astype(n, float64));
  }
  io::FileArray file_of(const Array& x, const std::string& name) const {
    io::save_npy(path(name), x);
    return io::open(path(name));
  }
  void expect_stored(const Array& y, const Array& expected, const std::string& name,
                     const io::StoreOptions& options) const {
    const auto plan = io::explain_store(path(name), y, options);
    EXPECT_GT(plan.panels, 1) << name << "\n" << to_string(plan);
    EXPECT_LE(plan.peak_bytes, plan.limit_bytes) << name;
    io::store(path(name), y, options);
    const Array found = io::open(path(name), {.name = options.name}).load();
    ASSERT_EQ(found.shape(), expected.shape()) << name;
    const auto a = to_vector<double>(found), b = to_vector<double>(expected);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-10 * 151) << name << " at " << i;
  }
};

constexpr std::int64_t limit = 1000 << 10;

TEST_F(Panels, a_product_of_two_files_is_stored_within_the_limit) {
  const Array a = numbers({901, 151}), b = numbers({151, 893}, 5);
  const auto fa = file_of(a, "a.npy"), fb = file_of(b, "b.npy");
  ASSERT_GT(fa.nbytes(), limit);
  ASSERT_GT(fb.nbytes(), limit);
  const io::StoreOptions options{.memory_limit = limit};
  expect_stored(matmul(fa, fb), matmul(a, b), "c.npy", options);
  expect_stored(matmul(sqrt(abs(fa)), exp(-fb)) * 2 + 1, matmul(sqrt(abs(a)), exp(-b)) * 2 + 1, "d.npy",
                options);
  if (device_count() > 3) return;
  expect_stored(matmul(fb.T(), fa.T()), matmul(b.T(), a.T()), "f.npy", options);
  expect_stored(matmul(fa, fb), matmul(a, b), "c.h5", {.name = "c", .memory_limit = limit});
  expect_stored(matmul(fa, fb), matmul(a, b), "c.zarr", {.memory_limit = limit, .chunks = {150, 160}});
}

TEST_F(Panels, a_file_is_multiplied_by_itself) {
  const Array a = numbers({603, 151});
  const auto file = file_of(a, "a.npy");
  expect_stored(matmul(file, file.T()), matmul(a, a.T()), "g.npy", {.memory_limit = 600 << 10});
}

// A panel cannot begin in the middle of running sums, or of a scatter, whose indices count from the start.
TEST_F(Panels, follow_no_dim_whose_parts_come_in_order) {
  const Array a = numbers({901, 151}), b = numbers({151, 893}, 5);
  const auto fa = file_of(a, "a.npy"), fb = file_of(b, "b.npy");
  const auto sums = [](const Array& x, const Array& y) { return matmul(cumsum(x, 0), y); };
  const auto updates = [](const Array& x, const Array& y) {
    return matmul(x.at(array({3, 900})).add(1.0), y);
  };
  const io::StoreOptions options{.memory_limit = limit};
  expect_stored(sums(fa, fb), sums(a, b), "c.npy", options);
  expect_stored(updates(fa, fb), updates(a, b), "d.npy", options);
}

TEST_F(Panels, what_follows_a_product_is_another_stage) {
  const Array a = numbers({901, 151}), b = numbers({151, 893}, 5);
  const auto fa = file_of(a, "a.npy"), fb = file_of(b, "b.npy");
  const auto f = [](const Array& x, const Array& y) { return sort(matmul(x, y), 0); };
  const io::StoreOptions options{.memory_limit = limit};
  if (device_count() == 1) {
    EXPECT_GT(io::explain_store(path("c.npy"), f(fa, fb), options).stages, 1);
  }
  expect_stored(f(fa, fb), f(a, b), "c.npy", options);
  EXPECT_THAT(entries(), ElementsAre("a.npy", "b.npy", "c.npy"));
}

TEST_F(Panels, the_plan_tells_what_is_read) {
  const auto a = file_of(numbers({901, 151}), "a.npy"), b = file_of(numbers({151, 893}, 5), "b.npy");
  const auto plan = io::explain_store(path("c.npy"), matmul(a, b), {.memory_limit = limit});
  EXPECT_THAT(plan.streamed, HasSubstr("panels of "));
  EXPECT_THAT(to_string(plan), HasSubstr(std::to_string(plan.panels) + " panels, each 1 pass of"));
  EXPECT_EQ(plan.bytes_written, 901 * 893 * 8);
  EXPECT_EQ(plan.bytes_spilled, 0);
  EXPECT_GE(plan.bytes_read, a.nbytes() + b.nbytes());
  const auto more = io::explain_store(path("c.npy"), matmul(a, b), {.memory_limit = 4 * limit});
  EXPECT_LE(more.bytes_read, plan.bytes_read);
}

}  // namespace
}  // namespace tessera::test
