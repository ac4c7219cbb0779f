// Twenty programs whose layouts are searched: products, FFT pipelines, CG, attention, networks.
#pragma once
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include <functional>
#include <string>
#include <vector>

namespace tessera::test {

struct Program {
  std::string name;
  std::vector<Shape> shapes;  // of the arguments
  std::function<Array(const std::vector<Array>&)> run;
};
using Args = const std::vector<Array>&;

// One step of conjugate gradients on A^T A x = b.
inline Array cg_step(Args v) {
  const Array &a = v[0], &x = v[1], &b = v[2];
  const Array r = b - matmul(swapaxes(a, 0, 1), matmul(a, x)), q = matmul(swapaxes(a, 0, 1), matmul(a, r));
  return x + r * (sum(r * r) / sum(r * q));
}
inline Array attention(const Array& q, const Array& k, const Array& v) {
  return matmul(softmax(matmul(q, swapaxes(k, -1, -2)) * 0.1f, -1), v);
}
inline Array gradient_step(Args v) {
  const auto loss = [](const Array& w, const Array& x, const Array& y) {
    return mean(square(matmul(x, w) - y));
  };
  return v[0] - 0.1f * grad(loss)(v[0], v[1], v[2]);
}
inline Array network_step(Args v) {
  const auto loss = [&](const Array& w, const Array& u) {
    return mean(square(matmul(maximum(matmul(v[2], w), 0), u)));
  };
  const auto [dw, du] = grad<0, 1>(loss)(v[0], v[1]);
  return sum(v[0] - 0.1f * dw) + sum(v[1] - 0.1f * du);
}

inline const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"product, square", {{8192, 8192}, {8192, 8192}}, [](Args v) { return matmul(v[0], v[1]); }},
      {"product, long inner dim", {{4096, 65536}, {65536, 4096}}, [](Args v) { return matmul(v[0], v[1]); }},
      {"product, tall", {{262144, 4096}, {4096, 4096}}, [](Args v) { return matmul(v[0], v[1]); }},
      {"Gram matrix", {{262144, 4096}}, [](Args v) { return matmul(swapaxes(v[0], 0, 1), v[0]); }},
      {"three products",
       {{4096, 8192}, {8192, 16384}, {16384, 4096}},
       [](Args v) { return matmul(matmul(v[0], v[1]), v[2]); }},
      {"product and sum",
       {{8192, 8192}, {8192, 8192}, {8192, 8192}},
       [](Args v) { return matmul(v[0], v[1]) + v[2]; }},
      {"FFT of rows", {{8192, 8192}}, [](Args v) { return abs(fft::fft(v[0])); }},
      {"FFT of columns", {{8192, 8192}}, [](Args v) { return abs(fft::fft(v[0], {.axes = {0}})); }},
      {"FFT in 2-D", {{8192, 8192}}, [](Args v) { return abs(fft::fft2(v[0])); }},
      {"convolution by FFT",
       {{8192, 8192}, {8192, 8192}},
       [](Args v) { return real(fft::ifft2(fft::fft2(v[0]) * fft::fft2(v[1]))); }},
      {"FFT in 3-D", {{4096, 64, 4096}}, [](Args v) { return abs(fft::fftn(v[0])); }},
      {"CG step", {{65536, 4096}, {4096}, {4096}}, cg_step},
      {"power step",
       {{16384, 16384}, {16384}},
       [](Args v) {
         const Array y = matmul(v[0], v[1]);
         return y / sqrt(sum(y * y));
       }},
      {"attention",
       {{4096, 4096, 64}, {4096, 4096, 64}, {4096, 4096, 64}},
       [](Args v) { return attention(v[0], v[1], v[2]); }},
      {"attention of one sequence",
       {{16384, 4096}, {16384, 4096}, {16384, 4096}},
       [](Args v) { return attention(v[0], v[1], v[2]); }},
      {"gradient step, linear", {{4096, 4096}, {65536, 4096}, {65536, 4096}}, gradient_step},
      {"gradient step, network", {{4096, 8192}, {8192, 4096}, {65536, 4096}}, network_step},
      {"softmax of rows", {{8192, 65536}}, [](Args v) { return softmax(v[0], -1); }},
      {"normalized columns",
       {{65536, 8192}, {8192}},
       [](Args v) { return (v[0] - mean(v[0], {0}, true)) / std(v[0], {0}, true) * v[1]; }},
      {"sorted columns", {{65536, 8192}, {65536, 8192}}, [](Args v) { return sort(v[0], 0) + v[1]; }},
  };
  return all;
}

// The arguments in these layouts; values do not matter.
inline std::vector<Array> placed(const Program& program, const std::vector<Sharding>& layouts) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < layouts.size(); ++i)
    arrays.push_back(device_put(zeros(program.shapes[i]), layouts[i]));
  return arrays;
}

}  // namespace tessera::test
