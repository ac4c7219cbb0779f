// Transforms.
#include <tessera/fft.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void fourier_samples(Table& t) {
  const auto c = [](Shape shape) { return OperandSample{std::move(shape), -1, 1, complex128}; };
  t.add("fft", {c({6, 5})}, [](In x) -> Out {
    return {fft::fft(x[0]), fft::ifft(x[0], {.axes = {0}}), fft::fft2(x[0])};
  });
  t.add("fft_resized", {c({4, 5})}, [](In x) -> Out { return {fft::fft(x[0], 7), fft::fft(x[0], 3)}; });
  t.add("rfft", {{{4, 7}}}, [](In x) -> Out {
    return {fft::rfft(x[0]), fft::rfftn(x[0], {.norm = "ortho"})};
  });
  t.add("irfft", {c({4, 5})}, [](In x) -> Out { return {fft::irfft(x[0]), fft::irfft(x[0], 9)}; });
  t.add("hfft", {c({3, 5})}, [](In x) -> Out { return {fft::hfft(x[0])}; });
  t.add("ihfft", {{{3, 6}}}, [](In x) -> Out { return {fft::ihfft(x[0])}; });
  t.add("fft_of_axes", {c({4, 6, 3})}, [](In x) -> Out {
    return {fft::fftn(x[0], {.axes = {0, 2}}), fft::ifftn(x[0]), fft::ifft2(x[0], {.norm = "forward"}),
            fft::irfft2(x[0]), fft::irfftn(x[0], {.axes = {0, 1}})};
  });
  t.add("rfft2", {{{4, 6}}}, [](In x) -> Out { return {fft::rfft2(x[0])}; });
  t.add("fftshift", {{{4, 7}}}, [](In x) -> Out { return {fft::fftshift(x[0]), fft::ifftshift(x[0], {1})}; });
  for (const int type : {1, 2, 3, 4})
    t.add("dct_dst_" + std::to_string(type), {{{4, 6}}}, [type](In x) -> Out {
      return {fft::dct(x[0], {.type = type}),
              fft::idct(x[0], {.type = type, .axis = 0}),
              fft::dst(x[0], {.type = type, .axis = 0, .norm = "ortho"}),
              fft::idst(x[0], {.type = type, .norm = "forward"}),
              fft::dctn(x[0], {}, type),
              fft::idctn(x[0], {0}, type)};
    });
  t.add_values("fftfreq", {}, [](In) -> Out {
    return {fft::fftfreq(7, 0.5), fft::fftfreq(8, 1.0, float64), fft::rfftfreq(9)};
  });
}

}  // namespace tessera::test
