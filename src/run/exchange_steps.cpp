// Steps that move boxes: reshards and remaps. One message per peer, in pieces: a contiguous piece is sent
// from, or received into, its place directly; others are packed just before they are sent. So a reshard needs
// the memory of source, destination and a few pieces. Data in long runs on the same host are not sent at all:
// the receiver reads them in place.
#include <cstring>

#include "comm/collectives/piecewise.hpp"
#include "comm/host/direct_read.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "kernels/move/copy.hpp"
#include "run/exchange_work.hpp"

namespace tessera {
namespace {

class ExchangeStep final : public Step {
 public:
  ExchangeStep(const BindContext& context, const Instruction& i, const Remap& map,
               std::vector<std::byte> fill, bool leaves_own)
      : inputs_(i.inputs),
        output_(i.outputs[0]),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        kind_(collective_kind(i)),
        label_(label_of(i)),
        fill_(std::move(fill)),
        work_(plan_work(context, inputs_, output_, map)),
        stores_(out_.holds),
        fills_(out_.holds && !leaves_own && work_.covered < out_.tile.elements()) {
    takes_part_ = out_.holds;
    for (const int v : inputs_) takes_part_ = takes_part_ || context.local(v).holds;
    if (!leaves_own) return;
    work_.local.clear();
    stores_ = work_.received_bytes > 0;
  }

  void run(Frame& frame) override {
    auto& result = frame.slots[output_];
    if (stores_) result = Buffer::allocate(out_.bytes);
    if (fills_) fill(result);
    if (!work_.sends.empty() || !work_.receives.empty() || !work_.readers.empty() || !work_.sources.empty()) {
      const comm::Purpose purpose(label_);
      std::size_t copied = 0;  // number of local blocks copied so far
      if (!work_.readers.empty() || !work_.sources.empty()) read_directly(frame, result, copied);
      exchange(frame, result, copied);
      if (!kind_.empty()) comm::count(kind_, work_.received_bytes);
    } else {
      for (const auto& block : work_.local) copy_local(frame, result, block);
      if (takes_part_ && !kind_.empty() && kind_ != "all-slice") comm::count(kind_, 0);
    }
  }

 private:
  void fill(Buffer& result) const {
    if (fill_.empty())
      std::memset(result.data(), 0, out_.bytes);
    else
      kernels::fill(result.data(), fill_.data(), item_, out_.tile.elements());
  }

  std::byte* at(std::byte* data, const StridedBox& r) const {
    return data + r.offset * static_cast<std::int64_t>(item_);
  }

  void copy_local(Frame& frame, Buffer& result, const ExchangeBlock& block) const {
    const auto& from = frame.slots[inputs_[block.operand]];
    kernels::copy_strided(at(result.data(), block.to), block.to.strides, at(from.data(), block.from),
                          block.from.strides, block.to.extents, item_);
  }

  void read_directly(Frame& frame, Buffer& result, std::size_t& copied) const {
    std::vector<std::uint64_t> operands;
    for (const int v : inputs_) operands.push_back(reinterpret_cast<std::uint64_t>(frame.slots[v].data()));
    comm::DirectWork work;
    work.meanwhile = [&] {
      while (copied < work_.local.size()) copy_local(frame, result, work_.local[copied++]);
    };
    work.read = [&](std::size_t source, std::span<const std::uint64_t> theirs, comm::DirectReader& reader) {
      for (const auto& block : work_.sources[source].blocks)
        for_each_run(block.there, block.here,
                     [&](std::int64_t there, std::int64_t here, std::int64_t elements) {
                       reader.add(theirs[block.operand] + static_cast<std::uint64_t>(there) * item_,
                                  result.data() + here * static_cast<std::int64_t>(item_),
                                  static_cast<std::size_t>(elements) * item_);
                     });
    };
    comm::exchange_by_reading(comm::world(), operands, work_.readers, work_.source_peers, work,
                              label_.c_str());
  }

  void exchange(Frame& frame, Buffer& result, std::size_t& copied) const {
    const auto data_of = [&](const ExchangeBlock& block) {
      return frame.slots[inputs_[block.operand]].data();
    };
    comm::PieceWork work;
    work.source = [&](std::size_t m, std::size_t p) -> const std::byte* {
      const auto blocks = work_.sends[m].piece(p);
      return blocks.size() == 1 && blocks[0].from.contiguous ? at(data_of(blocks[0]), blocks[0].from)
                                                             : nullptr;
    };
    work.destination = [&](std::size_t m, std::size_t p) -> std::byte* {
      const auto blocks = work_.receives[m].piece(p);
      return blocks.size() == 1 && blocks[0].to.contiguous ? at(result.data(), blocks[0].to) : nullptr;
    };
    work.pack = [&](std::size_t m, std::size_t p, std::byte* to) {
      for (const auto& block : work_.sends[m].piece(p)) {
        const auto& box = block.from;
        kernels::copy_strided(to, row_major_strides(box.extents), at(data_of(block), box), box.strides,
                              box.extents, item_);
        to += block.elements * static_cast<std::int64_t>(item_);
      }
    };
    work.unpack = [&](std::size_t m, std::size_t p, const std::byte* from) {
      for (const auto& block : work_.receives[m].piece(p)) {
        const auto& box = block.to;
        kernels::copy_strided(at(result.data(), box), box.strides, from, row_major_strides(box.extents),
                              box.extents, item_);
        from += block.elements * static_cast<std::int64_t>(item_);
      }
    };
    work.meanwhile = [&] {
      if (copied < work_.local.size()) copy_local(frame, result, work_.local[copied++]);
      return copied < work_.local.size();
    };
    comm::exchange_piecewise(comm::world(), work_.outgoing, work_.incoming, work, label_.c_str());
  }

  std::vector<int> inputs_;
  int output_;
  LocalValue out_;
  bool takes_part_ =
      false;  // false on a rank outside of both meshes, which holds no part of operands and result
  std::size_t item_;
  std::string kind_, label_;
  std::vector<std::byte> fill_;
  ExchangeWork work_;
  bool stores_, fills_;
};

}  // namespace

StepPtr bind_reshard(const BindContext& context, const Instruction& i) {
  return std::make_unique<ExchangeStep>(context, i, identity_remap(context.value(i.outputs[0]).type.shape),
                                        std::vector<std::byte>(), false);
}

StepPtr bind_remap(const BindContext& context, const Instruction& i, const RemapMove& remap) {
  return std::make_unique<ExchangeStep>(context, i, *remap.map, remap.fill, remap.leaves_own);
}

}  // namespace tessera
