// Transforms that several ranks compute redundantly.
#include "base/hash.hpp"
#include "base/settings.hpp"
#include "comm/watch/agreement.hpp"
#include "fft/reference.hpp"
#include "graph/node.hpp"

namespace tessera::test {
namespace {

// A hash of this rank's copy.
std::uint64_t bits_of(const Array& x) {
  eval({x});
  const auto& stored = *output_of(x).stored;
  return hash_bytes(stored.buffer.data(), static_cast<std::size_t>(x.size()) * itemsize(x.dtype()));
}

Array waves(std::int64_t n) {
  return sin(astype(arange(n), float64) * 0.37) + cos(astype(arange(n), float64));
}

TEST(Replicas, are_equal_to_the_last_bit_whatever_each_rank_has_measured) {
  const SettingScope measured("TESSERA_FFT_PLAN", "measure");
  const int me = process_index();
  const Mesh mesh = make_mesh({device_count()}, {"x"}), own(NdDevices{me}, {"x"});
  for (const std::int64_t n : {60, 1000, 4096, 5040}) {
    if (me % 2 == 0)  // even ranks have a measured plan of that length, the others do not
      for (int again = 0; again < 3; ++again) eval({fft::fft(device_put(waves(n), own, P()))});
    for (int again = 0; again < 3; ++again) {
      const auto committed = bits_of(fft::fft(device_put(waves(n), mesh, P()))),
                 uncommitted = bits_of(fft::rfft(waves(n))),
                 rows = bits_of(fft::fft2(device_put(reshape(waves(n), {4, n / 4}), mesh, P())));
      for (const auto bits : {committed, uncommitted, rows})
        EXPECT_NO_THROW(comm::agree(comm::world(), bits, [] { return "has other bits"; })) << n;
    }
  }
}

TEST(Replicas, of_one_mesh_axis_are_equal_while_the_other_splits) {
  if (device_count() != 4) GTEST_SKIP() << "needs a 2 x 2 mesh";
  const SettingScope measured("TESSERA_FFT_PLAN", "measure");
  const int me = process_index();
  const Mesh mesh = make_mesh({2, 2}, {"x", "y"}), own(NdDevices{me}, {"x"});
  if (me == 3) eval({fft::fft(device_put(reshape(waves(6000), {4, 1500}), own, P()))});
  for (int again = 0; again < 3; ++again) {
    const Array y = fft::fft(device_put(reshape(waves(12000), {8, 1500}), mesh, P("x", None)));
    eval({y});
    const auto& stored = *output_of(y).stored;
    const auto bits = hash_bytes(stored.buffer.data(), 4 * 1500 * itemsize(y.dtype()));
    EXPECT_NO_THROW(comm::agree(comm::group(me < 2 ? std::vector{0, 1} : std::vector{2, 3}), bits,
                                [] { return "has other bits"; }));
  }
}

}  // namespace
}  // namespace tessera::test
