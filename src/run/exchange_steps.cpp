// Steps that move boxes: reshards and remaps. One message per peer, in pieces: a piece that lies in one run of memory is sent from, or
// received into, its place; others are packed just before they leave. So a reshard takes the memory of source, destination and a few
// pieces.
#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "comm/piecewise.hpp"
#include "comm/traffic.hpp"
#include "comm/waiting.hpp"
#include "kernels/copy.hpp"
#include "run/executable.hpp"

namespace tessera {
namespace {

// Where a transfer lies in a tile's memory.
struct Region {
  std::int64_t offset = 0;  // elements
  std::vector<std::int64_t> strides;
  Shape extents;
  std::int64_t elements = 0;
  bool contiguous = false;
};

bool is_contiguous(const Region& r) {
  std::int64_t expected = 1;
  for (std::size_t d = r.extents.size(); d-- > 0;) {
    if (r.extents[d] != 1 && r.strides[d] != expected) return false;
    expected *= r.extents[d];
  }
  return true;
}

Region destination_region(const Tile& tile, const Index& to) {
  Region r;
  r.strides = row_major_strides(tile.shape());
  r.extents = box_shape(to);
  r.elements = r.extents.elements();
  for (std::size_t d = 0; d < to.size(); ++d) r.offset += (to[d].start - tile.box[d].start) * r.strides[d];
  r.contiguous = is_contiguous(r);
  return r;
}

Region source_region(const Tile& tile, const Piece& piece, const Index& to) {
  Region r;
  r.strides = row_major_strides(tile.shape());
  r.extents = box_shape(to);
  r.elements = r.extents.elements();
  for (std::size_t d = 0; d < to.size(); ++d) {
    r.offset += (piece.offset[d] + piece.step[d] * to[d].start - tile.box[d].start) * r.strides[d];
    r.strides[d] *= piece.step[d];
  }
  r.contiguous = is_contiguous(r);
  return r;
}

struct Block {
  int source = 0;  // operand number (sends, local copies)
  Region source_place, destination_place;
  std::int64_t elements = 0;
};

// The blocks that go to one peer, or come from it, in groups that travel as one piece each.
struct PeerMessage {
  std::vector<Block> blocks;
  std::vector<std::size_t> piece_ends;  // piece i is blocks [piece_ends[i - 1], piece_ends[i])
  comm::PiecewiseMessage wire;          // the peer, and the bytes of each piece

  std::span<const Block> piece(std::size_t i) const {
    const std::size_t first = i == 0 ? 0 : piece_ends[i - 1];
    return {blocks.data() + first, piece_ends[i] - first};
  }
};

// Cuts a box into runs of whole rows with at most `most` elements, in the order of memory. Both ends of a message cut alike.
//
//   5 x 100 in pieces of 250:   rows [0, 2), [2, 4), [4, 5)
template <class F> void for_each_cut(const Index& box, std::int64_t most, F&& use, std::size_t dim = 0) {
  std::int64_t row = 1;  // elements of one index of `dim`
  for (std::size_t d = dim + 1; d < box.size(); ++d) row *= box[d].size();
  if (dim == box.size() || row * box[dim].size() <= most) return use(box);
  const std::int64_t rows = std::max<std::int64_t>(1, most / std::max<std::int64_t>(row, 1));
  Index part = box;
  for (std::int64_t start = box[dim].start; start < box[dim].stop; start += rows) {
    part[dim] = {start, std::min(start + rows, box[dim].stop)};
    for_each_cut(part, most, use, dim + 1);
  }
}

constexpr std::int64_t local_bytes = std::int64_t{16} << 20;  // copied between two looks at the messages

class ExchangeStep final : public Step {
 public:
  ExchangeStep(const BindContext& context, const Instruction& i)
      : inputs_(i.inputs),
        output_(i.outputs[0]),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        kind_(collective_kind(i)),
        label_(label_of(i)) {
    const Remap map = i.kind == InstructionKind::remap ? *i.remap : identity_remap(out_.tile.global);
    std::vector<Sharding> from;
    std::vector<Shape> shapes;
    std::vector<Tile> tiles;
    for (const int v : inputs_) {
      from.push_back(context.value(v).layout);
      shapes.push_back(context.value(v).type.shape);
      tiles.push_back(context.local(v).tile);
    }
    static const std::vector<int> none;
    const auto& region = context.value(inputs_[0]).region;
    const auto plan =
        plan_exchange(map, from, shapes, context.value(output_).layout, out_.tile.global, context.me, region ? region->manual_axes : none);
    const auto limit = std::max<std::int64_t>(1, comm::piece_limit() / static_cast<std::int64_t>(item_));
    std::map<int, PeerMessage> sends, receives;
    for (const auto& t : plan.sends) {
      const auto& piece = map.pieces[static_cast<std::size_t>(t.piece)];
      for_each_cut(t.to, limit, [&](const Index& to) {
        add(sends[t.peer], limit, {piece.source, source_region(tiles[static_cast<std::size_t>(piece.source)], piece, to), {}, 0});
      });
    }
    for (const auto& t : plan.receives)
      for_each_cut(t.to, limit, [&](const Index& to) { add(receives[t.peer], limit, {0, {}, destination_region(out_.tile, to), 0}); });
    for (const auto& t : plan.local) {
      const auto& piece = map.pieces[static_cast<std::size_t>(t.piece)];
      for_each_cut(t.to, local_bytes / static_cast<std::int64_t>(item_), [&](const Index& to) {
        local_.push_back(
            {piece.source, source_region(tiles[static_cast<std::size_t>(piece.source)], piece, to), destination_region(out_.tile, to), 0});
        covered_ += local_.back().destination_place.elements;
      });
    }
    const auto finish = [&](std::map<int, PeerMessage>& by_peer, std::vector<PeerMessage>& list,
                            std::vector<comm::PiecewiseMessage>& wire) {
      for (auto& [peer, message] : by_peer) {
        message.wire.peer = peer;
        wire.push_back(std::move(message.wire));
        list.push_back(std::move(message));
      }
    };
    finish(sends, sends_, outgoing_);
    finish(receives, receives_, incoming_);
    for (const auto& message : receives_)
      for (const auto& block : message.blocks) covered_ += block.elements;
    for (const auto& message : incoming_)
      for (const auto bytes : message.pieces) received_bytes_ += bytes;
    fill_ = i.fill;
  }

