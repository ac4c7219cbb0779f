#include "stream/run.hpp"

#include <tessera/array/index.hpp>
#include <tessera/array/read.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "ops/build.hpp"

namespace tessera::stream {
namespace {

Array part_of(const Array& x, int dim, const Range& range) {
  std::vector<IndexPart> parts(static_cast<std::size_t>(dim), slice());
  parts.emplace_back(slice(range.start, range.stop));
  return index(x, std::move(parts));
}

}  // namespace

std::vector<Array> Runner::compute(const std::vector<Array>& roots) {
  eval(roots);
  return roots;
}

void Runner::begin_pass(const std::vector<CutValue>& cut) { cut_ = cut, next_ = 0; }

std::vector<Range> Runner::slabs(std::int64_t extent, std::int64_t length) {
  ranges_.clear();
  for (std::int64_t start = 0; start < extent; start += length)
    ranges_.push_back({start, std::min(extent, start + length)});
  team_.together([&] { start_reading(ranges_[0]); });
  return ranges_;
}

void Runner::start_reading(const Range& slab) {
  incoming_.clear();
  for (const auto& cut : cut_) {
    if (!is_file(*cut.of.node())) continue;
    const auto dim = static_cast<std::size_t>(cut.dim);
    Shape shape = cut.of.shape();
    shape[dim] = slab.size();
    const Sharding layout = slab_layout(shape.ndim(), cut.split);
    Box box = layout.local_box(shape, process_index());
    const auto bytes = box_elements(box) * static_cast<std::int64_t>(itemsize(cut.of.dtype()));
    box[dim] = {box[dim].start + slab.start, box[dim].stop + slab.start};
    Buffer buffer = mapped_file(cut.of.node()->params->as<FileParams>(), box);
    const bool is_mapped = bool(buffer);
    if (!is_mapped) buffer = Buffer::allocate(static_cast<std::size_t>(bytes));
    incoming_.push_back({cut.of, std::move(shape), layout, std::move(box), std::move(buffer), is_mapped});
  }
  if (std::ranges::all_of(incoming_, &Incoming::is_mapped)) return;
  reader_.start([this] {
    for (auto& part : incoming_)
      if (!part.is_mapped)
        read_file(part.of.node()->params->as<FileParams>(), call_, part.box, part.buffer.data());
  });
}

std::vector<Array> Runner::leaves(const Range& slab) {
  team_.together([&] {
    check_mapped();
    reader_.wait();
  });
  std::vector<Array> parts(cut_.size());
  std::size_t file = 0;
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    if (is_file(*cut_[i].of.node())) {
      auto& part = incoming_[file++];
      if (part.is_mapped) mapped_.emplace_back(part.buffer, part.of.node()->params->as<FileParams>().path);
      parts[i] = make_leaf({part.shape, part.of.dtype()}, part.layout, std::move(part.buffer), true);
    } else {
      parts[i] = part_of(cut_[i].of, cut_[i].dim, slab);
    }
  }
  if (file < cut_.size()) eval(parts);  // parts of operands in memory: the slabs' programs are then all alike
  team_.together([&] {
    io::fault_point("slab");
    if (++next_ < ranges_.size()) start_reading(ranges_[next_]);
  });
  return parts;
}

std::vector<Array> Runner::compute_slab(const std::vector<Array>& roots,
                                        const std::vector<std::size_t>& wanted, const Range& slab) {
  std::vector<Array> values = roots;
  const auto first = values.size() - wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (auto* sink = targets_[wanted[i]].sink) values[first + i] = sink->placed(values[first + i]);
  eval(values);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const auto& target = targets_[wanted[i]]; target.sink != nullptr) {
      const Array part = std::exchange(values[first + i], Array());
      Place at(part.shape().size(), 0);
      at[static_cast<std::size_t>(target.dim)] = slab.start;
      target.sink->write(part, at);
    }
  for (auto& value : values)
    if (value.node()) value = kept(value);
  if (next_ == ranges_.size()) team_.together([&] { check_mapped(); });
  return values;
}

// The slab before: its values are of no use if a file was cut short meanwhile.
void Runner::check_mapped() {
  for (const auto& [buffer, path] : std::exchange(mapped_, {}))
    if (io::has_lost_bytes(buffer))
      throw IoError(call_ + ": " + in_quotes(path) +
                    " was cut short while it was read; copy or write it again, and shorten no file that a "
                    "program reads");
}

// A value that stays must not change with the file that its memory is mapped from.
Array Runner::kept(const Array& value) const {
  const auto& stored = *output_of(value).stored;
  const std::byte* const data = stored.buffer.data();
  if (std::ranges::none_of(mapped_, [&](const auto& mapped) {
        const Buffer& file = mapped.first;
        return std::less_equal<>()(file.data(), data) && std::less<>()(data, file.data() + file.bytes());
      }))
    return value;
  Buffer copy = Buffer::allocate(stored.buffer.bytes());
  std::memcpy(copy.data(), data, copy.bytes());
  return make_leaf(type_of(value), stored.layout, std::move(copy), true);
}

}  // namespace tessera::stream
