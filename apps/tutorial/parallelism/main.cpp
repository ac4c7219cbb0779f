// Batched matrix products: by one process, and one per device; then sums over devices.
//
//   tessera run -n 8 parallelism [--size 4096] [--small]
#include <cblas.h>

#include "tutorial/support.hpp"

using namespace tutorial;

namespace {

constexpr int batch = 8;

Array multiply(const Array& a, const Array& b) { return matmul(a, b); }

void say_rate(double time_ms, std::int64_t size) {
  const double n = static_cast<double>(size);
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GFLOP/s in all", 2.0 * batch * n * n * n / time_ms / 1e6);
  say_of_this_machine(text);
}

// ---- 1. Without tessera: rank 0 multiplies, the others wait ----
void plain_products(std::int64_t size) {
  step("1", "the baseline: " + std::to_string(batch) + " products of " + std::to_string(size) +
                "² matrices by BLAS alone, in one process");
  std::vector<float> x(is_main_process() ? static_cast<std::size_t>(size * size) : 0, 1.0f), y(x.size());
  bool right = true;
  const auto start = std::chrono::steady_clock::now();
  const auto n = static_cast<blasint>(size);
  for (int i = 0; i < batch && is_main_process(); ++i) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, x.data(), n, x.data(), n, 0, y.data(),
                n);
    right = right && y.front() == static_cast<float>(size) && y.back() == y.front();
  }
  multihost::sync_global_devices("baseline");
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  say("shape " + text_of(Shape{batch, size, size}));
  say_of_this_machine("time of sgemm: " + text_of(time.count()) + " ms");
  if (is_main_process()) say_rate(time.count(), size);
  check(right, "every element is the number of columns");
}

// ---- 2. The same as one op on one device ----
void one_device(std::int64_t size) {
  step("2", "the devices");
  say_of_this_machine(text_of(devices().front()) + " ... " + text_of(devices().back()) + " on " +
                      devices().front().host);
  check(device_count() == 8, "there are eight devices");

  step("3", "matmul of a batch on one device, op by op and jitted");
  const Array x = device_put(ones({batch, size, size}), devices()[0]);
  const Array y = matmul(x, x);
  say("shape " + text_of(y.shape()));
  picture("the batch, one picture per matrix plane", y);
  say_rate(timed("matmul(x, x)", [&] { return matmul(x, x); }), size);
  const auto jitted = jit(multiply);
  say_rate(timed("jit(matmul)(x, x)", [&] { return jitted(x, x); }), size);
  check(y.devices() == std::set<Device>{devices()[0]}, "the result lies on the one device");
  check(item<float>(max(y)) == static_cast<float>(size) && item<float>(min(y)) == static_cast<float>(size),
        "every element is the number of columns");
}

// ---- 3. One matrix per device ----
void one_per_device(std::int64_t size) {
  step("4", "pmap: one matrix of ones per device, made where it is used");
  const Array xd = pmap([size](const Array&) { return ones({size, size}); })(arange(batch));
  say(description(xd));
  picture("who holds which matrix", xd);

  step("5", "pmap(matmul): each device multiplies its own");
  const auto product = pmap(multiply);
  eval(xd);
  const debug::CommStats stats;
  const Array yd = block_until_ready(product(xd, xd));
  const auto bytes = stats.bytes();
  say(description(yd));
  check(bytes == 0, "the products move no byte");
  check(yd.sharding() == xd.sharding(), "results stay where the operands lie");

  step("6", "yd(0), the product of device 0");
  show("yd(0)", yd(0));
  check(item<float>(max(yd)) == static_cast<float>(size) && item<float>(min(yd)) == static_cast<float>(size),
        "every element is the number of columns");

  step("7", "how long all of them take");
  say_rate(timed("pmap(matmul)(xd, xd)", [&] { return product(xd, xd); }), size);
}

// ---- 4. Collectives ----
void collectives() {
  step("8", "psum over the mapped axis: x / psum(x, \"p\")");
  const auto normalize = pmap([](const Array& x) { return x / psum(x, "p"); }, {.axis_name = "p"});
  const Array y = normalize(arange(batch));
  say("shape " + text_of(y.shape()));
  show("normalize(arange(8))", y);
  const float total = item<float>(sum(y));
  say("its sum: " + text_of(total));
  check(std::abs(total - 1) < 1e-6f, "the parts sum to 1");
  check(close(y, arange(batch) / 28.0, 1e-7), "part i is i / 28");

  step("9", "ones, and their psum on every device");
  const Array x = ones({batch});
  show("x", x);
  const Array sums = pmap([](const Array& v) { return psum(v, "i"); }, {.axis_name = "i"})(x);
  show("psum(x, \"i\")", sums);
  say(description(sums));
  check(close(sums, full({batch}, 8.0), 0), "every device has 8");
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t size = 4096;
  bool small = false;
  CLI::App app("Batched matrix products on one device and on eight", "parallelism");
  app.add_option("--size", size, "rows and columns of the matrices")->check(CLI::Range(1, 1 << 15));
  app.add_flag("--small", small, "matrices of 64");
  return main_of(app, argc, argv, [&] {
    if (small) size = 64;
    plain_products(size);
    one_device(size);
    one_per_device(size);
    collectives();
  });
}
