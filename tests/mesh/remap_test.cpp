#include "mesh/remap.hpp"

#include <gtest/gtest.h>

#include "simulator.hpp"

namespace tessera {
namespace {

using namespace simulator;

class RemapTest : public testing::Test {
 protected:
  void SetUp() override { use_job(12); }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }
};

std::vector<std::int64_t> ones(int ndim) { return std::vector<std::int64_t>(ndim, 1); }
std::vector<std::int64_t> nulls(int ndim) { return std::vector<std::int64_t>(ndim, 0); }

struct Case {
  std::string name;
  Remap remap;
  std::vector<Shape> sources;
  Shape result;
};

// One dim of the result is cut, flipped, rolled, joined, padded or repeated; the others do not change.
Case random_case(Random& random) {
  const int ndim = random.between(1, 3);
  const int d = random.below(ndim);
  const auto dim = static_cast<std::size_t>(d);
  Case made;
  const Shape shape = random.shape(ndim);
  const std::int64_t n = shape[dim];
  made.sources = {shape};
  made.result = shape;
  const auto piece = [&](int source, Range to, std::int64_t offset, std::int64_t step) {
    RemapPiece p{source, whole_box(made.result), nulls(ndim), ones(ndim)};
    p.to[dim] = to;
    p.offset[dim] = offset;
    p.step[dim] = step;
    made.remap.pieces.push_back(p);
  };
  switch (random.below(7)) {
    case 0: {
      const std::int64_t step = random.between(1, 4), start = random.below(static_cast<int>(n) + 1);
      made.name = "slice";
      made.result[dim] = (n - start + step - 1) / step;
      piece(0, {0, made.result[dim]}, start, step);
      break;
    }
    case 1:
      made.name = "flip";
      piece(0, {0, n}, n - 1, -1);
      break;
    case 2: {
      made.name = "roll";
      const std::int64_t shift = n ? random.below(static_cast<int>(n)) : 0;
      piece(0, {shift, n}, -shift, 1);
      piece(0, {0, shift}, n - shift, 1);
      break;
    }
    case 3: {
      made.name = "concatenate";
      std::int64_t total = n;
      for (int extra = random.between(1, 2); extra > 0; --extra) {
        Shape other = shape;
        other[dim] = random.below(9);
        total += other[dim];
        made.sources.push_back(other);
      }
      made.result[dim] = total;
      std::int64_t at = 0;
      for (std::size_t s = 0; s < made.sources.size(); ++s) {
        piece(static_cast<int>(s), {at, at + made.sources[s][dim]}, -at, 1);
        at += made.sources[s][dim];
      }
      break;
    }
    case 4: {
      made.name = "pad";
      const std::int64_t before = random.below(4);
      made.result[dim] = n + before + random.below(4);
      piece(0, {before, before + n}, -before, 1);
      break;
    }
    case 5:
      made.name = "backward slice";
      made.result[dim] = (n + 1) / 2;
      piece(0, {0, made.result[dim]}, n - 1, -2);
      break;
    default:
      made.name = "broadcast";
      made.sources[0][dim] = std::max<std::int64_t>(1, n);
      piece(0, {0, n}, random.below(static_cast<int>(made.sources[0][dim])), 0);
  }
  return made;
}

void check(const Case& made, const std::vector<Sharding>& from, const Sharding& to,
           const std::vector<int>& fixed = {}) {
  std::vector<Blocks> blocks;
  for (std::size_t s = 0; s < from.size(); ++s)
    blocks.push_back(scatter(static_cast<int>(s), from[s], made.sources[s]));
  const auto counted = run_exchange(made.remap, from, made.sources, to, made.result, blocks, fixed);
  for (const auto& [id, values] : expected_blocks(made.remap, made.sources, to, made.result))
    EXPECT_EQ(counted.result.at(id), values) << "device " << id;
  EXPECT_EQ(counted.most_received * 8,
            exchange_bytes(made.remap, from, made.sources, to, made.result, 8, fixed));
}

TEST_F(RemapTest, remaps_on_one_mesh_move_every_element_to_its_place) {
  Random random(11);
  for (int round = 0; round < 1500 && !HasFailure(); ++round) {
    const Case made = random_case(random);
    const Mesh mesh = random.mesh(12);
    std::vector<Sharding> from;
    for (const auto& source : made.sources) from.push_back(random.sharding(mesh, source.ndim()));
    const Sharding to = random.sharding(mesh, made.result.ndim());
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << made.name << " " << made.sources[0] << " "
                                    << from[0] << " -> " << to << " " << made.result);
    check(made, from, to);
  }
}

