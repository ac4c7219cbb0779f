#include "run/exchange_work.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/thresholds.hpp"
#include "comm/host/direct_read.hpp"

namespace tessera {
namespace {

// Cuts a box into runs of whole rows of at most `most` elements, in memory order. Both ends of a message cut
// alike.
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

// The totals that a pair moves in one direction; both ranks compute the same.
struct PairTotals {
  static constexpr std::int64_t least_bytes = std::int64_t{64} << 10, least_run_bytes = 4096;
  std::int64_t bytes = 0, runs = 0;
  void add(const StridedBox& there, const StridedBox& here, std::int64_t item) {
    bytes += there.elements * item;
    runs += there.elements / std::max<std::int64_t>(common_run(there, here), 1);
  }
  bool is_read_directly() const {
    return bytes >= threshold(least_bytes) && bytes >= runs * threshold(least_run_bytes);
  }
};

constexpr std::int64_t local_bytes = std::int64_t{16} << 20;  // local copies between two checks for messages

class ExchangePlanner {
 public:
  ExchangePlanner(const BindContext& context, const std::vector<int>& inputs, int output, const Remap& map)
      : map_(map),
        me_(context.me),
        out_(context.local(output).tile),
        to_(context.value(output).layout),
        item_(static_cast<std::int64_t>(itemsize(out_.dtype))) {
    for (const int v : inputs) {
      from_.push_back(context.value(v).layout);
      shapes_.push_back(context.value(v).type.shape);
      tiles_.push_back(context.local(v).tile);
    }
    plan_ = plan_exchange(map, from_, shapes_, to_, out_.global, me_,
                          manual_axes_of(context.value(inputs[0]).region));
  }

  ExchangeWork work() {
    const auto sent = direct_peers(plan_.sends, true), received = direct_peers(plan_.receives, false);
    work_.readers.assign(sent.begin(), sent.end());
    for (const int peer : received) work_.sources.push_back({peer, {}}), work_.source_peers.push_back(peer);
    std::map<int, PeerMessage> sends, receives;
    for (const auto& t : plan_.sends)
      if (!sent.contains(t.peer)) add_send(sends[t.peer], t);
    for (const auto& t : plan_.receives)
      received.contains(t.peer) ? add_direct(t) : add_receive(receives[t.peer], t);
    for (const auto& t : plan_.local) add_local(t);
    hand_over(sends, work_.sends, work_.outgoing);
    hand_over(receives, work_.receives, work_.incoming);
    return std::move(work_);
  }

 private:
  const RemapPiece& piece_of(const Transfer& t) const { return map_.pieces[t.piece]; }

  // The boxes of a transfer on both sides: in the operand's tile on one rank and the result's on the other.
  std::pair<StridedBox, StridedBox> both_boxes(const Transfer& t, int from_rank, int to_rank) const {
    const auto& piece = piece_of(t);
    const Tile theirs{nullptr, out_.dtype, from_[piece.source].local_box(shapes_[piece.source], from_rank),
                      shapes_[piece.source]};
    const Tile here{nullptr, out_.dtype, to_.local_box(out_.global, to_rank), out_.global};
    return {source_box(theirs, piece, t.to), destination_box(here, t.to)};
  }

  // The peers whose data are read in place, or that read this rank's. Both sides compute the same.
  std::set<int> direct_peers(const std::vector<Transfer>& transfers, bool sends) const {
    std::map<int, PairTotals> totals;
    for (const auto& t : transfers) {
      if (!comm::reads_directly(me_, t.peer)) continue;
      const auto [there, here] = sends ? both_boxes(t, me_, t.peer) : both_boxes(t, t.peer, me_);
      totals[t.peer].add(there, here, item_);
    }
    std::set<int> peers;
    for (const auto& [peer, total] : totals)
      if (total.is_read_directly()) peers.insert(peer);
    return peers;
  }

  // The elements of a piece that travels between this rank and another.
  std::int64_t piece_elements(int peer) const {
    return std::max<std::int64_t>(1, comm::piece_limit(me_, peer) / item_);
  }

  void add_send(PeerMessage& message, const Transfer& t) {
    const auto& piece = piece_of(t);
    const std::int64_t most = piece_elements(t.peer);
    for_each_cut(t.to, most, [&](const Index& to) {
      add(message, {piece.source, source_box(tiles_[piece.source], piece, to), {}, 0}, most);
    });
  }

  void add_receive(PeerMessage& message, const Transfer& t) {
    const std::int64_t most = piece_elements(t.peer);
    for_each_cut(t.to, most, [&](const Index& to) {
      ExchangeBlock block{0, {}, destination_box(out_, to), 0};
      count_received(block.to.elements);
      add(message, std::move(block), most);
    });
  }

  void add_direct(const Transfer& t) {
    const auto source = std::find(work_.source_peers.begin(), work_.source_peers.end(), t.peer);
    const auto [there, here] = both_boxes(t, t.peer, me_);
    work_.sources[source - work_.source_peers.begin()].blocks.push_back(
        {static_cast<std::size_t>(piece_of(t).source), there, here});
    count_received(here.elements);
  }

  void add_local(const Transfer& t) {
    const auto& piece = piece_of(t);
    for_each_cut(t.to, threshold(local_bytes, 4096) / item_, [&](const Index& to) {
      work_.local.push_back(
          {piece.source, source_box(tiles_[piece.source], piece, to), destination_box(out_, to), 0});
      work_.covered += work_.local.back().to.elements;
    });
  }

  void count_received(std::int64_t elements) {
    work_.covered += elements;
    work_.received_bytes += elements * item_;
  }

  // Adds a block to a message; small blocks share a piece.
  void add(PeerMessage& message, ExchangeBlock block, std::int64_t most) {
    block.elements = std::max(block.from.elements, block.to.elements);
    const std::int64_t bytes = block.elements * item_;
    auto& pieces = message.wire.pieces;
    if (pieces.empty() || pieces.back() + bytes > most * item_) {
      pieces.push_back(0);
      message.piece_ends.push_back(message.blocks.size());
    }
    pieces.back() += bytes;
    message.piece_ends.back() = message.blocks.size() + 1;
    message.blocks.push_back(std::move(block));
  }

  static void hand_over(std::map<int, PeerMessage>& by_peer, std::vector<PeerMessage>& messages,
                        std::vector<comm::PiecewiseMessage>& wire) {
    for (auto& [peer, message] : by_peer) {
      message.wire.peer = peer;
      wire.push_back(std::move(message.wire));
      messages.push_back(std::move(message));
    }
  }

  const Remap& map_;
  int me_;
  Tile out_;
  Sharding to_;
  std::int64_t item_;  // bytes of an element
  std::vector<Sharding> from_;
  std::vector<Shape> shapes_;
  std::vector<Tile> tiles_;
  ExchangePlan plan_;
  ExchangeWork work_;
};

}  // namespace

ExchangeWork plan_work(const BindContext& context, const std::vector<int>& inputs, int output,
                       const Remap& map) {
  return ExchangePlanner(context, inputs, output, map).work();
}

}  // namespace tessera
