// A transform over several dims as passes over memory, each on pieces that fit into a cache: every plan is
// small, quickly measured, and shared by arrays of many shapes.
//
//   (n0, n1, n2), all three dims, for each i0:  n2 points of a few lines at a time                  chunks
//                                               n1 points of a few neighbouring columns at a time   columns,
//                                                 through a buffer
//                                 at the end:   n0 points likewise
#include "kernels/fourier/fft.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "kernels/fourier/fft_plans.hpp"
#include "kernels/threads.hpp"
#include "types/box.hpp"
#include "types/buffer.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t piece_bytes = 128 << 10;  // transformed together; measured on 256^3 and 128^3
constexpr std::int64_t least_run_bytes = 128;    // of neighbouring columns: two cache lines
constexpr std::int64_t gap_bytes =
    64;  // behind each row of a buffer: rows 4 KiB apart would push each other out of the cache

template <class R> void multiply(R* values, std::int64_t n, R factor) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}
void scale_reals(Dtype complex, void* data, std::int64_t reals, double scale) {
  if (scale == 1) return;
  if (complex == complex64)
    multiply(static_cast<float*>(data), reals, static_cast<float>(scale));
  else
    multiply(static_cast<double*>(data), reals, scale);
}

// Calls work(i) for i below n on this rank's threads. Exceptions are rethrown here.
template <class Work> void for_pieces(std::int64_t n, Work work) {
  if (threads() == 1 || n == 1) {
    for (std::int64_t i = 0; i < n; ++i) work(i);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for num_threads(threads()) schedule(dynamic)
  for (std::int64_t i = 0; i < n; ++i) {
    try {
      work(i);
    } catch (...) {
#pragma omp critical(tessera_fft_failure)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// Cuts the elements [begin, end) of a dense array into boxes: take(box, the box's distance from `begin`).
//
//   extents (4, 5), [3:14)      . . . 1 1
//                               2 2 2 2 2
//                               3 3 3 3 .
template <class Take>
void for_boxes(std::int64_t begin, std::int64_t end, const Shape& extents, Take&& take) {
  Index box(extents.size());
  // Splits [from, to) of dims d and above; the dims before d are fixed.
  const auto split = [&](const auto& self, std::size_t d, std::int64_t from, std::int64_t to,
                         std::int64_t distance) -> void {
    if (d == extents.size()) return take(box, distance);
    std::int64_t inner = 1;
    for (std::size_t i = d + 1; i < extents.size(); ++i) inner *= extents[i];
    while (from < to) {
      const auto row = from / inner, rest = from % inner;
      if (rest == 0 && to - from >= inner) {  // whole rows
        const auto rows = (to - from) / inner;
        box[d] = {row, row + rows};
        for (std::size_t i = d + 1; i < extents.size(); ++i) box[i] = {0, extents[i]};
        take(box, distance);
        from += rows * inner, distance += rows * inner;
        continue;
      }
      const auto stop = std::min(to, (row + 1) * inner);
      box[d] = {row, row + 1};
      self(self, d + 1, rest, rest + (stop - from), distance);
      distance += stop - from, from = stop;
    }
  };
  split(split, 0, begin, end, 0);
}

struct Pass {
  FftKind kind = FftKind::c2c;
  std::vector<int> dims;   // the halved dim last
  int first = 0;           // the least of dims: the pass works on regions of dims first and above
  bool is_chunked = true;  // several regions at a time; else one region by columns of one dim
};

class Passes {
 public:
  Passes(Dtype complex, FftKind kind, FftSign sign, std::span<const int> dims, const Shape& in,
         const Shape& out, double scale, FftPlanning planning)
      : complex_(complex),
        kind_(kind),
        sign_(sign),
        dims_(dims.begin(), dims.end()),
        in_(in),
        out_(out),
        scale_(scale),
        planning_(planning),
        item_(static_cast<std::int64_t>(itemsize(complex))) {
    const int halved = kind == FftKind::c2c ? -1 : dims.back();
    std::vector<int> todo(dims.begin(), dims.end());
    std::sort(todo.begin(), todo.end());
    if (kind == FftKind::c2r) std::erase(todo, halved);  // the last pass
    if (kind == FftKind::r2c && !fits_together(halved, todo.back()))
      add({halved}, kind), std::erase(todo, halved);
    while (!todo.empty()) {
      std::vector<int> together = {todo.back()};
      todo.pop_back();
      while (!todo.empty() && fits_together(todo.back(), together.back()))
        together.push_back(todo.back()), todo.pop_back();
      const auto at = std::find(together.begin(), together.end(), halved);
      const bool halves = at != together.end();
      if (halves) together.erase(at), together.push_back(halved);
      add(together, halves ? kind : FftKind::c2c);
    }
    if (kind == FftKind::c2r) add({halved}, kind);
  }

  void run(const std::byte* src, std::byte* dst) const {
    if (is_nested()) return regions(passes_.size() - 1, src, dst, outer_of(passes_.back()));
    Buffer between;
    std::byte* destination = dst;
    if (kind_ == FftKind::c2r && passes_.size() > 1) {  // the complex passes must not overwrite the operand
      between = Buffer::allocate(in_.elements() * item_);
      destination = between.data();
    }
    for (const auto& pass : passes_) {
      if (pass.kind == FftKind::c2r) destination = dst;
      apply(pass, memory(src), {destination}, outer_of(pass));
      src = destination;
    }
  }

  // A single pass goes from piece to piece; several passes go over one region at a time, in blocks that fit
  // the cache if possible.
  void run_between(const FftTile& src, const FftTile& dst) const {
    if (passes_.size() == 1) return apply(passes_[0], {nullptr, &src}, {nullptr, &dst}, outer_of(passes_[0]));
    const int first = std::min_element(passes_.begin(), passes_.end(), [](const Pass& a, const Pass& b) {
                        return a.first < b.first;
                      })->first;
    const Shape in(std::vector<std::int64_t>(in_.begin() + first, in_.end())),
        out(std::vector<std::int64_t>(out_.begin() + first, out_.end()));
    std::vector<int> dims(dims_);
    for (int& d : dims) d -= first;
    std::int64_t regions = 1;
    for (int d = 0; d < first; ++d) regions *= in_[d];
    const auto in_strides = row_major_strides(in_), out_strides = row_major_strides(out_);
    for_pieces(regions, [&](std::int64_t i) {
      const Buffer before = Buffer::allocate(in.elements() * item_ / (kind_ == FftKind::r2c ? 2 : 1));
      const Buffer after = kind_ == FftKind::c2c
                               ? before
                               : Buffer::allocate(out.elements() * item_ / (kind_ == FftKind::c2r ? 2 : 1));
      src.read(region_box(in_, first, i), before.data(), in_strides);
      Passes(complex_, kind_, sign_, dims, in, out, scale_, planning_).run(before.data(), after.data());
      dst.write(region_box(out_, first, i), after.data(), out_strides);
    });
  }

 private:
  // The regions that a pass reads or writes, from first_region on: contiguous in memory, or in a tile.
  struct LinePosition {
    std::byte* data = nullptr;
    const FftTile* tile = nullptr;
    std::int64_t first_region = 0;
    LinePosition from(std::int64_t region, std::int64_t region_bytes) const {
      return {data == nullptr ? nullptr : data + region * region_bytes, tile, first_region + region};
    }
  };
  static LinePosition memory(const std::byte* operand) {
    return {const_cast<std::byte*>(operand)};
  }  // plans do not change their operand
  static Index region_box(const Shape& shape, int first, std::int64_t region) {
    Index box = whole_box(shape);
    for (auto d = static_cast<std::size_t>(first); d-- > 0; region /= shape[d])
      box[d] = {region % shape[d], region % shape[d] + 1};
    return box;
  }

  bool is_nested() const {
    return kind_ != FftKind::c2r &&
           std::is_sorted(passes_.begin(), passes_.end(),
                          [](const Pass& a, const Pass& b) { return a.first > b.first; });
  }
  // The number of regions of the previous pass in one region of this pass.
  std::int64_t regions_within(std::size_t level) const {
    std::int64_t n = 1;
    for (int d = passes_[level].first; d < passes_[level - 1].first; ++d) n *= in_[d];
    return n;
  }
  // Whether the regions of dims `first` and above are small enough that one plan for the dims up to `last` is
  // best.
  bool fits_together(int first, int last) const {
    return first == last || region_elements(first, in_, out_) * item_ <= piece_bytes;
  }
  static std::int64_t region_elements(int first, const Shape& a, const Shape& b) {
    std::int64_t n = 1;
    for (auto d = static_cast<std::size_t>(first); d < a.size(); ++d) n *= std::max(a[d], b[d]);
    return n;
  }
  void add(const std::vector<int>& dims, FftKind kind) {
    Pass pass{kind, dims, *std::min_element(dims.begin(), dims.end()), true};
    pass.is_chunked =
        pass.first == in_.ndim() - 1 || region_elements(pass.first, in_, out_) * item_ <= piece_bytes;
    passes_.push_back(std::move(pass));
  }
  std::int64_t outer_of(const Pass& pass) const {
    std::int64_t n = 1;
    for (int d = 0; d < pass.first; ++d) n *= in_[d] == out_[d] ? in_[d] : shape_before(pass)[d];
    return n;
  }
  // The tile's shape before and after a pass: the halved dim changes its extent in the pass that halves.
  const Shape& shape_before(const Pass& p) const {
    return kind_ == FftKind::r2c && p.kind != FftKind::r2c ? out_ : in_;
  }
  const Shape& shape_after(const Pass& p) const {
    return kind_ == FftKind::c2r && p.kind != FftKind::c2r ? in_ : out_;
  }
  std::int64_t item_before(const Pass& p) const { return p.kind == FftKind::r2c ? item_ / 2 : item_; }
  std::int64_t item_after(const Pass& p) const { return p.kind == FftKind::c2r ? item_ / 2 : item_; }
  static std::int64_t elements_from(int dim, const Shape& shape) {
    return region_elements(dim, shape, shape);
  }
  double scale_of(const Pass& pass) const { return &pass == &passes_.back() ? scale_ : 1; }

  // Runs passes 0 to `level` on `count` regions, all passes of a region while it is in the cache.
  void regions(std::size_t level, const std::byte* src, std::byte* dst, std::int64_t count) const {
    const Pass& pass = passes_[level];
    if (level == 0) return apply(pass, memory(src), {dst}, count);
    const auto bytes_in = elements_from(pass.first, in_) * item_before(passes_[0]),
               bytes_out = elements_from(pass.first, out_) * item_;
    for_pieces(count, [&](std::int64_t i) {
      regions(level - 1, src + i * bytes_in, dst + i * bytes_out, regions_within(level));
      apply(pass, {dst + i * bytes_out}, {dst + i * bytes_out}, 1);
    });
  }

  void apply(const Pass& pass, LinePosition src, LinePosition dst, std::int64_t count) const {
    if (pass.is_chunked) return chunks(pass, src, dst, count);
    const auto bytes_in = elements_from(pass.first, shape_before(pass)) * item_before(pass),
               bytes_out = elements_from(pass.first, shape_after(pass)) * item_after(pass);
    for_pieces(count, [&](std::int64_t i) { columns(pass, src.from(i, bytes_in), dst.from(i, bytes_out)); });
  }

  // Transforms whole regions, as many at a time as fit into a piece.
  void chunks(const Pass& pass, LinePosition src, LinePosition dst, std::int64_t count) const {
    const Shape &before = shape_before(pass), &after = shape_after(pass);
    const auto size_before = elements_from(pass.first, before), size_after = elements_from(pass.first, after);
    FftJob job{pass.kind, sign_, {}, {}, planning_};
    const auto in_strides = row_major_strides(before), out_strides = row_major_strides(after);
    const auto loop_of = [&](int dim) {
      const auto d = static_cast<std::size_t>(dim);
      return FftLoop{std::max(before[d], after[d]), in_strides[d], out_strides[d]};
    };
    for (const int d : pass.dims) job.points.push_back(loop_of(d));
    for (int d = pass.first; d < before.ndim(); ++d)
      if (std::find(pass.dims.begin(), pass.dims.end(), d) == pass.dims.end() && before[d] > 1)
        job.batch.push_back(loop_of(d));
    const auto bytes_before = size_before * item_before(pass), bytes_after = size_after * item_after(pass);
    auto per_piece = std::clamp<std::int64_t>(piece_bytes / std::max(bytes_before, bytes_after), 1, count);
    if (per_piece > 1) per_piece -= per_piece % 2;  // all pieces have the same alignment
    const auto pieces = (count + per_piece - 1) / per_piece;
    for_pieces(pieces, [&](std::int64_t piece) {
      const auto begin = piece * per_piece, n = std::min(per_piece, count - begin);
      FftJob mine = job;
      if (n > 1) mine.batch.insert(mine.batch.begin(), {n, size_before, size_after});
      Buffer read, written;
      std::byte *from = src.from(begin, bytes_before).data, *to = dst.from(begin, bytes_after).data;
      if (src.tile != nullptr) {
        read = Buffer::allocate(n * bytes_before), from = read.data();
        const auto start = (src.first_region + begin) * size_before;
        for_boxes(start, start + n * size_before, before, [&](const Index& box, std::int64_t offset) {
          src.tile->read(box, from + offset * item_before(pass), in_strides);
        });
      }
      if (dst.tile != nullptr) written = Buffer::allocate(n * bytes_after), to = written.data();
      run_fft_plan(complex_, mine, from, to, n == per_piece ? pieces : 1);
      scale_reals(complex_, to, n * size_after * (pass.kind == FftKind::c2r ? 1 : 2), scale_of(pass));
      if (dst.tile == nullptr) return;
      const auto start = (dst.first_region + begin) * size_after;
      for_boxes(start, start + n * size_after, after, [&](const Index& box, std::int64_t offset) {
        dst.tile->write(box, to + offset * item_after(pass), out_strides);
      });
    });
  }

  // Transforms one region that is too large for a piece: neighbouring columns are copied into a buffer,
  // transformed there, and copied to the destination.
  void columns(const Pass& pass, LinePosition src, LinePosition dst) const {
    const auto d = static_cast<std::size_t>(pass.first);
    const auto n_before = shape_before(pass)[d], n_after = shape_after(pass)[d],
               n = std::max(n_before, n_after);
    const auto inner = elements_from(pass.first + 1, shape_before(pass));
    const auto item_in = item_before(pass), item_out = item_after(pass);
    const auto width =
        std::clamp<std::int64_t>(piece_bytes / (n * item_), std::min(inner, least_run_bytes / item_), inner);
    const auto blocks = (inner + width - 1) / width;
    for_pieces(blocks, [&](std::int64_t block) {
      const auto begin = block * width, w = std::min(width, inner - begin);
      const auto row_in = static_cast<std::size_t>(w * item_in),
                 row_out = static_cast<std::size_t>(w * item_out);
      const auto pitch_in = w + gap_bytes / item_in, pitch_out = w + gap_bytes / item_out;
      const Buffer gathered = Buffer::allocate(n_before * pitch_in * item_in),
                   done = Buffer::allocate(n_after * pitch_out * item_out);
      if (src.tile != nullptr)
        for_column_boxes(shape_before(pass), pass.first, src.first_region, begin, begin + w, pitch_in,
                         [&](auto&& box, auto offset, auto&& strides) {
                           src.tile->read(box, gathered.data() + offset * item_in, strides);
                         });
      else
        for (std::int64_t j = 0; j < n_before; ++j)
          std::memcpy(gathered.data() + j * pitch_in * item_in, src.data + (begin + j * inner) * item_in,
                      row_in);
      run_fft_plan(complex_, {pass.kind, sign_, {{n, pitch_in, pitch_out}}, {{w, 1, 1}}, planning_},
                   gathered.data(), done.data(), w == width ? blocks : 1);
      scale_reals(complex_, done.data(), n_after * pitch_out * (pass.kind == FftKind::c2r ? 1 : 2),
                  scale_of(pass));
      if (dst.tile != nullptr)
        for_column_boxes(shape_after(pass), pass.first, dst.first_region, begin, begin + w, pitch_out,
                         [&](auto&& box, auto offset, auto&& strides) {
                           dst.tile->write(box, done.data() + offset * item_out, strides);
                         });
      else
        for (std::int64_t j = 0; j < n_after; ++j)
          std::memcpy(dst.data + (begin + j * inner) * item_out, done.data() + j * pitch_out * item_out,
                      row_out);
    });
  }

  // Columns [begin, end) of one region, in a buffer with rows `pitch` apart: use(box, its offset in the
  // buffer, its strides there).
  template <class Use> static void for_column_boxes(const Shape& shape, int first, std::int64_t region,
                                                    std::int64_t begin, std::int64_t end, std::int64_t pitch,
                                                    Use&& use) {
    Index box = region_box(shape, first, region);
    auto strides = row_major_strides(shape);
    strides[first] = pitch;
    const Shape inner(std::vector<std::int64_t>(shape.begin() + first + 1, shape.end()));
    for_boxes(begin, end, inner, [&](const Index& part, std::int64_t offset) {
      std::copy(part.begin(), part.end(), box.begin() + first + 1);
      use(box, offset, strides);
    });
  }

  Dtype complex_;
  FftKind kind_;
  FftSign sign_;
  std::vector<int> dims_;
  const Shape &in_, &out_;
  double scale_;
  FftPlanning planning_;
  std::int64_t item_;
  std::vector<Pass> passes_;
};

}  // namespace

void fft_dense(Dtype complex, FftKind kind, FftSign sign, std::span<const int> dims, const Shape& in,
               const Shape& out, const void* src, void* dst, double scale, FftPlanning planning) {
  if (in.elements() == 0 || out.elements() == 0) return;
  Passes(complex, kind, sign, dims, in, out, scale, planning)
      .run(static_cast<const std::byte*>(src), static_cast<std::byte*>(dst));
}

void fft_between(Dtype complex, FftKind kind, FftSign sign, std::span<const int> dims, const Shape& in,
                 const Shape& out, const FftTile& src, const FftTile& dst, double scale) {
  if (in.elements() == 0 || out.elements() == 0) return;
  Passes(complex, kind, sign, dims, in, out, scale, FftPlanning::measured).run_between(src, dst);
}

void fft_lines(Dtype complex, FftSign sign, std::int64_t lines, std::int64_t n, void* data,
               FftPlanning planning) {
  if (lines == 0 || n <= 1) return;
  const int dims[] = {1};
  const Shape shape{lines, n};
  fft_dense(complex, FftKind::c2c, sign, dims, shape, shape, data, data, 1, planning);
}

}  // namespace tessera::kernels
