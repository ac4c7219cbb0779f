// Sorting, and sums along the way.
#include <tessera/ops.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void sort_samples(Table& t) {
  t.add("sort", {{{7, 5}}}, [](In x) -> Out { return {sort(x[0]), sort(x[0], 0)}; });
  t.add(
      "argsort", {{{7, 5}}},
      [](In x) -> Out {
        return {argsort(x[0]), argsort(x[0], 0)};
      },
      Smooth::no);
  t.add(
      "argmax_argmin", {{{7, 5}}},
      [](In x) -> Out {
        return {argmax(x[0]), argmax(x[0], 0), argmin(x[0], 1, true)};
      },
      Smooth::no);
  t.add("top_k", {{{4, 9}}}, [](In x) -> Out {
    const auto [values, indices] = top_k(x[0], 3);
    return {values, indices};
  });
  t.add(
      "searchsorted", {{{5}}, {{3, 2}}}, [](In x) -> Out { return {searchsorted(sort(x[0]), x[1])}; },
      Smooth::no);
  t.add("cumsum", {{{7, 5}}}, [](In x) -> Out { return {cumsum(x[0], 0), cumsum(x[0], 1)}; });
  t.add("cumprod", {{{5, 3}, 0.5, 2}}, [](In x) -> Out { return {cumprod(x[0], 0), cumprod(x[0], 1)}; });
  t.add("cumulative_extrema", {{{5, 3}}}, [](In x) -> Out {
    return {cummax(x[0], 0), cummax(x[0], 1, true), cummin(x[0], 1), cummin(x[0], 0, true)};
  });
  t.add("cumlogsumexp", {{{5, 3}}}, [](In x) -> Out {
    return {cumlogsumexp(x[0], 0), cumlogsumexp(x[0], 1, true)};
  });
  t.add("cumsum_initial", {{{5, 3}}}, [](In x) -> Out {
    return {cumsum(x[0], 0, {.include_initial = true}), cumsum(x[0])};
  });
  t.add("pad_modes", {{{5, 3}}}, [](In x) -> Out {
    return {pad(x[0], {{2, 7}, {0, 1}}, "reflect"), pad(x[0], {{2, 1}}, "edge"), pad(x[0], {{3, 4}}, "wrap")};
  });
  t.add("repeat_counts", {{{3, 4}}}, [](In x) -> Out {
    return {repeat(x[0], std::vector<std::int64_t>{2, 0, 3}, 0)};
  });
  t.add("take_along_axis", {{{7, 5}}, {{3, 5}, 0, 6, int32}},
        [](In x) -> Out { return {take_along_axis(x[0], x[1], 0)}; });
}

}  // namespace tessera::test
