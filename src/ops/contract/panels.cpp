// A product that fetches its operands in pieces. Pieces on the same host are read in place just before they
// are multiplied; other ranks send the next piece while this one is multiplied.
//
//   messages   wait(0) | start(1) multiply(0) | wait(1) | start(2) multiply(1) | ...
//
// Each rank computes which piece every other works on in each turn (pieces_in_order), without requests.
#include <algorithm>
#include <complex>
#include <map>

#include "comm/collectives/collectives.hpp"
#include "comm/collectives/pending.hpp"
#include "comm/host/direct_read.hpp"
#include "kernels/move/copy.hpp"
#include "ops/contract/matrices.hpp"
#include "ops/contract/product_plan.hpp"
#include "types/buffer.hpp"
#include "types/strided_box.hpp"

namespace tessera {
namespace {

// A transfer of one operand, or the part of it that a piece needs.
struct PanelPart {
  std::size_t operand;
  Index box;
};
using ByPeer = std::map<int, std::vector<PanelPart>>;

void copy_box(const Tile& to, const Tile& from, const Index& box) {
  const StridedBox there = destination_box(from, box), here = destination_box(to, box);
  const auto item = static_cast<std::int64_t>(itemsize(to.dtype));
  kernels::copy_strided(to.data + here.offset * item, here.strides, from.data + there.offset * item,
                        there.strides, there.extents, itemsize(to.dtype));
}

// Reads boxes of other ranks' blocks. The operating system looks up every run: a box that is one run in its
// block but many short ones in the panel is read through a buffer that stays in the cache.
class BoxReader {
 public:
  explicit BoxReader(int device) : reader_(device) {}

  void read(const Tile& to, const Tile& from, std::uint64_t address, const Index& box) {
    const StridedBox there = destination_box(from, box), here = destination_box(to, box);
    const auto item = static_cast<std::int64_t>(itemsize(to.dtype));
    if (there.contiguous && common_run(there, here) * item < short_run)
      return read_through_staging(to, from, address, box);
    for_each_run(there, here, [&](std::int64_t theirs, std::int64_t mine, std::int64_t elements) {
      reader_.add(address + static_cast<std::uint64_t>(theirs * item), to.data + mine * item,
                  static_cast<std::size_t>(elements * item));
    });
  }
  void flush() { reader_.flush(); }

 private:
  static constexpr std::int64_t short_run = 4096, staging_bytes = std::int64_t{256} << 10;

  void read_through_staging(const Tile& to, const Tile& from, std::uint64_t address, const Index& box) {
    const auto item = static_cast<std::int64_t>(itemsize(to.dtype));
    int cut = 0;
    while (cut + 1 < static_cast<int>(box.size()) && box[cut].stop - box[cut].start == 1) ++cut;
    const auto bytes_of_one = box_elements(box) * item / (box[cut].stop - box[cut].start);
    const auto at_once = std::max<std::int64_t>(1, staging_bytes / bytes_of_one);
    if (!staging_.data())
      staging_ = Buffer::allocate(static_cast<std::size_t>(std::max(staging_bytes, bytes_of_one)));
    for (Index part = box; part[cut].start < box[cut].stop; part[cut].start = part[cut].stop) {
      part[cut].stop = std::min(part[cut].start + at_once, box[cut].stop);
      const Tile staged{staging_.data(), to.dtype, part, to.global};
      reader_.add(address + static_cast<std::uint64_t>(destination_box(from, part).offset * item),
                  staged.data, static_cast<std::size_t>(staged.bytes()));
      reader_.flush();
      copy_box(to, staged, part);
    }
  }

  comm::DirectReader reader_;
  Buffer staging_;
};

// Blocks of arrays in transit between this rank and others: direct reads and messages.
class Traffic {
 public:
  Traffic(const CommunicationArgs& args, std::vector<Tile> own) : args_(args), own_(std::move(own)) {}

  // Registers an operand. `held`: the layout of the operand in memory; the block that a rank sends may be a
  // part of its block there.
  void add(std::size_t operand, const Sharding& from, const Sharding& to, const Sharding& held) {
    const Shape& shape = own_[operand].global;
    const Sharding source[] = {from};
    const Shape shapes[] = {shape};
    const auto plan =
        plan_exchange(identity_remap(shape), source, shapes, to, shape, args_.me, args_.fixed_axes);
    held_.push_back(held);
    local_.push_back(plan.local);
    for (const auto& t : plan.sends) (reads(t.peer) ? read_by_ : sends_)[t.peer].push_back({operand, t.to});
    for (const auto& t : plan.receives)
      (reads(t.peer) ? sources_ : receives_)[t.peer].push_back({operand, t.to});
  }

