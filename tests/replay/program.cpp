// replayed SCENARIO [VARIANT]: computes something on all ranks and adds the bits of what this rank holds to
// the file RESULTS.rank. check.py records it, and replays each rank.
#include <tessera/error.hpp>
#include <tessera/tessera.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

using namespace tessera;

namespace {

int factor = 1;  // the variant that must differ from the recording uses another factor

void note(const std::string& what, const void* data, std::size_t bytes) {
  std::uint64_t hash = 1469598103934665603u;
  for (std::size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  const std::string path = std::string(std::getenv("RESULTS")) + "." + std::to_string(process_index());
  std::FILE* file = std::fopen(path.c_str(), "a");
  std::fprintf(file, "%s %zu %016llx\n", what.c_str(), bytes, static_cast<unsigned long long>(hash));
  std::fclose(file);
}
void note(const std::string& what, const Array& x) {
  const Array values = astype(x, float32);
  eval(values);
  const auto mine = local<float>(values);
  note(what, mine.data(), mine.size_bytes());
}

Mesh row() { return make_mesh({device_count()}, {"x"}); }
Mesh grid() { return make_mesh({2, device_count() / 2}, {"x", "y"}); }
Array noise(int seed, Shape shape) {
  return random::normal(random::key(static_cast<std::uint64_t>(seed)), shape);
}

void ops() {
  const Array x = device_put(noise(1, {501, 64}), row(), P("x"));
  note("x", x);
  note("sum", sum(x * factor, {0}));
  note("mean", mean(exp(x)));
  note("softmax", softmax(x, 0));
  note("product", matmul(x.T(), x));
  note("host", to_vector<float>(sum(x, {1})).data(), 501 * sizeof(float));
}
void exchanges() {
  const Array x = device_put(noise(2, {127, 254}), grid(), P("x", "y"));
  const Array y = device_put(x, grid(), P("y", "x"));
  note("transposed", y);
  note("rolled", roll(x, 3, 0) + x);
  note("reshaped", reshape(x, {254, 127}));
  note("sliced", x(slice(3, 100, 3), slice(1, 200)));
  note("other mesh", device_put(x, row(), P(None, "x")));
}
void transforms() {
  const Array x = device_put(noise(3, {32, 24, 20}), grid(), P("x", "y"));
  note("fft", real(fft::fftn(x)));
  note("back", real(fft::ifftn(fft::fftn(x))));
  note("grad", grad([](const Array& v) { return sum(sin(v) * v); })(x));
}
void solves() {
  const Array a = device_put(noise(4, {160, 160}), grid(), P("x", "y"));
  const Array b = device_put(noise(5, {160, 3}), grid(), P("x"));
  note("solve", linalg::solve(a, b));
  const auto [q, r] = linalg::qr(a);
  note("qr", matmul(q, r));
  note("cholesky", linalg::cholesky(matmul(a, a.T()) + eye(160)));
}
void sorts() {
  const Array x = device_put(noise(6, {5000}), row(), P("x"));
  note("sort", sort(x));
  note("argsort", argsort(x));
  note("cumsum", cumsum(x, 0));
  note("permutation", random::permutation(random::key(7), x));
}
void loops() {
  Array x = device_put(noise(8, {64, 64}), row(), P("x"));
  const auto step = jit([](const Array& v) { return matmul(v, v) / sum(abs(v)); });
  for (int i = 0; i < 20; ++i) x = step(x);
  note("steps", x);
  note("while", while_loop([](const Array& v) { return sum(v) < 1e4F; },
                           [](const Array& v) { return v * 1.5F + 1; }, abs(x)));
}
void overlapping() {  // large enough for messages in pieces and overlapped panels
  const Array a = device_put(noise(9, {700, 800}), grid(), P("x", "y"));
  const Array b = device_put(noise(10, {800, 900}), grid(), P("x", "y"));
  note("product", matmul(a, b));
  note("moved", device_put(matmul(a, b), row(), P(None, "x")));
}
void parts() {  // meshes over a part of the ranks
  const Mesh even(NdDevices{0, 2}, {"x"}), odd(NdDevices{3, 1}, {"x"});
  const Array x = device_put(noise(11, {40, 3}), process_index() % 2 == 0 ? even : odd, P("x"));
  note("part", sum(x * x, {0}));
}
void everything() { ops(), exchanges(), transforms(), solves(), sorts(), loops(), parts(), overlapping(); }
void linalg_error() {
  ops();
  note("cholesky", linalg::cholesky(device_put(eye(64) * -1, row(), P("x"))));
}
void own_error() {
  ops();
  if (process_index() == 2) throw std::runtime_error("broken sensor of rank 2");
  ops();
}
void left_waiting() {  // rank 0 fails while the others are about to meet it
  ops();
  if (process_index() == 0) throw std::runtime_error("broken sensor of rank 0");
  ops();
}
void left_busy() {  // and while they are busy, so that the launcher ends them
  ops();
  if (process_index() == 0) throw std::runtime_error("broken sensor of rank 0");
  if (std::getenv("TESSERA_REPLAY") == nullptr) std::this_thread::sleep_for(std::chrono::seconds(60));
  ops();
}
void aborting() {
  ops();
  if (process_index() == 1) std::abort();
  ops();
}
void early() {
  ops();
  if (process_index() == 3) return;
  ops();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> scenarios = {{"ops", ops},
                                                                  {"exchanges", exchanges},
                                                                  {"transforms", transforms},
                                                                  {"solves", solves},
                                                                  {"sorts", sorts},
                                                                  {"loops", loops},
                                                                  {"all", everything},
                                                                  {"parts", parts},
                                                                  {"overlapping", overlapping},
                                                                  {"linalg_error", linalg_error},
                                                                  {"abort", aborting},
                                                                  {"own_error", own_error},
                                                                  {"left_waiting", left_waiting},
                                                                  {"left_busy", left_busy},
                                                                  {"early", early}};
  const std::string name = argc > 1 ? argv[1] : "";
  if (argc > 2) factor = std::atoi(argv[2]);
  return tessera::run(argc, argv, scenarios.at(name));
}
