// Numerical functions along axes.
#include <tessera/ops/numpy.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void numeric_samples(Table& t) {
  t.add("samples_of_a_function", {{{7, 5}}}, [](In x) -> Out {
    const auto both = gradient(x[0], 0.5);
    return {both[0], both[1], trapezoid(x[0], 0.3, 0), diff(x[0], 2, 0)};
  });
  t.add("trapezoid_places", {{{7, 5}}, {{5}}},
        [](In x) -> Out { return {trapezoid(x[0], cumsum(square(x[1]), 0), 1)}; });
  t.add("convolve_modes", {{{9}}, {{4}}}, [](In x) -> Out {
    return {convolve(x[0], x[1], "same"), convolve(x[1], x[0], "valid"), correlate(x[0], x[1], "full")};
  });
  t.add("kron_cross_vecdot", {{{4, 3}}, {{2, 3}}, {{4, 3}}}, [](In x) -> Out {
    return {kron(x[0], x[1]), cross(x[0], x[2]), vecdot(x[0], x[2], 0), vecdot(x[0], x[2])};
  });
  t.add("polynomials", {{{4}}, {{3}}, {{5, 3}}}, [](In x) -> Out {
    return {polyval(x[0], x[2]), polyadd(x[0], x[1]), polysub(x[1], x[0]),
            polymul(x[0], x[1]), polyder(x[0], 2),    polyint(x[0])};
  });
  t.add("polyfit", {{{9}}}, [](In x) -> Out { return {polyfit(linspace(-1, 1, 9, float64), x[0], 3)}; });
  t.add("angle_complex", {{{5, 3}, 0.5, 2, complex128}}, [](In x) -> Out { return {angle(x[0])}; });
  t.add("sinc_degrees", {{{5, 3}}}, [](In x) -> Out {
    return {sinc(x[0]), rad2deg(x[0]), deg2rad(x[0]), nan_to_num(x[0]), clip(x[0], -1.5, 1.5)};
  });
  t.add_values("windows_of_signals", {}, [](In) -> Out {
    return {bartlett(11), blackman(12), hamming(11, float64), hanning(12), kaiser(13, 8.6, float64)};
  });
  t.add_values("ranges", {}, [](In) -> Out {
    return {logspace(-1, 2, 13), geomspace(2, 512, 9), geomspace(-100, -0.1, 4, float64)};
  });
  t.add_values("meshgrid", {{{5}}, {{3}}}, [](In x) -> Out { return meshgrid({x[0], x[1]}); });
}

}  // namespace tessera::test
