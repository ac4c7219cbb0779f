// Steps in which a group of ranks along mesh axes gathers or combines, and kernels that communicate.
#include <algorithm>
#include <cstring>

#include "comm/collectives/pending.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "kernels/move/copy.hpp"
#include "run/executable.hpp"

namespace tessera {
namespace {

comm::ReduceKind reduce_kind_of(const std::string& name) {
  if (name == "sum") return comm::ReduceKind::sum;
  if (name == "prod") return comm::ReduceKind::prod;
  if (name == "max") return comm::ReduceKind::max;
  if (name == "min") return comm::ReduceKind::min;
  if (name == "any") return comm::ReduceKind::logical_or;
  if (name == "all") return comm::ReduceKind::logical_and;
  throw InternalError("executor: unknown reduction " + name);
}

std::int64_t product_before(const Shape& shape, int dim) {
  std::int64_t product = 1;
  for (int d = 0; d < dim; ++d) product *= shape[d];
  return product;
}

// The members of the group in the order of their blocks along `dim`.
struct Members {
  std::vector<int> ids;
  std::vector<Box> boxes;
  std::vector<std::int64_t> elements;
};
Members members_of(const Sharding& layout, const Shape& shape, const std::vector<int>& axes, int dim,
                   int me) {
  Members members;
  members.ids = group_along(layout.mesh(), axes, me);
  std::stable_sort(members.ids.begin(), members.ids.end(), [&](int a, int b) {
    return layout.local_box(shape, a)[dim].start < layout.local_box(shape, b)[dim].start;
  });
  for (const int id : members.ids) {
    members.boxes.push_back(layout.local_box(shape, id));
    members.elements.push_back(box_elements(members.boxes.back()));
  }
  return members;
}

// Copies between a member's dense block and its place in the block of the whole group.
void copy_member(std::byte* whole, const Box& whole_box, std::byte* part, const Box& part_box,
                 std::size_t item, bool gather) {
  if (is_empty(part_box)) return;
  const auto extents = box_shape(part_box);
  const auto strides = row_major_strides(box_shape(whole_box));
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < part_box.size(); ++d)
    offset += (part_box[d].start - whole_box[d].start) * strides[d];
  whole += offset * static_cast<std::int64_t>(item);
  const auto dense = row_major_strides(extents);
  gather ? kernels::copy_strided(whole, strides, part, dense, extents, item)
         : kernels::copy_strided(part, dense, whole, strides, extents, item);
}

class AllGatherStep final : public Step {
 public:
  AllGatherStep(const BindContext& context, const Instruction& i)
      : input_(i.inputs[0]),
        output_(i.outputs[0]),
        in_(context.local(input_)),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        label_(label_of(i)) {
    if (!out_.holds) return;
    members_ = members_of(i.step->from, out_.tile.global, i.axes,
                          i.kind == InstructionKind::move ? i.step->dim : i.dim, context.me);
    communicator_ = &comm::group(members_.ids);
    std::int64_t offset = 0;
    for (const auto n : members_.elements) {
      bytes_.push_back(n * static_cast<std::int64_t>(item_));
      offsets_.push_back(offset);
      offset += bytes_.back();
      equal_ &= n == members_.elements[0];
    }
    in_place_ = product_before(out_.tile.shape(), i.step->dim) == 1;
    received_ = offset - in_.bytes;
  }

  void run(Frame& frame) override {
    if (!out_.holds) return;
    prepare(frame);
    const comm::Purpose purpose(label_);
    if (equal_)
      comm::all_gather(*communicator_, mine_.data(), bytes_[0], gathered_.data());
    else
      comm::all_gather_v(*communicator_, mine_.data(), in_.bytes, gathered_.data(), bytes_, offsets_);
    unpack(frame);
  }
  bool is_split() const override { return true; }
  void start(Frame& frame) override {
    if (!out_.holds) return;
    prepare(frame);
    const comm::Purpose purpose(label_);
    pending_ = equal_ ? comm::start_all_gather(*communicator_, mine_.data(), bytes_[0], gathered_.data())
                      : comm::start_all_gather_v(*communicator_, mine_.data(), in_.bytes, gathered_.data(),
                                                 bytes_, offsets_);
  }
  void finish(Frame& frame) override {
    if (!out_.holds) return;
    const comm::Purpose purpose(label_);
    pending_.wait();
    unpack(frame);
  }

