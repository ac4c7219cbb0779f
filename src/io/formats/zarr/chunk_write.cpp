#include "io/formats/zarr/chunk_write.hpp"

#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "api/memory.hpp"
#include "comm/collectives/collectives.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/formats/zarr/chunk_read.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "types/buffer.hpp"

namespace tessera::io::zarr {
namespace {

// A dense block of an array in memory.
struct Block {
  Box box;
  const std::byte* data = nullptr;
};

Box moved(Box box, const ChunkIndex& origin) {
  for (std::size_t d = 0; d < box.size(); ++d) box[d].start += origin[d], box[d].stop += origin[d];
  return box;
}

std::vector<Writer> writers_of(const Array& x, const ChunkIndex& origin) {
  const Sharding sharding = x.sharding();
  std::vector<Writer> writers;
  for (const auto& [device, box] : sharding.devices_indices_map(x.shape()))
    if (!is_empty(box) && sharding.replica_id(x.shape(), device) == 0)
      writers.push_back({device.id, moved(box, origin)});
  return writers;
}

// Copies `part` from one dense block to its position in another.
void copy_part(const Box& to, std::byte* out, const Block& from, const Box& part, std::size_t width) {
  const auto out_strides = row_major_strides(box_shape(to)),
             in_strides = row_major_strides(box_shape(from.box));
  const auto bytes = static_cast<std::int64_t>(width);
  kernels::copy_strided(out + offset_of(within(to, part), out_strides) * bytes, out_strides,
                        from.data + offset_of(within(from.box, part), in_strides) * bytes, in_strides,
                        box_shape(part), width);
}

// The parts of chunks exchanged with each other rank, concatenated in one message.
class Borders {
 public:
  Borders(const ChunkPlan& plan, const Block& own, int device, std::size_t width) : width_(width) {
    for (const ChunkPart& part : plan.sends) sent_[part.device].push_back(part.box);
    for (const OwnedChunk& chunk : plan.owned)
      for (const ChunkPart& part : chunk.parts)
        if (part.device != device) received_[part.device].push_back(part.box);
    for (const auto& [peer, boxes] : sent_) out_.emplace(peer, packed(boxes, own));
    for (const auto& [peer, boxes] : received_) in_.emplace(peer, Buffer::allocate(bytes_in(boxes)));
  }
  void exchange() const {
    std::vector<comm::Message> sends, receives;
    for (const auto& [peer, boxes] : sent_)
      sends.push_back({peer, out_.at(peer).data(), static_cast<std::int64_t>(bytes_in(boxes))});
    for (const auto& [peer, boxes] : received_)
      receives.push_back({peer, in_.at(peer).data(), static_cast<std::int64_t>(bytes_in(boxes))});
    if (sends.empty() && receives.empty()) return;
    comm::exchange(
        comm::world(), sends, receives, [](std::size_t) {}, "borders of chunks");
  }
  // The address of each received part.
  std::map<std::pair<int, std::int64_t>, const std::byte*> arrived() const {
    std::map<std::pair<int, std::int64_t>, const std::byte*> places;
    for (const auto& [peer, boxes] : received_) {
      const std::byte* at = in_.at(peer).data();
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        places[{peer, static_cast<std::int64_t>(i)}] = at;
        at += static_cast<std::size_t>(box_elements(boxes[i])) * width_;
      }
    }
    return places;
  }

 private:
  std::size_t bytes_in(const std::vector<Box>& boxes) const {
    std::int64_t elements = 0;
    for (const Box& box : boxes) elements += box_elements(box);
    return static_cast<std::size_t>(elements) * width_;
  }
  Buffer packed(const std::vector<Box>& boxes, const Block& own) const {
    Buffer buffer = Buffer::allocate(bytes_in(boxes));
    std::byte* at = buffer.data();
    for (const Box& box : boxes) {
      copy_part(box, at, own, box, width_);
      at += static_cast<std::size_t>(box_elements(box)) * width_;
    }
    return buffer;
  }

  std::size_t width_;
  std::map<int, std::vector<Box>> sent_, received_;
  std::map<int, Buffer> out_, in_;
};

// A chunk of this rank with the blocks that hold its parts.
struct Job {
  ChunkIndex place;
  std::vector<std::pair<Box, Block>> parts;
};
std::vector<Job> jobs_of(const ChunkPlan& plan, const Borders& borders, const Block& own, int device) {
  std::vector<Job> jobs;
  std::map<int, std::int64_t> taken;
  const auto arrived = borders.arrived();
  for (const OwnedChunk& chunk : plan.owned) {
    jobs.push_back({chunk.place, {}});
    for (const ChunkPart& part : chunk.parts)
      jobs.back().parts.emplace_back(
          part.box,
          part.device == device ? own : Block{part.box, arrived.at({part.device, taken[part.device]++})});
  }
  return jobs;
}

// The dense values of a chunk: in place if they are contiguous in a block, else assembled.
class Assembly {
 public:
  explicit Assembly(const WriteTask& task) : task_(task), width_(itemsize(task.meta.dtype)) {}

