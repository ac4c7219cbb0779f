// Cropping and zero-padding to other extents: each rank sends the parts of its old block that are in its
// neighbours' new blocks.
#include "ops/build.hpp"
#include "ops/fourier/fft_op.hpp"
#include "program/builder.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

struct ResizeParams {
  Shape extents;
  template <class V> void fields(V&& visit) const { visit("extents", extents); }
};

const OpDef fft_resize_op{
    .name = "fft_resize",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{p.as<ResizeParams>().extents, in[0].dtype}};
    },
    .sharding = PlacementRule{[](const PlacementArgs& args) -> Placement {
      const Sharding layout = args.shardings[0] ? *args.shardings[0]
                              : args.wanted     ? *args.wanted
                                                : Sharding::replicated(args.mesh);
      return {{layout}, {layout}, {}, ReduceKind::sum};
    }},
    .runs = Lower{[](ProgramBuilder& builder, const Node& node, std::span<const int> in) -> std::vector<int> {
      const auto value = builder.value(in[0]);
      const Shape& extents = node.params->as<ResizeParams>().extents;
      RemapPiece kept;
      for (std::size_t d = 0; d < extents.size(); ++d)
        kept.to.push_back({0, std::min(extents[d], value.type.shape[d])});
      kept.offset.assign(extents.size(), 0);
      kept.step.assign(extents.size(), 1);
      return {builder.remap(Remap{{kept}}, {in[0]}, {extents, value.type.dtype}, value.layout)};
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      return {record_fft_resize(v.cotangents[0], v.in[0].shape())};
    },
    .batch = [](const BatchArgs& args) -> Batched {
      const Array x = batch_first(args.in[0], args.dims[0]);
      return {{record_fft_resize(x, with_dim(args.node.params->as<ResizeParams>().extents, 0, x.shape()[0]))},
              {0}};
    },
    .same_bits = SameBits::always,
};
const Registered registered_resize(fft_resize_op);

}  // namespace

Array record_fft_resize(const Array& x, Shape extents) {
  if (x.shape() == extents) return x;
  return record(fft_resize_op, make_params(ResizeParams{std::move(extents)}), {x});
}

}  // namespace tessera
