// User-owned memory: adopted, viewed in place, returned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <sys/mman.h>

#include <fstream>
#include <numeric>

namespace tessera::test {
namespace {

using testing::ElementsAre;

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}
Mesh all_devices() { return make_mesh({device_count()}, {"x"}); }

TEST(HostMemory, a_host_array_is_written_by_type) {
  HostArray host(Shape{2, 2}, float64);
  for (double& value : host.as<double>()) value = 7;
  host.as<double>()[3] = 1.5;
  const HostArray& same = host;
  EXPECT_THAT(same.as<double>(), ElementsAre(7, 7, 7, 1.5));
  EXPECT_THROW(host.as<float>(), DtypeError);
}

TEST(HostMemory, a_moved_vector_is_the_host_arrays_memory) {
  auto values = counted(6);
  const float* place = values.data();
  const HostArray host(std::move(values), Shape{2, 3});
  EXPECT_EQ(host.as<float>().data(), place);
  EXPECT_EQ(host.shape(), (Shape{2, 3}));
  EXPECT_THROW(HostArray(counted(5), Shape{2, 3}), ShapeError);
  EXPECT_THAT(to_vector<bool>(array(HostArray(std::vector<bool>{true, false}, Shape{2}))),
              ElementsAre(true, false));
}

TEST(HostMemory, an_array_takes_a_moved_vector_over) {
  auto values = counted(1000);
  const float* place = values.data();
  const Array x = array(std::move(values), Shape{10, 100});
  EXPECT_EQ(local<float>(x).data(), place);
  EXPECT_EQ(item<float>(sum(x)), 499500.f);
  EXPECT_EQ(to_vector<float>(x), counted(1000)) << "sums did not write into it";
  EXPECT_THROW(array(counted(5), Shape{2, 3}), ShapeError);
}

// The peak resident memory of this process so far.
std::int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kib = 0; word == "VmHWM:" && status >> kib) return kib * 1024;
  return 0;
}

TEST(HostMemory, taking_256_MB_over_and_placing_it_needs_no_second_copy) {
  if (device_count() != 1) GTEST_SKIP() << "of several ranks each keeps its block beside the whole";
  constexpr std::int64_t bytes = 256 << 20;
  std::vector<float> values(bytes / 4, 1.f);
  const std::int64_t before = peak_bytes();
  const Array x = device_put(array(std::move(values)), all_devices(), P("x"));
  EXPECT_EQ(item<float>(max(x)), 1.f);
  EXPECT_LT(peak_bytes() - before, bytes / 8);
  RecordProperty("peak_MiB", static_cast<int>(peak_bytes() >> 20));
}

TEST(HostMemory, what_a_copy_shares_is_copied) {
  HostArray host(counted(4), Shape{4});
  HostArray other = host;
  const Array x = array(std::move(other));
  host.as<float>()[0] = 99;
  EXPECT_EQ(to_vector<float>(x), counted(4));
}

TEST(HostMemory, a_block_that_is_moved_in_is_not_copied) {
  auto values = counted(12);
  const float* place = values.data();
  const Array x = make_array_from_process_local_data(NamedSharding(all_devices(), P("x")),
                                                     HostArray(std::move(values), Shape{12}));
  EXPECT_EQ(x.shape(), Shape{12 * device_count()});
  EXPECT_EQ(local<float>(x).data(), place);
}

TEST(HostMemory, somebody_elses_memory_is_released_when_nobody_looks_at_it) {
  std::vector<float> owner = counted(8);
  int released = 0;
  {
    const Array x = array(HostArray::adopt(owner.data(), Shape{8}, float32, [&] { ++released; }));
    EXPECT_EQ(local<float>(x).data(), owner.data());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

// Adopts a file that is mapped read-only.
TEST(HostMemory, adopted_memory_is_only_read) {
  constexpr std::size_t bytes = 1 << 16;
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  {
    const auto twice_plus_one = jit([](const Array& x) { return x * 2 + 1; }, {.donate_argnums = {0}});
    const Array x = array(HostArray::adopt(mapped, Shape{bytes / 4}, float32, {}));
    const Array y = twice_plus_one(device_put(x, all_devices(), P()));
    EXPECT_EQ(to_vector<float>(y)[bytes / 4 - 1], 1.f);
  }
  munmap(mapped, bytes);
}

TEST(HostMemory, a_temporarys_block_is_kept_by_what_is_given) {
  const Array x = device_put(arange(40.0, float32), all_devices(), P());
  const auto block = local<float>(x * 2);
  const auto view = local_mdspan<float>(x * 3);
  const auto host = to_host(x * 4).as<float>();
  eval({x * 5, x * 6, x * 7});  // would take freed memory
  EXPECT_EQ(block[39], 78.f);
  EXPECT_EQ(view(39), 117.f);
  EXPECT_EQ(host.back(), 156.f);
  float sum = 0;
  for (const float value : local<float>(x + 1)) sum += value;
  EXPECT_EQ(sum, 820.f);
  const std::span<const float> named = block;
  EXPECT_EQ(named.data(), block.data());
}

TEST(HostMemory, the_local_block_has_a_shape_and_indices) {
  const int ranks = device_count(), me = process_index();
  const Array x = device_put(reshape(astype(arange(7 * 3), float32), {7, 3}), all_devices(), P("x", None));
  const auto view = local_mdspan<float>(x);
  const std::int64_t block = (7 + ranks - 1) / ranks, first = std::min<std::int64_t>(me * block, 7),
                     rows = std::min<std::int64_t>(block, 7 - first);
  EXPECT_EQ(local_shape(x), (Shape{rows, 3}));
  EXPECT_EQ(view.shape(), local_shape(x));
  EXPECT_EQ(view.rank(), 2u);
  EXPECT_EQ(view.stride(0), 3);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(view(i, j), static_cast<float>((first + i) * 3 + j));
}

TEST(HostMemory, a_rank_outside_holds_a_block_without_elements) {
  const Array x = device_put(ones({4, 4}), SingleDeviceSharding(devices()[0]));
  EXPECT_EQ(local_shape(x), is_main_process() ? (Shape{4, 4}) : (Shape{0, 0}));
}

TEST(HostMemory, is_gathered_on_rank_0_alone) {
  const Array x = device_put(reshape(arange(35), {7, 5}), all_devices(), P("x", None));
  const HostArray host = multihost::process_gather(x);
  if (is_main_process()) {
    EXPECT_EQ(host.shape(), (Shape{7, 5}));
    EXPECT_EQ(host.as<int>()[34], 34);
  } else {
    EXPECT_EQ(host.size(), 0);
  }
}

TEST(HostMemory, what_is_kept_is_given_back) {
  { eval({device_put(ones({1 << 20}), all_devices(), P("x")) + 1}); }
  EXPECT_GE(release_memory(), 0);
  EXPECT_EQ(release_memory(), 0) << "there is nothing left";
}

}  // namespace
}  // namespace tessera::test
