#include "types/reduce_kind.hpp"

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

TEST(ReduceKind, has_a_name_that_names_it) {
  for (int k = 0; k < reduce_kind_count; ++k) {
    const auto kind = static_cast<ReduceKind>(k);
    EXPECT_EQ(reduce_kind_named(name(kind)), kind) << name(kind);
  }
}

TEST(ReduceKind, other_words_name_none) {
  EXPECT_EQ(reduce_kind_named("mean"), std::nullopt);
  EXPECT_EQ(reduce_kind_named(""), std::nullopt);
}

}  // namespace
}  // namespace tessera::test