  bool has_messages() const { return !sends_.empty() || !receives_.empty(); }

  void open() {
    std::vector<std::uint64_t> operands;
    for (const auto& tile : own_) operands.push_back(reinterpret_cast<std::uint64_t>(tile.data));
    std::vector<int> readers;
    for (const auto& [peer, parts] : read_by_) readers.push_back(peer);
    for (const auto& [peer, parts] : sources_) source_peers_.push_back(peer);
    if (!readers.empty() || !source_peers_.empty())
      reading_ = std::make_unique<comm::Reading>(comm::world(), operands, readers, source_peers_);
  }
  void close() {
    if (reading_) reading_->finish();
    reading_.reset();
  }

  void copy_own(std::size_t operand, const Tile& to) const {
    for (const auto& t : local_[operand])
      if (const auto box = intersect(t.to, to.box); !is_empty(box)) copy_box(to, own_[operand], box);
  }
  // Reads the parts held by ranks of this host.
  void read(std::size_t operand, const Tile& to) {
    for (std::size_t s = 0; s < source_peers_.size(); ++s) {
      const int peer = source_peers_[s];
      BoxReader reader(peer);
      for (const auto& part : sources_.at(peer)) {
        if (part.operand != operand) continue;  // operands may differ in ndim
        const auto box = intersect(part.box, to.box);
        if (is_empty(box)) continue;
        reader.read(to, block_at(operand, peer), reading_->operands_of(s)[operand], box);
      }
      reader.flush();
    }
  }

  // Starts the messages of one turn. need(operand, device): the box of the operand that the device needs in
  // this turn, if any.
  template <class Need> void start(Need&& need) {
    incoming_.clear(), in_buffers_.clear(), out_buffers_.clear();
    std::vector<comm::Message> sends, receives;
    for (const auto& [peer, parts] : receives_)
      if (const auto bytes = bytes_of(parts, need, args_.me); bytes > 0) {
        in_buffers_.push_back(Buffer::allocate(bytes));
        incoming_.push_back(peer);
        receives.push_back({peer, in_buffers_.back().data(), bytes});
      }
    for (const auto& [peer, parts] : sends_)
      if (const auto bytes = bytes_of(parts, need, peer); bytes > 0) {
        out_buffers_.push_back(Buffer::allocate(bytes));
        pack(parts, need, peer, out_buffers_.back().data());
        sends.push_back({peer, out_buffers_.back().data(), bytes});
      }
    pending_ = comm::start_exchange(comm::world(), sends, receives, {}, "panels");
  }
  void move_on() { pending_.test(); }
  void wait() { pending_.wait(); }
  // Copies the received parts to `tile_of(operand)`.
  template <class Need, class TileOf> void unpack(Need&& need, TileOf&& tile_of) {
    for (std::size_t i = 0; i < incoming_.size(); ++i) {
      std::byte* at = in_buffers_[i].data();
      for_each_part(receives_.at(incoming_[i]), need, args_.me, [&](std::size_t operand, const Index& box) {
        const Tile packed{at, own_[operand].dtype, box, own_[operand].global};
        copy_box(tile_of(operand), packed, box);
        at += packed.bytes();
      });
    }
    in_buffers_.clear();
  }

 private:
  bool reads(int peer) const { return comm::reads_directly(args_.me, peer); }
  Tile block_at(std::size_t operand, int peer) const {
    const auto& own = own_[operand];
    return {nullptr, own.dtype, held_[operand].local_box(own.global, peer), own.global};
  }

  template <class Need, class Use>
  void for_each_part(const std::vector<PanelPart>& parts, Need& need, int device, Use&& use) const {
    for (const auto& part : parts) {
      const std::optional<Box> needed = need(part.operand, device);
      if (!needed) continue;
      if (const auto box = intersect(part.box, *needed); !is_empty(box)) use(part.operand, box);
    }
  }
  template <class Need>
  std::int64_t bytes_of(const std::vector<PanelPart>& parts, Need& need, int device) const {
    std::int64_t bytes = 0;
    for_each_part(parts, need, device, [&](std::size_t operand, const Index& box) {
      bytes += box_elements(box) * static_cast<std::int64_t>(itemsize(own_[operand].dtype));
    });
    return bytes;
  }
  template <class Need>
  void pack(const std::vector<PanelPart>& parts, Need& need, int device, std::byte* to) const {
    for_each_part(parts, need, device, [&](std::size_t operand, const Index& box) {
      const Tile packed{to, own_[operand].dtype, box, own_[operand].global};
      copy_box(packed, own_[operand], box);
      to += packed.bytes();
    });
  }

