#include "stream/spill/file_views.hpp"

#include <algorithm>
#include <numeric>

#include "base/call.hpp"
#include "kernels/move/copy.hpp"
#include "ops/build.hpp"
#include "ops/index/remap_op.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {
namespace {

const FileParams& file_of(const Array& x) { return x.node()->params->as<FileParams>(); }

// ---- slices, joins, pads, rolls, flips ----

FileParams slice_of(FileParams file, const RemapParams& p) {
  const auto& piece = p.pieces[0];
  for (std::size_t d = 0; d < p.shape.size(); ++d) {
    file.start[d] += piece.offset[d] * file.step[d];
    file.step[d] *= piece.step[d];
  }
  file.count = p.shape.vector();
  return file;
}

// The elements of one piece of the result: read with all that lies between them, then copied.
void read_piece(const RemapPiece& piece, const FileParams& file, const std::string& call, const Box& box,
                std::byte* out) {
  const Box part = intersect(piece.to, box);
  if (is_empty(part)) return;
  const auto width = itemsize(file.dtype);
  const auto out_strides = row_major_strides(box_shape(box));
  Box span;
  std::int64_t out_first = 0, in_first = 0;
  for (std::size_t d = 0; d < part.size(); ++d) {
    const auto a = piece.offset[d] + piece.step[d] * part[d].start,
               b = piece.offset[d] + piece.step[d] * (part[d].stop - 1);
    span.push_back({std::min(a, b), std::max(a, b) + 1});
    out_first += (part[d].start - box[d].start) * out_strides[d];
  }
  const Buffer all = Buffer::allocate(static_cast<std::size_t>(box_elements(span)) * width);
  read_file(file, call, span, all.data());
  auto strides = row_major_strides(box_shape(span));
  for (std::size_t d = 0; d < part.size(); ++d) {
    if (piece.step[d] < 0) in_first += (span[d].size() - 1) * strides[d];
    strides[d] *= piece.step[d];
  }
  const auto item = static_cast<std::int64_t>(width);
  kernels::copy_strided(out + out_first * item, out_strides, all.data() + in_first * item, strides,
                        box_shape(part), width);
}

FileSourcePtr joined_source(const RemapParams& p, const std::vector<FileParams>& files) {
  auto source = std::make_shared<FileSource>();
  const Dtype dtype = files[0].dtype;
  source->path = files[0].path, source->name = files[0].name;
  source->info = {p.shape, dtype, "parts of files"};
  std::int64_t covered = 0, step = 1;
  for (const auto& piece : p.pieces) {
    covered += box_elements(piece.to);
    for (const auto s : piece.step) step = std::max({step, s, -s});
  }
  source->times = static_cast<double>(covered) / static_cast<double>(p.shape.elements());
  source->temporary_bytes = [files, step,
                             width = static_cast<std::int64_t>(itemsize(dtype))](const Shape& box) {
    std::int64_t bytes = 0;
    for (const auto& file : files) bytes = std::max(bytes, reading_bytes(file, box));
    return bytes + step * box.elements() * width;
  };
  source->read = [p, files, dtype, has_gaps = covered < p.shape.elements()](const std::string& call,
                                                                            const Box& box, std::byte* out) {
    if (has_gaps) {
      std::byte element[16] = {};
      write_scalar(p.fill, dtype, element);
      kernels::fill(out, element, itemsize(dtype), box_elements(box));
    }
    for (const auto& piece : p.pieces)
      read_piece(piece, files[static_cast<std::size_t>(piece.source)], call, box, out);
  };
  return source;
}

// ---- other dims ----

// Reads the elements [start, stop), in row-major order, of the part of the array whose first dims are fixed.
void read_range(const FileParams& file, const std::string& call, Box fixed, Range range, std::byte* out) {
  if (range.size() <= 0) return;
  const std::size_t d = fixed.size();
  const auto item = static_cast<std::int64_t>(itemsize(file.dtype));
  std::int64_t inner = 1;
  for (std::size_t e = d + 1; e < file.count.size(); ++e) inner *= file.count[e];
  const auto row = range.start / inner;
  const auto head = std::min(range.stop, (row + 1) * inner);
  if (inner > 1 && (range.start % inner != 0 || range.size() < inner)) {  // a part of one row
    fixed.push_back({row, row + 1});
    read_range(file, call, fixed, {range.start - row * inner, head - row * inner}, out);
    fixed.pop_back();
    return read_range(file, call, fixed, {head, range.stop}, out + (head - range.start) * item);
  }
  const auto rows = range.size() / inner;
  Box box = fixed;
  box.push_back({row, row + rows});
  for (std::size_t e = d + 1; e < file.count.size(); ++e) box.push_back({0, file.count[e]});
  read_file(file, call, box, out);
  read_range(file, call, std::move(fixed), {range.start + rows * inner, range.stop},
             out + rows * inner * item);
}

// Calls visit(first element, count) for the runs of a box in row-major order.
template <class Visit> void for_each_run(const Shape& shape, const Box& box, Visit&& visit) {
  const auto strides = row_major_strides(shape);
  std::size_t d = box.size();
  std::int64_t run = 1;
  for (bool is_whole = true; d > 0 && is_whole;) {
    --d;
    run *= box[d].size(), is_whole = box[d].size() == shape[d];
  }
  std::vector<std::int64_t> at;
  for (const auto& range : box) at.push_back(range.start);
  while (true) {
    std::int64_t first = 0;
    for (std::size_t e = 0; e < at.size(); ++e) first += at[e] * strides[e];
    visit(first, run);
    std::size_t e = d;
    while (e > 0 && at[e - 1] + 1 == box[e - 1].stop) at[e - 1] = box[e - 1].start, --e;
    if (e == 0) return;
    ++at[e - 1];
  }
}

FileSourcePtr reshaped_source(const FileParams& file, const Shape& shape) {
  auto source = std::make_shared<FileSource>();
  source->path = file.path, source->name = file.name;
  source->info = {shape, file.dtype, "elements of a file"};
  source->temporary_bytes = [file](const Shape& box) {
    Shape rows(file.count);
    std::int64_t inner = 1;
    for (std::size_t e = 1; e < rows.size(); ++e) inner *= rows[e];
    rows[0] = std::min(rows[0], box.elements() / std::max<std::int64_t>(1, inner) + 1);
    return reading_bytes(file, rows);
  };
  source->read = [file, shape](const std::string& call, const Box& box, std::byte* out) {
    for_each_run(shape, box, [&](std::int64_t first, std::int64_t count) {
      read_range(file, call, {}, {first, first + count}, out);
      out += count * static_cast<std::int64_t>(itemsize(file.dtype));
    });
  };
  return source;
}

}  // namespace

