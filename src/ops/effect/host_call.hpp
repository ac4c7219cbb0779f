// A host function called in a program: it reads replicated values and returns values.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/effect/effect.hpp"

namespace tessera {

// The ranks that call the function.
enum class Callers {
  all,  // every rank: the result depends only on the values; no side effects
  one,  // the first rank of the mesh, which broadcasts the results; calls keep their order
  each  // every rank, for what the function changes there; the results and failures are the first one's
};
struct HostFunction {
  std::string text;  // description for program texts; equal on all ranks
  // Writes the results, dense and row-major, to memory of their types.
  std::function<void(const std::vector<EffectValue>&, const std::vector<std::byte*>& results)> call;
};
using HostFunctionPtr = std::shared_ptr<const HostFunction>;
inline std::uint64_t field_hash(const HostFunctionPtr& f) {
  return hash_bytes(f->text.data(), f->text.size());
}
inline bool same_field(const HostFunctionPtr& a, const HostFunctionPtr& b) { return a == b; }
inline std::string field_text(const HostFunctionPtr& f) { return f->text; }

// Records the call: results of the given types, replicated. In a mapped function each rank calls it on its
// own values.
std::vector<Array> record_host_call(HostFunctionPtr f, const std::vector<Array>& values,
                                    std::vector<Type> results, Callers callers);

}  // namespace tessera
