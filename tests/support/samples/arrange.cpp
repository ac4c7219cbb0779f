// Arrays put together, turned and chosen from.
#include <tessera/ops/numpy.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void arrangement_samples(Table& t) {
  t.add("stacked", {{{4, 3}}, {{4, 3}}}, [](In x) -> Out {
    return {vstack({x[0], x[1]}),       hstack({x[0], x[1]}),    dstack({x[0], x[1]}),
            column_stack({x[0], x[1]}), append(x[0], x[1], 0),   concat({x[0], x[1]}, 1),
            unstack(x[0], 1)[2],        stack({x[0], x[1]}, -1), split_at(x[0], {1, 3})[1]};
  });
  t.add("block", {{{2, 3}}, {{2, 2}}, {{3, 5}}}, [](In x) -> Out { return {block({{x[0], x[1]}, {x[2]}})}; });
  t.add("turned", {{{5, 3}}}, [](In x) -> Out {
    return {rot90(x[0]),  rot90(x[0], 2), rot90(x[0], -1),        fliplr(x[0]),
            flipud(x[0]), ravel(x[0]),    matrix_transpose(x[0]), permute_dims(x[0], {1, 0})};
  });
  t.add("more_dims", {{{5}}, {{3, 1}}}, [](In x) -> Out {
    const auto same = broadcast_arrays({x[0], x[1]});
    return {atleast_1d(x[0]), atleast_2d(x[0]), atleast_3d(x[1]), same[0], same[1]};
  });
  t.add("diagonals", {{{5}}, {{3, 4}}}, [](In x) -> Out {
    return {diag(x[0]), diag(x[0], 2), diag(x[1], 1), diagflat(x[1], -1)};
  });
  t.add("vander", {{{5}}}, [](In x) -> Out { return {vander(x[0], 3), vander(x[0], 4, true)}; });
  t.add("select_choose", {{{5, 3}}, {{5, 3}}, {{5, 3}, 0, 1, int32}}, [](In x) -> Out {
    return {select({x[2] == 1, x[2] == 7}, {x[0], x[1]}, 0.5), choose(x[2], {x[0], x[1]}),
            choose(x[2] + 3, {x[0], x[1]}, "wrap")};
  });
  t.add("partition", {{{7, 5}}}, [](In x) -> Out { return {partition(x[0], 3, 0)(3), median(x[0], 1)}; });
  t.add_values("orders", {{{7, 5}}, {{7, 5}, 0, 3, int32}}, [](In x) -> Out {
    return {lexsort({x[0], x[1]}, 0), take_along_axis(x[0], argpartition(x[0], 2, 1), 1)(ellipsis, 2),
            sort(x[0], 1, {.descending = true}), argsort(x[1], 0, {.descending = true})};
  });
  t.add_values("places", {{{6}, 0, 34, int32}, {{6}, 0, 4, int32}}, [](In x) -> Out {
    const auto at = unravel_index(x[0], {7, 5});
    return {at[0], at[1], ravel_multi_index({x[1], x[1]}, {5, 9}), indices({4, 3}), tri(4, 6, 1)};
  });
  t.add_values("compared", {{{5, 3}, 0, 2, int32}, {{3}, 0, 2, int32}}, [](In x) -> Out {
    return {array_equal(x[0], x[0]), array_equal(x[0], x[1]), array_equiv(x[0], x[1]), isclose(x[0], x[1]),
            allclose(x[0], x[0])};
  });
}

}  // namespace tessera::test
