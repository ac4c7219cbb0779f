#include "run/viewed_value.hpp"

#include <limits>

namespace tessera {
namespace {

// A global box in coordinates relative to the tile.
Box inside(const Tile& tile, const Box& global) {
  Box box = global;
  for (std::size_t d = 0; d < box.size(); ++d)
    box[d].start -= tile.box[d].start, box[d].stop -= tile.box[d].start;
  return box;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// The i with first + step * i in `range`.
Range preimage(Range range, std::int64_t first, std::int64_t step) {
  if (step == 0) {
    const bool all = range.start <= first && first < range.stop;
    return all ? Range{std::numeric_limits<std::int64_t>::min() / 2,
                       std::numeric_limits<std::int64_t>::max() / 2}
               : Range{0, 0};
  }
  if (step < 0) return preimage({1 - range.stop, 1 - range.start}, -first, -step);
  const auto ceil_div = [&](std::int64_t a) { return -floor_div(-a, step); };
  return {ceil_div(range.start - first), ceil_div(range.stop - first)};
}

}  // namespace

ViewedValue::ViewedValue(const Tile& tile, int value) : tile_(tile) {
  add({whole_box(tile.shape()), nullptr, 0, row_major_strides(tile.shape())}, {value});
}

ViewedValue::ViewedValue(const BindContext& context, const FusedChain::View& view,
                         const std::map<int, ViewedValue>& before)
    : tile_(context.local(view.value).tile) {
  std::vector<Sharding> from;
  std::vector<Shape> shapes;
  for (const int v : view.sources) {
    from.push_back(context.value(v).layout);
    shapes.push_back(context.value(v).type.shape);
  }
  const auto plan = plan_exchange(*view.map, from, shapes, context.value(view.value).layout, tile_.global,
                                  context.me, manual_axes_of(context.value(view.sources[0]).region));
  std::int64_t covered = 0;
  for (const auto& t : plan.local) {
    const auto& piece = view.map->pieces[t.piece];
    const int source = view.sources[piece.source];
    const auto& tile = context.local(source).tile;
    const auto viewed = before.find(source);
    add_own(tile, viewed != before.end() ? viewed->second : ViewedValue(tile, source), piece, t);
    covered += box_elements(t.to);
  }
  for (const auto& t : plan.receives) {
    add({inside(tile_, t.to), nullptr, 0, row_major_strides(tile_.shape())}, {view.value});
    covered += box_elements(t.to);
  }
  if (covered == tile_.elements()) return;
  auto fill = view.fill;
  fill.resize(itemsize(tile_.dtype));  // zeros where none is given
  add({whole_box(tile_.shape()), nullptr, 0, std::vector<std::int64_t>(tile_.box.size(), 0)},
      {-1, std::make_shared<const std::vector<std::byte>>(std::move(fill))});
}

// Adds the elements that the transfer reads, for each part of the source.
void ViewedValue::add_own(const Tile& source, const ViewedValue& from, const RemapPiece& piece,
                          const Transfer& t) {
  for (std::size_t p = 0; p < from.parts_.size(); ++p) {
    auto part = from.parts_[p];
    Box read(part.box.size());
    for (std::size_t d = 0; d < read.size(); ++d) {
      const auto first = piece.offset[d] + piece.step[d] * tile_.box[d].start - source.box[d].start;
      read[d] = preimage(part.box[d], first, piece.step[d]);
      part.offset += first * part.strides[d];
      part.strides[d] *= piece.step[d];
    }
    part.box = intersect(read, inside(tile_, t.to));
    if (!is_empty(part.box)) add(std::move(part), from.places_[p]);
  }
}

void ViewedValue::add(kernels::FusedPart part, MemorySource place) {
  parts_.push_back(std::move(part));
  places_.push_back(std::move(place));
}

std::span<const kernels::FusedPart> ViewedValue::parts(const Frame& frame) {
  for (std::size_t p = 0; p < parts_.size(); ++p)
    parts_[p].data = places_[p].fill ? places_[p].fill->data() : frame.slots[places_[p].value].data();
  return parts_;
}

}  // namespace tessera
