#include <gtest/gtest.h>

#include <tessera/error.hpp>
#include <tessera/sharding.hpp>

#include <regex>

#include "mesh/devices.hpp"
#include "support/errors.hpp"
#include "support/text.hpp"
#include "types/box.hpp"

namespace tessera {
namespace {

using test::printed;

class ShardingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<Device> table;
    for (int id = 0; id < 8; ++id) table.push_back({id, id, "localhost"});
    set_devices(table);
  }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }
  static Mesh xy() { return make_mesh({4, 2}, {"x", "y"}); }
  static Device device(int id) { return {id, id, "localhost"}; }
  // The text, with LINE for that of the call.
  template <class F> static std::string error_of(F f) {
    static const std::regex line("at sharding_test.cpp:[0-9]+:");
    return std::regex_replace(test::error_of<ShardingError>(f), line, "at LINE:");
  }
};

TEST_F(ShardingTest, specs_are_equal_by_meaning) {
  EXPECT_EQ(P("x"), P("x", None));
  EXPECT_EQ(P(), P(None, None));
  EXPECT_EQ(P(axes("x")), P("x"));
  EXPECT_NE(P("x"), P(None, "x"));
  EXPECT_NE(P(axes("x", "y")), P(axes("y", "x")));
  EXPECT_EQ((P{"x", {"y", "z"}}), P("x", axes("y", "z")));
}

TEST_F(ShardingTest, specs_print_like_they_are_written) {
  EXPECT_EQ(printed(P("x", None)), "P('x', None)");
  EXPECT_EQ(printed(P(axes("x", "y"), None)), "P(('x', 'y'), None)");
  EXPECT_EQ(printed(P()), "P()");
  EXPECT_EQ(printed(NamedSharding(xy(), P("x", None))), "NamedSharding(Mesh('x': 4, 'y': 2), P('x', None))");
}

TEST_F(ShardingTest, blocks_of_an_uneven_dimension_are_ceil_n_over_p_and_the_last_may_be_empty) {
  const Sharding s = NamedSharding(make_mesh({4}, {"x"}), P("x"));
  const Shape global{5};
  EXPECT_EQ(s.shard_shape(global), Shape{2});
  const auto map = s.devices_indices_map(global);
  ASSERT_EQ(map.size(), 4u);
  EXPECT_EQ(map[0].second, (Index{{0, 2}}));
  EXPECT_EQ(map[2].second, (Index{{4, 5}}));
  EXPECT_EQ(map[3].second, (Index{{5, 5}}));
  EXPECT_EQ(s.local_shape(global, device(2)), Shape{1});
  EXPECT_EQ(s.local_shape(global, device(3)), Shape{0});
  EXPECT_EQ(s.memory_bytes(global, float64, device(2)), 8);
}

TEST_F(ShardingTest, the_first_name_of_axes_is_the_major_one) {
  const Shape global{8};
  const Sharding xy_split = NamedSharding(xy(), P(axes("x", "y"))),
                 yx_split = NamedSharding(xy(), P(axes("y", "x")));
  EXPECT_EQ(xy_split.local_box(global, 1), (Index{{1, 2}}));
  EXPECT_EQ(yx_split.local_box(global, 1), (Index{{4, 5}}));
  EXPECT_EQ(yx_split.local_box(global, 2), (Index{{1, 2}}));
}

TEST_F(ShardingTest, replicas_are_counted_in_mesh_order) {
  const Sharding s = NamedSharding(xy(), P("x"));
  EXPECT_EQ(s.replica_id({8, 4}, device(0)), 0);
  EXPECT_EQ(s.replica_id({8, 4}, device(1)), 1);
  EXPECT_EQ(s.replica_id({8, 4}, device(6)), 0);
  EXPECT_FALSE(s.is_fully_replicated());
  EXPECT_TRUE(NamedSharding(xy(), P()).is_fully_replicated());
  EXPECT_EQ(NamedSharding(xy(), P()).replica_id({8}, device(5)), 5);
  EXPECT_EQ(s.num_devices(), 8);
  EXPECT_EQ(s.device_set().size(), 8u);
}

