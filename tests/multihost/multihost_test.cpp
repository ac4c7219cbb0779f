// Functions across processes that do not involve arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <limits>

#include "support/errors.hpp"

namespace {

using namespace tessera;
using test::error_of;
using testing::HasSubstr;

TEST(Multihost, process_allgather_stacks_or_concatenates) {
  const int p = process_count();
  const HostArray mine(std::vector<int>{process_index(), 10 * process_index()}, Shape{2, 1});
  std::vector<int> all;
  for (int r = 0; r < p; ++r) all.push_back(r), all.push_back(10 * r);
  const auto stacked = multihost::process_allgather(mine), joined = multihost::process_allgather(mine, true);
  EXPECT_EQ(stacked.shape(), (Shape{p, 2, 1}));
  EXPECT_EQ(joined.shape(), (Shape{2 * p, 1}));
  EXPECT_THAT(stacked.as<int>(), testing::ElementsAreArray(all));
  EXPECT_THAT(joined.as<int>(), testing::ElementsAreArray(all));
  const auto scalar =
      multihost::process_allgather(HostArray(std::vector<double>{1.0 + process_index()}, Shape{}), true);
  EXPECT_EQ(scalar.shape(), Shape{p});
  EXPECT_EQ(scalar.as<double>()[p - 1], p);
}

TEST(Multihost, process_allgather_of_a_spread_array_is_its_value) {
  const int p = process_count();
  if (p == 1) return;
  const Array x = device_put(arange(3 * p + 1), make_mesh({p}, {"x"}), P("x"));
  const auto whole = multihost::process_allgather(x, true);
  EXPECT_EQ(whole.shape(), Shape{3 * p + 1});
  EXPECT_EQ(whole.as<int>()[3 * p], 3 * p);
  EXPECT_EQ(multihost::process_allgather(arange(2)).shape(), (Shape{p, 2}));
  EXPECT_THAT(error_of<ArgumentError>([&] { multihost::process_allgather(x); }),
              HasSubstr("process_allgather(x, true)"));
}

TEST(Multihost, broadcast_one_to_all_gives_the_value_of_process_0) {
  const auto got = multihost::broadcast_one_to_all(
      HostArray(std::vector<float>{static_cast<float>(process_index()) + 0.5f, 2}, Shape{2}));
  EXPECT_THAT(got.as<float>(), testing::ElementsAre(0.5f, 2));
  EXPECT_EQ(multihost::broadcast_one_to_all(HostArray(Shape{0, 3}, float32)).shape(), (Shape{0, 3}));
}

TEST(Multihost, sync_refuses_different_names) {
  multihost::sync_global_devices("epoch 1");
  if (process_count() == 1) return;
  const auto text = error_of<CommError>(
      [] { multihost::sync_global_devices(process_index() == 0 ? "epoch 2" : "epoch 3"); });
  EXPECT_THAT(text, HasSubstr("epoch 2"));
  EXPECT_THAT(text, HasSubstr("epoch 3"));
  multihost::sync_global_devices("after");
}

TEST(Multihost, assert_equal_names_the_process_and_the_element) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  multihost::assert_equal(HostArray(std::vector<double>{1, nan, process_index() % 2 ? 0.0 : -0.0}, Shape{3}));
  multihost::assert_equal(arange(4));
  multihost::assert_equal(HostArray(std::vector<std::complex<float>>{{1, 2}}, Shape{1}));
  if (process_count() == 1) return;
  std::vector<int> values = {1, 2, 3, 4, 5, 6};
  if (process_index() == process_count() - 1) values[4] = 7;
  const auto text = error_of<ArgumentError>([&] { multihost::assert_equal(HostArray(values, Shape{2, 3})); });
  for (const auto& part : std::vector<std::string>{"rank " + std::to_string(process_count() - 1),
                                                   std::string("[1,1]"), std::string("is 7"),
                                                   std::string("has 5"), std::string("broadcast_one_to_all")})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Multihost, different_types_are_refused_on_all_processes) {
  if (process_count() == 1) return;
  const HostArray x(process_index() == 0 ? Shape{2} : Shape{3}, float32);
  for (const auto& text : {error_of<ArgumentError>([&] { multihost::process_allgather(x); }),
                           error_of<ArgumentError>([&] { multihost::broadcast_one_to_all(x); }),
                           error_of<ArgumentError>([&] { multihost::assert_equal(x); })}) {
    EXPECT_THAT(text, HasSubstr("float32[2]"));
    EXPECT_THAT(text, HasSubstr("float32[3]"));
  }
}

}  // namespace
