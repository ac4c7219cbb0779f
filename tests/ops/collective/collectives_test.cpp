// Every collective over every axis of 1-, 2- and 3-d meshes, compared with the simulator.
#include "over_ranks.hpp"

namespace {

using namespace over_ranks;
using tessera::max;
using tessera::min;

TEST(Collectives, reductions_combine_the_ranks_of_the_axis_and_leave_the_others_apart) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const auto x = values(mesh.size(), {2, 3});
      const auto members = members_of(mesh, names);
      const auto sum = simulator::reduce(x, members, [](double a, double b) { return a + b; });
      expect_over_ranks(
          mesh, x, sum, [&](const Array& b) { return psum(b, axis_of(names)); }, "psum " + text(names));
      expect_over_ranks(
          mesh, x, simulator::reduce(x, members, [](double a, double b) { return std::max(a, b); }),
          [&](const Array& b) { return pmax(b, axis_of(names)); }, "pmax " + text(names));
      expect_over_ranks(
          mesh, x, simulator::reduce(x, members, [](double a, double b) { return std::min(a, b); }),
          [&](const Array& b) { return pmin(b, axis_of(names)); }, "pmin " + text(names));
      auto mean = sum;
      for (auto& v : mean)
        for (auto& e : v.data) e /= size_along(mesh, names);
      expect_over_ranks(
          mesh, x, mean, [&](const Array& b) { return pmean(b, axis_of(names)); }, "pmean " + text(names),
          float64);
    }
}

TEST(Collectives, all_gather_stacks_or_concatenates_along_any_dimension) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const auto x = values(mesh.size(), {2, 3});
      for (int axis = 0; axis < 3; ++axis)
        for (const bool tiled : {false, true}) {
          if (tiled && axis == 2) continue;
          expect_over_ranks(
              mesh, x, simulator::all_gather(x, members_of(mesh, names), axis, tiled),
              [&](const Array& b) { return all_gather(b, axis_of(names), {.axis = axis, .tiled = tiled}); },
              "all_gather " + text(names) + std::to_string(axis));
        }
    }
}

TEST(Collectives, psum_scatter_keeps_own_block_of_the_sum) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const std::int64_t n = size_along(mesh, names);
      for (const bool tiled : {false, true})
        for (int dim = 0; dim < 2; ++dim) {
          std::vector<std::int64_t> shape = {2, 2};
          shape[dim] = tiled ? 3 * n : n;
          const auto x = values(mesh.size(), shape);
          expect_over_ranks(
              mesh, x, simulator::psum_scatter(x, members_of(mesh, names), dim, tiled),
              [&](const Array& b) {
                return psum_scatter(b, axis_of(names), {.scatter_dimension = dim, .tiled = tiled});
              },
              "psum_scatter " + text(names));
        }
    }
}

TEST(Collectives, all_to_all_exchanges_blocks) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const std::int64_t n = size_along(mesh, names);
      for (const bool tiled : {false, true})
        for (int split = 0; split < 3; ++split)
          for (int concat = 0; concat < 3; ++concat) {
            std::vector<std::int64_t> shape = {2, 1, 3};
            shape[split] = tiled ? 2 * n : n;
            const auto x = values(mesh.size(), shape);
            expect_over_ranks(
                mesh, x, simulator::all_to_all(x, members_of(mesh, names), split, concat, tiled),
                [&](const Array& b) {
                  return all_to_all(b, axis_of(names), split, concat, {.tiled = tiled});
                },
                "all_to_all " + text(names) + std::to_string(split) + std::to_string(concat) +
                    (tiled ? " tiled" : ""));
          }
    }
}

