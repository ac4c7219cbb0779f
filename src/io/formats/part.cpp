#include "io/formats/part.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "base/text.hpp"

namespace tessera::io {

bool Selection::has_no_steps() const {
  return std::all_of(step.begin(), step.end(), [](std::int64_t n) { return n == 1; });
}
Box Selection::span_of(const Box& box) const {
  Box span;
  for (std::size_t d = 0; d < box.size(); ++d) {
    const std::int64_t first = start[d] + box[d].start * step[d];
    span.push_back({first, box[d].size() == 0 ? first : start[d] + (box[d].stop - 1) * step[d] + 1});
  }
  return span;
}

Selection part_of(const std::string& call, const std::string& what, const std::vector<Slice>& slices,
                  const Shape& shape) {
  if (slices.size() > shape.size())
    throw IndexError(call + ": " + format_count(std::ssize(slices), "slice") + " for " + what + " of shape " +
                     to_string(shape));
  Selection part;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Slice slice = d < slices.size() ? slices[d] : Slice{};
    const std::int64_t extent = shape[d], step = slice.step.value_or(1);
    if (step < 1)
      throw IndexError(call + ": the slice of dimension " + std::to_string(d) + " has the step " +
                       std::to_string(step) +
                       "; of a file only positive steps are read. Use flip afterwards");
    const auto bound = [&](std::optional<std::int64_t> at, std::int64_t otherwise) {
      if (!at) return otherwise;
      return std::clamp<std::int64_t>(*at < 0 ? *at + extent : *at, 0, extent);
    };
    const std::int64_t start = bound(slice.start, 0), stop = bound(slice.stop, extent);
    part.start.push_back(start);
    part.step.push_back(step);
    part.count.push_back(stop > start ? (stop - start - 1) / step + 1 : 0);
  }
  return part;
}

std::string slices_text(const std::vector<Slice>& slices) {
  if (slices.empty()) return "";
  std::vector<std::string> texts;
  const auto number = [](std::optional<std::int64_t> n) { return n ? std::to_string(*n) : std::string(); };
  for (const Slice& s : slices)
    texts.push_back(number(s.start) + ":" + number(s.stop) + (s.step ? ":" + number(s.step) : ""));
  return " [" + join(texts) + "]";
}

}  // namespace tessera::io
