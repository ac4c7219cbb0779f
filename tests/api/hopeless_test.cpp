// Plans that exceed any machine's memory are refused before they are bound to ranks: a transfer of 2^50
// elements has more pieces than fit in memory.
#include <gmock/gmock.h>

#include <tessera/error.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

namespace tessera::test {
namespace {

TEST(Hopeless, sizes_are_refused_on_every_rank_before_their_transfers_are_planned) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const auto& spec : {P(), P("x")}) {
    const Array x = device_put(zeros({std::int64_t{1} << 50}), mesh, spec);
    for (const Array& y : {roll(x, 3), flip(x), x(slice(1, None, 3)), concatenate({x, x})}) {
      try {
        eval({y});
        ADD_FAILURE() << "there was room";
      } catch (const MemoryError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("but a rank may use"));
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
