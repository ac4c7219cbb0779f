// A sorted vector as a merge of sorted runs: each rank finds the part of every run that belongs to its box
// and merges these parts.
#include <algorithm>

#include "kernels/sort/sort.hpp"
#include "stream/spill/file_views.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {
namespace {

class Runs {
 public:
  Runs(const SpillFile& file, std::int64_t length)
      : file_(file), width_(static_cast<std::int64_t>(itemsize(file.dtype()))) {
    for (std::int64_t start = 0; start < file.shape()[0]; start += length)
      runs_.push_back({start, std::min(file.shape()[0], start + length)});
  }

  void read(Range box, std::byte* out) const {
    const auto first = cut_at(box.start), last = cut_at(box.stop);
    const Buffer parts = Buffer::allocate(static_cast<std::size_t>(box.size() * width_));
    std::vector<std::int64_t> offsets{0};
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      file_.read({{first[r], last[r]}}, parts.data() + offsets.back() * width_);
      offsets.push_back(offsets.back() + last[r] - first[r]);
    }
    kernels::merge_runs(file_.dtype(), parts.data(), nullptr, offsets, {}, out, nullptr);
  }

 private:
  struct Element {
    std::byte bytes[16];
  };
  Element at(std::int64_t i) const {
    Element e;
    file_.read({{i, i + 1}}, e.bytes);
    return e;
  }
  bool is_less(const Element& a, const Element& b) const {
    std::int64_t place = 0;
    kernels::searchsorted(file_.dtype(), a.bytes, 1, b.bytes, 1, false, &place);
    return place == 1;
  }
  // The first element in [range) that is not before the pivot; of equals those `with_equals` are before it.
  std::int64_t bound(Range range, const Element& pivot, bool with_equals) const {
    while (range.start < range.stop) {
      const auto middle = range.start + range.size() / 2;
      const Element e = at(middle);
      if (with_equals ? !is_less(pivot, e) : is_less(e, pivot))
        range.start = middle + 1;
      else
        range.stop = middle;
    }
    return range.start;
  }
  // The cuts of the runs, so that `place` elements, the least, lie before them; of equals, those of lower
  // runs come first.
  std::vector<std::int64_t> cut_at(std::int64_t place) const {
    std::vector<Range> open = runs_;  // the cut of a run lies in [start, stop]
    while (true) {
      std::size_t longest = 0;
      for (std::size_t r = 1; r < open.size(); ++r)
        if (open[r].size() > open[longest].size()) longest = r;
      if (open[longest].size() == 0) break;
      const auto middle = open[longest].start + open[longest].size() / 2;
      const Element pivot = at(middle);
      std::vector<std::int64_t> cuts;
      std::int64_t before = 0;
      for (std::size_t r = 0; r < open.size(); ++r) {
        cuts.push_back(r == longest ? middle : bound(open[r], pivot, r < longest));
        before += cuts[r] - runs_[r].start;
      }
      for (std::size_t r = 0; r < open.size(); ++r) {
        if (before < place)
          open[r].start = r == longest ? middle + 1 : cuts[r];
        else
          open[r].stop = cuts[r];
      }
    }
    std::vector<std::int64_t> cuts;
    for (const auto& run : open) cuts.push_back(run.start);
    return cuts;
  }

  const SpillFile& file_;
  std::int64_t width_;
  std::vector<Range> runs_;
};

}  // namespace

FileSourcePtr merged_source(const SpillFilePtr& runs, std::int64_t length) {
  auto source = std::make_shared<FileSource>();
  source->path = runs->name(), source->info = {runs->shape(), runs->dtype(), "sorted runs"};
  source->temporary_bytes = [width = static_cast<std::int64_t>(itemsize(runs->dtype()))](const Shape& box) {
    return 2 * box.elements() * width;
  };  // the parts, and the memory that merging takes
  source->read = [runs, length](const std::string&, const Box& box, std::byte* out) {
    Runs(*runs, length).read(box[0], out);
  };
  return source;
}

}  // namespace tessera::stream
