// Kernels that communicate.
#include <cstring>
#include <optional>

#include "comm/host/host_memory.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "run/bound_chain.hpp"
#include "run/steps.hpp"

namespace tessera {
namespace {

class CommunicatingStep final : public Step {
 public:
  CommunicatingStep(const BindContext& context, const Instruction& i, const CommunicatingCall& call)
      : op_(i.op),
        communicate_(communicating_function(*i.op)),
        params_(call.params),
        inputs_(i.inputs),
        outputs_(i.outputs),
        costs_(call.costs),
        temporary_bytes_(call.temporary_bytes),
        me_(context.me),
        call_(call_of(i)),
        label_(label_of(i)) {
    for (const int v : inputs_)
      in_.push_back(context.local(v).tile), in_layouts_.push_back(context.value(v).layout);
    for (const int v : outputs_)
      out_.push_back(context.local(v).tile), locals_.push_back(context.local(v)),
          out_layouts_.push_back(context.value(v).layout);
    if (call.epilogue) epilogue_.emplace(context, i, *call.epilogue);
    fixed_axes_ = manual_axes_of(context.value(outputs_[0]).region);
  }
  std::int64_t temporary_bytes() const override { return temporary_bytes_; }
  void run(Frame& frame) override {
    if (!locals_[0].holds) return;
    prepare(frame);
    const Mesh mesh = out_layouts_[0].mesh();
    const comm::Purpose purpose(label_);
    const LastPass* const pass = epilogue_ ? epilogue_->begin(frame, out_[0].data) : nullptr;
    const CommunicationArgs args{
        {*op_, *params_, in_, out_, pass}, in_layouts_, out_layouts_, mesh, me_, fixed_axes_, label_};
    const auto self_counted = comm::self_counted();
    try {
      communicate_(args);
      if (epilogue_) epilogue_->finish();
    } catch (const LinAlgError& error) {  // agreed over the mesh: thrown on all of its ranks or on none
      if (!op_->may_fail) throw;
      if (frame.failure.empty()) frame.failure = call_ + ": " + error.what();
      for (std::size_t i = 0; i < outputs_.size(); ++i) std::memset(out_[i].data, 0xff, locals_[i].bytes);
    }
    if (comm::self_counted() != self_counted) return;
    for (const auto& cost : costs_)
      for (std::int64_t call = 0; call < cost.calls; ++call)
        comm::count(cost.kind, call == 0 ? cost.bytes : 0);
  }

 private:
  void prepare(Frame& frame) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      auto& slot = frame.slots[outputs_[i]];
      // Shared on the host, so that peers can write their parts into it.
      slot = comm::allocate_on_host(locals_[i].bytes);
      out_[i].data = slot.data();
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) in_[i].data = frame.slots[inputs_[i]].data();
  }

  const OpDef* op_;
  CommunicatingFunction communicate_;
  ParamsPtr params_;
  std::vector<int> inputs_, outputs_;
  std::vector<CommunicationCost> costs_;
  std::int64_t temporary_bytes_;
  int me_;
  std::string call_, label_;
  std::vector<Tile> in_, out_;
  std::vector<LocalValue> locals_;
  std::vector<Sharding> in_layouts_, out_layouts_;
  MeshAxes fixed_axes_;
  std::optional<BoundEpilogue> epilogue_;
};

}  // namespace

StepPtr bind_communicating_call(const BindContext& context, const Instruction& i,
                                const CommunicatingCall& call) {
  return std::make_unique<CommunicatingStep>(context, i, call);
}

}  // namespace tessera
