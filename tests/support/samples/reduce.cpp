// Reductions.
#include <tessera/ops.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void reduction_samples(Table& t) {
  t.add("sum", {{{5, 3}}}, [](In x) -> Out { return {sum(x[0]), sum(x[0], 0), sum(x[0], {-1}, true)}; });
  t.add("sum_complex", {{{5, 3}, -2, 2, complex128}}, [](In x) -> Out { return {sum(x[0], 0)}; });
  t.add("mean", {{{2, 5, 3}}}, [](In x) -> Out { return {mean(x[0], {0, 2})}; });
  t.add("prod", {{{5, 3}, 0.5, 2}}, [](In x) -> Out { return {prod(x[0], 0), prod(x[0])}; });
  t.add("max", {{{5, 3}}}, [](In x) -> Out { return {max(x[0], 0), max(x[0])}; });
  t.add("min", {{{5, 3}}}, [](In x) -> Out { return {min(x[0], 1, true), min(x[0])}; });
  t.add("var_std", {{{7, 3}}}, [](In x) -> Out { return {var(x[0], 0), std(x[0], 0)}; });
  t.add("logsumexp", {{{5, 3}}}, [](In x) -> Out { return {logsumexp(x[0], 0), logsumexp(x[0])}; });
  t.add("softmax", {{{5, 3}}}, [](In x) -> Out { return {softmax(x[0], 0), log_softmax(x[0])}; });
  t.add(
      "any_all", {{{5, 3}, 0, 1, bool_}},
      [](In x) -> Out {
        return {any(x[0], 0), all(x[0], 1), count_nonzero(x[0])};
      },
      Smooth::no);
}

}  // namespace tessera::test
