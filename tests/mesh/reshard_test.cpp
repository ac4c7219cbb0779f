#include "mesh/reshard.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "simulator.hpp"

namespace tessera {
namespace {

using namespace simulator;

class ReshardTest : public testing::Test {
 protected:
  void SetUp() override { use_job(16); }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }
};

std::string text(const ReshardPlan& plan) {
  std::string line;
  for (const auto& step : plan.steps) {
    line += line.empty() ? "" : ", ";
    line += step.kind == StepKind::exchange ? "exchange" : step_name(step.kind);
    if (!step.axes.empty()) line += " over";
    for (int axis : step.axes) line += " " + step.from.mesh().axis_names()[axis];
    if (step.dim >= 0) line += " on " + std::to_string(step.dim);
    if (step.split_dim >= 0) line += " to " + std::to_string(step.split_dim);
    line += " " + std::to_string(step.bytes);
  }
  return line;
}
std::string moves(const Mesh& mesh, const P& from, const P& to, const Shape& shape) {
  return text(plan_reshard(NamedSharding(mesh, from), NamedSharding(mesh, to), shape, uint8));
}

TEST_F(ReshardTest, equal_layouts_need_no_step) {
  const Mesh mesh = make_mesh({4, 1}, {"x", "one"});
  EXPECT_EQ(moves(mesh, P("x"), P("x", "one"), {8, 8}), "");
  EXPECT_EQ(moves(mesh, P("x"), P(), {0, 8}), "");
}

TEST_F(ReshardTest, one_collective_where_one_suffices) {
  const Mesh mesh = make_mesh({4}, {"x"});
  EXPECT_EQ(moves(mesh, P(), P("x"), {8, 8}), "all-slice over x on 0 0");
  EXPECT_EQ(moves(mesh, P("x"), P(), {8, 8}), "all-gather over x on 0 48");
  EXPECT_EQ(moves(mesh, P("x", None), P(None, "x"), {8, 8}), "all-to-all over x on 0 to 1 12");
  // Uneven: 10 rows over 4 ranks are 3 3 3 1; the rank with 1 row lacks 9.
  EXPECT_EQ(moves(mesh, P("x"), P(), {10, 8}), "all-gather over x on 0 72");
  EXPECT_EQ(moves(mesh, P(), P("x"), {10, 8}), "all-slice over x on 0 0");
}

TEST_F(ReshardTest, moving_an_axis_among_equal_blocks_is_a_permute) {
  const Mesh square = make_mesh({4, 4}, {"x", "y"});
  EXPECT_EQ(moves(square, P("x", "y"), P("y", "x"), {16, 16}), "collective-permute over x y 16");
  EXPECT_EQ(moves(square, P("x"), P("y"), {16, 16}), "collective-permute over x y 64");
  EXPECT_EQ(moves(square, P(axes("x", "y")), P(axes("y", "x")), {16, 16}), "collective-permute over x y 16");
}

TEST_F(ReshardTest, a_permute_sends_at_most_one_message_per_rank) {
  const Mesh square = make_mesh({4, 4}, {"x", "y"});
  const Shape shape{16, 16};
  for (const auto& [from, to] : std::vector<std::pair<P, P>>{
           {P("x", "y"), P("y", "x")}, {P("x"), P("y")}, {P(None, "y"), P(None, "x")}}) {
    const std::vector<Sharding> source = {NamedSharding(square, from)};
    const auto counted = run_exchange(identity_remap(shape), source, {shape}, NamedSharding(square, to),
                                      shape, {scatter(0, source[0], shape)});
    EXPECT_EQ(counted.most_messages, 1);
    EXPECT_EQ(counted.most_sent, counted.most_received);
  }
}

TEST_F(ReshardTest, chains_slice_first_and_gather_last) {
  const Mesh mesh = make_mesh({2, 2, 2}, {"x", "y", "z"});
  EXPECT_EQ(moves(mesh, P("x", "y"), P(), {8, 8}), "all-gather over x on 0 16, all-gather over y on 1 32");
  EXPECT_EQ(moves(mesh, P("x", None), P("x", "y"), {8, 8}), "all-slice over y on 1 0");
  EXPECT_EQ(moves(mesh, P("x", None, None), P(None, "x", "y"), {8, 8, 8}),
            "all-slice over y on 2 0, all-to-all over x on 0 to 1 64");
  EXPECT_EQ(moves(mesh, P(axes("x", "y"), None), P(None, "y"), {8, 8}),
            "all-to-all over y on 0 to 1 8, all-gather over x on 0 16");
}

TEST_F(ReshardTest, nothing_is_gathered_that_is_cut_afterwards) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  // The direct exchange is the fallback: every rank receives only the elements that it lacks.
  EXPECT_EQ(moves(mesh, P("x", "y"), P("y", "x"), {16, 16}), "exchange over x y 32");
  EXPECT_EQ(moves(mesh, P(axes("x", "y")), P("y"), {16, 16}), "exchange over x y 128");
}

