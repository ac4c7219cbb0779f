#include "run/watch.hpp"

#include <chrono>

#include "base/session.hpp"
#include "base/settings.hpp"
#include "kernels/visit.hpp"

namespace tessera {

namespace {
struct LookingOn {
  RunWatcher* watcher = nullptr;
  bool nan_check = settings().nan_check;
};
}  // namespace

RunWatcher*& run_watcher() { return state<LookingOn>().watcher; }
double watch_clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool& nan_check_on() { return state<LookingOn>().nan_check; }

namespace {
template <class T> std::int64_t count(const std::byte* data, std::int64_t n) {
  const auto* values = reinterpret_cast<const T*>(data);
  std::int64_t nans = 0;
  for (std::int64_t i = 0; i < n; ++i) nans += values[i] != values[i];
  return nans;
}
}  // namespace

std::int64_t count_nans(Dtype dtype, const std::byte* data, std::int64_t elements) {
  if (!is_inexact(dtype)) return 0;
  const std::int64_t parts = is_complex(dtype) ? 2 : 1;
  return kernels::visit_real(real_dtype(dtype), [&]<class T>(T) { return count<T>(data, elements * parts); });
}

}  // namespace tessera
