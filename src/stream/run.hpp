// Running a planned program: slabs are read and written on threads beside the computation.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/team.hpp"
#include "stream/background.hpp"
#include "stream/file_source.hpp"
#include "stream/passes.hpp"

namespace tessera::stream {

// The target of the slabs of one value; its methods are called on all ranks.
class SlabSink {
 public:
  virtual ~SlabSink() = default;
  // Writes this rank's block of a computed slab, at `start` along the dim, after the call returns or in it.
  virtual void write(const Array& slab, int dim, std::int64_t start) = 0;
};

class Runner : public Walker {
 public:
  // `sink` may be nullptr: slabs are kept.
  Runner(const io::Team& team, std::string call, SlabSink* sink, int sink_dim)
      : team_(team), call_(std::move(call)), sink_(sink), sink_dim_(sink_dim) {}
  std::vector<Array> compute(const std::vector<Array>& roots) override;
  void begin_pass(const std::vector<Array>& cut, const std::vector<int>& dims) override;
  std::vector<Range> slabs(std::int64_t extent, std::int64_t length) override;
  std::vector<Array> leaves(const Range& slab) override;
  std::vector<Array> compute_slab(const std::vector<Array>& roots, std::size_t first_stored,
                                  const Range& slab) override;

 private:
  // A part of a file array on its way to memory.
  struct Incoming {
    Array of;
    int dim = 0;
    Shape shape;
    Sharding layout;
    Box box;  // of this rank's block, in the file's array
    Buffer buffer;
  };
  void start_reading(const Range& slab);

  const io::Team& team_;
  std::string call_;
  SlabSink* sink_;
  int sink_dim_;
  std::vector<Array> cut_;
  std::vector<int> dims_;
  std::vector<Range> ranges_;
  std::size_t next_ = 0;  // the slab to read next
  std::vector<Incoming> incoming_;
  Background reader_;  // ends before what it fills
};

}  // namespace tessera::stream
