// Side effects of a traced function: printing, callbacks. An effect is an op that reads values and returns a
// token, a number that is always 0. The next effect reads the token of the previous one, so they run in the
// order in which they were recorded; loops and branches carry the token like any other value, and the trace
// keeps the last one as a hidden result.
//
//   jit ─ EffectScope     token ── print ── scan(token ── print in the body) ── print ── hidden result
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// A value that an effect reads: dense, row-major; in a mapped function this rank's own.
struct EffectValue {
  const std::byte* data;
  Shape shape;
  Dtype dtype;
};
struct Effect {
  std::string text;  // description for program texts; equal on all ranks
  // Called on the first device of the mesh (rank -1); in a mapped function on each rank.
  std::function<void(const std::vector<EffectValue>&, int rank)> happen;
};
using EffectPtr = std::shared_ptr<const Effect>;
inline std::uint64_t field_hash(const EffectPtr& e) { return hash_bytes(e->text.data(), e->text.size()); }
inline bool same_field(const EffectPtr& a, const EffectPtr& b) { return a == b; }
inline std::string field_text(const EffectPtr& e) { return e->text; }

// Collects the effects recorded during its lifetime. `before`: the token that the first effect reads.
class EffectScope {
 public:
  explicit EffectScope(Array before = Array());
  ~EffectScope();
  EffectScope(const EffectScope&) = delete;
  EffectScope& operator=(const EffectScope&) = delete;
  bool has_effects() const;
  // The token of the last effect; without effects the given one, or 0.
  Array token() const;

 private:
  std::size_t depth_;
};

// Whether the current trace defers effects until it runs.
bool effects_wait();
// The token that the next effect reads; 0 before the first effect.
Array effect_token();
// Appends effects that were recorded elsewhere, up to this token.
void set_effect_token(Array token);
// Like set_effect_token, for a function whose body had its own scope; outside all scopes the effects run now.
void hand_on_effects(const Array& token);
// Records the effect in the innermost scope.
void record_effect(EffectPtr effect, const std::vector<Array>& values);

}  // namespace tessera
