#include "ops/index/compress.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/collectives/collectives.hpp"
#include "kernels/move/positions.hpp"
#include "kernels/reduce/reduce_rows.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "types/buffer.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

const CompressParams& params_of(const Params& p) { return p.as<CompressParams>(); }

RuleReading read_dims(const Params& params, std::span<const Shape>) {
  return {{{{'B', params_of(params).batch}}}, {}};
}

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  Shape shape = in[1].shape;
  shape[params_of(params).batch] = params_of(params).size;
  return {{shape, in[1].dtype}};
}

// The block of x as lines of slices, and the number of slices of each line that this rank's mask chooses.
struct Lines {
  std::int64_t lines = 1, extent = 0, slice_bytes = 0;
  std::vector<std::int64_t> chosen;
};
std::int64_t chosen_of(const std::uint8_t* mask, std::int64_t n) {
  std::int64_t count = 0;
  if (n > 0) kernels::find_row_reduce(ReduceKind::count_nonzero, bool_)(mask, 1, n, &count);
  return count;
}
Lines lines_of(const KernelArgs& a) {
  const auto batch = static_cast<std::size_t>(params_of(a.params).batch);
  const Tile &mask = a.in[0], &x = a.in[1];
  Lines l;
  for (std::size_t d = 0; d < batch; ++d) l.lines *= x.box[d].size();
  l.extent = x.box[batch].size();
  l.slice_bytes = static_cast<std::int64_t>(itemsize(x.dtype));
  for (std::size_t d = batch + 1; d < x.box.size(); ++d) l.slice_bytes *= x.box[d].size();
  const auto* chosen = mask.as<std::uint8_t>();
  for (std::int64_t r = 0; r < l.lines; ++r) l.chosen.push_back(chosen_of(chosen + r * l.extent, l.extent));
  return l;
}

