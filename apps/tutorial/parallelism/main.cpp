// Batched matrix products: by one process, and one matrix per device; then sums over devices.
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
// np.matmul(x, x) of np.ones((8, size, size)), which are float64.
std::vector<double> batched_product(const std::vector<double>& x, std::int64_t size) {
  std::vector<double> y(x.size());
  const auto n = static_cast<blasint>(size);
  for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(size * size))
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, &x[at], n, &x[at], n, 0, &y[at], n);
  return y;
}

void plain_products(std::int64_t size) {
  step("1", "the baseline: a batch of float64 matrices multiplied by BLAS alone, in one process");
  const Shape shape{batch, size, size};
  const std::vector<double> x(is_main_process() ? static_cast<std::size_t>(shape.elements()) : 0, 1.0);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<double> y = batched_product(x, size);
  multihost::sync_global_devices("baseline");
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  say("shape " + text_of(shape));
  say_of_this_machine("time of dgemm: " + text_of(time.count()) + " ms");
  if (is_main_process()) say_rate(time.count(), size);
  const bool right =
      std::all_of(y.begin(), y.end(), [&](double value) { return value == static_cast<double>(size); });
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
  show("its sum", sum(y));
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

// ---- 5. pjit: the layouts of arguments and results are part of the compiled function ----
void layouts_of_a_jit(std::int64_t size) {
  step("10", "pjit: jit with layouts of its arguments and its result");
  const Mesh mesh(create_device_mesh({4, 2}), {"x", "y"});
  const Sharding rows = NamedSharding(mesh, P("x", None)), columns = NamedSharding(mesh, P(None, "y")),
                 blocks = NamedSharding(mesh, P("x", "y"));
  const auto product = jit(multiply, {.in_shardings = {rows, columns}, .out_shardings = blocks});
  const Array a = device_put(ones({size, size}), rows), b = device_put(ones({size, size}), columns);
  eval(a, b);
  const debug::CommStats stats;
  const Array c = block_until_ready(product(a, b));
  const auto bytes = stats.bytes();
  say(description(c));
  picture("the product", c);
  check(c.sharding() == blocks, "it lies as out_shardings says");
  check(item<float>(max(c)) == static_cast<float>(size) && item<float>(min(c)) == static_cast<float>(size),
        "every element is the number of columns");
  check(bytes == 0, "rows times columns move no byte");
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
    layouts_of_a_jit(size);
  });
}
