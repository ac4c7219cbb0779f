// Arrays made from each process's data: values, and that ranks with inconsistent arguments all get an error
// and can continue.
#include <tessera/array.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;

int ranks() { return device_count(); }
Sharding rows() { return NamedSharding(make_mesh({ranks()}, {"x"}), P("x")); }
HostArray counted(const Shape& shape, int first) {
  std::vector<float> values(shape.elements());
  std::iota(values.begin(), values.end(), static_cast<float>(first));
  return HostArray(values, shape);
}
// Checks that the job still works and that all ranks agree.
void expect_alive() { EXPECT_EQ(item<int>(sum(device_put(arange(100), rows()))), 4950); }

TEST(MakeArray, the_global_shape_is_that_of_the_blocks_in_a_row) {
  const int me = process_index();
  const Array x = make_array_from_process_local_data(rows(), counted({2, 3}, 6 * me));
  EXPECT_EQ(x.shape(), (Shape{2 * ranks(), 3}));
  EXPECT_EQ(item<int>(x(-1, -1)), 6 * ranks() - 1);
  const Array short_one =
      make_array_from_process_local_data(rows(), counted({me + 1 < ranks() ? 2 : 1}, 2 * me));
  EXPECT_EQ(short_one.shape(), (Shape{2 * ranks() - 1}));
  EXPECT_EQ(item<int>(sum(short_one)), (2 * ranks() - 1) * (ranks() - 1));
}

TEST(MakeArray, a_range_that_does_not_fit_its_dtype_is_refused) {
  const std::int64_t far = 3'000'000'000;
  EXPECT_THAT(test::error_of<ArgumentError>([&] { arange(far, far + 2); }),
              HasSubstr("from 3000000000 to 3000000001 do not fit int32"));
  EXPECT_EQ(item<std::int64_t>((astype(arange(2), int64) + far)(1)), far + 1);
  EXPECT_EQ(item<int>(arange(std::int64_t{2'147'483'646}, std::int64_t{2'147'483'648})(1)), 2'147'483'647);
}

TEST(MakeArray, blocks_that_are_not_of_one_array_are_refused_on_all_ranks) {
  if (ranks() == 1) return;
  const bool first = process_index() == 0;
  EXPECT_THAT(test::error_of<DtypeError>([&] {
                make_array_from_process_local_data(rows(), HostArray({1, 2}, first ? float64 : float32));
              }),
              HasSubstr("different dtypes, among them float64 and float32"));
  EXPECT_THAT(test::error_of<ShapeError>([&] {
                make_array_from_process_local_data(rows(), HostArray(first ? Shape{1} : Shape{1, 2}, int32));
              }),
              HasSubstr("from 1 to 2 dimensions"));
  EXPECT_THAT(test::error_of<ShapeError>([&] {
                make_array_from_process_local_data(rows(), HostArray({1}, int32), Shape{first ? 9 : ranks()});
              }),
              HasSubstr("different global shapes"));
  EXPECT_THAT(test::error_of<ShapeError>(
                  [&] { make_array_from_process_local_data(rows(), HostArray({first ? 1 : 2}, int32)); }),
              HasSubstr("does not match"));
  expect_alive();
}

TEST(MakeArray, what_a_callback_does_wrong_is_raised_on_all_ranks) {
  const int last = ranks() - 1;
  const auto make = [&](auto block) {
    return [=] { make_array_from_callback({2 * ranks(), 3}, rows(), block); };
  };
  EXPECT_THAT(test::error_of<ShapeError>(make([=](const Index& i) {
                return HostArray({i[0].start == 2 * last ? 1 : 2, 3}, int32);
              })),
              HasSubstr("the callback returned a block of shape (1, 3); it must be (2, 3)"));
  EXPECT_THAT(
      test::error_of<ArgumentError>(make([=](const Index& i) {
        if (i[0].start == 2 * last) throw std::runtime_error("no such sensor");
        return HostArray({2, 3}, int32);
      })),
      HasSubstr("rank " + std::to_string(last) +
                ": make_array_from_callback at make_array_test.cpp:72: the callback failed at [" +
                std::to_string(2 * last) + ":" + std::to_string(2 * last + 2) + ", 0:3]: no such sensor"));
  expect_alive();
  if (last == 0) return;
  EXPECT_THAT(test::error_of<DtypeError>(make([=](const Index& i) {
                return HostArray({2, 3}, i[0].start == 2 * last ? int8 : int64);
              })),
              HasSubstr("int8"));
  expect_alive();
}

}  // namespace
}  // namespace tessera::test
