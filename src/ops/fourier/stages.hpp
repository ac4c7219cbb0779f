// The stages of a transform of split dims: which dims are unsplit in which stage, and all layouts between.
// Pure; no array is read.
//
//   P('x', 'y', None), all three dims:   stage 1  P('x', 'y', None)   transforms dim 2, which is unsplit
//                                        exchange inside y            dim 2 is split instead of dim 1
//                                        stage 2  P('x', None, 'y')   dim 1
//                                        exchange inside x
//                                        stage 3  P(None, 'x', 'y')   dim 0; a transposed result stays here
//                                        one exchange back, for a result split like the operand
//
// The cheapest sequence is searched over the layouts that empty one more split dim by moving its mesh axes to
// the ends of others. Exchanges cost what plan_reshard says, so uneven blocks cost as much as the largest. A
// dim whose axes have no balanced place elsewhere (the only dim, or next to tiny ones) is transformed across
// the ranks that split it.
#pragma once
#include <vector>

#include "ops/fourier/fft_op.hpp"

namespace tessera {

struct FftStage {
  Sharding layout;        // layout of the stage's operand and result
  std::vector<int> dims;  // transformed there, in the order of FftParams::dims
  bool across = false;    // its single dim stays split
};
struct FftStages {
  std::vector<FftStage> stages;  // the first may have another layout than the operand: reshard
  Sharding out;                  // layout that the last stage produces
};

// `to`: the result's final layout (its cost counts); nullopt: the last stage's layout.
FftStages plan_stages(const FftParams&, const Type& in, const Sharding& from,
                      const std::optional<Sharding>& to, const std::vector<int>& fixed_axes);

// The type of a value after the dims in `done` (all of a stage's) have been transformed.
Type type_after(const FftParams&, const Type& in, const std::vector<int>& done);
std::vector<Type> infer_fft(std::span<const Type> in, const Params&);

}  // namespace tessera