TEST_F(ReshardTest,
       an_uneven_dimension_is_gathered_in_place_only_when_coarse_blocks_are_unions_of_fine_ones) {
  const Mesh mesh = make_mesh({2, 2}, {"x", "y"});
  // 10 over x: [0:5] [5:10]; over x and y: [0:3] [3:6] [6:9] [9:10]
  EXPECT_EQ(moves(mesh, P(axes("x", "y")), P("x"), {10}), "exchange over y 4");
  EXPECT_EQ(moves(mesh, P("x"), P(axes("x", "y")), {10}), "exchange over y 1");
  EXPECT_EQ(moves(mesh, P(axes("x", "y")), P("x"), {12}), "all-gather over y on 0 3");
  EXPECT_EQ(moves(mesh, P(axes("x", "y")), P(), {10}), "all-gather over x y on 0 9");
}

TEST_F(ReshardTest, layouts_of_other_meshes_over_the_same_devices_meet_on_a_common_mesh) {
  const Mesh line = make_mesh({8}, {"i"}), grid = make_mesh({2, 4}, {"a", "b"});
  const auto plan = plan_reshard(NamedSharding(line, P("i")), NamedSharding(grid, P("a")), {16}, float32);
  EXPECT_EQ(text(plan), "all-gather over b on 0 24");
  EXPECT_EQ(plan.steps.back().to.spec(), P("a"));
  EXPECT_EQ(plan.steps.back().to.mesh(), grid);
}

TEST_F(ReshardTest, on_common_mesh_refines_the_axes) {
  const Mesh a = make_mesh({6}, {"i"}), b = make_mesh({2, 3}, {"x", "y"}), c = make_mesh({3, 2}, {"u", "v"});
  const auto both = on_common_mesh({NamedSharding(a, P("i")), NamedSharding(b, P("y"))});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].mesh(), both[1].mesh());
  EXPECT_EQ(both[0].spec(), P(axes("x", "y")));
  EXPECT_EQ(both[1].spec(), P("y"));
  EXPECT_TRUE(on_common_mesh({NamedSharding(b, P("y")), NamedSharding(c, P("u"))})
                  .empty());  // 3 and 2 blocks do not divide each other
  EXPECT_TRUE(on_common_mesh(
                  {NamedSharding(a, P("i")), NamedSharding(Mesh(NdDevices{5, 4, 3, 2, 1, 0}, {"i"}), P("i"))})
                  .empty());
}

TEST_F(ReshardTest, a_subset_that_holds_everything_already_needs_no_message) {
  const Mesh all = make_mesh({8}, {"x"}), half = make_mesh({4}, {"x"});
  EXPECT_EQ(text(plan_reshard(NamedSharding(all, P()), NamedSharding(half, P("x")), {8}, uint8)),
            "all-slice 0");
  EXPECT_EQ(
      text(plan_reshard(NamedSharding(all, P("x")), SingleDeviceSharding(Device{0, 0, ""}), {8}, uint8)),
      "exchange 7");
}

TEST_F(ReshardTest, planning_for_4096_ranks_takes_milliseconds) {
  const Mesh mesh = abstract_mesh({64, 64}, {"x", "y"});
  const auto start = std::chrono::steady_clock::now();
  const auto plan =
      plan_reshard(NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("x")), {8192, 8192}, float32);
  EXPECT_EQ(text(plan), "all-gather over y on 1 4128768");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

