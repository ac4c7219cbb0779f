// The rates of this machine with all ranks working at once.
#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "bench.hpp"

namespace bench {

namespace {

// The best of a few repetitions, since it serves as a limit.
double least_seconds(const Work& work) {
  double least = seconds_of(work);
  for (int r = 0; r < 4; ++r) least = std::min(least, seconds_of(work));
  return least;
}

template <class T> double measure_gemm() {
  constexpr int n = 1024;
  std::vector<T> a(std::size_t{n} * n, T(0.5)), b(a), c(a.size());
  const double s = least_seconds([&] {
    if constexpr (sizeof(T) == 8)
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0,
                  c.data(), n);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0,
                  c.data(), n);
  });
  return 2.0 * n * n * n * ranks() / s;
}

double measure_memcpy() {
  const std::size_t bytes = std::size_t{128} << 20, mine = bytes / static_cast<std::size_t>(ranks());
  std::vector<char> from(mine, 1), to(mine, 2);
  return 2.0 * static_cast<double>(mine) * ranks() /
         least_seconds([&] { std::memcpy(to.data(), from.data(), mine); });
}

// Flops or bytes per second, depending on `what`; measured once per process.
double rate(const std::string& what) {
  static std::map<std::string, double> known;
  const auto [at, is_new] = known.try_emplace(what, 0);
  if (is_new)
    at->second = what == "dgemm"   ? measure_gemm<double>()
                 : what == "sgemm" ? measure_gemm<float>()
                                   : measure_memcpy();
  return at->second;
}

}  // namespace

Limit limit_of(const Cost& cost) {
  Limit limit;
  if (cost.flops > 0) {
    const char* gemm = cost.bits == 64 ? "dgemm" : "sgemm";
    limit = {gemm, cost.flops / rate(gemm)};
  }
  if (cost.bytes > 0)
    if (const double s = cost.bytes / rate("memcpy"); s > limit.seconds) limit = {"memcpy", s};
  return limit;
}

}  // namespace bench
