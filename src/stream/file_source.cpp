#include "stream/file_source.hpp"

#include <algorithm>

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

}  // namespace

bool is_file(const Node& node) { return node.op == &file_op; }
Array record_file(FileParams params) { return record(file_op, make_params(std::move(params)), {}); }

void read_file(const FileParams& p, const std::string& call, const Box& box, std::byte* out) {
  if (is_empty(box)) return;
  const io::Selection part{p.start, p.step, p.count};
  const Box span = part.span_of(box);
  if (part.has_no_steps()) return p.source->read(call, span, out);
  const auto width = itemsize(p.dtype);
  const Buffer all = Buffer::allocate(static_cast<std::size_t>(box_elements(span)) * width);
  p.source->read(call, span, all.data());
  auto strides = row_major_strides(box_shape(span));
  for (std::size_t d = 0; d < strides.size(); ++d) strides[d] *= part.step[d];
  kernels::copy_strided(out, row_major_strides(box_shape(box)), all.data(), strides, box_shape(box), width);
}

std::int64_t reading_bytes(const FileParams& p, const Shape& box) {
  const io::Selection part{p.start, p.step, p.count};
  const Shape span = box_shape(part.span_of(whole_box(box)));
  const bool is_dense = part.has_no_steps();
  return p.source->temporary_bytes(span) +
         (is_dense ? 0 : span.elements() * static_cast<std::int64_t>(itemsize(p.dtype)));
}

double times_read(const FileParams& p, int dim, std::int64_t block) {
  constexpr double short_run = 32 << 10, page = 4096;  // as io::read_box has it, and the system
  const auto d = static_cast<std::size_t>(dim);
  const double length = static_cast<double>(std::max<std::int64_t>(1, block * p.step[d]));
  if (!p.source->chunks.empty()) return std::max(1.0, static_cast<double>(p.source->chunks[d]) / length);
  bool is_first = true;
  double run = static_cast<double>(itemsize(p.dtype)) * length;
  for (std::size_t e = 0; e < p.count.size(); ++e) {
    if (e < d) is_first = is_first && p.count[e] == 1;
    if (e > d) run *= static_cast<double>(p.source->info.shape[e]);
  }
  if (is_first || run >= short_run) return 1;
  // Gaps that are no longer are read with the runs.
  const double pitch = run / length * static_cast<double>(p.source->info.shape[d]);
  return std::max(1.0, pitch - run <= short_run ? pitch / run : (run + page) / run);
}

}  // namespace tessera::stream