// Slices of so many bytes are chosen a vector at a time.
bool are_items(std::size_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

// Copies the first `count` chosen slices of this rank, line by line.
void choose(const KernelArgs& a, const Lines& l, std::int64_t count, std::byte* to) {
  const auto* chosen = a.in[0].as<std::uint8_t>();
  const std::byte* from = a.in[1].data;
  const auto bytes = static_cast<std::size_t>(l.slice_bytes);
  if (are_items(bytes)) {
    kernels::choose_items(bytes, from, chosen, l.lines * l.extent, count, to);
    return;
  }
  for (; count > 0; ++chosen, from += bytes) {
    if (*chosen == 0) continue;
    std::memcpy(to, from, bytes);
    to += bytes, --count;
  }
}
Buffer packed(const KernelArgs& a, const Lines& l) {
  const auto total = std::accumulate(l.chosen.begin(), l.chosen.end(), std::int64_t{0});
  Buffer result = Buffer::allocate(total * l.slice_bytes);
  choose(a, l, total, result.data());
  return result;
}

void fill_all(const Tile& out, const ScalarValue& value) {
  std::byte element[16] = {};
  write_scalar(value, out.dtype, element);
  const auto item = itemsize(out.dtype);
  for (std::int64_t i = 0; i < out.elements(); ++i)
    std::memcpy(out.data + i * static_cast<std::int64_t>(item), element, item);
}

// Positions in the result as runs: rank r's slices of a line begin after those of lower ranks.
//
//   rank 0 chooses 3, rank 1 chooses 1, rank 2 chooses 4; blocks of the result hold 3 each
//   0 0 0 | 1 2 2 | 2 2       rank 2 keeps its last two and sends two to rank 1
class Runs {
 public:
  Runs(std::vector<std::int64_t> counts, std::int64_t lines, std::int64_t ranks, std::int64_t size)
      : counts_(std::move(counts)), starts_(counts_.size(), 0), lines_(lines), ranks_(ranks), size_(size) {
    for (std::int64_t r = 1; r < ranks; ++r)
      for (std::int64_t l = 0; l < lines; ++l)
        starts_[r * lines + l] = starts_[(r - 1) * lines + l] + counts_[(r - 1) * lines + l];
  }
  // The slices of line l that `from` has for the block of `to`, as positions in the result.
  Range of(std::int64_t l, std::int64_t from, std::int64_t to) const {
    const auto start = starts_[from * lines_ + l];
    const Range block = block_range(size_, ranks_, to);
    const auto first = std::max(start, block.start);
    return {first, std::max(first, std::min(start + counts_[from * lines_ + l], block.stop))};
  }
  std::int64_t start(std::int64_t l, std::int64_t from) const { return starts_[from * lines_ + l]; }
  // Whether every line has as many slices as the result.
  bool reach_the_end() const {
    for (std::int64_t l = 0; l < lines_; ++l)
      if (start(l, ranks_ - 1) + counts_[(ranks_ - 1) * lines_ + l] < size_) return false;
    return true;
  }
  std::int64_t between(std::int64_t from, std::int64_t to) const {
    std::int64_t slices = 0;
    for (std::int64_t l = 0; l < lines_; ++l) slices += of(l, from, to).size();
    return slices;
  }

 private:
  std::vector<std::int64_t> counts_, starts_;  // [rank][line]
  std::int64_t lines_, ranks_, size_;
};

// Packs the slices for rank `to`, or unpacks those received from rank `from`.
void pack_for(const Runs& runs, const Lines& l, std::int64_t me, std::int64_t to, const std::byte* own,
              std::byte* message) {
  for (std::int64_t line = 0; line < l.lines; ++line) {
    const Range run = runs.of(line, me, to);
    const auto bytes = run.size() * l.slice_bytes;
    if (bytes > 0)
      std::memcpy(message, own + (run.start - runs.start(line, me)) * l.slice_bytes,
                  static_cast<std::size_t>(bytes));
    message += bytes;
    own += l.chosen[line] * l.slice_bytes;
  }
}
void unpack_from(const Runs& runs, const Lines& l, std::int64_t from, std::int64_t me, Range block,
                 const std::byte* message, std::byte* out) {
  for (std::int64_t line = 0; line < l.lines; ++line) {
    const Range run = runs.of(line, from, me);
    const auto bytes = run.size() * l.slice_bytes;
    if (bytes > 0)
      std::memcpy(out + (line * block.size() + run.start - block.start) * l.slice_bytes, message,
                  static_cast<std::size_t>(bytes));
    message += bytes;
  }
}

void alone(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  const Lines l = lines_of(a);
  const Runs runs(l.chosen, l.lines, 1, p.size);
  if (!runs.reach_the_end()) fill_all(a.out[0], p.fill);
  if (l.lines == 1) return choose(a, l, std::min(l.chosen[0], p.size), a.out[0].data);
  const Buffer own = packed(a, l);
  const Buffer message = Buffer::allocate(runs.between(0, 0) * l.slice_bytes);
  pack_for(runs, l, 0, 0, own.data(), message.data());
  unpack_from(runs, l, 0, 0, {0, p.size}, message.data(), a.out[0].data);
}

// Writes this rank's slices to its block of the result, and those for each other rank to leaving[rank].
void pack_for_ranks(const KernelArgs& a, const Runs& runs, const Lines& l, std::int64_t me, Range block,
                    std::span<Buffer> leaving) {
  const Buffer own = packed(a, l);
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(leaving.size()); ++r) {
    leaving[r] = Buffer::allocate(runs.between(me, r) * l.slice_bytes);
    pack_for(runs, l, me, r, own.data(), leaving[r].data());
  }
  unpack_from(runs, l, me, me, block, leaving[me].data(), a.out[0].data);
}
// The same of one line without a copy in between: the ranks' runs follow each other in the mask.
void choose_for_ranks(const KernelArgs& a, const Runs& runs, const Lines& l, std::int64_t me, Range block,
                      std::span<Buffer> leaving) {
  const auto* const chosen = a.in[0].as<std::uint8_t>();
  std::int64_t read = 0;
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(leaving.size()); ++r) {
    const Range run = runs.of(0, me, r);
    if (run.size() == 0) continue;
    if (r != me) leaving[r] = Buffer::allocate(run.size() * l.slice_bytes);
    std::byte* const to =
        r == me ? a.out[0].data + (run.start - block.start) * l.slice_bytes : leaving[r].data();
    read +=
        kernels::choose_items(static_cast<std::size_t>(l.slice_bytes), a.in[1].data + read * l.slice_bytes,
                              chosen + read, l.extent - read, run.size(), to);
  }
}

