#include "compile/placement_memo.hpp"

#include <algorithm>

#include "mesh/reshard.hpp"

namespace tessera {

bool PlacementMemo::Placed::is(const OpDef& other, const PlacementArgs& args) const {
  return op == &other && same_bits == args.same_bits && std::ranges::equal(shardings, args.shardings) &&
         wanted == args.wanted && std::ranges::equal(in, args.in) && std::ranges::equal(out, args.out) &&
         mesh == args.mesh && fixed_axes == args.fixed_axes &&
         (params == &args.params || params->equals(args.params));
}

Placement PlacementMemo::place(const OpDef& op, const PlacementArgs& args) {
  for (const auto& earlier : placed_)
    if (earlier.is(op, args)) return earlier.answer;
  return keep(placed_, next_placed_,
              {&op,
               &args.params,
               {args.in.begin(), args.in.end()},
               {args.out.begin(), args.out.end()},
               {args.shardings.begin(), args.shardings.end()},
               args.mesh,
               args.fixed_axes,
               args.wanted,
               args.same_bits,
               tessera::place(op, args)})
      .answer;
}

std::int64_t PlacementMemo::moved_bytes(const Sharding& from, const Sharding& to, const Type& type,
                                        const MeshAxes& fixed_axes) {
  for (const auto& earlier : moved_)
    if (earlier.from == from && earlier.to == to && earlier.type == type && earlier.fixed_axes == fixed_axes)
      return earlier.bytes;
  return keep(moved_, next_moved_,
              {from, to, type, fixed_axes, plan_reshard(from, to, type.shape, type.dtype, fixed_axes).bytes})
      .bytes;
}

}  // namespace tessera