  void run(Frame& frame) override {
    auto& result = frame.slots[static_cast<std::size_t>(output_)];
    if (out_.holds) result = Buffer::allocate(static_cast<std::size_t>(out_.bytes));
    if (out_.holds && covered_ < out_.tile.elements()) fill(result);
    if (!sends_.empty() || !receives_.empty()) {
      const comm::Purpose purpose(label_);
      exchange(frame, result);
      if (!kind_.empty()) comm::count(kind_, received_bytes_);
    } else {
      for (const auto& block : local_) copy_local(frame, result, block);
      if (!kind_.empty() && kind_ != "all-slice") comm::count(kind_, 0);
    }
  }

 private:
  // Small blocks share a piece.
  void add(PeerMessage& message, std::int64_t limit, Block block) {
    block.elements = std::max(block.source_place.elements, block.destination_place.elements);
    const std::int64_t bytes = block.elements * static_cast<std::int64_t>(item_);
    auto& pieces = message.wire.pieces;
    if (pieces.empty() || pieces.back() + bytes > limit * static_cast<std::int64_t>(item_)) {
      pieces.push_back(0);
      message.piece_ends.push_back(message.blocks.size());
    }
    pieces.back() += bytes;
    message.piece_ends.back() = message.blocks.size() + 1;
    message.blocks.push_back(std::move(block));
  }

  void fill(Buffer& result) const {
    if (fill_.empty())
      std::memset(result.data(), 0, static_cast<std::size_t>(out_.bytes));
    else
      kernels::fill(result.data(), fill_.data(), item_, out_.tile.elements());
  }

  std::byte* at(std::byte* data, const Region& r) const { return data + r.offset * static_cast<std::int64_t>(item_); }

  void copy_local(Frame& frame, Buffer& result, const Block& block) const {
    const auto& from = frame.slots[static_cast<std::size_t>(inputs_[static_cast<std::size_t>(block.source)])];
    kernels::copy_strided(at(result.data(), block.destination_place), block.destination_place.strides, at(from.data(), block.source_place),
                          block.source_place.strides, block.destination_place.extents, item_);
  }

  void exchange(Frame& frame, Buffer& result) const {
    const auto data_of = [&](const Block& block) {
      return frame.slots[static_cast<std::size_t>(inputs_[static_cast<std::size_t>(block.source)])].data();
    };
    comm::PieceWork work;
    work.source = [&](std::size_t m, std::size_t p) -> const std::byte* {
      const auto blocks = sends_[m].piece(p);
      return blocks.size() == 1 && blocks[0].source_place.contiguous ? at(data_of(blocks[0]), blocks[0].source_place) : nullptr;
    };
    work.destination = [&](std::size_t m, std::size_t p) -> std::byte* {
      const auto blocks = receives_[m].piece(p);
      return blocks.size() == 1 && blocks[0].destination_place.contiguous ? at(result.data(), blocks[0].destination_place) : nullptr;
    };
    work.pack = [&](std::size_t m, std::size_t p, std::byte* to) {
      for (const auto& block : sends_[m].piece(p)) {
        const auto& place = block.source_place;
        kernels::copy_strided(to, row_major_strides(place.extents), at(data_of(block), place), place.strides, place.extents, item_);
        to += block.elements * static_cast<std::int64_t>(item_);
      }
    };
    work.unpack = [&](std::size_t m, std::size_t p, const std::byte* from) {
      for (const auto& block : receives_[m].piece(p)) {
        const auto& place = block.destination_place;
        kernels::copy_strided(at(result.data(), place), place.strides, from, row_major_strides(place.extents), place.extents, item_);
        from += block.elements * static_cast<std::int64_t>(item_);
      }
    };
    std::size_t copied = 0;
    work.meanwhile = [&] {
      if (copied < local_.size()) copy_local(frame, result, local_[copied++]);
      return copied < local_.size();
    };
    comm::exchange_piecewise(comm::world(), outgoing_, incoming_, work, label_.c_str());
  }

  std::vector<int> inputs_;
  int output_;
  LocalValue out_;
  std::size_t item_;
  std::string kind_, label_;
  std::vector<PeerMessage> sends_, receives_;
  std::vector<comm::PiecewiseMessage> outgoing_, incoming_;
  std::vector<Block> local_;
  std::vector<std::byte> fill_;
  std::int64_t received_bytes_ = 0, covered_ = 0;
};

}  // namespace

std::unique_ptr<Step> bind_exchange(const BindContext& context, const Instruction& i) { return std::make_unique<ExchangeStep>(context, i); }

}  // namespace tessera
