// Targets of slabs.
#pragma once
#include <functional>
#include <utility>

#include "io/blocks.hpp"
#include "io/team.hpp"
#include "stream/background.hpp"

namespace tessera::stream {

using Place = std::vector<std::int64_t>;  // an index per dim

// The target of the slabs of one value; its methods are called on all ranks.
class SlabSink {
 public:
  virtual ~SlabSink() = default;
  // The slab in the layout in which it is written.
  virtual Array placed(const Array& slab) { return slab; }
  // Writes this rank's block of a computed part, whose first element has this place in the whole, after the
  // call returns or in it.
  virtual void write(const Array& part, const Place& at) = 0;
};

// Writes one block at a time on a thread of its own.
class BlockWriter {
 public:
  using Put = std::function<void(const Box&, const std::byte*)>;
  BlockWriter(const io::Team& team, Put put) : team_(team), put_(std::move(put)) {}
  void write(const Array& part, const Place& at) {
    team_.together([&] {
      writer_.wait();
      writing_ = part;
      auto own = io::own_block(writing_);
      if (!own.writes) return;
      for (std::size_t d = 0; d < at.size(); ++d)
        own.box[d] = {own.box[d].start + at[d], own.box[d].stop + at[d]};
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
