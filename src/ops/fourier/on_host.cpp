#include "ops/fourier/on_host.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/thresholds.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/watch/agreement.hpp"
#include "kernels/move/copy.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

using kernels::FftKind;

constexpr std::int64_t least_bytes = 65536;  // size of a block below which messages are as fast

// A box composed of parts in the blocks of several ranks.
class Parts final : public kernels::FftTile {
 public:
  explicit Parts(Dtype dtype) : item_(itemsize(dtype)) {}

  // Adds the part of `box` that is in a block at `data`.
  void add(const Box& box, const Box& block, std::byte* data) {
    const Box common = intersect(box, block);
    if (is_empty(common)) return;
    Part part{common, data, row_major_strides(box_shape(block))};
    for (std::size_t d = 0; d < common.size(); ++d) {
      part.data += (common[d].start - block[d].start) * part.strides[d] * static_cast<std::int64_t>(item_);
      part.box[d] = {common[d].start - box[d].start, common[d].stop - box[d].start};
    }
    parts_.push_back(std::move(part));
  }

  void read(const Index& box, std::byte* data, std::span<const std::int64_t> strides) const override {
    for_common(box, data, strides,
               [&](std::byte* mine, const Part& part, std::byte* theirs, const Shape& extents) {
                 kernels::copy_strided(mine, strides, theirs, part.strides, extents, item_);
               });
  }
  void write(const Index& box, const std::byte* data, std::span<const std::int64_t> strides) const override {
    for_common(box, const_cast<std::byte*>(data), strides,
               [&](const std::byte* mine, const Part& part, std::byte* theirs, const Shape& extents) {
                 kernels::copy_strided(theirs, part.strides, mine, strides, extents, item_);
               });
  }

 private:
  struct Part {
    Box box;          // in the tile
    std::byte* data;  // address of the first element
    std::vector<std::int64_t> strides;
  };

  template <class Use>
  void for_common(const Index& box, std::byte* data, std::span<const std::int64_t> strides, Use&& use) const {
    for (const auto& part : parts_) {
      const Box common = intersect(part.box, box);
      if (is_empty(common)) continue;
      std::int64_t mine = 0, theirs = 0;
      for (std::size_t d = 0; d < box.size(); ++d) {
        mine += (common[d].start - box[d].start) * strides[d];
        theirs += (common[d].start - part.box[d].start) * part.strides[d];
      }
      const auto item = static_cast<std::int64_t>(item_);
      use(data + mine * item, part, part.data + theirs * item, box_shape(common));
    }
  }

  std::size_t item_;
  std::vector<Part> parts_;
};

// The blocks of an array. Either every rank can access all blocks, or every rank its own block alone; the
// same on all ranks.
struct Spread {
  Sharding layout;
  Type type;
  Buffer mine;
  std::vector<Buffer> blocks;  // by rank of the communicator
  bool is_shared = false;
};

class Stages {
 public:
  explicit Stages(const CommunicationArgs& args)
      : args_(args),
        p_(args.local.params.as<OnHostParams>()),
        in_(args.local.in[0]),
        out_(args.local.out[0]),
        comm_(comm::group(ids_of(args.mesh))) {}

  void run() {
    const std::size_t count = p_.stages.size();
    const Spread result = result_array();
    Spread current = result;  // placeholder: the first stage reads the operand
    for (std::size_t s = 0; s < count; ++s) {
      const bool is_last = s + 1 == count;
      const Type type = type_after(s);
      // If the result keeps the layout of the second of two stages, the first stage writes directly to the
      // result.
      const bool stays = s == 0 && !(count == 2 && same_blocks(p_.stages[1].first, result.layout));
      const Sharding& layout = is_last ? result.layout : p_.stages[stays ? 0 : s + 1].first;
      Spread next = is_last || (same_blocks(layout, result.layout) && type == result.type)
                        ? result
                        : spread(layout, type, {});
      if (next.is_shared && (s == 0 || current.is_shared))
        transform(s, current, next);
      else
        transform_by_messages(s, current, next);
      comm::barrier(comm_);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      current = std::move(next);
    }
    if (result.mine.data() != out_.data && out_.elements() > 0)
      std::memcpy(out_.data, result.mine.data(), out_.bytes());
  }