void together(const CommunicationArgs& args) {
  const KernelArgs& a = args.local;
  const auto& p = params_of(a.params);
  const auto& comm = group_of_dim(args.in_layouts[1], p.batch, static_cast<int>(a.in[1].box.size()), args.me);
  const Lines l = lines_of(a);
  const std::int64_t ranks = comm.size(), me = comm.rank();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks * l.lines));
  comm::all_gather(comm, l.chosen.data(), l.lines * static_cast<std::int64_t>(sizeof(std::int64_t)),
                   counts.data());
  const Runs runs(std::move(counts), l.lines, ranks, p.size);
  const Range block = block_range(p.size, ranks, me);
  if (!runs.reach_the_end()) fill_all(a.out[0], p.fill);
  std::vector<Buffer> leaving(static_cast<std::size_t>(ranks)), arriving(static_cast<std::size_t>(ranks));
  const bool are_chosen_at_once = l.lines == 1 && are_items(static_cast<std::size_t>(l.slice_bytes));
  if (are_chosen_at_once)
    choose_for_ranks(a, runs, l, me, block, leaving);
  else
    pack_for_ranks(a, runs, l, me, block, leaving);
  std::vector<comm::Message> sends, receives;
  std::vector<std::int64_t> sources;
  for (std::int64_t r = 0; r < ranks; ++r) {
    if (r == me) continue;
    const auto out_bytes = runs.between(me, r) * l.slice_bytes,
               in_bytes = runs.between(r, me) * l.slice_bytes;
    arriving[r] = Buffer::allocate(in_bytes);
    if (out_bytes > 0) sends.push_back({comm.device_ids()[r], leaving[r].data(), out_bytes});
    if (in_bytes > 0) {
      receives.push_back({comm.device_ids()[r], arriving[r].data(), in_bytes});
      sources.push_back(r);
    }
  }
  comm::exchange(
      comm, sends, receives,
      [&](std::size_t i) {
        unpack_from(runs, l, sources[i], me, block, arriving[sources[i]].data(), a.out[0].data);
      },
      args.label.c_str());
}

// At most a complete block of the result is received.
std::vector<CommunicationCost> cost(const PlacementArgs& args, const Placement& placement) {
  const int batch = params_of(args.params).batch;
  const auto axes = placement.inputs[1].dim_axes(args.in[1].shape.ndim());
  if (axes[batch].empty()) return {};
  const auto rows = placement.outputs[0].shard_shape(args.out[0].shape).elements() *
                    static_cast<std::int64_t>(itemsize(args.out[0].dtype));
  return {{"all-to-all", axes[batch], rows}};
}

// Slice i of x is stored at the position given by the number of chosen slices before it.
Cotangents vjp(const VjpArgs& v) {
  const auto& p = params_of(*v.node.params);
  const Array &mask = v.in[0], &x = v.in[1], &g = v.cotangents[0];
  if (p.size == 0 || x.shape()[p.batch] == 0) return {Array(), zeros_like(x)};
  const Array place = cumsum(mask, p.batch) - 1;
  const Shape beside = with_ones(mask.shape(), x.shape().size());
  const Array back = p.batch == 0 ? take(g, place, 0) : take_along_axis(g, reshape(place, beside), p.batch);
  return {Array(), where(reshape(mask & (place < p.size), beside), back, zeros_like(back))};
}

Batched batch(const BatchArgs& args) {
  auto p = params_of(*args.node.params);
  ++p.batch;
  return {{record(*args.node.op, make_params(p), {batched_in_front(args, 0), batched_in_front(args, 1)})},
          {0}};
}

const OpDef compress_op{
    .name = "compress",
    .halves = moves_halves,
    .infer = infer,
    .sharding = Rule("B.. n, B.. n R.. -> B.. ~n R..", read_dims),
    .runs = Communicating{.together = together, .cost = cost, .alone = alone},
    .vjp = vjp,
    .batch = batch,
};
const Registered registered(compress_op);

}  // namespace

Array compress_rows(const Array& mask, const Array& x, std::int64_t size, ScalarValue fill) {
  return record(compress_op, make_params(CompressParams{0, size, fill}), {mask, x});
}

}  // namespace tessera
