#include "stream/file_source.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/move/copy.hpp"
#include "ops/build.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {
namespace {

// `may_fail`: a failed read is agreed when the run ends, and raised on all ranks.
const OpDef file_op{
    .name = "read_file",
    .halves = moves_halves,
    .infer = [](std::span<const Type>, const Params& p) -> std::vector<Type> {
      return {{Shape(p.as<FileParams>().count), p.as<FileParams>().dtype}};
    },
    .sharding = Rule("-> D.."),
    .runs = Kernel{[](const KernelArgs& a) {
      read_file(a.params.as<FileParams>(), "read_file", a.out[0].box, a.out[0].data);
    }},
    .vjp = [](const VjpArgs&) -> Cotangents { return {}; },
    .batch = [](const BatchArgs& args) -> Batched {
      return {{record(*args.node.op, args.node.params, {})}, {not_batched}};
    },
    .same_bits = SameBits::always,
    .may_fail = true,
};
const Registered registered(file_op);

constexpr std::int64_t short_gap = 32 << 10, page = 4096;  // as io::read_box has it, and the system
constexpr std::int64_t window_bytes = 1 << 20;

std::int64_t elements_of(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}
std::int64_t chunk_of(const FileParams& p, int dim) {
  return p.source->chunks.empty() ? 1 : p.source->chunks[static_cast<std::size_t>(dim)];
}

// A box as rows along a dim: `outer` times, each of `bytes`.
struct Rows {
  std::int64_t outer, bytes, at_once;  // at_once: the rows that a window has at most, chunks as a whole
  Rows(const FileParams& p, int dim, const Shape& box) {
    const std::span extents(box.begin(), box.end());
    const auto d = static_cast<std::size_t>(dim);
    outer = elements_of(extents.first(d));
    bytes = elements_of(extents.subspan(d + 1)) * static_cast<std::int64_t>(itemsize(p.dtype));
    at_once = std::max(window_bytes / std::max<std::int64_t>(1, outer * bytes),
                       std::max<std::int64_t>(1, chunk_of(p, dim) / p.step[d]));
  }
};

// Places in ascending order that are read together: order[begin, end).
struct Window {
  Range rows;
  std::size_t begin, end;
};
std::vector<Window> windows_of(const FileParams& p, int dim, std::span<const std::int64_t> places,
                               const std::vector<std::int64_t>& order, std::int64_t at_once) {
  const auto d = static_cast<std::size_t>(dim);
  const auto& stored = p.source->info.shape;
  const auto pitch = elements_of(std::span(stored.begin(), stored.end()).subspan(d + 1)) *
                     static_cast<std::int64_t>(itemsize(p.dtype)) * p.step[d];
  const auto chunk = [&](std::int64_t place) { return (p.start[d] + place * p.step[d]) / chunk_of(p, dim); };
  std::vector<Window> windows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto place = places[static_cast<std::size_t>(order[i])];
    if (!windows.empty()) {
      auto& [rows, begin, end] = windows.back();
      const auto gap = place - rows.stop;
      if (gap < 0 ||
          (place - rows.start < at_once &&
           (gap * pitch <= short_gap || (chunk_of(p, dim) > 1 && chunk(place) == chunk(rows.stop - 1))))) {
        rows.stop = std::max(rows.stop, place + 1), end = i + 1;
        continue;
      }
    }
    windows.push_back({{place, place + 1}, i, i + 1});
  }
  return windows;
}
std::vector<std::int64_t> in_ascending_order(std::span<const std::int64_t> places) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) order.push_back(static_cast<std::int64_t>(i));
  const auto place = [&](std::int64_t i) { return places[static_cast<std::size_t>(i)]; };
  if (!std::ranges::is_sorted(order, {}, place)) std::ranges::stable_sort(order, {}, place);
  return order;
}

}  // namespace

bool is_file(const Node& node) { return node.op == &file_op; }
Array record_file(FileParams params) { return record(file_op, make_params(std::move(params)), {}); }

namespace {

// The first dim of which single rows are read, since what lies between them is long; -1: none.
int dim_with_long_gaps(const FileParams& p) {
  std::int64_t pitch = static_cast<std::int64_t>(itemsize(p.dtype));
  int found = -1;
  for (std::size_t d = p.count.size(); d-- > 0; pitch *= p.source->info.shape[d])
    if (p.step[d] > 1 && (p.step[d] - 1) * pitch > short_gap && p.count[d] > 1) found = static_cast<int>(d);
  return found;
}
FileParams without_steps(FileParams p, int dim) {
  const auto d = static_cast<std::size_t>(dim);
  p.count[d] = p.source->info.shape[d] - p.start[d], p.step[d] = 1;
  return p;
}

}  // namespace

void read_file(const FileParams& p, const std::string& call, const Box& box, std::byte* out) {
  if (is_empty(box)) return;
  const io::Selection part{p.start, p.step, p.count};
  const Box span = part.span_of(box);
  if (part.has_no_steps()) return p.source->read(call, span, out);
  if (const int dim = dim_with_long_gaps(p); dim >= 0) {
    std::vector<std::int64_t> places;
    const auto d = static_cast<std::size_t>(dim);
    for (auto i = box[d].start; i < box[d].stop; ++i) places.push_back(i * p.step[d]);
    return read_places(without_steps(p, dim), call, dim, places, box, out);
  }
  const auto width = itemsize(p.dtype);
  const Buffer all = Buffer::allocate(static_cast<std::size_t>(box_elements(span)) * width);
  p.source->read(call, span, all.data());
  auto strides = row_major_strides(box_shape(span));
  for (std::size_t d = 0; d < strides.size(); ++d) strides[d] *= part.step[d];
  kernels::copy_strided(out, row_major_strides(box_shape(box)), all.data(), strides, box_shape(box), width);
}