TEST_F(ShardingTest, equality_is_by_meaning) {
  const auto same = [](const Sharding& a, const Sharding& b) { return a == b && a.hash() == b.hash(); };
  const Mesh mesh = xy();
  EXPECT_TRUE(same(NamedSharding(mesh, P("x")), NamedSharding(mesh, P("x", None))));
  EXPECT_FALSE(NamedSharding(mesh, P("x")) == NamedSharding(mesh, P("y")));
  EXPECT_FALSE(NamedSharding(mesh, P("x")) == NamedSharding(mesh, P(None, "x")));
  const Mesh with_one = make_mesh({4, 1, 2}, {"x", "one", "y"});
  EXPECT_TRUE(same(NamedSharding(with_one, P("x", "one")), NamedSharding(with_one, P("x"))));
  EXPECT_TRUE(same(NamedSharding(with_one, P("x", "y")), NamedSharding(mesh, P("x", "y"))));
  const Mesh line = make_mesh({8}, {"i"});
  EXPECT_TRUE(same(NamedSharding(line, P("i")), NamedSharding(mesh, P(axes("x", "y")))));
  EXPECT_FALSE(NamedSharding(line, P("i")) == NamedSharding(mesh, P(axes("y", "x"))));
  EXPECT_TRUE(same(NamedSharding(line, P()), NamedSharding(mesh, P())));
  EXPECT_FALSE(NamedSharding(Mesh(NdDevices{1, 0}, {"x"}), P("x")) ==
               NamedSharding(Mesh(NdDevices{0, 1}, {"x"}), P("x")));
  EXPECT_FALSE(NamedSharding(abstract_mesh({4, 2}, {"x", "y"}), P("x")) == NamedSharding(mesh, P("x")));
}

TEST_F(ShardingTest, is_equivalent_to_wants_arrays_that_both_can_describe) {
  const Mesh mesh = xy();
  EXPECT_TRUE(NamedSharding(mesh, P("x")).is_equivalent_to(NamedSharding(mesh, P("x", None)), 2));
  EXPECT_NE(error_of([&] {
              (void)NamedSharding(mesh, P("x", "y")).is_equivalent_to(NamedSharding(mesh, P("x")), 1);
            }).find("2 entries"),
            std::string::npos);
}

TEST_F(ShardingTest, a_null_pointer_names_no_axis) {
  const std::string text = "P: the name of an axis is a null pointer; write None for a dim that is not split";
  const char* const name = nullptr;
  EXPECT_EQ(error_of([] { P(nullptr); }), text);
  EXPECT_EQ(error_of([&] { P("x", name); }), text);
  EXPECT_EQ(error_of([&] { P(None, axes("x", name)); }), text);
}

TEST_F(ShardingTest, wrong_specs_are_refused_with_spec_mesh_and_axis) {
  EXPECT_EQ(error_of([] { NamedSharding(xy(), P("x", "x")); }),
            "NamedSharding at LINE: P('x', 'x') over Mesh('x': 4, 'y': 2): axis 'x' is used twice, in "
            "entries 0 and 1; "
            "one mesh axis can split only "
            "one dimension, once");
  EXPECT_EQ(error_of([] { NamedSharding(xy(), P(None, "z")); }),
            "NamedSharding at LINE: P(None, 'z') over Mesh('x': 4, 'y': 2): entry 1 names axis 'z', which "
            "the mesh does "
            "not have; its axes are 'x', 'y'");
  EXPECT_EQ(error_of([] { NamedSharding(make_mesh({8}, {"batch"}), P("bacth")); }),
            "NamedSharding at LINE: P('bacth') over Mesh('batch': 8): entry 0 names axis 'bacth', which the "
            "mesh does "
            "not have; its axes are 'batch'. "
            "Did you mean 'batch'?");
  EXPECT_EQ(error_of([] { NamedSharding(xy(), P("x", "y")).check_fits({8}, "device_put"); }),
            "device_put: NamedSharding(Mesh('x': 4, 'y': 2), P('x', 'y')) has 2 entries, more than the 1 "
            "dimension of an array of shape (8,); "
            "leave out the last one");
  EXPECT_NE(error_of([] {
              (void)NamedSharding(make_mesh({2}, {"x"}), P("x")).local_shape({8}, device(5));
            }).find("CpuDevice(id=5) is not in Mesh('x': 2)"),
            std::string::npos);
}

TEST_F(ShardingTest, a_single_device_holds_everything) {
  const Sharding s = SingleDeviceSharding(device(3));
  EXPECT_EQ(printed(s), "SingleDeviceSharding(CpuDevice(id=3))");
  EXPECT_EQ(s.local_box({4, 4}, 3), whole_box({4, 4}));
  EXPECT_TRUE(is_empty(s.local_box({4, 4}, 0)));
  EXPECT_EQ(s, NamedSharding(Mesh(NdDevices{3}, {"x"}), P("x")));
}

TEST_F(ShardingTest, dim_axes_leave_out_axes_of_size_one_and_go_back) {
  const Mesh mesh = make_mesh({4, 1, 2}, {"x", "one", "y"});
  const Sharding s = NamedSharding(mesh, P(axes("y", "one", "x"), None));
  EXPECT_EQ(s.dim_axes(3), (std::vector<std::vector<int>>{{2, 0}, {}, {}}));
  EXPECT_EQ(Sharding::from_dim_axes(mesh, s.dim_axes(3)), s);
  EXPECT_EQ(Sharding::from_dim_axes(mesh, s.dim_axes(2)).spec(), P(axes("y", "x")));
}

