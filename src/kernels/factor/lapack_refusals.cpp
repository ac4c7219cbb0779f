#include <string_view>
#include <utility>

#include "base/session.hpp"
#include "kernels/factor/lapack_calls.hpp"

namespace tessera::kernels {
namespace {

struct Refusals {
  std::string text;
};
void note(std::string_view routine, int parameter) {
  while (routine.ends_with(' ')) routine.remove_suffix(1);
#pragma omp critical(tessera_refusals)  // several threads of this rank
  {
    auto& text = state<Refusals>().text;
    if (!text.empty()) text += ", ";
    text += std::string(routine) + " refused its parameter " + std::to_string(parameter);
  }
}

}  // namespace

void check_refusals() {
  if (const auto text = std::exchange(state<Refusals>().text, {}); !text.empty())
    throw InternalError("LAPACK: " + text);
}

}  // namespace tessera::kernels

// Replaces LAPACK's printing handlers in the whole program. Weak: a program may define its own.
extern "C" {
[[gnu::weak]] void xerbla_(const char* routine, const int* parameter, std::size_t length) {
  tessera::kernels::note({routine, length}, *parameter);
}
[[gnu::weak]] void pxerbla_(const int*, const char* routine, const int* parameter, std::size_t length) {
  tessera::kernels::note({routine, length}, *parameter);
}
}
