// Options of NumPy's functions: refusals and traffic. Their values are tested in tests/catalogue.
#include "comm/watch/traffic.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

TEST(Options, have_their_dtypes_and_refusals) {
  EXPECT_EQ(sum(ones({3}, int8), {}, int8).dtype(), int8);
  EXPECT_TRUE(std::isnan(to_vector<double>(var(ones({1}), {}, false, 1))[0]));
  EXPECT_EQ(to_vector<double>(linspace(0, 0.7, 8, float64)).back(), 0.7);
  EXPECT_THROW(roll(ones({2, 2}), {1, 2, 3}, {0, 1}), ArgumentError);
  EXPECT_THROW(repeat(ones({3}), std::vector<std::int64_t>{1, 2}, 0), ShapeError);
  EXPECT_THROW(repeat(ones({2}), std::vector<std::int64_t>{1, -2}, 0), ArgumentError);
}

TEST(Options, pad_of_an_unknown_mode_names_them) {
  try {
    pad(ones({2}), {{1, 1}}, "mirror");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the mode is 'mirror'; it must be 'constant', 'edge'"));
  }
  EXPECT_THROW(pad(ones({0}), {{1, 1}}, "wrap"), ShapeError);
}

TEST(Sort, of_many_short_lines_moves_blocks_not_counts) {
  const int p = device_count();
  const Mesh mesh = make_mesh({p}, {"x"});
  const Shape shape{4096, 64};
  const Array whole = reshape(arange(shape.elements()) * 7919 % 10007, shape);
  const Array x = device_put(whole, mesh, P(None, "x"));
  eval({x});
  const auto before = comm::traffic().bytes;
  const Array y = sort(x), places = argsort(x);
  eval({y, places});
  const std::int64_t block = x.sharding().shard_shape(shape).elements() * 4;
  EXPECT_LE(comm::traffic().bytes - before, 5 * block);
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_EQ(to_vector<int>(y), to_vector<int>(sort(whole)));
  EXPECT_EQ(to_vector<int>(places), to_vector<int>(argsort(whole)));
}

}  // namespace
}  // namespace tessera::test
