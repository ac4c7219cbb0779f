// Steps in which a group of ranks along mesh axes gathers or reduces.
#include <algorithm>
#include <cstring>

#include "comm/collectives/pending.hpp"
#include "comm/mpi/idle_groups.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "kernels/move/copy.hpp"
#include "run/steps.hpp"

namespace tessera {
namespace {

std::int64_t product_before(const Shape& shape, int dim) {
  std::int64_t product = 1;
  for (int d = 0; d < dim; ++d) product *= shape[d];
  return product;
}

// The devices of one gather or reduction, in the order of their blocks along `dim`.
struct Group {
  std::vector<int> ids;
  std::vector<Box> boxes;
  std::vector<std::int64_t> elements;
};
Group group_of(const Sharding& layout, const Shape& shape, const MeshAxes& axes, int dim, int me) {
  Group group;
  group.ids = group_along(layout.mesh(), axes, me);
  std::stable_sort(group.ids.begin(), group.ids.end(), [&](int a, int b) {
    return layout.local_box(shape, a)[dim].start < layout.local_box(shape, b)[dim].start;
  });
  for (const int id : group.ids) {
    group.boxes.push_back(layout.local_box(shape, id));
    group.elements.push_back(box_elements(group.boxes.back()));
  }
  return group;
}

// Copies between one device's dense block and its part of the group's combined block.
void copy_part(std::byte* whole, const Box& whole_box, std::byte* part, const Box& part_box, std::size_t item,
               bool gather) {
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
  AllGatherStep(const BindContext& context, const Instruction& i, const ReshardStep& step)
      : input_(i.inputs[0]),
        output_(i.outputs[0]),
        in_(context.local(input_)),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        label_(label_of(i)) {
    if (!out_.holds) return;
    group_ = group_of(step.from, out_.tile.global, step.axes, step.dim, context.me);
    communicator_ = comm::hold_group(group_.ids);
    std::int64_t offset = 0;
    for (const auto n : group_.elements) {
      bytes_.push_back(n * static_cast<std::int64_t>(item_));
      offsets_.push_back(offset);
      offset += bytes_.back();
      equal_ &= n == group_.elements[0];
    }
    in_place_ = product_before(out_.tile.shape(), step.dim) == 1;
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
      for (std::size_t m = 0; m < group_.ids.size(); ++m)
        copy_part(result.data(), out_.tile.box, gathered_.data() + offsets_[m], group_.boxes[m], item_, true);
    mine_.reset();
    gathered_.reset();
    comm::count("all-gather", received_);
  }

  int input_, output_;
  LocalValue in_, out_;
  std::size_t item_;
  std::string label_;
  Group group_;
  std::shared_ptr<const comm::Communicator> communicator_;
  Buffer mine_, gathered_;
  comm::Pending pending_;
  std::vector<std::int64_t> bytes_, offsets_;
  bool equal_ = true, in_place_ = false;
  std::int64_t received_ = 0;
};

// All-reduces one or several values over the same axes; several small ones share one message.
class AllReduceStep final : public Step {
 public:
  AllReduceStep(const BindContext& context, const Instruction& i, const AllReduce& reduction)
      : inputs_(i.inputs), outputs_(i.outputs), kind_(reduction.kind), label_(label_of(i)) {
    for (const int v : outputs_) locals_.push_back(context.local(v));
    if (!locals_[0].holds) return;
    const auto ids = group_along(context.value(outputs_[0]).layout.mesh(), reduction.axes, context.me);
    communicator_ = comm::hold_group(ids);
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
  ReduceKind kind_;
  std::string label_;
  std::shared_ptr<const comm::Communicator> communicator_;
  Buffer in_, out_;
  comm::Pending pending_;
  std::int64_t bytes_ = 0, received_ = 0;
};

class ReduceScatterStep final : public Step {
 public:
  ReduceScatterStep(const BindContext& context, const Instruction& i, const ReduceScatter& reduction)
      : input_(i.inputs[0]),
        output_(i.outputs[0]),
        in_(context.local(input_)),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        kind_(reduction.kind),
        label_(label_of(i)) {
    if (!out_.holds) return;
    group_ =
        group_of(context.value(output_).layout, out_.tile.global, reduction.axes, reduction.dim, context.me);
    communicator_ = comm::hold_group(group_.ids);
    in_place_ = product_before(in_.tile.shape(), reduction.dim) == 1;
    received_ = (static_cast<std::int64_t>(group_.ids.size()) - 1) * out_.bytes;
  }
  void run(Frame& frame) override {
    if (!out_.holds) return;
    const auto& terms = frame.slots[input_];
    auto& result = frame.slots[output_] = Buffer::allocate(out_.bytes);
    Buffer ordered = terms;
    if (!in_place_) {  // consecutive blocks of the group
      ordered = Buffer::allocate(in_.bytes);
      std::byte* cursor = ordered.data();
      for (std::size_t m = 0; m < group_.ids.size(); ++m) {
        copy_part(terms.data(), in_.tile.box, cursor, group_.boxes[m], item_, false);
        cursor += group_.elements[m] * static_cast<std::int64_t>(item_);
      }
    }
    const comm::Purpose purpose(label_);
    comm::reduce_scatter(*communicator_, kind_, out_.tile.dtype, ordered.data(), result.data(),
                         group_.elements);
    comm::count("reduce-scatter", received_);
  }

 private:
  int input_, output_;
  LocalValue in_, out_;
  std::size_t item_;
  ReduceKind kind_;
  std::string label_;
  Group group_;
  std::shared_ptr<const comm::Communicator> communicator_;
  bool in_place_ = false;
  std::int64_t received_ = 0;
};

}  // namespace

StepPtr bind_all_gather(const BindContext& context, const Instruction& i, const ReshardStep& step) {
  return std::make_unique<AllGatherStep>(context, i, step);
}
StepPtr bind_all_reduce(const BindContext& context, const Instruction& i, const AllReduce& reduction) {
  return std::make_unique<AllReduceStep>(context, i, reduction);
}
StepPtr bind_reduce_scatter(const BindContext& context, const Instruction& i,
                            const ReduceScatter& reduction) {
  return std::make_unique<ReduceScatterStep>(context, i, reduction);
}

}  // namespace tessera
