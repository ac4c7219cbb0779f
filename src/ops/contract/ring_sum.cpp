#include "ops/contract/ring_sum.hpp"

#include <algorithm>

#include "comm/collectives/point_to_point.hpp"
#include "kernels/move/copy.hpp"
#include "ops/contract/matrices.hpp"
#include "ops/contract/product_plan.hpp"
#include "program/hosts.hpp"
#include "types/buffer.hpp"
#include "types/strided_box.hpp"

namespace tessera {
namespace {

constexpr std::int64_t lanes = 2;  // pieces in transit at once: one is sent while the next is computed

// The ranks whose terms are summed, in the order of the blocks that they keep.
std::vector<int> ring_of(const CommunicationArgs& args, const RingSumPlan& plan) {
  const Shape& shape = args.local.out[0].global;
  auto ids = group_along(args.mesh, plan.axes, args.me);
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) {
    return args.out_layouts[0].local_box(shape, a)[plan.dim_c].start <
           args.out_layouts[0].local_box(shape, b)[plan.dim_c].start;
  });
  return ids;
}

class RingSum {
 public:
  RingSum(const CommunicationArgs& args, const RingSumPlan& plan)
      : args_(args),
        plan_(plan),
        c_(args.local.out[0]),
        ids_(ring_of(args, plan)),
        comm_(comm::group(ids_)),
        me_(comm_.rank()),
        ranks_(comm_.size()) {}

  void run() {
    for (std::int64_t first = 0; first < plan_.pieces; first += lanes) {
      const auto count = std::min(lanes, plan_.pieces - first);
      for (int turn = 0; turn < ranks_; ++turn)
        for (std::int64_t lane = 0; lane < count; ++lane) take_turn(turn, first + lane, lanes_[lane]);
      for (std::int64_t lane = 0; lane < count; ++lane) lanes_[lane].sent.wait();
    }
  }

 private:
  struct Lane {
    Buffer grows, arrives;
    comm::Pending sent, received;
  };

  // A piece of an owner's block of the result.
  Tile piece_of(int owner, std::int64_t piece) const {
    Tile tile{nullptr, c_.dtype, args_.out_layouts[0].local_box(c_.global, ids_[owner]), c_.global};
    const Range block = tile.box[plan_.dim_c];
    tile.box[plan_.dim_c] = {block.start + block.size() * piece / plan_.pieces,
                             block.start + block.size() * (piece + 1) / plan_.pieces};
    return tile;
  }
  int owner_in(int turn) const { return (me_ + 2 * ranks_ - 1 - turn) % ranks_; }

  void take_turn(int turn, std::int64_t piece, Lane& lane) {
    Tile sum = piece_of(owner_in(turn), piece);
    if (turn == 0) {
      lane.grows = Buffer::allocate(static_cast<std::size_t>(sum.bytes()));
    } else {
      lane.received.wait();
      lane.sent.wait();
      std::swap(lane.grows, lane.arrives);
    }
    sum.data = lane.grows.data();
    add_term(sum, turn > 0);
    if (turn + 1 == ranks_) return keep(sum);
    const Tile next = piece_of(owner_in(turn + 1), piece);
    lane.arrives = Buffer::allocate(static_cast<std::size_t>(next.bytes()));
    lane.received = comm::start_receive(comm_, lane.arrives.data(), next.bytes(), (me_ + ranks_ - 1) % ranks_,
                                        lane_tag(lane));
    lane.sent = comm::start_send(comm_, sum.data, sum.bytes(), (me_ + 1) % ranks_, lane_tag(lane));
  }
  int lane_tag(const Lane& lane) const { return static_cast<int>(&lane - lanes_); }

  // Adds the product of this rank's operands for the piece's rows or columns.
  void add_term(const Tile& sum, bool accumulate) {
    const Range piece = sum.box[plan_.dim_c];
    const int dims[] = {plan_.dim_a, plan_.dim_b};
    StridedBlock operands[2];
    for (std::size_t i = 0; i < 2; ++i) {
      Box box = args_.local.in[i].box;
      if (dims[i] >= 0) box[dims[i]] = piece;
      operands[i] = block_of(args_.local.in[i], box);
    }
    multiply_blocks(c_.dtype, plan_.dims, operands[0], operands[1], accumulate, block_of(sum, sum.box),
                    {{}, [this] {
                       for (auto& lane : lanes_) lane.sent.test(), lane.received.test();
                     }});
  }