Buffer mapped_file(const FileParams& p, const Box& box) {
  const io::Selection part{p.start, p.step, p.count};
  if (!p.source->mapped || is_empty(box) || !part.has_no_steps()) return {};
  return p.source->mapped(part.span_of(box));
}

void read_places(const FileParams& p, const std::string& call, int dim, std::span<const std::int64_t> places,
                 const Box& given, std::byte* out) {
  constexpr std::int64_t rows_in_window = 16;
  Box box = given;
  box[static_cast<std::size_t>(dim)] = {0, std::ssize(places)};
  if (is_empty(box)) return;
  const Rows rows(p, dim, box_shape(box));
  if (rows.outer > 1 && rows.outer * rows.bytes * rows_in_window > window_bytes) {  // a half each
    std::size_t first = 0;
    while (box[first].size() == 1) ++first;
    const auto middle = box[first].start + box[first].size() / 2;
    for (const Range half : {Range{box[first].start, middle}, Range{middle, given[first].stop}}) {
      box[first] = half;
      read_places(p, call, dim, places, box, out);
      out += box_elements(box) * static_cast<std::int64_t>(itemsize(p.dtype));
    }
    return;
  }
  const auto order = in_ascending_order(places);
  const std::int64_t row = rows.bytes, n = std::ssize(places);
  if (std::ssize(order) < n) std::memset(out, 0, static_cast<std::size_t>(rows.outer * n * row));
  for (const Window& window : windows_of(p, dim, places, order, rows.at_once)) {
    box[static_cast<std::size_t>(dim)] = window.rows;
    const auto bytes = rows.outer * window.rows.size() * row;
    const Buffer all = Buffer::allocate(static_cast<std::size_t>(bytes));
    read_file(p, call, box, all.data());
    for (std::int64_t o = 0; o < rows.outer; ++o)
      for (auto i = window.begin; i < window.end; ++i) {
        const auto from = places[static_cast<std::size_t>(order[i])] - window.rows.start;
        std::memcpy(out + (o * n + order[i]) * row, all.data() + (o * window.rows.size() + from) * row,
                    static_cast<std::size_t>(row));
      }
  }
}

FileSourcePtr source_at(const FileParams& p, int dim, std::vector<std::int64_t> places) {
  auto source = std::make_shared<FileSource>();
  Shape shape(p.count);
  const auto d = static_cast<std::size_t>(dim);
  shape[d] = std::ssize(places);
  source->path = p.path, source->name = p.name;
  source->info = {shape, p.dtype, "places of a file"};
  double read = 0;
  for (const auto& window :
       windows_of(p, dim, places, in_ascending_order(places), Rows(p, dim, shape).at_once))
    read += static_cast<double>(window.rows.size()) * times_read(p, dim, window.rows.size());
  source->times = read / static_cast<double>(std::max<std::int64_t>(1, shape[d]));
  source->temporary_bytes = [p, dim](const Shape& box) { return reading_bytes_at(p, dim, box); };
  source->read = [p, dim, places = std::move(places)](const std::string& call, const Box& box,
                                                      std::byte* out) {
    const Range& some = box[static_cast<std::size_t>(dim)];
    read_places(p, call, dim,
                std::span(places).subspan(static_cast<std::size_t>(some.start),
                                          static_cast<std::size_t>(some.size())),
                box, out);
  };
  return source;
}

std::int64_t reading_bytes_at(const FileParams& p, int dim, const Shape& box) {
  const Rows rows(p, dim, box);
  Shape window = box;
  const auto d = static_cast<std::size_t>(dim);
  window[d] = std::min(rows.at_once, p.count[d]);
  // Boxes with more in front of the dim are read in halves.
  return std::min(rows.outer * window[d] * rows.bytes, std::max(window_bytes, window[d] * rows.bytes)) +
         reading_bytes(p, window);
}

std::int64_t reading_bytes(const FileParams& p, const Shape& box) {
  const io::Selection part{p.start, p.step, p.count};
  if (const int dim = dim_with_long_gaps(p); dim >= 0)
    return reading_bytes_at(without_steps(p, dim), dim, box);
  const Shape span = box_shape(part.span_of(whole_box(box)));
  const bool is_dense = part.has_no_steps();
  return p.source->temporary_bytes(span) +
         (is_dense ? 0 : span.elements() * static_cast<std::int64_t>(itemsize(p.dtype)));
}

double times_read(const FileParams& p, int dim, std::int64_t block) {
  const auto d = static_cast<std::size_t>(dim);
  const double length = static_cast<double>(std::max<std::int64_t>(1, block * p.step[d]));
  double times = p.source->times;
  for (std::size_t e = 0; e < p.count.size(); ++e)
    if (static_cast<int>(e) != dim_with_long_gaps(p)) times *= static_cast<double>(p.step[e]);
  if (!p.source->chunks.empty())
    return times * std::max(1.0, static_cast<double>(p.source->chunks[d]) / length);
  bool is_first = true;
  double run = static_cast<double>(itemsize(p.dtype)) * length;
  for (std::size_t e = 0; e < p.count.size(); ++e) {
    if (e < d) is_first = is_first && p.count[e] == 1;
    if (e > d) run *= static_cast<double>(p.source->info.shape[e]);
  }
  if (is_first || run >= short_gap) return times;
  // Gaps that are no longer are read with the runs.
  const double pitch = run / length * static_cast<double>(p.source->info.shape[d]);
  return times * std::max(1.0, pitch - run <= short_gap ? pitch / run : (run + page) / run);
}

}  // namespace tessera::stream
