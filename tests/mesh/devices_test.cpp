#include "mesh/devices.hpp"

#include <gmock/gmock.h>
#include <tessera/mesh.hpp>

namespace tessera {
namespace {

using testing::ElementsAre;

// "aabb": devices 0 and 1 on host a, 2 and 3 on host b.
std::vector<Device> on_hosts(const std::string& hosts) {
  std::vector<Device> all;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    all.push_back({static_cast<int>(i), static_cast<int>(i), std::string(1, hosts[i])});
  return all;
}
std::vector<int> arranged(std::vector<int> sizes, const std::string& hosts) {
  return arrange_by_hosts(sizes, on_hosts(hosts));
}

TEST(Arrange, ranks_in_a_row_on_equal_hosts_stay_in_order) {
  EXPECT_THAT(arranged({2, 4}, "aaaabbbb"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(arranged({4, 2}, "aaaabbbb"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(arranged({8}, "aaaaaaaa"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Arrange, ranks_dealt_out_in_turns_are_brought_together) {
  EXPECT_THAT(arranged({2, 4}, "abababab"), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(arranged({4, 2}, "abababab"), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(Arrange, rows_that_fit_a_host_lie_on_one_and_the_last_takes_what_is_left) {
  EXPECT_THAT(arranged({3, 2}, "aaabbb"), ElementsAre(0, 1, 3, 4, 2, 5));
  EXPECT_THAT(arranged({4, 3}, "aaaabbbbcccc"), ElementsAre(0, 1, 2, 4, 5, 6, 8, 9, 10, 3, 7, 11));
}

TEST(Arrange, where_no_row_fits_smaller_blocks_of_the_last_axes_do) {
  EXPECT_THAT(arranged({2, 2, 2}, "aabbccdd"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(arranged({2, 2, 2}, "abcdabcd"), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
}

TEST(Arrange, hosts_of_unequal_size) {
  EXPECT_THAT(arranged({2, 2}, "aaab"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(arranged({2, 2}, "abbb"), ElementsAre(1, 2, 0, 3));
}

TEST(Arrange, every_device_stands_once) {
  for (const auto* hosts : {"abcabcabcabc", "aaaaaabbbbcc", "abbbbbbbbbbb"}) {
    auto ids = arranged({2, 3, 2}, hosts);
    std::sort(ids.begin(), ids.end());
    EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)) << hosts;
  }
}

class MakeMesh : public testing::Test {
 protected:
  void SetUp() override { set_devices(on_hosts("abababab")); }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }
};

TEST_F(MakeMesh, knows_the_hosts) {
  EXPECT_THAT(make_mesh({2, 4}, {"x", "y"}).device_ids(), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST_F(MakeMesh, of_a_part_of_the_job_takes_the_first_devices) {
  EXPECT_THAT(make_mesh({2, 2}, {"x", "y"}).device_ids(), ElementsAre(0, 2, 1, 3));
}

TEST_F(MakeMesh, keeps_the_order_of_devices_that_are_named) {
  EXPECT_THAT(make_mesh({2, 4}, {"x", "y"}, devices()).device_ids(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace
}  // namespace tessera
