/// @file
/// The values that checkpoint keeps for the backward pass, by JAX's names.
///
///     const auto layer = checkpoint(block, checkpoint_policies::dots_saveable);
///     const auto other = checkpoint(block, checkpoint_policies::save_only_these_names("scores"));
///         // where block calls checkpoint_name(x, "scores")
///     print(explain(grad(loss), w, x));  // lists what is kept, and how large it is
#pragma once
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

struct Node;

/// A choice of values of a checkpointed function that are kept; the backward pass computes the others again.
class CheckpointPolicy {
 public:
  /// The kinds of policies.
  enum class Kind { nothing, everything, dots, dots_without_batch, named, all_but_named };
  /// For the functions and constants of checkpoint_policies.
  CheckpointPolicy(Kind kind, std::vector<std::string> names = {}) : kind_(kind), names_(std::move(names)) {}
  /// For the library: whether the results of a recorded op are kept.
  bool keeps(const Node&) const;
  bool keeps_nothing() const { return kind_ == Kind::nothing; }  ///< true for a checkpoint without a policy

 private:
  Kind kind_;
  std::vector<std::string> names_;
};

/// The policies of jax.checkpoint_policies.
namespace checkpoint_policies {
/// Everything is computed again: the default of checkpoint.
inline const CheckpointPolicy nothing_saveable(CheckpointPolicy::Kind::nothing);
/// Nothing is computed again, as without checkpoint.
inline const CheckpointPolicy everything_saveable(CheckpointPolicy::Kind::everything);
/// Results of products and convolutions are kept.
inline const CheckpointPolicy dots_saveable(CheckpointPolicy::Kind::dots);
/// Results of products without batch dims are kept.
inline const CheckpointPolicy dots_with_no_batch_dims_saveable(CheckpointPolicy::Kind::dots_without_batch);
/// Values that checkpoint_name gave one of these names are kept.
template <class... Names>
requires(std::is_convertible_v<Names, std::string>&&...) CheckpointPolicy
    save_only_these_names(Names... names) {
  return {CheckpointPolicy::Kind::named, {std::string(names)...}};
}
/// All but the values with one of these names are kept.
template <class... Names>
requires(std::is_convertible_v<Names, std::string>&&...) CheckpointPolicy
    save_anything_except_these_names(Names... names) {
  return {CheckpointPolicy::Kind::all_but_named, {std::string(names)...}};
}
}  // namespace checkpoint_policies

/// x with a name, for the policies that select values by name. Records; x's shape, dtype and sharding.
[[nodiscard]] Array checkpoint_name(Operand x, std::string name);

}  // namespace tessera
