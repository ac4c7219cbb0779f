// Running a planned program: slabs are read and written on threads beside the computation.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/team.hpp"
#include "stream/file_source.hpp"
#include "stream/passes.hpp"
#include "stream/sink.hpp"

namespace tessera::stream {

class Runner : public Walker {
 public:
  // The target of a wanted value's slabs and the streamed dim in them; nullptr: they are kept.
  struct Target {
    SlabSink* sink = nullptr;
    int dim = -1;
  };
  Runner(const io::Team& team, std::string call, std::vector<Target> targets)
      : team_(team), call_(std::move(call)), targets_(std::move(targets)) {}
  std::vector<Array> compute(const std::vector<Array>& roots) override;
  void begin_pass(const std::vector<CutValue>& cut) override;
  std::vector<Range> slabs(std::int64_t extent, std::int64_t length) override;
  std::vector<Array> leaves(const Range& slab) override;
  std::vector<Array> compute_slab(const std::vector<Array>& roots, const std::vector<std::size_t>& wanted,
                                  const Range& slab) override;

 private:
  // A part of a file array on its way to memory.
  struct Incoming {
    Array of;
    Shape shape;
    Sharding layout;
    Box box;  // of this rank's block, in the file's array
    Buffer buffer;
    bool is_mapped = false;
  };
  void start_reading(const Range& slab);
  Array kept(const Array& value) const;
  void check_mapped();

  const io::Team& team_;
  std::string call_;
  std::vector<Target> targets_;  // of each wanted value
  std::vector<CutValue> cut_;
  std::vector<Range> ranges_;
  std::size_t next_ = 0;  // the slab to read next
  std::vector<Incoming> incoming_;
  std::vector<std::pair<Buffer, std::string>> mapped_;  // parts of files of the slab that is computed
  Background reader_;                                   // ends before what it fills
};

}  // namespace tessera::stream
