// A step of the tutorials' network (784-2048-2048-2048-10, batch 2048, f32), data parallel: compared with its
// forward pass, with one rank, and with its products alone by BLAS.
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>
#include <tessera/nn.hpp>
#include <tessera/random.hpp>

#include <cblas.h>

#include <algorithm>

#include "bench.hpp"

namespace {

using namespace tessera;

const std::vector<std::int64_t> layer_sizes{784, 2048, 2048, 2048, 10};
constexpr std::int64_t batch = 2048;

Array squared_error(const nn::Mlp& network, const Array& x, const Array& targets) {
  return mean(sum(nn::squared_error(nn::apply(network, x), targets), 1));
}

struct Problem {
  nn::Mlp network;
  Array x, y;
};
Problem problem_on(const Sharding& whole, const Sharding& rows) {
  const auto keys = random::split(random::key(0), 3);
  Problem problem{device_put(nn::mlp(keys[0], layer_sizes), whole),
                  device_put(random::normal(keys[1], {batch, layer_sizes.front()}), rows),
                  device_put(random::normal(keys[2], {batch, layer_sizes.back()}), rows)};
  eval(problem.network, problem.x, problem.y);
  return problem;
}

// The products of a gradient on a rank's share of the batch:  h W,  g W^T (except in the first layer),  h^T
// g.
class Products {
 public:
  explicit Products(std::int64_t rows) : rows_(static_cast<int>(rows)) {
    const auto widest = static_cast<std::size_t>(*std::max_element(layer_sizes.begin(), layer_sizes.end()));
    for (auto* activations : {&h_, &g_}) activations->assign(widest * static_cast<std::size_t>(rows_), 0.5f);
    for (auto* weights : {&w_, &dw_}) weights->assign(widest * widest, 0.25f);
  }
  void run() {
    for (std::size_t i = 0; i + 1 < layer_sizes.size(); ++i) {
      const int in = static_cast<int>(layer_sizes[i]), out = static_cast<int>(layer_sizes[i + 1]);
      product(CblasNoTrans, CblasNoTrans, rows_, out, in, h_, in, w_, out, g_);
      if (i > 0) product(CblasNoTrans, CblasTrans, rows_, in, out, g_, out, w_, out, h_);
      product(CblasTrans, CblasNoTrans, in, out, rows_, h_, in, g_, out, dw_);
    }
  }

 private:
  static void product(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                      const std::vector<float>& a, int lda, const std::vector<float>& b, int ldb,
                      std::vector<float>& c) {
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1e-3f, a.data(), lda, b.data(), ldb, 0, c.data(), n);
  }
  int rows_;
  std::vector<float> h_, g_, w_, dw_;
};

void rows() {
  const std::string name = "gradient_784x2048x3x10";
  if (!bench::wanted(name)) return;
  const Problem all = problem_on(bench::split(P()), bench::split(P("x")));
  const auto forward = jit(squared_error);
  const auto gradient = jit(value_and_grad(squared_error));
  Products products(batch / bench::ranks());
  std::vector<bench::Peer> peers{{"forward pass", [&] { eval(forward(all.network, all.x, all.y)); }, 1 / 3.3},
                                 {"its products by OpenBLAS", [&] { products.run(); }, 0.9}};
  const Problem alone = bench::ranks() > 1 ? problem_on(bench::on_one(), bench::on_one()) : Problem{};
  if (bench::ranks() > 1)
    peers.push_back({"one rank", [&] { eval(gradient(alone.network, alone.x, alone.y)); },
                     bench::ranks() == 2 ? 1.8 : 0});
  bench::compare(
      name, [&] { eval(gradient(all.network, all.x, all.y)); }, peers, 5);
  const auto in_order = jit(value_and_grad(squared_error), {.reproducible = true});
  bench::compare(
      name + "_same_bits", [&] { eval(in_order(all.network, all.x, all.y)); },
      {{"without the scope", [&] { eval(gradient(all.network, all.x, all.y)); }, 1 / 1.1}}, 5);
}

const bench::Group group(rows);

}  // namespace
