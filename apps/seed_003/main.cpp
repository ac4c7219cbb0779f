// Parallel maps: one matrix product per device, and sums over devices.
//
//   tessera run -n 8 seed_003 [matrix size]
#include <tessera/tessera.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tessera;

namespace {

void say(const std::string& text) {
  if (is_main_process()) std::printf("\n%s\n", text.c_str());
}

// The best of five, with everybody waiting for everybody.
template <class F> double milliseconds(F f) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    multihost::sync_global_devices("timing");
    const auto start = std::chrono::steady_clock::now();
    block_until_ready(f());
    multihost::sync_global_devices("timed");
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

Array normalize(const Array& x) { return x / psum(x, "p"); }

void products(std::int64_t size) {
  const int n = device_count();
  say("one matrix of ones per device, made where it is used");
  const Array xd = pmap([size](const Array&) { return ones({size, size}); })(arange(n));
  if (is_main_process())
    std::printf("shape (%d, %ld, %ld)\n", n, static_cast<long>(size), static_cast<long>(size));
  const auto product = pmap([](const Array& a, const Array& b) { return matmul(a, b); });
  const Array yd = product(xd, xd);
  say("pmap(matmul)(xd, xd)[0]");
  print(yd(0));
  const double time_ms = milliseconds([&] { return product(xd, xd); });
  if (is_main_process()) {
    const double flops =
        2.0 * n * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
    std::printf("%d products: %.2f ms, %.1f GFLOP/s in all\n", n, time_ms, flops / time_ms / 1e6);
  }
}

void collectives() {
  const int n = device_count();
  const Array y = pmap(normalize, {.axis_name = "p"})(arange(n));
  say("pmap(normalize, \"p\")(arange(n)), and its sum");
  print(y);
  print(sum(y));
  say("pmap(psum)(ones(n))");
  print(pmap([](const Array& x) { return psum(x, "i"); }, {.axis_name = "i"})(ones({n})));
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = argc > 1 ? std::atol(argv[1]) : 512;
  return run(argc, argv, [size] {
    products(size);
    collectives();
  });
}
