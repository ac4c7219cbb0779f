// Side effects of a traced function: print, call the user back. An effect is an op that reads values and
// gives a token, a number that is always 0. The next effect reads the token of the one before, so that they
// happen in the order in which they were recorded; loops and branches carry it like any other value, and the
// trace keeps the last one as a result that nobody sees.
//
//   jit ─ EffectScope     token ── print ── scan(token ── print in the body) ── print ── hidden result
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// A value as the effect meets it: dense, row-major, this rank's own where the function is mapped.
struct EffectValue {
  const std::byte* data;
  Shape shape;
  Dtype dtype;
};
struct Effect {
  std::string text;  // what it is, for program texts; alike on all ranks
  // Called on the first device of the mesh; in a mapped function on each rank (-1 otherwise).
  std::function<void(const std::vector<EffectValue>&, int rank)> happen;
};
using EffectPtr = std::shared_ptr<const Effect>;
inline std::uint64_t field_hash(const EffectPtr& e) { return hash_bytes(e->text.data(), e->text.size()); }
inline bool same_field(const EffectPtr& a, const EffectPtr& b) { return a == b; }
inline std::string field_text(const EffectPtr& e) { return e->text; }

// Catches the effects that are recorded while it lives. `before`: the token that the first one reads.
class EffectScope {
 public:
  explicit EffectScope(Array before = Array());
  ~EffectScope();
  EffectScope(const EffectScope&) = delete;
  EffectScope& operator=(const EffectScope&) = delete;
  bool has_effects() const;
  // The token of the last effect; without effects the one that was given, or 0.
  Array token() const;

 private:
  std::size_t depth_;
};

// Whether something is being traced that keeps effects until it runs.
bool effects_wait();
// The token that is read next; 0 before the first effect.
Array effect_token();
// Takes over effects that were recorded elsewhere up to this token.
void set_effect_token(Array token);
// The same of a function whose body had a scope of its own; outside of all scopes it happens now.
void hand_on_effects(const Array& token);
// Records the effect in the innermost scope.
void record_effect(EffectPtr effect, const std::vector<Array>& values);

}  // namespace tessera
