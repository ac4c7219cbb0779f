#include <gtest/gtest.h>

#include <tessera/error.hpp>
#include <tessera/mesh.hpp>

#include <chrono>
#include <regex>

#include "mesh/devices.hpp"
#include "support/errors.hpp"
#include "support/text.hpp"

namespace tessera {
namespace {

using test::printed;

// A job of n devices, assigned to hosts in blocks.
class MeshTest : public testing::Test {
 protected:
  void SetUp() override { use_job(8, 8); }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }
  static void use_job(int devices, int per_host) {
    std::vector<Device> table;
    for (int id = 0; id < devices; ++id) table.push_back({id, id, "host" + std::to_string(id / per_host)});
    set_devices(table);
  }
  // The text, with LINE for that of the call.
  template <class F> static std::string error_of(F f) {
    static const std::regex line("at mesh_test.cpp:[0-9]+:");
    return std::regex_replace(test::error_of<ShardingError>(f), line, "at LINE:");
  }
};

TEST_F(MeshTest, prints_axes_with_sizes) {
  EXPECT_EQ(printed(make_mesh({4, 2}, {"x", "y"})), "Mesh('x': 4, 'y': 2)");
}

TEST_F(MeshTest, devices_are_row_major_and_a_device_knows_its_coordinates) {
  const Mesh mesh(NdDevices{{0, 2}, {4, 6}}, {"x", "y"});
  EXPECT_EQ(mesh.size(), 4);
  EXPECT_EQ(mesh.device_ids(), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(mesh.coords(Device{4, 4, ""}), (std::vector<int>{1, 0}));
  EXPECT_EQ(mesh.coords(Device{3, 3, ""}), std::nullopt);
  EXPECT_TRUE(mesh.contains(Device{6, 6, ""}));
  EXPECT_FALSE(mesh.contains(Device{5, 5, ""}));
  EXPECT_EQ(mesh.shape(), (std::vector<std::pair<std::string, int>>{{"x", 2}, {"y", 2}}));
}

TEST_F(MeshTest, nested_vectors_of_devices_make_the_same_grid_as_ids) {
  const auto d = devices();
  EXPECT_EQ(Mesh(std::vector<std::vector<Device>>{{d[0], d[2]}, {d[4], d[6]}}, {"x", "y"}),
            Mesh(NdDevices{{0, 2}, {4, 6}}, {"x", "y"}));
}

TEST_F(MeshTest, equality_sees_names_sizes_and_device_order) {
  const Mesh mesh = make_mesh({2, 2}, {"x", "y"});
  EXPECT_EQ(mesh, Mesh(NdDevices{{0, 1}, {2, 3}}, {"x", "y"}));
  EXPECT_EQ(mesh.hash(), Mesh(NdDevices{{0, 1}, {2, 3}}, {"x", "y"}).hash());
  EXPECT_NE(mesh, Mesh(NdDevices{{0, 2}, {1, 3}}, {"x", "y"}));
  EXPECT_NE(mesh, make_mesh({2, 2}, {"x", "z"}));
  EXPECT_NE(mesh, make_mesh({4}, {"x"}));
  EXPECT_NE(mesh, abstract_mesh({2, 2}, {"x", "y"}));
}

TEST_F(MeshTest, an_abstract_mesh_of_100000_devices_is_a_matter_of_milliseconds) {
  const auto start = std::chrono::steady_clock::now();
  const Mesh mesh = abstract_mesh({1000, 100}, {"x", "y"});
  EXPECT_EQ(mesh.position(99999), 99999);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
  EXPECT_TRUE(mesh.is_abstract());
  EXPECT_EQ(mesh.devices()[5].host, "abstract");
}

TEST_F(MeshTest, devices_of_an_abstract_mesh_make_abstract_meshes) {
  auto some = abstract_mesh({64}, {"x"}).devices();
  some.resize(32);
  EXPECT_TRUE(make_mesh({8, 4}, {"a", "b"}, some).is_abstract());
  EXPECT_TRUE(Mesh(NdDevices(some), {"a"}).is_abstract());
}

TEST_F(MeshTest, a_mesh_larger_than_the_job_says_how_to_start_it) {
  use_job(4, 4);
  EXPECT_EQ(
      error_of([] {
        make_mesh({4, 2}, {"x", "y"});
      }),
      "make_mesh at LINE: a mesh of sizes (4, 2) needs 8 devices, the job has 4: start it with -n 8, or use "
      "smaller sizes, or abstract_mesh "
      "to plan "
      "without processes");
  EXPECT_EQ(
      error_of([] {
        Mesh(NdDevices{0, 7}, {"x"});
      }),
      "Mesh at LINE: the mesh needs device 7, the job has 4 devices: start it with -n 8 or more, or plan "
      "without processes with abstract_mesh");
}

TEST_F(MeshTest, wrong_grids_and_names_are_refused) {
  EXPECT_NE(error_of([] {
              Mesh(NdDevices{0, 1, 0}, {"x"});
            }).find("device 0 stands at positions 0 and 2"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              Mesh(NdDevices{0, 1}, {"x", "y"});
            }).find("1 dimension (2,) but there are 2 axis names ('x', 'y')"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              make_mesh({2, 2}, {"x", "x"});
            }).find("two axes are named 'x'"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              make_mesh({2, 2}, {"x", ""});
            }).find("axis 1 has an empty name"),
            std::string::npos);
  EXPECT_NE(error_of([] { make_mesh({2, 0}, {"x", "y"}); }).find("axis 'y' has size 0"), std::string::npos);
  EXPECT_NE(error_of([] {
              NdDevices{{0, 1}, {2}};
            }).find("ragged nesting: row 0 has sizes (2,), row 1 has (1,)"),
            std::string::npos);
  EXPECT_NE(error_of([] { Mesh(std::vector<Device>{}, {"x"}); }).find("empty"), std::string::npos);
}

TEST_F(MeshTest, an_unknown_axis_name_gets_a_suggestion) {
  EXPECT_EQ(error_of([] {
              (void)make_mesh({4, 2}, {"rows", "cols"}).axis_size("row");
            }),
            "Mesh('rows': 4, 'cols': 2): no axis 'row'; its axes are 'rows', 'cols'. Did you mean 'rows'?");
}

TEST_F(MeshTest, create_device_mesh_keeps_the_last_axis_on_one_host) {
  use_job(8, 4);
  EXPECT_EQ(create_device_mesh({2, 4}).ids(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  // Ranks scattered round robin: even ids on one host, odd ids on the other.
  std::vector<Device> dealt;
  for (int id = 0; id < 8; ++id) dealt.push_back({id, id, id % 2 ? "odd" : "even"});
  set_devices(dealt);
  EXPECT_EQ(create_device_mesh({4, 2}).ids(), (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(create_device_mesh({4, 2}).sizes(), (std::vector<int>{4, 2}));
  // Hosts of 3 devices: only the last row crosses hosts.
  use_job(6, 3);
  EXPECT_EQ(create_device_mesh({3, 2}).ids(), (std::vector<int>{0, 1, 3, 4, 2, 5}));
  EXPECT_NE(error_of([] {
              create_device_mesh({4, 2});
            }).find("sizes (4, 2) hold 8 devices, the job has 6"),
            std::string::npos);
}

TEST_F(MeshTest, a_mesh_without_axes_is_one_device) {
  const Mesh mesh(NdDevices(3), {});
  EXPECT_EQ(mesh.ndim(), 0);
  EXPECT_EQ(mesh.position(3), 0);
  EXPECT_EQ(printed(mesh), "Mesh()");
}

}  // namespace
}  // namespace tessera