TEST_F(ShardingTest, positional_shardings_reshape_transpose_and_replicate) {
  const PositionalSharding row(devices());
  EXPECT_EQ(printed(row.reshape(2, 2, 2)), "[[[{0} {1}] [{2} {3}]] [[{4} {5}] [{6} {7}]]]");
  const auto grid = row.reshape(4, -1);
  EXPECT_EQ(grid.shape(), (Shape{4, 2}));
  EXPECT_EQ(printed(grid.T()), "[[{0} {2} {4} {6}] [{1} {3} {5} {7}]]");
  EXPECT_EQ(printed(grid.replicate(0)), "[[{0 2 4 6} {1 3 5 7}]]");
  EXPECT_EQ(printed(grid.replicate(1)), "[[{0 1}] [{2 3}] [{4 5}] [{6 7}]]");
  EXPECT_EQ(printed(grid.replicate(-1, false)), "[{0 1} {2 3} {4 5} {6 7}]");
  EXPECT_EQ(printed(grid.replicate()), "[[{0 1 2 3 4 5 6 7}]]");
  EXPECT_EQ(printed(Sharding(grid.replicate(0))), "PositionalSharding([[{0 2 4 6} {1 3 5 7}]])");
  EXPECT_EQ(grid.transpose({1, 0}), grid.T());
  EXPECT_NE(error_of([&] { (void)grid.reshape(3, 2); }).find("it has 8 device sets, the sizes ask for 6"),
            std::string::npos);
  EXPECT_NE(error_of([&] { (void)grid.replicate(2); }).find("axis 2 is out of range"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)grid.transpose({0, 0}); }).find("not a permutation"), std::string::npos);
  EXPECT_NE(error_of([] {
              PositionalSharding(NdDevices{0, 0});
            }).find("device 0 stands at positions 0 and 1"),
            std::string::npos);
}

TEST_F(ShardingTest, positional_equals_named_by_meaning) {
  const PositionalSharding grid = PositionalSharding(devices()).reshape(4, 2);
  const Mesh mesh = xy();
  EXPECT_EQ(Sharding(grid), NamedSharding(mesh, P("x", "y")));
  EXPECT_EQ(Sharding(grid.T()), NamedSharding(mesh, P("y", "x")));
  EXPECT_EQ(Sharding(grid.replicate(0)), NamedSharding(mesh, P(None, "y")));
  EXPECT_EQ(Sharding(grid.replicate(1)), NamedSharding(mesh, P("x")));
  EXPECT_EQ(Sharding(grid.replicate()), NamedSharding(mesh, P()));
  const Mesh cube = make_mesh({2, 2, 2}, {"a", "b", "c"});
  const PositionalSharding block = PositionalSharding(devices()).reshape(2, 2, 2);
  EXPECT_EQ(Sharding(block.transpose({2, 0, 1}).reshape(4, 2)), NamedSharding(cube, P(axes("c", "a"), "b")));
  EXPECT_EQ(Sharding(block.replicate(0).replicate(2)), NamedSharding(cube, P(None, "b")));
}

// Blocks must be at the positions in the grid's own picture, also for grids that no axes of the base order
// can describe.
TEST_F(ShardingTest, positional_blocks_lie_where_the_picture_says) {
  const PositionalSharding six(NdDevices{5, 4, 3, 2, 1, 0});
  const std::vector<PositionalSharding> grids = {six.reshape(2, 3),
                                                 six.reshape(2, 3).T(),
                                                 six.reshape(2, 3).T().reshape(2, 3),
                                                 six.reshape(2, 3).replicate(0),
                                                 six.reshape(3, 2).T().replicate(1),
                                                 six.reshape(2, 3).T().reshape(2, 3).replicate(0)};
  for (const auto& grid : grids) {
    const Sharding s = grid;
    const Shape global = grid.shape();
    for (std::size_t i = 0; i < grid.device_sets().size(); ++i)
      for (int id : grid.device_sets()[i]) {
        const auto row = static_cast<std::int64_t>(i) / global[1],
                   col = static_cast<std::int64_t>(i) % global[1];
        EXPECT_EQ(s.local_box(global, id), (Index{{row, row + 1}, {col, col + 1}}))
            << grid << " device " << id;
      }
  }
}

TEST_F(ShardingTest, a_positional_sharding_has_an_entry_for_each_dimension) {
  const Sharding grid = PositionalSharding(devices()).reshape(4, 2);
  EXPECT_NE(error_of([&] {
              grid.shard_shape({8, 8, 8});
            }).find("fewer than the 3 dimensions"),
            std::string::npos);
  EXPECT_EQ(Sharding(PositionalSharding(devices()).replicate()).shard_shape({8, 8, 8}), (Shape{8, 8, 8}));
}

}  // namespace
}  // namespace tessera
