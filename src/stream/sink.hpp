// Targets of slabs.
#pragma once
#include <functional>
#include <utility>

#include "io/blocks.hpp"
#include "io/team.hpp"
#include "stream/background.hpp"

namespace tessera::stream {

// The target of the slabs of one value; its methods are called on all ranks.
class SlabSink {
 public:
  virtual ~SlabSink() = default;
  // The slab in the layout in which it is written.
  virtual Array placed(const Array& slab) { return slab; }
  // Writes this rank's block of a computed slab, at `start` along the dim, after the call returns or in it.
  virtual void write(const Array& slab, int dim, std::int64_t start) = 0;
};

// Writes one block at a time on a thread of its own.
class BlockWriter {
 public:
  using Put = std::function<void(const Box&, const std::byte*)>;
  BlockWriter(const io::Team& team, Put put) : team_(team), put_(std::move(put)) {}
  void write(const Array& slab, int dim, std::int64_t start) {
    team_.together([&] {
      writer_.wait();
      writing_ = slab;
      auto own = io::own_block(writing_);
      if (!own.writes) return;
      auto& range = own.box[static_cast<std::size_t>(dim)];
      range = {range.start + start, range.stop + start};
      writer_.start([this, own] { put_(own.box, own.data); });
    });
  }
  // On this rank.
  void wait() {
    writer_.wait();
    writing_ = {};
  }

 private:
  const io::Team& team_;
  Put put_;
  Array writing_;      // its block's memory, while it is written
  Background writer_;  // ends before what it reads
};

}  // namespace tessera::stream
