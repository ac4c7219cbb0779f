#include "run/viewed_value.hpp"

#include "run/strided_box.hpp"

namespace tessera {
namespace {

// In coordinates of the tile.
Box inside(const Tile& tile, const Box& global) {
  Box box = global;
  for (std::size_t d = 0; d < box.size(); ++d)
    box[d].start -= tile.box[d].start, box[d].stop -= tile.box[d].start;
  return box;
}

}  // namespace

ViewedValue::ViewedValue(const BindContext& context, const FusedChain::View& view, int value)
    : tile_(context.local(value).tile), fill_(view.fill) {
  if (fill_.empty()) fill_.resize(itemsize(tile_.dtype));
  std::vector<Sharding> from;
  std::vector<Shape> shapes;
  for (const int v : view.sources) {
    from.push_back(context.value(v).layout);
    shapes.push_back(context.value(v).type.shape);
  }
  const auto plan = plan_exchange(*view.map, from, shapes, context.value(value).layout, tile_.global,
                                  context.me, manual_axes_of(context.value(view.sources[0]).region));
  std::int64_t covered = 0;
  for (const auto& t : plan.local) {
    const auto& piece = view.map->pieces[t.piece];
    const int source = view.sources[piece.source];
    add_own(context.local(source).tile, source, piece, t);
    covered += box_elements(t.to);
  }
  for (const auto& t : plan.receives) {
    parts_.push_back({inside(tile_, t.to), nullptr, 0, row_major_strides(tile_.shape())});
    lies_in_.push_back(value);
    covered += box_elements(t.to);
  }
  if (covered == tile_.elements()) return;
  parts_.push_back(
      {whole_box(tile_.shape()), fill_.data(), 0, std::vector<std::int64_t>(tile_.box.size(), 0)});
  lies_in_.push_back(fill);
}

void ViewedValue::add_own(const Tile& source, int value, const Piece& piece, const Transfer& t) {
  const auto lies = source_box(source, piece, t.to);
  kernels::FusedPart part{inside(tile_, t.to), nullptr, lies.offset, lies.strides};
  for (std::size_t d = 0; d < part.box.size(); ++d) part.offset -= part.box[d].start * part.strides[d];
  parts_.push_back(std::move(part));
  lies_in_.push_back(value);
}

std::span<const kernels::FusedPart> ViewedValue::parts(const Frame& frame) {
  for (std::size_t p = 0; p < parts_.size(); ++p)
    parts_[p].data = lies_in_[p] == fill ? fill_.data() : frame.slots[lies_in_[p]].data();
  return parts_;
}

}  // namespace tessera