TEST_F(RemapTest, remaps_across_meshes_move_every_element_to_its_place) {
  Random random(12);
  for (int round = 0; round < 600 && !HasFailure(); ++round) {
    const Case made = random_case(random);
    std::vector<Sharding> from;
    for (const auto& source : made.sources) from.push_back(random.sharding(random.mesh(12), source.ndim()));
    const Sharding to = random.sharding(random.mesh(12), made.result.ndim());
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << made.name << " " << made.sources[0] << " "
                                    << from[0] << " -> " << to << " " << made.result);
    check(made, from, to);
  }
}

// Along an axis of many devices, one device represents all that need and hold the same elements.
TEST_F(RemapTest, the_busiest_of_many_devices_is_found) {
  const Mesh line = abstract_mesh({23}, {"x"}), grid = abstract_mesh({17, 11}, {"x", "y"});
  for (const std::int64_t n : {1, 22, 23, 24, 40, 47, 100, 230})
    for (const std::int64_t shift : {0, 1, 3, 19})
      for (const Sharding& layout :
           {Sharding(NamedSharding(line, P("x"))), Sharding(NamedSharding(grid, P("x", "y"))),
            Sharding(NamedSharding(grid, P(axes("y", "x")))), Sharding(NamedSharding(grid, P(None, "x")))}) {
        if (shift > n) continue;
        const Shape shape{n, 13};
        const Remap roll{{RemapPiece{0, {{shift, n}, {0, 13}}, {-shift, 0}, {1, 1}},
                          RemapPiece{0, {{0, shift}, {0, 13}}, {n - shift, 0}, {1, 1}}}};
        std::int64_t most = 0;
        for (const int me : layout.mesh().device_ids()) {
          std::int64_t received = 0;
          for (const auto& t :
               plan_exchange(roll, std::vector{layout}, std::vector{shape}, layout, shape, me).receives)
            received += box_elements(t.to);
          most = std::max(most, received);
        }
        EXPECT_EQ(exchange_bytes(roll, std::vector{layout}, std::vector{shape}, layout, shape, 4), 4 * most)
            << n << " rolled by " << shift << " over " << layout;
      }
}

TEST_F(RemapTest, a_roll_by_one_sends_one_row_to_the_neighbour) {
  const Sharding rows = NamedSharding(make_mesh({4}, {"x"}), P("x"));
  const Shape shape{16, 5};
  const Remap roll{
      {RemapPiece{0, {{1, 16}, {0, 5}}, {-1, 0}, {1, 1}}, RemapPiece{0, {{0, 1}, {0, 5}}, {15, 0}, {1, 1}}}};
  EXPECT_EQ(exchange_bytes(roll, std::vector{rows}, std::vector{shape}, rows, shape, 4), 20);
  const auto plan = plan_exchange(roll, std::vector{rows}, std::vector{shape}, rows, shape, 0);
  ASSERT_EQ(plan.receives.size(), 1u);
  EXPECT_EQ(plan.receives[0].peer, 3);
  EXPECT_EQ(plan.receives[0].piece, 1);
  ASSERT_EQ(plan.sends.size(), 1u);
  EXPECT_EQ(plan.sends[0].peer, 1);
  EXPECT_EQ(plan.sends[0].to, (Index{{4, 5}, {0, 5}}));
}

TEST_F(RemapTest, replicas_serve_themselves_and_share_the_other_receivers) {
  // One device requests all that 4 replicas of 2 blocks hold: no message for the block that it holds, one for
  // the other.
  const Mesh mesh = make_mesh({2, 4}, {"x", "y"});
  const Shape shape{8};
  const Sharding from = NamedSharding(mesh, P("x")), to = NamedSharding(mesh, P());
  const auto counted =
      run_exchange(identity_remap(shape), {from}, {shape}, to, shape, {scatter(0, from, shape)});
  EXPECT_EQ(counted.most_sent, 4);  // each device sends to exactly one other
  EXPECT_EQ(counted.most_received, 4);
}

TEST_F(RemapTest, the_cost_of_one_ranks_plan_does_not_grow_with_the_mesh) {
  const Mesh mesh = abstract_mesh({100000}, {"x"});
  const Sharding rows = NamedSharding(mesh, P("x"));
  const Shape shape{400000};
  const Remap shift{{RemapPiece{0, {{1, 400000}}, {-1}, {1}}}};
  const auto plan = plan_exchange(shift, std::vector{rows}, std::vector{shape}, rows, shape, 50000);
  EXPECT_EQ(plan.receives.size(), 1u);
  EXPECT_EQ(plan.sends.size(), 1u);
}

}  // namespace
}  // namespace tessera