  EncodedBytes values(const Job& job) const {
    const Box chunk = box_of(task_.meta.chunk, job.place);
    const auto bytes = static_cast<std::size_t>(task_.meta.chunk.elements()) * width_;
    if (job.parts.size() == 1 && job.parts[0].first == chunk && is_dense_in(job.parts[0].second.box))
      return {{job.parts[0].second.data + place_in(job.parts[0].second.box, chunk), bytes}, {}};
    EncodedBytes piece{.bytes = {}, .memory = Buffer::allocate(bytes)};
    std::int64_t given = 0;
    for (const auto& [part, block] : job.parts) given += box_elements(part);
    if (given < task_.meta.chunk.elements()) put_background(chunk, given, piece.memory.data());
    for (const auto& [part, block] : job.parts) copy_part(chunk, piece.memory.data(), block, part, width_);
    piece.bytes = {piece.memory.data(), bytes};
    return piece;
  }

 private:
  // Whether the chunk is one run of bytes of the block.
  bool is_dense_in(const Box& block) const {
    bool is_one_row = true;
    for (std::size_t d = 0; d < block.size(); ++d) {
      if (!is_one_row && task_.meta.chunk[d] != block[d].size()) return false;
      is_one_row = is_one_row && task_.meta.chunk[d] == 1;
    }
    return true;
  }
  std::int64_t place_in(const Box& block, const Box& chunk) const {
    return offset_of(within(block, chunk), row_major_strides(box_shape(block))) *
           static_cast<std::int64_t>(width_);
  }
  // Fills elements that the parts do not cover: the old values, and the fill value beyond them.
  void put_background(const Box& chunk, std::int64_t given, std::byte* out) const {
    fill_box(task_.meta, task_.meta.chunk, {out, row_major_strides(task_.meta.chunk)});
    if (task_.old_folder.empty()) return;
    const Box old = intersect(chunk, whole_box(task_.old_shape));
    if (is_empty(old) || given >= box_elements(intersect(chunk, whole_box(task_.meta.shape)))) return;
    const auto strides = row_major_strides(task_.meta.chunk);
    ArrayMeta before = task_.meta;
    before.shape = task_.old_shape;
    read_box(task_.call, task_.old_folder, before, old,
             {out + offset_of(within(chunk, old), strides) * static_cast<std::int64_t>(width_), strides});
  }

  const WriteTask& task_;
  std::size_t width_;
};

WrittenKeys write_jobs(const WriteTask& task, ChunkFiles& files, const std::vector<Job>& jobs) {
  const Assembly assembly(task);
  const std::size_t width = itemsize(task.meta.dtype);
  WrittenKeys keys;
  std::mutex guard;
  const auto write_one = [&](const Job& job) {
    const std::string key = key_of(task.meta, job.place);
    const EncodedBytes values = assembly.values(job);
    const bool is_empty = !task.keeps_empty_chunks && task.meta.fill_is_given &&
                          holds_only(task.meta.fill, values.bytes.data(), task.meta.chunk.elements(), width);
    if (!is_empty) {
      const EncodedBytes stored = encode_chunk(task.meta, values.bytes.data());
      files.write(key, stored.bytes);
    }
    const std::scoped_lock lock(guard);
    (is_empty ? keys.empty : keys.files).push_back(key);
  };
  kernels::share(std::ssize(jobs), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) write_one(jobs[static_cast<std::size_t>(i)]);
  });
  return keys;
}

}  // namespace

std::function<WrittenKeys()> prepared_write(const Team& team, const WriteTask& task, ChunkFiles& files,
                                            const Array& x) {
  struct Prepared {
    WriteTask task;
    Array x;  // whose block the jobs read
    std::optional<Borders> borders;
    std::vector<Job> jobs;
  };
  const int device = process_index();
  ChunkPlan plan;
  Block own;
  const auto write = std::make_shared<Prepared>(Prepared{task, x, {}, {}});
  team.together([&] {
    const OwnBlock block = own_block(write->x);
    if (block.writes && !is_empty(block.box)) own = {moved(block.box, task.origin), block.data};
    plan = plan_chunks(task.meta.chunk, writers_of(x, task.origin), device);
    write->borders.emplace(plan, own, device, itemsize(x.dtype()));
  });
  write->borders->exchange();
  write->jobs = jobs_of(plan, *write->borders, own, device);
  return [write, &files] { return write_jobs(write->task, files, write->jobs); };
}

WrittenKeys write_chunks(const Team& team, const WriteTask& task, const Array& x) {
  ChunkFiles files(task.call, task.folder);
  const auto write = prepared_write(team, task, files, x);
  WrittenKeys keys;
  team.together([&] {
    keys = write();
    files.sync();
    fault_point("written");
  });
  return keys;
}

}  // namespace tessera::io::zarr
