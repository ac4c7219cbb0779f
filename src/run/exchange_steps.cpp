// Steps that move boxes: reshards and remaps. One packed message per peer; a block that is contiguous is sent from, or received into,
// its place.
#include <algorithm>
#include <cstring>
#include <map>

#include "comm/pending.hpp"
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
};
struct PeerMessage {
  int peer = 0;
  std::vector<Block> blocks;
  std::int64_t bytes = 0;
  bool direct() const { return blocks.size() == 1; }
};

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
    std::map<int, PeerMessage> sends, receives;
    for (const auto& t : plan.sends) {
      const auto& piece = map.pieces[static_cast<std::size_t>(t.piece)];
      add(sends[t.peer], t.peer, {piece.source, source_region(tiles[static_cast<std::size_t>(piece.source)], piece, t.to), {}});
    }
    for (const auto& t : plan.receives) {
      auto place = destination_region(out_.tile, t.to);
      const auto elements = place.elements;
      Block block{0, {}, std::move(place)};
      block.source_place.elements = elements;
      add(receives[t.peer], t.peer, std::move(block));
    }
    for (const auto& t : plan.local) {
      const auto& piece = map.pieces[static_cast<std::size_t>(t.piece)];
      local_.push_back(
          {piece.source, source_region(tiles[static_cast<std::size_t>(piece.source)], piece, t.to), destination_region(out_.tile, t.to)});
      covered_ += local_.back().destination_place.elements;
    }
    for (auto& [peer, message] : sends) sends_.push_back(std::move(message));
    for (auto& [peer, message] : receives) {
      received_bytes_ += message.bytes;
      covered_ += message.bytes / static_cast<std::int64_t>(item_);
      receives_.push_back(std::move(message));
    }
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
      copy_local(frame, result);
      if (!kind_.empty() && kind_ != "all-slice") comm::count(kind_, 0);
    }
  }

 private:
  void add(PeerMessage& message, int peer, Block block) {
    message.peer = peer;
    message.bytes += block.source_place.elements * static_cast<std::int64_t>(item_);
    message.blocks.push_back(std::move(block));
  }

  void fill(Buffer& result) const {
    if (fill_.empty())
      std::memset(result.data(), 0, static_cast<std::size_t>(out_.bytes));
    else
      kernels::fill(result.data(), fill_.data(), item_, out_.tile.elements());
  }

  std::byte* at(std::byte* data, const Region& r) const { return data + r.offset * static_cast<std::int64_t>(item_); }

  void copy_local(Frame& frame, Buffer& result) const {
    for (const auto& block : local_) {
      const auto& from = frame.slots[static_cast<std::size_t>(inputs_[static_cast<std::size_t>(block.source)])];
      kernels::copy_strided(at(result.data(), block.destination_place), block.destination_place.strides,
                            at(from.data(), block.source_place), block.source_place.strides, block.destination_place.extents, item_);
    }
  }

  void exchange(Frame& frame, Buffer& result) {
    std::vector<Buffer> packed;
    std::vector<comm::Message> sends, receives;
    for (const auto& message : receives_) {
      std::byte* data = nullptr;
      if (message.direct() && message.blocks[0].destination_place.contiguous) {
        data = at(result.data(), message.blocks[0].destination_place);
      } else {
        packed.push_back(Buffer::allocate(static_cast<std::size_t>(message.bytes)));
        data = packed.back().data();
      }
      receives.push_back({message.peer, data, message.bytes});
    }
    for (const auto& message : sends_) {
      const auto source_data = [&](const Block& block) {
        return frame.slots[static_cast<std::size_t>(inputs_[static_cast<std::size_t>(block.source)])].data();
      };
      if (message.direct() && message.blocks[0].source_place.contiguous) {
        sends.push_back({message.peer, at(source_data(message.blocks[0]), message.blocks[0].source_place), message.bytes});
        continue;
      }
      packed.push_back(Buffer::allocate(static_cast<std::size_t>(message.bytes)));
      std::byte* cursor = packed.back().data();
      for (const auto& block : message.blocks) {
        const auto dense = row_major_strides(block.source_place.extents);
        kernels::copy_strided(cursor, dense, at(source_data(block), block.source_place), block.source_place.strides,
                              block.source_place.extents, item_);
        cursor += block.source_place.elements * static_cast<std::int64_t>(item_);
      }
      sends.push_back({message.peer, packed.back().data(), message.bytes});
    }
    const auto unpack = [&](std::size_t n) {
      const auto& message = receives_[n];
      if (message.direct() && message.blocks[0].destination_place.contiguous) return;
      const std::byte* cursor = receives[n].data;
      for (const auto& block : message.blocks) {
        const auto& place = block.destination_place;
        kernels::copy_strided(at(result.data(), place), place.strides, cursor, row_major_strides(place.extents), place.extents, item_);
        cursor += place.elements * static_cast<std::int64_t>(item_);
      }
    };
    auto pending = comm::start_exchange(comm::world(), sends, receives, unpack, label_.c_str());
    copy_local(frame, result);  // while the messages travel
    pending.wait();
  }

  std::vector<int> inputs_;
  int output_;
  LocalValue out_;
  std::size_t item_;
  std::string kind_, label_;
  std::vector<PeerMessage> sends_, receives_;
  std::vector<Block> local_;
  std::vector<std::byte> fill_;
  std::int64_t received_bytes_ = 0, covered_ = 0;
};

}  // namespace

std::unique_ptr<Step> bind_exchange(const BindContext& context, const Instruction& i) { return std::make_unique<ExchangeStep>(context, i); }

}  // namespace tessera