 private:
  void prepare(Frame& frame) {
    auto& result = frame.slots[output_] = Buffer::allocate(out_.bytes);
    mine_ = frame.slots[input_];
    gathered_ = in_place_ ? result : Buffer::allocate(out_.bytes);
  }
  void unpack(Frame& frame) {
    auto& result = frame.slots[output_];
    if (!in_place_)
      for (std::size_t m = 0; m < members_.ids.size(); ++m)
        copy_member(result.data(), out_.tile.box, gathered_.data() + offsets_[m], members_.boxes[m], item_,
                    true);
    mine_.reset();
    gathered_.reset();
    comm::count("all-gather", received_);
  }

  int input_, output_;
  LocalValue in_, out_;
  std::size_t item_;
  std::string label_;
  Members members_;
  const comm::Communicator* communicator_ = nullptr;
  Buffer mine_, gathered_;
  comm::Pending pending_;
  std::vector<std::int64_t> bytes_, offsets_;
  bool equal_ = true, in_place_ = false;
  std::int64_t received_ = 0;
};

// One or several values over the same axes; several small ones travel as one message.
class AllReduceStep final : public Step {
 public:
  AllReduceStep(const BindContext& context, const Instruction& i)
      : inputs_(i.inputs), outputs_(i.outputs), kind_(reduce_kind_of(i.reduce_kind)), label_(label_of(i)) {
    for (const int v : outputs_) locals_.push_back(context.local(v));
    if (!locals_[0].holds) return;
    const auto ids = group_along(context.value(outputs_[0]).layout.mesh(), i.axes, context.me);
    communicator_ = &comm::group(ids);
    for (const auto& local : locals_) bytes_ += local.bytes;
    const auto p = static_cast<std::int64_t>(ids.size());
    received_ = 2 * (p - 1) * bytes_ / p;
  }
  void run(Frame& frame) override {
    if (!locals_[0].holds) return;
    prepare(frame);
    const comm::Purpose purpose(label_);
    comm::all_reduce(*communicator_, kind_, dtype(), in_.data(), out_.data(),
                     bytes_ / static_cast<std::int64_t>(itemsize(dtype())));
    deliver(frame);
  }
  bool is_split() const override { return true; }
  void start(Frame& frame) override {
    if (!locals_[0].holds) return;
    prepare(frame);
    const comm::Purpose purpose(label_);
    pending_ = comm::start_all_reduce(*communicator_, kind_, dtype(), in_.data(), out_.data(),
                                      bytes_ / static_cast<std::int64_t>(itemsize(dtype())));
  }
  void move_on() override { pending_.move_on(); }
  void finish(Frame& frame) override {
    if (!locals_[0].holds) return;
    const comm::Purpose purpose(label_);
    pending_.wait();
    deliver(frame);
  }

 private:
  Dtype dtype() const { return locals_[0].tile.dtype; }
  Buffer& slot(Frame& frame, int v) const { return frame.slots[v]; }

  void prepare(Frame& frame) {
    if (inputs_.size() == 1) {
      in_ = slot(frame, inputs_[0]);
      slot(frame, inputs_[0]).reset();
      const bool dead = std::find(frees.begin(), frees.end(), inputs_[0]) != frees.end();
      const bool in_place = dead && in_.is_unique();
      if (!dead) slot(frame, inputs_[0]) = in_;
      out_ = in_place ? in_ : Buffer::allocate(bytes_);
      return;
    }
    in_ = out_ = Buffer::allocate(bytes_);
    std::byte* cursor = in_.data();
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      std::memcpy(cursor, slot(frame, inputs_[k]).data(), locals_[k].bytes);
      cursor += locals_[k].bytes;
    }
  }
  void deliver(Frame& frame) {
    if (outputs_.size() == 1) {
      slot(frame, outputs_[0]) = out_;
    } else {
      const std::byte* cursor = out_.data();
      for (std::size_t k = 0; k < outputs_.size(); ++k) {
        auto& result = slot(frame, outputs_[k]) = Buffer::allocate(locals_[k].bytes);
        std::memcpy(result.data(), cursor, locals_[k].bytes);
        cursor += locals_[k].bytes;
      }
    }
    in_.reset();
    out_.reset();
    comm::count("all-reduce", received_);
  }

  std::vector<int> inputs_, outputs_;
  std::vector<LocalValue> locals_;
  comm::ReduceKind kind_;
  std::string label_;
  const comm::Communicator* communicator_ = nullptr;
  Buffer in_, out_;
  comm::Pending pending_;
  std::int64_t bytes_ = 0, received_ = 0;
};

