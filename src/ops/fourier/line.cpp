#include "ops/fourier/line.hpp"

#include <algorithm>
#include <complex>
#include <optional>

#include "comm/collectives/collectives.hpp"
#include "kernels/move/copy.hpp"
#include "mesh/axes.hpp"
#include "ops/fourier/line_plan.hpp"
#include "ops/fourier/twiddle.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

using kernels::FftKind;
using kernels::FftSign;

// One rank's part of a transform along a line. The batch is (outer, inner) around the line; in the matrix
// layouts it comes first:
//   natural (outer, points of my block, inner)    columns (outer, inner, my columns, r)
//   rows (outer, inner, my rows, m)
template <class R> class Line {
 public:
  using Complex = std::complex<R>;

  Line(const CommunicationArgs& args, const LineParams& p)
      : args_(args), p_(p), in_(args.local.in[0]), out_(args.local.out[0]), dim_(p.dim), sign_(p.sign) {
    const auto axes = args.in_layouts[0].dim_axes(in_.global.ndim())[dim_];
    ids_ = group_along(args.mesh, axes, args.me);
    me_ = static_cast<int>(std::find(ids_.begin(), ids_.end(), args.me) - ids_.begin());
    const Shape shape = in_.shape();
    for (std::size_t d = 0; d < shape.size(); ++d)
      (d < dim_ ? outer_ : d > dim_ ? inner_ : ignored_) *= shape[d];
    plan_ = plan_line(p, in_.global[dim_], outer_ * inner_, static_cast<int>(ids_.size()), sizeof(Complex));
    if (plan_.method == LineMethod::chirp) chirp_roots_.emplace(2 * plan_.points, sign_);
  }

  void run() {
    if (plan_.batch == 0) return;
    if (plan_.method == LineMethod::collect) return collect();
    Buffer prepared;
    const Complex* natural = prepare(prepared);
    Buffer columns = matrix(plan_.my_columns(me_).size() * plan_.rows);
    if (padded() > plan_.in_points)
      std::fill_n(as(columns), batch() * plan_.my_columns(me_).size() * plan_.rows, Complex(0));
    exchange(
        natural, as(columns), [&](int s, int q) { return to_columns(s, q); },
        natural_strides(plan_.in_block(me_), plan_.columns), column_strides());
    prepared.reset();
    Buffer rows = columns_to_rows(columns, sign_, batch());
    if (plan_.method == LineMethod::six_steps) return finish_six_steps(rows);
    // Bluestein: multiply by the transform of the chirp, then transform back.
    multiply_by_chirp_spectrum(as(rows));
    fft_lines(rows, batch() * plan_.my_rows(me_).size(), plan_.columns, backward());
    exchange(
        as(rows), as(columns),
        [&](int s, int q) {
          return Patches{{plan_.my_rows(s), plan_.my_columns(q)}};
        },
        row_strides(), column_strides());
    rows.reset();
    twiddle(as(columns), backward(), batch());
    fft_lines(columns, batch() * plan_.my_columns(me_).size(), plan_.rows, backward());
    natural_result(
        as(columns), [&](int s, int q) { return from_columns(s, q); }, column_strides(),
        natural_strides(plan_.out_block(me_), plan_.columns), p_.scale / static_cast<double>(padded()));
  }

 private:
  using Patches = std::vector<Patch>;
  // The offset of matrix element (row, column) of line (o, i) in a layout: where.o * o + where.i * i + ...
  struct Strides {
    std::int64_t o, i, row, column, origin;  // origin: the offset that element (0, 0) would have
  };

  std::int64_t batch() const { return plan_.batch; }
  std::int64_t padded() const { return plan_.rows * plan_.columns; }
  FftSign backward() const { return sign_ == FftSign::forward ? FftSign::backward : FftSign::forward; }
  static Complex* as(Buffer& b) { return reinterpret_cast<Complex*>(b.data()); }
  Buffer matrix(std::int64_t elements_per_line) const {
    return Buffer::allocate((batch() * elements_per_line) * sizeof(Complex));
  }

  Strides natural_strides(Range block, std::int64_t width) const {
    return {block.size() * inner_, 1, width * inner_, inner_, -block.start * inner_};
  }
  Strides column_strides() const {
    const auto mine = plan_.my_columns(me_);
    return {inner_ * mine.size() * plan_.rows, mine.size() * plan_.rows, 1, plan_.rows,
            -mine.start * plan_.rows};
  }
  Strides row_strides() const {  // strides of element (k1, j2)
    const auto mine = plan_.my_rows(me_);
    return {inner_ * mine.size() * plan_.columns, mine.size() * plan_.columns, plan_.columns, 1,
            -mine.start * plan_.columns};
  }

  Patches to_columns(int s, int q) const {
    return patches(plan_.in_block(s), plan_.columns, plan_.my_columns(q));
  }
  Patches from_columns(int s, int q) const {
    return patches(plan_.out_block(q), plan_.columns, plan_.my_columns(s));
  }
  // X[k1 + r * k2]: written row by row, the result is a matrix of r columns, (k2, k1).
  Patches from_rows(int s, int q) const { return patches(plan_.out_block(q), plan_.rows, plan_.my_rows(s)); }

  // Sends the patches of (me, q) to every q and receives those of (s, me), between two layouts of this rank.
  template <class PatchesOf> void exchange(const Complex* from, Complex* to, PatchesOf patches_of,
                                           Strides from_at, Strides to_at, std::int64_t lines = 0) const {
    if (lines == 0) lines = batch();
    const std::int64_t n_inner = lines == 1 ? 1 : inner_, n_outer = lines / n_inner;
    const auto elements = [&](const Patches& list) {
      std::int64_t sum = 0;
      for (const auto& p : list) sum += p.elements();
      return sum * lines;
    };
    const auto extents_of = [&](const Patch& p) {
      return Shape{n_outer, p.rows.size(), p.columns.size(), n_inner};
    };
    const auto strides_of = [](const Strides& s) {
      return std::vector<std::int64_t>{s.o, s.row, s.column, s.i};
    };
    const auto offset_of = [](const Strides& s, const Patch& p) {
      return s.origin + p.rows.start * s.row + p.columns.start * s.column;
    };
    std::vector<comm::Message> sends, receives;
    std::vector<Buffer> held;
    std::vector<int> sources;
    for (std::size_t r = 0; r < ids_.size(); ++r) {
      const int peer = static_cast<int>(r);
      if (peer == me_) continue;
      if (const auto n = elements(patches_of(peer, me_)); n > 0) {
        held.push_back(Buffer::allocate(n * sizeof(Complex)));
        receives.push_back({ids_[r], held.back().data(), n * static_cast<std::int64_t>(sizeof(Complex))});
        sources.push_back(peer);
      }
      const auto outgoing = patches_of(me_, peer);
      if (const auto n = elements(outgoing); n > 0) {
        held.push_back(Buffer::allocate(n * sizeof(Complex)));
        auto* cursor = as(held.back());
        for (const auto& p : outgoing) {
          const auto extents = extents_of(p);
          kernels::copy_strided(reinterpret_cast<std::byte*>(cursor), row_major_strides(extents),
                                reinterpret_cast<const std::byte*>(from + offset_of(from_at, p)),
                                strides_of(from_at), extents, sizeof(Complex));
          cursor += extents.elements();
        }
        sends.push_back({ids_[r], held.back().data(), n * static_cast<std::int64_t>(sizeof(Complex))});
      }
    }
    for (const auto& p : patches_of(me_, me_))
      kernels::copy_strided(reinterpret_cast<std::byte*>(to + offset_of(to_at, p)), strides_of(to_at),
                            reinterpret_cast<const std::byte*>(from + offset_of(from_at, p)),
                            strides_of(from_at), extents_of(p), sizeof(Complex));
    const auto unpack = [&](std::size_t n) {
      const auto* cursor = reinterpret_cast<const Complex*>(receives[n].data);
      for (const auto& p : patches_of(sources[n], me_)) {
        const auto extents = extents_of(p);
        kernels::copy_strided(reinterpret_cast<std::byte*>(to + offset_of(to_at, p)), strides_of(to_at),
                              reinterpret_cast<const std::byte*>(cursor), row_major_strides(extents), extents,
                              sizeof(Complex));
        cursor += extents.elements();
      }
    };
    comm::exchange(comm::world(), sends, receives, unpack, args_.label.c_str());
  }

  void fft_lines(Buffer& data, std::int64_t lines, std::int64_t n, FftSign sign) const {
    kernels::fft_lines(dtype_of<Complex>(), sign, lines, n, data.data(), p_.planning);
  }

  // Transforms the columns and moves them to rows, without transforming those; `columns` keeps its memory.
  Buffer columns_to_rows(Buffer& columns, FftSign sign, std::int64_t lines) const {
    fft_lines(columns, lines * plan_.my_columns(me_).size(), plan_.rows, sign);
    twiddle(as(columns), sign, lines);
    Buffer rows = Buffer::allocate((lines * plan_.my_rows(me_).size() * plan_.columns) * sizeof(Complex));
    exchange(
        as(columns), as(rows),
        [&](int s, int q) {
          return Patches{{plan_.my_rows(q), plan_.my_columns(s)}};
        },
        column_strides(), row_strides(), lines);
    fft_lines(rows, lines * plan_.my_rows(me_).size(), plan_.columns, sign);
    return rows;
  }

  void twiddle(Complex* columns, FftSign sign, std::int64_t lines) const {
    const RootsOfUnity<R> roots(padded(), sign);
    const auto mine = plan_.my_columns(me_);
    for (std::int64_t line = 0; line < lines; ++line)
      for (auto j2 = mine.start; j2 < mine.stop; ++j2, columns += plan_.rows)
        roots.multiply_by_powers(columns, plan_.rows, j2);
  }

  // exp(-+ i pi n^2 / N), n < N
  Complex chirp(std::int64_t n) const {
    const auto turns_of = [&](auto m) {
      return static_cast<std::int64_t>(m * m % static_cast<decltype(m)>(2 * plan_.points));
    };
    const auto turns = plan_.points <= std::int64_t{1} << 32 ? turns_of(static_cast<std::uint64_t>(n))
                                                             : turns_of(static_cast<unsigned __int128>(n));
    return Complex(chirp_roots_->times_power(1, turns));
  }

  // My block as complex numbers: converts a real or halved operand and multiplies by the chirp.
  //   c2r: x[j] = Re sum_k c_k X[k] exp(2 pi i j k / N) over the halved range, c_k = 2 except at the ends,
  //     where it is 1
  const Complex* prepare(Buffer& prepared) const {
    if (p_.kind == FftKind::c2c && plan_.method == LineMethod::six_steps) return in_.as<Complex>();
    const auto block = plan_.in_block(me_);
    prepared = matrix(block.size());
    Complex* to = as(prepared);
    std::int64_t at = 0;
    for (std::int64_t o = 0; o < outer_; ++o)
      for (auto n = block.start; n < block.stop; ++n) {
        Complex factor = plan_.method == LineMethod::chirp ? chirp(n) : Complex(1);
        if (p_.kind == FftKind::c2r && n != 0 && 2 * n != plan_.points) factor *= R(2);
        for (std::int64_t i = 0; i < inner_; ++i, ++at)
          to[at] = factor * (p_.kind == FftKind::r2c ? Complex(in_.as<R>()[at]) : in_.as<Complex>()[at]);
      }
    return to;
  }

  void finish_six_steps(Buffer& rows) const {
    // Element (k2, k1) of the result's matrix is element (k1, k2) of mine.
    auto at = row_strides();
    std::swap(at.row, at.column);
    natural_result(
        as(rows), [&](int s, int q) { return from_rows(s, q); }, at,
        natural_strides(plan_.out_block(me_), plan_.rows), p_.scale);
  }

  template <class PatchesOf> void natural_result(const Complex* from, PatchesOf patches_of, Strides from_at,
                                                 Strides to_at, double scale) const {
    const auto block = plan_.out_block(me_);
    Buffer complex_block;
    Complex* to = out_.as<Complex>();
    if (p_.kind == FftKind::c2r) complex_block = matrix(block.size()), to = as(complex_block);
    exchange(from, to, patches_of, from_at, to_at);
    if (p_.kind != FftKind::c2r && plan_.method == LineMethod::six_steps && scale == 1) return;
    std::int64_t at = 0;
    for (std::int64_t o = 0; o < outer_; ++o)
      for (auto k = block.start; k < block.stop; ++k) {
        const Complex factor =
            (plan_.method == LineMethod::chirp ? chirp(k) : Complex(1)) * static_cast<R>(scale);
        if (p_.kind == FftKind::c2r)
          for (std::int64_t i = 0; i < inner_; ++i, ++at) out_.as<R>()[at] = (factor * to[at]).real();
        else
          for (std::int64_t i = 0; i < inner_; ++i, ++at) to[at] *= factor;
      }
  }

  void multiply_by_chirp_spectrum(Complex* rows) const {
    const auto mine = plan_.my_columns(me_);
    Buffer columns = Buffer::allocate((mine.size() * plan_.rows) * sizeof(Complex));
    for (auto j2 = mine.start; j2 < mine.stop; ++j2)
      for (std::int64_t j1 = 0; j1 < plan_.rows; ++j1) {
        const auto n = j1 * plan_.columns + j2, distance = std::min(n, padded() - n);
        as(columns)[(j2 - mine.start) * plan_.rows + j1] =
            distance < plan_.points ? std::conj(chirp(distance)) : Complex(0);
      }
    Buffer spectrum = columns_to_rows(columns, sign_, 1);
    const auto n = plan_.my_rows(me_).size() * plan_.columns;
    for (std::int64_t line = 0; line < batch(); ++line, rows += n)
      for (std::int64_t i = 0; i < n; ++i) rows[i] *= as(spectrum)[i];
  }

  // For a few KiB: gathers everything on the first rank, transforms it there, and scatters the result.
  void collect() const {
    const bool root = me_ == 0;
    const auto in_shape = [&](std::int64_t n) { return Shape{outer_, n, inner_}; };
    const auto item_in = itemsize(in_.dtype), item_out = itemsize(out_.dtype);
    Buffer whole_in =
        Buffer::allocate(root ? static_cast<std::size_t>(batch() * plan_.in_points) * item_in : 0);
    Buffer whole_out =
        Buffer::allocate(root ? static_cast<std::size_t>(batch() * plan_.out_points) * item_out : 0);
    move_blocks(in_.data, whole_in.data(), plan_.in_points, item_in, true);
    if (root)
      kernels::fft_dense(dtype_of<Complex>(), p_.kind, p_.sign, std::vector<int>{1},
                         in_shape(plan_.in_points), in_shape(plan_.out_points), whole_in.data(),
                         whole_out.data(), p_.scale, p_.planning);
    move_blocks(out_.data, whole_out.data(), plan_.out_points, item_out, false);
  }

  void move_blocks(std::byte* mine, std::byte* whole, std::int64_t points, std::size_t item,
                   bool to_root) const {
    const auto block_of = [&](int r) { return block_range(points, plan_.ranks, r); };
    const auto bytes_of = [&](int r) {
      return block_of(r).size() * batch() * static_cast<std::int64_t>(item);
    };
    const auto copy_block = [&](int r, std::byte* block) {
      const Shape extents{outer_, block_of(r).size(), inner_};
      const std::vector<std::int64_t> in_whole = {points * inner_, inner_, 1},
                                      dense = row_major_strides(extents);
      std::byte* place = whole + block_of(r).start * inner_ * static_cast<std::int64_t>(item);
      to_root ? kernels::copy_strided(place, in_whole, block, dense, extents, item)
              : kernels::copy_strided(block, dense, place, in_whole, extents, item);
    };
    std::vector<comm::Message> outer_messages, root_messages;
    std::vector<Buffer> held;
    if (me_ != 0 && bytes_of(me_) > 0) outer_messages.push_back({ids_[0], mine, bytes_of(me_)});
    std::vector<int> ranks;
    if (me_ == 0) {
      copy_block(0, mine);
      for (int r = 1; r < plan_.ranks; ++r) {
        if (bytes_of(r) == 0) continue;
        held.push_back(Buffer::allocate(bytes_of(r)));
        if (!to_root) copy_block(r, held.back().data());
        root_messages.push_back({ids_[r], held.back().data(), bytes_of(r)});
        ranks.push_back(r);
      }
    }
    const auto arrived = [&](std::size_t n) {
      if (me_ == 0) copy_block(ranks[n], root_messages[n].data);
    };
    const auto& sends = to_root ? outer_messages : root_messages;
    const auto& receives = to_root ? root_messages : outer_messages;
    comm::exchange(comm::world(), sends, receives, arrived, args_.label.c_str());
  }

  const CommunicationArgs& args_;
  const LineParams& p_;
  Tile in_, out_;
  std::size_t dim_;
  FftSign sign_;
  std::vector<int> ids_;
  int me_ = 0;
  std::int64_t outer_ = 1, inner_ = 1, ignored_ = 1;
  LinePlan plan_;
  std::optional<RootsOfUnity<double>> chirp_roots_;
};

void communicate(const CommunicationArgs& args) {
  const auto& p = args.local.params.as<LineParams>();
  if (complex_dtype(args.local.in[0].dtype) == complex64)
    Line<float>(args, p).run();
  else
    Line<double>(args, p).run();
}

}  // namespace

const OpDef fft_line_op{
    .name = "fft_line",
    .runs = Communicating{communicate},
    .flops = [](std::span<const Type>, std::span<const Type>,
                const Params& params) { return params.as<LineParams>().flops; },
};

}  // namespace tessera
