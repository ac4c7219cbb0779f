// Compiled functions called with arguments that lie elsewhere.
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

TEST(Jit, ACompiledFunctionPlacesUncommittedArgumentsAndRefusesCommittedOnesElsewhere) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(arange(12), mesh, P("x"));
  const auto compiled = jit([](Array a) { return a + 1; }).lower(x).compile();
  const Array y = compiled(arange(12));
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_EQ(item<int>(y(11)), 12);
  EXPECT_THROW(compiled(arange(13)), ArgumentError);
  if (device_count() > 1) {
    EXPECT_THROW(compiled(device_put(arange(12), mesh, P())), ShardingError);
  }
}

}  // namespace
}  // namespace tessera::test
