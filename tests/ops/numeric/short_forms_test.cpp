// NumPy's short forms: omitted arguments have NumPy's defaults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/error.hpp>
#include <tessera/linalg.hpp>
#include <tessera/nn.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/numpy.hpp>
#include <tessera/runtime.hpp>

#include "support/errors.hpp"

namespace {

using namespace tessera;
using testing::ElementsAre;

Array rows() {
  const Array x = array({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  return device_put(x, make_mesh({device_count()}, {"x"}), P("x"));
}

TEST(ShortForms, repeat_without_an_axis_repeats_all_elements_in_a_row) {
  EXPECT_THAT(to_vector<float>(repeat(rows(), 2)), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6));
  EXPECT_THAT(to_vector<float>(repeat(rows(), {0, 1, 2, 0, 0, 1})), ElementsAre(2, 3, 3, 6));
  EXPECT_EQ(repeat(rows(), 2).shape(), Shape{12});
}

TEST(ShortForms, append_without_an_axis_joins_all_elements) {
  EXPECT_THAT(to_vector<float>(append(rows(), array({7.f, 8.f}))), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(to_vector<float>(append(rows(), 9.f)), ElementsAre(1, 2, 3, 4, 5, 6, 9));
}

TEST(ShortForms, resize_takes_a_number_of_elements) {
  EXPECT_THAT(to_vector<float>(resize(rows(), 8)), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2));
  EXPECT_EQ(resize(rows(), 4).shape(), Shape{4});
}

TEST(ShortForms, one_hot_is_known_without_its_namespace) {
  EXPECT_THAT(to_vector<float>(one_hot(array({1, 0}), 3)), ElementsAre(0, 1, 0, 1, 0, 0));
}

TEST(ShortForms, trace_takes_an_offset) {
  EXPECT_EQ(item<float>(trace(rows())), 6);
  EXPECT_EQ(item<float>(trace(rows(), 1)), 8);
  EXPECT_EQ(item<float>(trace(rows(), -1)), 4);
  EXPECT_EQ(item<float>(trace(rows(), 3)), 0);
}

TEST(ShortForms, multi_dot_stands_in_linalg_too) {
  EXPECT_EQ(item<float>(sum(linalg::multi_dot({rows(), rows().T(), rows()}))), 1911);
}

TEST(ShortForms, conv_says_in_which_order_the_dims_stand) {
  test::expect_error<ShapeError>(
      [] {
        conv(ones({1, 8, 8, 3}), ones({4, 3, 3, 3}));
      },
      {"the operand is (images, channels, spatial...), the kernel (features, channels",
       "moveaxis(x, -1, 1)"});
}

}  // namespace
