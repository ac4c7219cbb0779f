// Draws, a compiled program's text and its result as bytes, which the Python test must reproduce.
#include <tessera/tessera.hpp>

#include <cstdio>
#include <cstring>

using namespace tessera;

namespace {

void print_bits(const char* what, const Array& x) {
  std::uint64_t sum = 1469598103934665603u;
  const HostArray host = to_host(x);
  for (std::int64_t i = 0; i < host.nbytes(); ++i)
    sum = (sum ^ static_cast<std::uint64_t>(host.bytes()[i])) * 1099511628211u;
  if (is_main_process()) std::printf("%s %016llx\n", what, static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Mesh mesh = make_mesh({device_count()}, {"x"});
    const auto keys = random::split(random::key(42));
    const Array a = device_put(random::normal(keys[0], {12, 8}), NamedSharding(mesh, P("x", None)));
    const Array b = device_put(random::uniform(keys[1], {8, 12}), NamedSharding(mesh, P(None, "x")));
    const auto f = jit([](Array a, Array b) { return sum(tanh(matmul(a, b)), 0); });
    print_bits("a", a);
    print_bits("b", b);
    print_bits("f", f(a, b));
    if (is_main_process()) std::printf("%s", f.lower(a, b).compile().as_text().c_str());
  });
}
