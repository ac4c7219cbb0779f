// Slabs on their way to a temporary file.
#pragma once
#include "io/save_target.hpp"
#include "stream/sink.hpp"
#include "stream/spill/spill_file.hpp"

namespace tessera::stream {

class SpillSink : public SlabSink {
 public:
  // The file is open.
  SpillSink(const io::Team& team, SpillFilePtr file)
      : team_(team),
        file_(std::move(file)),
        writer_(team, [this](const Box& box, const std::byte* data) { file_->write(box, data); }) {}
  void write(const Array& part, const Place& at) override { writer_.write(part, at); }
  // All is written; collective over all ranks.
  void finish() {
    team_.together([&] { writer_.wait(); });
  }

 private:
  const io::Team& team_;
  const io::NoSizeSignal size_is_an_error_;
  SpillFilePtr file_;
  BlockWriter writer_;  // ends before what it writes to
};

}  // namespace tessera::stream
