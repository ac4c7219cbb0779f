// mpirun -n P comm_bench [max MiB]: time of the library's collectives beside the raw MPI calls, median over repetitions, microseconds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "base/settings.hpp"
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "comm/environment.hpp"
#include "comm/pending.hpp"

using namespace tessera;

namespace {

double median_us(const std::function<void()>& call, int repetitions) {
  std::vector<double> times;
  for (int i = 0; i < repetitions + 2; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    call();
    double mine = (MPI_Wtime() - start) * 1e6, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 2) times.push_back(slowest);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

void row(const char* what, std::int64_t bytes, const std::function<void()>& raw, const std::function<void()>& call) {
  const int repetitions = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{200} << 20) / std::max<std::int64_t>(bytes, 1), 9, 201));
  const double mpi = median_us(raw, repetitions);
  double as[3];
  const char* modes[] = {"mpi", "own", "auto"};
  for (int i = 0; i < 3; ++i) {
    const SettingScope mode("TESSERA_COLLECTIVES", modes[i]);
    as[i] = median_us(call, repetitions);
  }
  if (comm::world().rank() == 0)
    std::printf("%-16s %10lld B  raw %10.1f  mpi %10.1f  own %10.1f  auto %10.1f   own/raw %5.2f  auto/raw %5.2f\n", what,
                static_cast<long long>(bytes), mpi, as[0], as[1], as[2], as[1] / mpi, as[2] / mpi);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t most = (argc > 1 ? std::atoll(argv[1]) : 16) << 20;
  comm::start(&argc, &argv, {"bench", 0});
  const auto& world = comm::world();
  const int ranks = world.size();
  for (std::int64_t bytes = argc > 2 ? std::atoll(argv[2]) : 8; bytes <= most; bytes *= bytes < 1024 ? 128 : 4) {
    const std::int64_t n = bytes / 4, block = (n + ranks - 1) / ranks;
    std::vector<float> in(static_cast<std::size_t>(block * ranks), 1.f), out(in.size()), wide(in.size() * static_cast<std::size_t>(ranks));
    row(
        "all-reduce", bytes, [&] { MPI_Allreduce(in.data(), out.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
        [&] { comm::all_reduce(world, comm::ReduceKind::sum, float32, in.data(), out.data(), n); });
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), block);
    row(
        "reduce-scatter", bytes,
        [&] { MPI_Reduce_scatter_block(in.data(), out.data(), static_cast<int>(block), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
        [&] { comm::reduce_scatter(world, comm::ReduceKind::sum, float32, in.data(), out.data(), counts); });
    row(
        "all-gather", bytes,
        [&] {
          MPI_Allgather(in.data(), static_cast<int>(bytes), MPI_BYTE, wide.data(), static_cast<int>(bytes), MPI_BYTE, MPI_COMM_WORLD);
        },
        [&] { comm::all_gather(world, in.data(), bytes, wide.data()); });
    row(
        "broadcast", bytes, [&] { MPI_Bcast(in.data(), static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD); },
        [&] { comm::broadcast(world, in.data(), bytes, 0); });
  }
  const double agree_us = [&] {
    const double start = MPI_Wtime();
    for (int i = 0; i < 20000; ++i) comm::agree(world, 7, [] { return std::string(); });
    return (MPI_Wtime() - start) / 20000 * 1e6;
  }();
  if (world.rank() == 0) std::printf("agree %.2f us\n", agree_us);
  comm::finish();
}
