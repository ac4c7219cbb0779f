// Reads and writes of array elements.
#include <tessera/control/lax.hpp>
#include <tessera/ops/numpy.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void index_samples(Table& t) {
  t.add("compress", {{{7, 3}}}, [](In x) -> Out {
    const Array mask = arange(7) % 3 != 1;
    return {compress(mask, x[0], 0, {.size = 5}), compress(mask, x[0], 0, {.size = 3}),
            compress(mask, x[0], 0, {.size = 9, .fill_value = 2})};
  });
  t.add("dynamic_slices", {{{7, 5}}, {{3, 2}}}, [](In x) -> Out {
    return {dynamic_slice(x[0], {arange(9)(3), Array(1)}, {3, 2}),
            dynamic_update_slice(x[0], x[1], {arange(9)(2), Array(-4)})};
  });
  t.add(
      "bitcast", {{{5, 3}}, {{4, 2}, -9, 9, int32}},
      [](In x) -> Out {
        return {bitcast_convert_type(x[0], int64), bitcast_convert_type(x[0], int32),
                bitcast_convert_type(x[1], int64)};
      },
      Smooth::no);
  t.add("slice", {{{7, 5}}}, [](In x) -> Out {
    return {x[0](slice(1, 6, 2)), x[0](slice(), slice(None, None, -1)), x[0](3),
            x[0](ellipsis, newaxis, slice(1, 3))};
  });
  t.add("gather", {{{7, 5}}, {{3, 2}, 0, 6, int32}}, [](In x) -> Out {
    return {x[0](x[1]), take(x[0], x[1], 0)};
  });
  t.add("gather_of_two", {{{7, 5}}, {{3, 2}, 0, 6, int32}, {{2}, 0, 4, int32}},
        [](In x) -> Out { return {x[0](x[1], x[2])}; });
  t.add("set_slice", {{{7, 5}}, {{3, 5}}}, [](In x) -> Out { return {x[0].at(slice(1, 6, 2)).set(x[1])}; });
  t.add("add_slice", {{{7, 5}}, {{5}}}, [](In x) -> Out { return {x[0].at(slice(2, 5)).add(x[1])}; });
  t.add("set_gathered", {{{7, 5}}, {{5}}}, [](In x) -> Out { return {x[0].at(array({1, 4, 6})).set(x[1])}; });
  t.add("add_gathered", {{{7, 5}}, {{4}, 0, 6, int32}, {{4, 5}}},
        [](In x) -> Out { return {x[0].at(x[1]).add(x[2])}; });
  t.add("multiply_gathered", {{{7, 5}}, {{2, 5}}}, [](In x) -> Out {
    return {x[0].at(array({1, 4})).multiply(x[1])};
  });
}

}  // namespace tessera::test
