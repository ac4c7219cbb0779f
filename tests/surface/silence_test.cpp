// What once went wrong without a word: options by name, numbers that do not fit, conditions, indices out of range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class E, class F> std::string text_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was raised";
}
Array grid() { return reshape(arange(6.f), {2, 3}); }
Array split_range(int n) {
  return device_put(arange(static_cast<float>(n)), make_mesh({device_count()}, {"x"}), P("x"));
}

TEST(reductions, keepdims_by_name_reduces_all_axes) {
  const Array total = sum(grid(), {.keepdims = true});
  EXPECT_EQ(total.shape(), (Shape{1, 1}));
  EXPECT_THAT(to_vector<float>(total), ElementsAre(15));
}
TEST(reductions, axis_and_keepdims_by_name) {
  const Array columns = max(grid(), {.axis = 0, .keepdims = true});
  EXPECT_EQ(columns.shape(), (Shape{1, 3}));
  EXPECT_THAT(to_vector<float>(columns), ElementsAre(3, 4, 5));
}
TEST(reductions, braces_without_names_are_axes) {
  EXPECT_EQ(sum(grid(), {}).shape(), Shape{});
  EXPECT_EQ(sum(grid(), {0, 1}).shape(), Shape{});
  EXPECT_THAT(to_vector<float>(sum(grid(), {1})), ElementsAre(3, 12));
}

}  // namespace
}  // namespace tessera::test
