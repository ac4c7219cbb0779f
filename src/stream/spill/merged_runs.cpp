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
    const Parts parts = parts_of(box);
    const Buffer keys = keys_of(parts);
    kernels::merge_runs(file_.dtype(), keys.data(), nullptr, parts.offsets, {}, out, nullptr);
  }
  void read_positions(Range box, const SpillFile& positions, std::byte* out) const {
    const Parts parts = parts_of(box);
    const Buffer keys = keys_of(parts), sorted = Buffer::allocate(keys.bytes());
    const auto bytes = static_cast<std::size_t>(box.size()) * sizeof(std::int64_t);
    const Buffer payload = Buffer::allocate(bytes), merged = Buffer::allocate(bytes);
    auto* const at = reinterpret_cast<std::int64_t*>(payload.data());
    const bool is_short = positions.dtype() == int32;
    const Buffer narrow = Buffer::allocate(is_short ? bytes / 2 : 0);
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const auto begin = parts.offsets[r], end = parts.offsets[r + 1];
      if (is_short) {
        auto* const shorter = reinterpret_cast<std::int32_t*>(narrow.data());
        positions.read(parts.boxes[r], narrow.data() + begin * 4);
        std::copy(shorter + begin, shorter + end, at + begin);
      } else {
        positions.read(parts.boxes[r], payload.data() + begin * 8);
      }
      for (auto i = begin; i < end; ++i) at[i] += runs_[r].start;
    }
    auto* const to = reinterpret_cast<std::int64_t*>(is_short ? merged.data() : out);
    kernels::merge_runs(file_.dtype(), keys.data(), at, parts.offsets, {}, sorted.data(), to);
    if (is_short) std::copy(to, to + box.size(), reinterpret_cast<std::int32_t*>(out));
  }

 private:
  // The part of each run that belongs to a box of the sorted vector, and where it begins among the parts.
  struct Parts {
    std::vector<Box> boxes;
    std::vector<std::int64_t> offsets{0};
  };
  Parts parts_of(Range box) const {
    const auto first = cut_at(box.start), last = cut_at(box.stop);
    Parts parts;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      parts.boxes.push_back({{first[r], last[r]}});
      parts.offsets.push_back(parts.offsets.back() + last[r] - first[r]);
    }
    return parts;
  }
  Buffer keys_of(const Parts& parts) const {
    Buffer keys = Buffer::allocate(static_cast<std::size_t>(parts.offsets.back() * width_));
    for (std::size_t r = 0; r < runs_.size(); ++r)
      file_.read(parts.boxes[r], keys.data() + parts.offsets[r] * width_);
    return keys;
  }
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

FileSourcePtr merged_positions(const SpillFilePtr& runs, const SpillFilePtr& positions, std::int64_t length) {
  auto source = std::make_shared<FileSource>();
  source->path = runs->name(), source->info = {positions->shape(), positions->dtype(), "sorted runs"};
  source->temporary_bytes = [width = static_cast<std::int64_t>(itemsize(runs->dtype()))](const Shape& box) {
    return (3 * width + 32) * box.elements();
  };
  source->read = [runs, positions, length](const std::string&, const Box& box, std::byte* out) {
    Runs(*runs, length).read_positions(box[0], *positions, out);
  };
  return source;
}

}  // namespace tessera::stream