  const CommunicationArgs& args_;
  std::vector<Tile> own_;
  std::vector<Sharding> held_;
  std::vector<std::vector<Transfer>> local_;
  ByPeer sends_, receives_, read_by_, sources_;
  std::vector<int> source_peers_, incoming_;
  std::vector<Buffer> in_buffers_, out_buffers_;
  std::unique_ptr<comm::Reading> reading_;
  comm::Pending pending_;
};

class Product {
 public:
  Product(const CommunicationArgs& args, const ProductPlan& plan)
      : args_(args),
        plan_(plan),
        shapes_{args.local.in[0].global, args.local.in[1].global},
        traffic_(args, {args.local.in[0], args.local.in[1]}) {
    for (std::size_t i = 0; i < 2; ++i) {
      traffic_.add(i, args.in_layouts[i], needed(i), args.in_layouts[i]);
      blocks_.push_back(needed(i).local_box(shapes_[i], args.me));
    }
    computed_ = plan.c_computed.local_box(args.local.out[0].global, args.me);
  }

  void run() {
    traffic_.open();
    const auto& mine = turns_of(args_.me);
    const std::size_t turns = traffic_.has_messages() ? most_turns() : mine.size();
    if (mine.empty()) clear_result();
    if (traffic_.has_messages()) start(0);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (turn < mine.size()) read_panels(turn);
      if (traffic_.has_messages()) receive(turn, turns);
      if (turn < mine.size()) multiply(turn);
    }
    traffic_.wait();
    traffic_.close();
    gather_result();
    add_terms();
  }

 private:
  const Sharding& needed(std::size_t i) const { return i == 0 ? plan_.a_needed : plan_.b_needed; }
  int cut_dim(std::size_t i) const { return i == 0 ? plan_.dim_a : plan_.dim_b; }

  const std::vector<Range>& turns_of(int device) {
    const auto found = turns_.find(device);
    if (found != turns_.end()) return found->second;
    return turns_.emplace(device, pieces_in_order(plan_, args_.in_layouts, shapes_, device)).first->second;
  }
  std::size_t most_turns() {
    std::size_t most = 0;
    for (const int device : args_.mesh.device_ids()) most = std::max(most, pieces_of_block(device));
    return most;
  }
  std::size_t pieces_of_block(int device) {
    const std::size_t owner = plan_.dim_a >= 0 ? 0 : 1;
    const auto axes = needed(owner).dim_axes(shapes_[owner].ndim())[cut_dim(owner)];
    if (axes.empty()) return plan_.ends.size();
    return turns_of(device).size();
  }

  // The part of an operand that a device multiplies in a turn; nothing if it fetches none in it.
  std::optional<Box> need(std::size_t operand, int device, std::size_t turn) {
    const auto& turns = turns_of(device);
    if (turn >= turns.size() || (cut_dim(operand) < 0 && turn > 0)) return std::nullopt;
    Box box = needed(operand).local_box(shapes_[operand], device);
    if (cut_dim(operand) >= 0) box[cut_dim(operand)] = turns[turn];
    return box;
  }
  auto needs_in(std::size_t turn) {
    return [this, turn](std::size_t operand, int device) { return need(operand, device, turn); };
  }

