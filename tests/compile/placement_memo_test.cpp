#include "compile/placement_memo.hpp"

#include <tessera/tessera.hpp>

#include <gtest/gtest.h>

#include "mesh/reshard.hpp"

namespace tessera {
namespace {

// The placement of a node's op, asked as `place` is.
template <class Place> Placement placed(const Array& result, const Mesh& mesh, Place place) {
  const Node& node = *result.node();
  std::vector<Type> in, out;
  std::vector<std::optional<Sharding>> shardings;
  for (const auto& x : node.inputs) in.push_back(type_of(x)), shardings.push_back(output_of(x).sharding);
  for (const auto& o : node.outputs) out.push_back(o.type);
  const MeshAxes fixed;
  return place(*node.op, PlacementArgs{in, out, shardings, *node.params, mesh, fixed, std::nullopt});
}

TEST(PlacementMemo, answers_as_place_does_for_more_kinds_than_it_keeps) {
  const Mesh mesh = abstract_mesh({4, 2}, {"x", "y"});
  PlacementMemo memo;
  for (const int round : {0, 1})
    for (int n = 1; n <= 12; ++n)
      for (const P& spec : {P("x"), P(None, "y"), P("x", "y"), P()}) {
        const Array a = device_put(zeros({8 * n, 16}), mesh, spec),
                    b = device_put(zeros({16, 8}), mesh, P("y"));
        for (const Array& result : {matmul(a, b), a + 1, sum(a, round), transpose(a)}) {
          const auto own =
              placed(result, mesh, [](const auto& op, const auto& args) { return place(op, args); });
          for (int again = 0; again < 2; ++again) {
            const auto asked =
                placed(result, mesh, [&](const auto& op, const auto& args) { return memo.place(op, args); });
            EXPECT_EQ(asked.inputs, own.inputs);
            EXPECT_EQ(asked.outputs, own.outputs);
            EXPECT_EQ(asked.partial_axes, own.partial_axes);
          }
        }
      }
}

TEST(PlacementMemo, tells_dtypes_and_directions_of_moves_apart) {
  const Mesh mesh = abstract_mesh({4}, {"x"});
  const Sharding rows = NamedSharding(mesh, P("x")), whole = NamedSharding(mesh, P());
  PlacementMemo memo;
  for (int again = 0; again < 2; ++again)
    for (const Dtype dtype : {float32, float64})
      for (const auto& [from, to] : {std::pair(rows, whole), {whole, rows}, {rows, rows}})
        for (int n = 0; n < 9; ++n) {
          const Type type{{n, 6}, dtype};
          EXPECT_EQ(memo.moved_bytes(from, to, type, {}),
                    plan_reshard(from, to, type.shape, dtype, {}).bytes);
        }
}

}  // namespace
}  // namespace tessera
