// A program recorded again with values that stand for some of its own, and with ops that read files directly.
#pragma once
#include <map>
#include <vector>

#include "stream/recorder.hpp"
#include "stream/spill/file_views.hpp"

namespace tessera::stream {

// The values of a graph, of which some are replaced; what depends on them is recorded again.
class Replaced {
 public:
  explicit Replaced(const Graph& graph) : graph_(graph) {}
  void set(const Array& x, Array other) { known_[id_of(x)] = std::move(other); }
  void set_result(const Node& node, Array other) { known_[{&node, 0}] = std::move(other); }
  Array of(const Array& x);

 private:
  const Graph& graph_;
  bool is_recorded_ = false;
  std::map<ValueId, Array> known_;
};

// How elements at places of a sorted vector are found: by counts in several passes, which take 65,536 numbers
// a place and pass, or in a sorted copy.
enum class SelectBy { rounds, sorting };
bool has_selection(const std::vector<Array>& values);

struct Simplifying {
  SelectBy selection;
  std::int64_t room;  // the bytes that a rank may use
  bool is_recorded;   // the values are those of the user, and not what an earlier stage leaves of them
};
// The same values with parts of files as arrays in files: slices, gathers, joins, pads, rolls, flips. A box
// of values put into a file is an update of a list.
std::vector<Array> with_parts_of_files(const std::vector<Array>& values, FileNumbers&);
// The same with simpler ops: FFTs dim by dim, and in a recorded program tall factorizations by blocks of rows
// and positions of extrema in two passes.
std::vector<Array> simplified(const std::vector<Array>& values, FileNumbers&, const Simplifying&);

}  // namespace tessera::stream