  void read_panels(std::size_t turn) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto box = need(i, args_.me, turn);
      if (!box) continue;  // kept from the first turn
      const Tile& own = args_.local.in[i];
      panels_[i] = {nullptr, own.dtype, *box, own.global};
      if (contains(own.box, *box)) {
        panels_[i] = own;
        continue;
      }
      const auto bytes = static_cast<std::size_t>(panels_[i].bytes());
      if (panel_bytes_[i] < bytes) {
        panel_memory_[i].reset();
        panel_memory_[i] = Buffer::allocate(panel_bytes_[i] = bytes);
      }
      panels_[i].data = panel_memory_[i].data();
      traffic_.copy_own(i, panels_[i]);
      traffic_.read(i, panels_[i]);
    }
  }
  void start(std::size_t turn) { traffic_.start(needs_in(turn)); }
  void receive(std::size_t turn, std::size_t turns) {
    traffic_.wait();
    traffic_.unpack(needs_in(turn), [&](std::size_t operand) { return panels_[operand]; });
    if (turn + 1 < turns) start(turn + 1);
  }

  void multiply(std::size_t turn) {
    const Range piece = turns_of(args_.me)[turn];
    Box boxes[] = {blocks_[0], blocks_[1], computed_};
    const int dims[] = {plan_.dim_a, plan_.dim_b, plan_.dim_c};
    for (std::size_t i = 0; i < 3; ++i)
      if (dims[i] >= 0) boxes[i][dims[i]] = piece;
    const std::size_t turns = turns_of(args_.me).size();
    kernels::Beside beside;
    if (traffic_.has_messages()) beside.meanwhile = [this] { traffic_.move_on(); };
    if (runs_last_pass() && (plan_.cut != Cut::inner || turn + 1 == turns))
      beside.last_pass = *args_.local.last_pass;
    multiply_blocks(args_.local.out[0].dtype, plan_.dims, block_of(panels_[0], boxes[0]),
                    block_of(panels_[1], boxes[1]), plan_.cut == Cut::inner && turn > 0,
                    block_of(args_.local.out[0], boxes[2]), beside);
  }

  // For a rank that has no piece: clears its block, which for a split contracted dim is a term of 0.
  void clear_result() {
    const auto block = block_of(args_.local.out[0], computed_);
    const std::complex<double> zero = 0;
    kernels::fill_strided(block.data, block.strides, &zero, block.extents,
                          itemsize(args_.local.out[0].dtype));
    if (runs_last_pass()) run_last_pass(block);
  }

  // Whether last_pass may run on parts: not while terms of other layers are still to be added.
  bool runs_last_pass() const { return args_.local.last_pass != nullptr && plan_.summed_over.empty(); }
  // Passes a complete block of the result to last_pass: several rows, or a part of one row.
  void run_last_pass(const StridedBlock& block) const {
    const auto elements = block.extents.elements();
    if (elements == 0) return;
    const Shape whole = args_.local.out[0].shape();
    std::int64_t columns = 1;
    for (int d = whole.ndim() - free_dims_of_b(plan_.dims, shapes_[1]); d < whole.ndim(); ++d)
      columns *= whole[d];
    const auto row = block.offset / columns, column = block.offset % columns;
    if (elements < columns)
      (*args_.local.last_pass)(row, 1, column, elements);
    else
      (*args_.local.last_pass)(row, elements / columns, 0, columns);
  }

  // Reads other ranks' parts of the result in place, if ranks shared the work.
  void gather_result() {
    if (plan_.c_computed == args_.out_layouts[0]) return;
    const Tile& c = args_.local.out[0];
    Traffic shared(args_, {c});
    shared.add(0, plan_.c_computed, args_.out_layouts[0], args_.out_layouts[0]);
    shared.open();
    shared.read(0, c);
    const auto all = [&](std::size_t, int device) -> std::optional<Box> {
      return args_.out_layouts[0].local_box(c.global, device);
    };
    if (shared.has_messages()) {
      shared.start(all);
      shared.wait();
      shared.unpack(all, [&](std::size_t) { return c; });
    }
    shared.close();
  }

  // Adds the terms of one block that ranks hold after they shared the contracted dim. The sum runs in parts,
  // to bound memory, and reuses the panels' memory.
  void add_terms() {
    if (plan_.summed_over.empty()) return;
    for (auto& memory : panel_memory_) memory.reset();
    const Tile& c = args_.local.out[0];
    const auto& layers = comm::group(group_along(args_.mesh, plan_.summed_over, args_.me));
    const auto kind = is_bool(c.dtype) ? ReduceKind::any : ReduceKind::sum;
    const auto item = static_cast<std::int64_t>(itemsize(c.dtype)), most = most_summed_at_once / item;
    for (std::int64_t at = 0; at < c.elements(); at += most)
      comm::all_reduce(layers, kind, c.dtype, c.data + at * item, c.data + at * item,
                       std::min(most, c.elements() - at));
    if (args_.local.last_pass != nullptr) run_last_pass(block_of(c, c.box));
  }

  const CommunicationArgs& args_;
  const ProductPlan& plan_;
  std::vector<Shape> shapes_;
  Traffic traffic_;
  std::vector<Box> blocks_;
  Box computed_;
  std::map<int, std::vector<Range>> turns_;
  Tile panels_[2];
  Buffer panel_memory_[2];
  std::size_t panel_bytes_[2] = {0, 0};
};

void communicate(const CommunicationArgs& args) { Product(args, args.local.params.as<ProductPlan>()).run(); }

double flops(std::span<const Type>, std::span<const Type>, const Params& params) {
  return params.as<ProductPlan>().flops;
}

int columns(std::span<const Shape> in, const Params& params) {
  return free_dims_of_b(params.as<ProductPlan>().dims, in[1]);
}

}  // namespace

const OpDef product_op{
    .name = "dot", .runs = Communicating{communicate}, .flops = flops, .columns_of_parts = columns};

}  // namespace tessera