  void keep(const Tile& sum) const {
    const StridedBlock to = block_of(c_, sum.box), from = block_of(sum, sum.box);
    kernels::copy_strided(to.data, to.strides, from.data, from.strides, from.extents, itemsize(c_.dtype));
  }

  const CommunicationArgs& args_;
  const RingSumPlan& plan_;
  const Tile& c_;
  std::vector<int> ids_;
  const comm::Communicator& comm_;
  int me_, ranks_;
  Lane lanes_[lanes];
};

void communicate(const CommunicationArgs& args) { RingSum(args, args.local.params.as<RingSumPlan>()).run(); }

double flops(std::span<const Type>, std::span<const Type>, const Params& params) {
  return params.as<RingSumPlan>().flops;
}

// Finds the operand dims that correspond to a dim of the result.
void find_dims(const AlgorithmArgs& args, RingSumPlan& plan) {
  const auto& p = plan.dims;
  const auto batch = static_cast<int>(p.batch_a.size());
  const auto free_a = free_dims(args.in[0].shape.ndim(), p.contract_a, p.batch_a),
             free_b = free_dims(args.in[1].shape.ndim(), p.contract_b, p.batch_b);
  const int d = plan.dim_c, rows = batch + static_cast<int>(free_a.size());
  if (d < batch) plan.dim_a = p.batch_a[d], plan.dim_b = p.batch_b[d];
  if (d >= batch && d < rows) plan.dim_a = free_a[d - batch];
  if (d >= rows) plan.dim_b = free_b[d - rows];
}

}  // namespace

const OpDef ring_sum_op{.name = "dot", .runs = Communicating{communicate}, .flops = flops};

ChosenAlgorithm plan_ring_sum(const AlgorithmArgs& args) {
  const auto& dims = args.params.as<DotDims>();
  const Mesh mesh = args.out_layout.mesh();
  const auto item = static_cast<std::int64_t>(itemsize(args.out.dtype));
  const auto ranks = devices_along(mesh, args.used_axes);
  const Shape block = args.kept->shard_shape(args.out.shape);
  const std::int64_t block_bytes = block.elements() * item, limit = product_limit(args);
  const std::int64_t term_bytes = args.out_layout.shard_shape(args.out.shape).elements() * item;
  RingSumPlan plan{.dims = dims, .axes = args.used_axes, .dim_c = args.kept_dim};
  find_dims(args, plan);
  plan.pieces = std::clamp<std::int64_t>(2 * lanes * block_bytes / std::max<std::int64_t>(limit, 1) + 1,
                                         lanes, std::max<std::int64_t>(block[args.kept_dim] / 16, lanes));
  const Shape a = args.needed[0].shard_shape(args.in[0].shape);
  double inner = 1;
  for (const int d : dims.contract_a) inner *= static_cast<double>(a[d]);
  plan.flops = 2 * inner * static_cast<double>(args.out_layout.shard_shape(args.out.shape).elements());
  const auto ring_bytes = 2 * lanes * ((block_bytes - 1) / plan.pieces + 1);
  const bool wins = term_bytes > limit && ring_bytes < term_bytes;
  ChosenAlgorithm answer;
  const double seconds =
      seconds_of_flops(plan.flops, args.out.dtype) +
      seconds_of_bytes((ranks - 1) * block_bytes, share_from_other_hosts(mesh, plan.axes), 1);
  answer.candidates = {
      {"terms of the whole result, then a reduce-scatter", seconds, (ranks - 1) * block_bytes, term_bytes,
       !wins, wins ? "over the limit" : "within the limit, or the least"},
      {"terms added along a ring, blocks in " + std::to_string(plan.pieces) + " pieces", seconds,
       (ranks - 1) * block_bytes, ring_bytes, wins, wins ? "less memory" : "not needed"}};
  if (!wins) return answer;
  answer.op = &ring_sum_op;
  answer.costs = {{"reduce-scatter", plan.axes, (ranks - 1) * block_bytes, 1}};
  answer.temporary_bytes = ring_bytes;
  answer.params = make_params(std::move(plan));
  return answer;
}

}  // namespace tessera
