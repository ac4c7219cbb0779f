// endless SECONDS: runs evaluations with all-to-all communication for that time, as a target of injected
// faults.
#include <tessera/tessera.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tessera;

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [&] {
    const double wanted_s = argc > 1 ? std::atof(argv[1]) : 5;
    const int idler = argc > 2 ? std::atoi(argv[2]) : -1;  // this rank falls asleep midway
    const auto start = std::chrono::steady_clock::now();
    const Mesh mesh = make_mesh({device_count()}, {"x"});
    const Array x = device_put(ones({64, 64}), mesh, P("x"));
    bool goes_on = true;
    for (int n = 0; goes_on; ++n) {
      const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (n == 20) std::printf("rank %d process %d\n", process_index(), getpid()), std::fflush(stdout);
      if (n == 20 && process_index() == idler)
        for (;;) sleep(1);
      const HostArray at(std::vector<double>{s}, {1});
      goes_on = multihost::broadcast_one_to_all(at).as<double>()[0] < wanted_s;  // rank 0's clock decides
      if (sum(x).item<float>() != 64.0f * 64.0f) throw std::runtime_error("a wrong sum");
    }
    if (is_main_process()) std::printf("done\n");
  });
}