bool is_slice(const RemapParams& p) {
  if (p.pieces.size() != 1) return false;
  const auto& piece = p.pieces[0];
  return piece.to == whole_box(p.shape) &&
         std::all_of(piece.step.begin(), piece.step.end(), [](auto s) { return s > 0; });
}

Array record_source(FileSourcePtr source, FileNumbers& numbers) {
  FileParams p;
  p.path = source->path, p.name = source->name, p.dtype = source->info.dtype;
  p.opening = numbers.take();
  p.count = source->info.shape.vector();
  p.start.assign(p.count.size(), 0), p.step.assign(p.count.size(), 1);
  p.source = std::move(source);
  return record_file(std::move(p));
}

std::optional<Array> as_file(const Node& node, const std::vector<Array>& inputs, FileNumbers& numbers) {
  if (inputs.empty() || !is_file(*inputs[0].node())) return std::nullopt;
  const OnBehalfOf call(node.called());
  if (!std::all_of(inputs.begin(), inputs.end(), [](const Array& x) { return is_file(*x.node()); }))
    return std::nullopt;
  const Shape& shape = node.outputs[0].type.shape;
  if (node.op->name == "remap") {
    const auto& p = node.params->as<RemapParams>();
    if (p.layout || p.pieces.empty() || shape.elements() == 0) return std::nullopt;
    if (is_slice(p))
      return record_file(slice_of(file_of(inputs[static_cast<std::size_t>(p.pieces[0].source)]), p));
    std::vector<FileParams> files;
    for (const auto& x : inputs) files.push_back(file_of(x));
    return record_source(joined_source(p, files), numbers);
  }
  if (node.op->name == "reshape" && shape.ndim() > 0 && inputs[0].ndim() > 0 && shape.elements() > 0)
    return record_source(reshaped_source(file_of(inputs[0]), shape), numbers);
  return std::nullopt;
}

}  // namespace tessera::stream