class ReduceScatterStep final : public Step {
 public:
  ReduceScatterStep(const BindContext& context, const Instruction& i)
      : input_(i.inputs[0]),
        output_(i.outputs[0]),
        in_(context.local(input_)),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        kind_(reduce_kind_of(i.reduce_kind)),
        label_(label_of(i)) {
    if (!out_.holds) return;
    members_ = members_of(context.value(output_).layout, out_.tile.global, i.axes,
                          i.kind == InstructionKind::move ? i.step->dim : i.dim, context.me);
    communicator_ = &comm::group(members_.ids);
    in_place_ = product_before(in_.tile.shape(), i.dim) == 1;
    received_ = (static_cast<std::int64_t>(members_.ids.size()) - 1) * out_.bytes;
  }
  void run(Frame& frame) override {
    if (!out_.holds) return;
    const auto& terms = frame.slots[input_];
    auto& result = frame.slots[output_] = Buffer::allocate(out_.bytes);
    Buffer ordered = terms;
    if (!in_place_) {  // blocks of the members one after the other
      ordered = Buffer::allocate(in_.bytes);
      std::byte* cursor = ordered.data();
      for (std::size_t m = 0; m < members_.ids.size(); ++m) {
        copy_member(terms.data(), in_.tile.box, cursor, members_.boxes[m], item_, false);
        cursor += members_.elements[m] * static_cast<std::int64_t>(item_);
      }
    }
    const comm::Purpose purpose(label_);
    comm::reduce_scatter(*communicator_, kind_, out_.tile.dtype, ordered.data(), result.data(),
                         members_.elements);
    comm::count("reduce-scatter", received_);
  }

 private:
  int input_, output_;
  LocalValue in_, out_;
  std::size_t item_;
  comm::ReduceKind kind_;
  std::string label_;
  Members members_;
  const comm::Communicator* communicator_ = nullptr;
  bool in_place_ = false;
  std::int64_t received_ = 0;
};

class TalkStep final : public Step {
 public:
  TalkStep(const BindContext& context, const Instruction& i)
      : op_(i.op),
        params_(i.params),
        inputs_(i.inputs),
        outputs_(i.outputs),
        costs_(i.costs),
        me_(context.me),
        label_(label_of(i)) {
    for (const int v : inputs_)
      in_.push_back(context.local(v).tile), in_layouts_.push_back(context.value(v).layout);
    for (const int v : outputs_)
      out_.push_back(context.local(v).tile), locals_.push_back(context.local(v)),
          out_layouts_.push_back(context.value(v).layout);
    if (const auto& region = context.value(outputs_[0]).region) fixed_axes_ = region->manual_axes;
  }
  void run(Frame& frame) override {
    if (!locals_[0].holds) return;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      auto& slot = frame.slots[outputs_[i]];
      slot = comm::allocate_on_host(locals_[i].bytes);  // peers may put their parts in place
      out_[i].data = slot.data();
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) in_[i].data = frame.slots[inputs_[i]].data();
    const Mesh mesh = out_layouts_[0].mesh();
    const comm::Purpose purpose(label_);
    const TalkArgs args{
        {*op_, *params_, in_, out_}, in_layouts_, out_layouts_, mesh, me_, fixed_axes_, label_};
    if (!op_->may_fail) {
      talk_of (*op_)(args);
    } else {
      try {
        talk_of (*op_)(args);  // agrees among the mesh itself: all of its ranks arrive here or none
      } catch (const LinAlgError& error) {
        if (frame.failure.empty()) frame.failure = label_ + ": " + error.what();
        for (std::size_t i = 0; i < outputs_.size(); ++i) std::memset(out_[i].data, 0xff, locals_[i].bytes);
      }
    }
    for (const auto& cost : costs_)
      for (std::int64_t call = 0; call < cost.calls; ++call)
        comm::count(cost.kind, call == 0 ? cost.bytes : 0);
  }

 private:
  const OpDef* op_;
  ParamsPtr params_;
  std::vector<int> inputs_, outputs_;
  std::vector<TalkCost> costs_;
  int me_;
  std::string label_;
  std::vector<Tile> in_, out_;
  std::vector<LocalValue> locals_;
  std::vector<Sharding> in_layouts_, out_layouts_;
  std::vector<int> fixed_axes_;
};

}  // namespace

std::unique_ptr<Step> bind_collective(const BindContext& context, const Instruction& i) {
  if (i.kind == InstructionKind::all_reduce) return std::make_unique<AllReduceStep>(context, i);
  if (i.kind == InstructionKind::reduce_scatter) return std::make_unique<ReduceScatterStep>(context, i);
  return std::make_unique<AllGatherStep>(context, i);
}

std::unique_ptr<Step> bind_talk(const BindContext& context, const Instruction& i) {
  return std::make_unique<TalkStep>(context, i);
}

}  // namespace tessera