 private:
  static std::vector<int> ids_of(const Mesh& mesh) {
    std::vector<int> ids = mesh.device_ids();
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  bool same_blocks(const Sharding& a, const Sharding& b) const {
    const int ndim = out_.global.ndim();
    return a.mesh() == b.mesh() && a.dim_axes(ndim) == b.dim_axes(ndim);
  }
  bool halves(std::size_t s) const {
    const auto& dims = p_.stages[s].second;
    return std::find(dims.begin(), dims.end(), p_.halved) != dims.end();
  }
  Type type_after(std::size_t s) const {
    for (std::size_t i = 0; i <= s; ++i)
      if (halves(i)) return {out_.global, out_.dtype};
    return p_.halved < 0 ? Type{out_.global, out_.dtype} : Type{in_.global, in_.dtype};
  }
  Type type_before(std::size_t s) const { return s == 0 ? Type{in_.global, in_.dtype} : type_after(s - 1); }

  // This rank's block of the result: the program's memory if other ranks can access it.
  Spread result_array() {
    const bool is_visible = comm::host_address(out_.data).is_visible();
    const auto bytes = static_cast<std::size_t>(out_.bytes());
    return spread(args_.out_layouts[0], {out_.global, out_.dtype},
                  is_visible ? Buffer::borrow(out_.data, bytes, {}) : Buffer());
  }

  Spread spread(const Sharding& layout, const Type& type, Buffer mine) {
    const auto bytes = box_elements(layout.local_box(type.shape, args_.me)) *
                       static_cast<std::int64_t>(itemsize(type.dtype));
    if (!mine && bytes > 0) mine = comm::allocate_on_host(std::max(bytes, least_bytes));
    Spread array{layout, type, std::move(mine), std::vector<Buffer>(comm_.size())};
    const auto address = comm::host_address(array.mine.data());
    std::vector<comm::HostAddress> addresses(array.blocks.size());
    comm::all_gather(comm_, &address, sizeof address, addresses.data());
    array.is_shared = comm::all_ok(comm_, maps_all(array, addresses));
    return array;
  }

  // Whether this rank could map all blocks: the limits of open files, file sizes or mappings may prevent it.
  bool maps_all(Spread& array, const std::vector<comm::HostAddress>& addresses) const {
    for (std::size_t r = 0; r < addresses.size(); ++r) {
      const int id = comm_.device_ids()[r];
      if (is_empty(array.layout.local_box(array.type.shape, id))) continue;
      if (!addresses[r].is_visible()) return false;
      try {
        array.blocks[r] = id == args_.me ? array.mine : comm::map(addresses[r]);
      } catch (const SystemError& error) {
        log(LogLevel::info, args_.label + ": " + error.what() + "; this transform sends messages instead");
        return false;
      }
    }
    return true;
  }

  // The parts of a box of an array, in the blocks of all ranks that hold them.
  Parts parts_of(const Spread& array, const Box& box) const {
    Parts parts(array.type.dtype);
    for (std::size_t r = 0; r < array.blocks.size(); ++r)
      if (array.blocks[r])
        parts.add(box, array.layout.local_box(array.type.shape, comm_.device_ids()[r]),
                  array.blocks[r].data());
    return parts;
  }

  void transform(std::size_t s, const Spread& from, const Spread& to) const {
    const auto& [layout, dims] = p_.stages[s];
    const Type before = type_before(s), after = type_after(s);
    const Box box_before = layout.local_box(before.shape, args_.me),
              box_after = layout.local_box(after.shape, args_.me);
    if (is_empty(box_before) || is_empty(box_after)) return;
    const Dtype complex = complex_dtype(before.dtype);
    const FftKind kind = halves(s) ? p_.kind : FftKind::c2c;
    const double scale = s + 1 == p_.stages.size() ? p_.scale : 1;
    const bool reads_own = s == 0 || same_blocks(from.layout, layout);
    std::byte* own = s == 0 ? in_.data : from.mine.data();
    if (reads_own && same_blocks(to.layout, layout) && (kind == FftKind::c2c || own != to.mine.data()))
      return kernels::fft_dense(complex, kind, p_.sign, dims, box_shape(box_before), box_shape(box_after),
                                own, to.mine.data(), scale);
    Parts source(before.dtype);
    reads_own ? source.add(box_before, box_before, own) : void(source = parts_of(from, box_before));
    kernels::fft_between(complex, kind, p_.sign, dims, box_shape(box_before), box_shape(box_after), source,
                         parts_of(to, box_after), scale);
  }

  // A stage without shared blocks: elements that it reads from other ranks, and results that belong to
  // others, are sent.
  void transform_by_messages(std::size_t s, const Spread& from, const Spread& to) const {
    const auto& [layout, dims] = p_.stages[s];
    const Type before = type_before(s), after = type_after(s);
    const Box box_before = layout.local_box(before.shape, args_.me),
              box_after = layout.local_box(after.shape, args_.me);
    Buffer gathered, made;
    const std::byte* source = s == 0 ? in_.data : from.mine.data();
    if (s > 0 && !same_blocks(from.layout, layout)) {
      gathered = block_of(layout, before);
      move(before, from.layout, source, layout, gathered.data());
      source = gathered.data();
    }
    const bool stays = same_blocks(to.layout, layout);
    std::byte* target = to.mine.data();
    if (!stays || source == target) {
      made = block_of(layout, after);
      target = made.data();
    }
    if (!is_empty(box_before) && !is_empty(box_after))
      kernels::fft_dense(complex_dtype(before.dtype), halves(s) ? p_.kind : FftKind::c2c, p_.sign, dims,
                         box_shape(box_before), box_shape(box_after), source, target,
                         s + 1 == p_.stages.size() ? p_.scale : 1);
    if (!stays || made) move(after, layout, target, to.layout, to.mine.data());
  }

  Buffer block_of(const Sharding& layout, const Type& type) const {
    return Buffer::allocate(box_elements(layout.local_box(type.shape, args_.me)) *
                            static_cast<std::int64_t>(itemsize(type.dtype)));
  }

  // Moves an array from the blocks of one layout to those of another: each pair of ranks exchanges the
  // intersection of their blocks.
  void move(const Type& type, const Sharding& from, const std::byte* source, const Sharding& to,
            std::byte* target) const {
    const auto item = static_cast<std::int64_t>(itemsize(type.dtype));
    const Box mine = from.local_box(type.shape, args_.me), wanted = to.local_box(type.shape, args_.me);
    const auto copy = [&](const std::byte* a, const Box& a_box, std::byte* b, const Box& b_box,
                          const Box& part) {
      const auto a_strides = row_major_strides(box_shape(a_box)),
                 b_strides = row_major_strides(box_shape(b_box));
      std::int64_t a_offset = 0, b_offset = 0;
      for (std::size_t d = 0; d < part.size(); ++d) {
        a_offset += (part[d].start - a_box[d].start) * a_strides[d];
        b_offset += (part[d].start - b_box[d].start) * b_strides[d];
      }
      kernels::copy_strided(b + b_offset * item, b_strides, a + a_offset * item, a_strides, box_shape(part),
                            static_cast<std::size_t>(item));
    };
    std::vector<comm::Message> sends, receives;
    std::vector<Buffer> buffers;
    std::vector<Box> boxes;
    const auto message = [&](int id, const Box& part) -> comm::Message {
      buffers.push_back(Buffer::allocate(box_elements(part) * item));
      return {id, buffers.back().data(), box_elements(part) * item};
    };
    for (const int id : comm_.device_ids()) {
      const Box leaves = intersect(mine, to.local_box(type.shape, id)),
                comes = intersect(from.local_box(type.shape, id), wanted);
      if (id == args_.me) {
        if (!is_empty(leaves)) copy(source, mine, target, wanted, leaves);
        continue;
      }
      if (!is_empty(leaves)) {
        sends.push_back(message(id, leaves));
        copy(source, mine, sends.back().data, leaves, leaves);
      }
      if (!is_empty(comes)) receives.push_back(message(id, comes)), boxes.push_back(comes);
    }
    comm::exchange(
        comm_, sends, receives,
        [&](std::size_t i) { copy(receives[i].data, boxes[i], target, wanted, boxes[i]); },
        args_.label.c_str());
  }

  const CommunicationArgs& args_;
  const OnHostParams& p_;
  Tile in_, out_;
  const comm::Communicator& comm_;
};

bool is_split_by_all_axes(const Sharding& layout, int ndim) {
  std::int64_t devices = 1;
  for (const auto& axes : layout.dim_axes(ndim)) devices *= devices_along(layout.mesh(), axes);
  return devices == layout.mesh().size();
}

}  // namespace

bool runs_on_host(const FftStages& plan, const Sharding& to, const Type& in) {
  if (settings().collectives == "mpi") return false;
  const Mesh mesh = to.mesh();
  const int ndim = in.shape.ndim();
  if (mesh.size() == 1 || !comm::share_memory(mesh.device_ids()) || !is_split_by_all_axes(to, ndim))
    return false;
  for (const auto& stage : plan.stages)
    if (stage.across || !(stage.layout.mesh() == mesh) || !is_split_by_all_axes(stage.layout, ndim))
      return false;
  const Sharding& first = plan.stages[0].layout;
  if (plan.stages.size() == 1 && first.dim_axes(ndim) == to.dim_axes(ndim)) return false;
  return first.shard_shape(in.shape).elements() * static_cast<std::int64_t>(itemsize(in.dtype)) >=
         threshold(least_bytes);
}

const OpDef fft_on_host_op{
    .name = "fft_on_host",
    .runs = Communicating{[](const CommunicationArgs& args) { Stages(args).run(); }},
    .flops = [](std::span<const Type>, std::span<const Type>,
                const Params& params) { return params.as<OnHostParams>().flops; },
};

}  // namespace tessera
