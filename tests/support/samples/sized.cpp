// Functions whose result is as large as values say, with a size.
#include <tessera/ops/numpy.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void sized_samples(Table& t) {
  t.add("extract", {{{5, 3}}, {{5, 3}, 0, 1, bool_}}, [](In x) -> Out {
    return {extract(x[1], x[0], {.size = 7}), extract(x[1], x[0], {.size = 20, .fill_value = 3})};
  });
  t.add_values("places_of_what_is_not_0", {{{5, 3}, 0, 2, int32}}, [](In x) -> Out {
    const auto at = nonzero(x[0], {.size = 8});
    return {at[0], at[1], flatnonzero(x[0], {.size = 20, .fill_value = -1}), argwhere(x[0], {.size = 6})};
  });
  t.add_values("different_ones", {{{5, 3}, 0, 6, int32}}, [](In x) -> Out {
    const auto [values, counts] = unique_counts(x[0], {.size = 7});
    const auto inverse = unique_inverse(x[0], {.size = 7}).second;
    const auto all = unique_all(x[0], {.size = 4});
    return {unique(x[0], {.size = 5}), values, counts, inverse, all.indices, all.counts};
  });
  t.add_values("sets", {{{7}, 0, 9, int32}, {{5}, 0, 9, int32}}, [](In x) -> Out {
    return {union1d(x[0], x[1], {.size = 10}),
            intersect1d(x[0], x[1], {.size = 4}),
            setdiff1d(x[0], x[1], {.size = 5}),
            setxor1d(x[0], x[1], {.size = 9}),
            isin(x[0], x[1]),
            in1d(x[1], x[0], true)};
  });
}

}  // namespace tessera::test
