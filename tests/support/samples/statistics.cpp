// Statistics.
#include <tessera/ops/numpy.hpp>

#include <cmath>

#include "support/samples/table.hpp"

namespace tessera::test {

void statistics_samples(Table& t) {
  t.add("quantile", {{{7, 5}}}, [](In x) -> Out {
    return {quantile(x[0], array({0.1, 0.6}), 0), nanquantile(x[0], 0.3, {0, 1}, "hazen")};
  });
  t.add(
      "interp", {{{6}, -1, 5}},
      [](In x) -> Out {
        return {interp(x[0], array({0.0, 1.0, 3.0, 4.0}), array({2.0, -1.0, 0.5, 3.0}))};
      },
      Smooth::once);
  t.add("cov", {{{4, 7}}}, [](In x) -> Out { return {cov(x[0]), corrcoef(x[0])}; });
  t.add("gradient_convolve", {{{7}}, {{3}}}, [](In x) -> Out {
    return {gradient(x[0], 0), convolve(x[0], x[1]), correlate(x[0], x[1], "same"), trapezoid(x[0])};
  });
  t.add("averages", {{{7, 5}}, {{7, 5}, 0.5, 2}}, [](In x) -> Out {
    return {average(x[0], x[1], 0), median(x[0]),           median(x[0], 0),
            ptp(x[0], 1),           var(x[0], 0, false, 1), stddev(x[0])};
  });
  t.add("percentiles", {{{7, 5}}}, [](In x) -> Out {
    return {percentile(x[0], array({20.0, 90.0}), 0), nanpercentile(x[0], 30, 1), nanmedian(x[0], 0),
            quantile(x[0], 0.4, {}, "median_unbiased", true)};
  });
  t.add("without_nan", {{{7, 5}, 0.5, 2}}, [](In x) -> Out {
    const Array z = where(astype(arange(5), float64) == 3, astype(NAN, float64), x[0]);
    return {nansum(z, 0), nanprod(z, 1), nanmean(z),      nanvar(z, 1),    nanstd(z, 1),
            nanmax(z, 1), nanmin(z),     nancumsum(z, 0), nancumprod(z, 1)};
  });
  t.add_values("places_without_nan", {{{7, 5}}}, [](In x) -> Out {
    const Array z = where(x[0] > 1, astype(NAN, float64), x[0]);
    return {nanargmax(z), nanargmin(z)};
  });
  t.add_values("histograms", {{{7, 5}}, {{7, 5}, 0.5, 2}}, [](In x) -> Out {
    const auto both = histogram2d(ravel(x[0]), ravel(x[1]));
    return {histogram(x[0], 4).first,
            histogram(x[0], {.bins = 3, .range = std::pair{-1.0, 1.0}}).first,
            histogram(x[0], {.bins = 3, .range = std::pair{-1.0, 1.0}, .weights = x[1]}).first,
            histogram(x[0], array({-2.0, -1.0, 0.5, 2.0})).first,
            histogram_bin_edges(x[0], {.bins = 5}),
            both.counts};
  });
  t.add_values("count_bins", {{{7, 5}}, {{11}, 0.5, 2}}, [](In x) -> Out {
    return {histogram(x[0], 6).first, histogram(x[1], array({0.5, 0.6, 1.5})).first};
  });
  t.add_values("counted", {{{9}, 0, 5, int32}, {{9}}}, [](In x) -> Out {
    return {bincount(x[0], 6), digitize(x[1], array({-1.0, 0.0, 1.0})),
            digitize(x[1], array({1.0, 0.0}), true)};
  });
  t.add("bincount_of_weights", {{{9}, 0, 5, int32}, {{9}}},
        [](In x) -> Out { return {bincount(x[0], x[1], 6)}; });
}

}  // namespace tessera::test