TEST(Collectives, permutations_move_blocks_and_fill_with_zeros) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const int n = size_along(mesh, names);
      const auto x = values(mesh.size(), {3});
      const auto members = members_of(mesh, names);
      std::vector<std::pair<int, int>> ring, up;
      std::vector<int> reversed;
      for (int i = 0; i < n; ++i) ring.emplace_back(i, (i + 1) % n), reversed.push_back(n - 1 - i);
      for (int i = 0; i + 1 < n; ++i) up.emplace_back(i, i + 1);
      expect_over_ranks(
          mesh, x, simulator::ppermute(x, members, ring),
          [&](const Array& b) { return ppermute(b, axis_of(names), ring); }, "ring " + text(names));
      expect_over_ranks(
          mesh, x, simulator::ppermute(x, members, up),
          [&](const Array& b) { return ppermute(b, axis_of(names), up); }, "shift up " + text(names));
      expect_over_ranks(
          mesh, x, simulator::ppermute(x, members, {}),
          [&](const Array& b) { return ppermute(b, axis_of(names), {}); }, "nobody " + text(names));
      std::vector<std::pair<int, int>> pairs;
      for (int i = 0; i < n; ++i) pairs.emplace_back(n - 1 - i, i);
      expect_over_ranks(
          mesh, x, simulator::ppermute(x, members, pairs),
          [&](const Array& b) { return pshuffle(b, axis_of(names), reversed); }, "pshuffle " + text(names));
      for (int source = 0; source<n; source += n> 2 ? n - 1 : 1) {
        PerRank expected;
        for (std::size_t r = 0; r < x.size(); ++r) expected.push_back(x[members[r][source]]);
        expect_over_ranks(
            mesh, x, expected, [&](const Array& b) { return pbroadcast(b, axis_of(names), source); },
            "pbroadcast " + text(names));
      }
      const auto square = values(mesh.size(), {2, n});
      expect_over_ranks(
          mesh, square, simulator::all_to_all(square, members, 1, 1, false),
          [&](const Array& b) { return pswapaxes(b, axis_of(names), 1); }, "pswapaxes " + text(names));
    }
}

TEST(Collectives, axis_index_numbers_the_ranks_first_name_major) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const auto x = values(mesh.size(), {1});
      const auto members = members_of(mesh, names);
      PerRank expected;
      for (int r = 0; r < mesh.size(); ++r)
        expected.push_back({{}, {static_cast<double>(simulator::place(members, r))}});
      expect_over_ranks(
          mesh, x, expected, [&](const Array&) { return axis_index(axis_of(names)); },
          "axis_index " + text(names));
      expect_over_ranks(
          mesh, x, x,
          [&](const Array& b) {
            EXPECT_EQ(axis_size(axis_of(names)), size_along(mesh, names));
            return b;
          },
          "axis_size");
    }
}

TEST(Collectives, pargmax_takes_the_lowest_of_equals) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      PerRank x;
      for (int r = 0; r < mesh.size(); ++r)
        x.push_back({{3}, {static_cast<double>(r % 3), static_cast<double>(-r / 2), 5.0}});
      const auto members = members_of(mesh, names);
      PerRank largest, smallest;
      for (std::size_t r = 0; r < x.size(); ++r) {
        Value best{{3}, {0, 0, 0}}, worst = best;
        for (std::size_t i = 0; i < 3; ++i)
          for (std::size_t m = 1; m < members[r].size(); ++m) {
            const auto value = [&](double place) { return x[members[r][place]].data[i]; };
            if (value(static_cast<double>(m)) > value(best.data[i])) best.data[i] = static_cast<double>(m);
            if (value(static_cast<double>(m)) < value(worst.data[i])) worst.data[i] = static_cast<double>(m);
          }
        largest.push_back(best);
        smallest.push_back(worst);
      }
      expect_over_ranks(
          mesh, x, largest, [&](const Array& b) { return pargmax(b, axis_of(names)); },
          "pargmax " + text(names));
      expect_over_ranks(
          mesh, x, smallest, [&](const Array& b) { return pargmin(b, axis_of(names)); },
          "pargmin " + text(names));
    }
}

}  // namespace