// Runs every step for all ranks, compares with the target layout, and counts moved elements.
void check_plan(const Sharding& from, const Sharding& to, const Shape& shape,
                const std::vector<int>& fixed_axes = {}) {
  const auto plan = plan_reshard(from, to, shape, uint8, fixed_axes);
  Blocks blocks = scatter(0, from, shape);
  Sharding current = from;
  for (const auto& step : plan.steps) {
    EXPECT_EQ(step.from, current);
    const auto counted =
        run_exchange(identity_remap(shape), {step.from}, {shape}, step.to, shape, {blocks}, fixed_axes);
    EXPECT_EQ(counted.most_received, step.bytes);
    EXPECT_LE(counted.most_messages, step.messages);
    if (step.kind == StepKind::all_slice) {
      EXPECT_EQ(step.bytes, 0);
    }
    blocks = counted.result;
    current = step.to;
  }
  const auto expected = expected_blocks(identity_remap(shape), {shape}, to, shape);
  for (const auto& [id, values] : expected) EXPECT_EQ(blocks[id], values) << "device " << id;
  // Steps named after a collective must stay within their mesh axes.
  for (const auto& step : plan.steps) {
    if (step.kind == StepKind::exchange || step.axes.empty()) continue;
    for (int me : step.from.mesh().device_ids())
      for (const auto& receive : plan_exchange(identity_remap(shape), std::vector{step.from},
                                               std::vector{shape}, step.to, shape, me, fixed_axes)
                                     .receives) {
        const auto mine = *step.from.mesh().coords(Device{me, me, ""}),
                   theirs = *step.from.mesh().coords(Device{receive.peer, receive.peer, ""});
        for (std::size_t axis = 0; axis < mine.size(); ++axis)
          EXPECT_TRUE(mine[axis] == theirs[axis] ||
                      std::count(step.axes.begin(), step.axes.end(), static_cast<int>(axis)))
              << text(plan) << ": " << me << " hears from " << receive.peer;
      }
  }
}

TEST_F(ReshardTest, any_layout_becomes_any_layout_on_one_mesh) {
  Random random(1);
  for (int round = 0; round < 1500 && !HasFailure(); ++round) {
    const int ndim = random.between(0, 3);
    const Mesh mesh = random.mesh(12);
    const Shape shape = random.shape(ndim);
    const Sharding from = random.sharding(mesh, ndim), to = random.sharding(mesh, ndim);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << from << " -> " << to << " shape "
                                    << shape);
    check_plan(from, to, shape);
  }
}

TEST_F(ReshardTest, any_layout_becomes_any_layout_across_meshes_orders_and_subsets) {
  Random random(2);
  for (int round = 0; round < 800 && !HasFailure(); ++round) {
    const int ndim = random.between(0, 3);
    const Shape shape = random.shape(ndim);
    const Sharding from = random.sharding(random.mesh(12), ndim), to = random.sharding(random.mesh(12), ndim);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << from << " -> " << to << " shape "
                                    << shape);
    check_plan(from, to, shape);
  }
}

TEST_F(ReshardTest, fixed_axes_are_never_crossed) {
  Random random(3);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const int ndim = random.between(1, 3);
    const Mesh mesh = random.mesh(12);
    const std::vector<int> fixed = {random.below(mesh.ndim())};
    const Shape shape = random.shape(ndim);
    const Sharding from = random.sharding(mesh, ndim, fixed), to = random.sharding(mesh, ndim, fixed);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << from << " -> " << to << " shape " << shape
                                    << " fixed " << fixed[0]);
    check_plan(from, to, shape, fixed);
    for (const auto& step : plan_reshard(from, to, shape, uint8, fixed).steps)
      for (int me : mesh.device_ids()) {
        const auto plan = plan_exchange(identity_remap(shape), std::vector{step.from}, std::vector{shape},
                                        step.to, shape, me, fixed);
        for (const auto& list : {plan.sends, plan.receives})
          for (const auto& transfer : list)
            ASSERT_EQ((*mesh.coords(Device{me, me, ""}))[fixed[0]],
                      (*mesh.coords(Device{transfer.peer, transfer.peer, ""}))[fixed[0]]);
      }
  }
}

// Plans never move more than twice the bytes of the direct exchange (chains trade bytes for fewer messages),
// and their steps are in order.
TEST_F(ReshardTest, chains_stay_near_the_fewest_bytes_possible) {
  Random random(4);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const int ndim = random.between(1, 3);
    const Mesh mesh = random.mesh(16);
    std::vector<std::int64_t> extents(ndim, 48);
    const Shape shape(extents);
    const Sharding from = random.sharding(mesh, ndim), to = random.sharding(mesh, ndim);
    const std::int64_t fewest =
        exchange_bytes(identity_remap(shape), std::vector{from}, std::vector{shape}, to, shape, 4);
    const auto plan = plan_reshard(from, to, shape, float32);
    EXPECT_LE(plan.bytes, 2 * fewest) << from << " -> " << to << ": " << text(plan);
    for (std::size_t s = 1; s < plan.steps.size(); ++s)
      EXPECT_LE(plan.steps[s - 1].kind, plan.steps[s].kind) << text(plan);
  }
}

}  // namespace
}  // namespace tessera
