#include "stream/spill/long_lines.hpp"

#include <tessera/array/index.hpp>
#include <tessera/device.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <cmath>
#include <complex>

#include "ops/build.hpp"
#include "ops/fourier/twiddle.hpp"

namespace tessera::stream {
namespace {

using kernels::FftKind;
using kernels::FftSign;

FftSign opposite(FftSign sign) { return sign == FftSign::forward ? FftSign::backward : FftSign::forward; }
Array places(std::int64_t count) { return cast_to(arange(count), int64); }

// The rows and columns of a matrix whose elements are those of a line.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::int64_t elements() const { return rows * columns; }
};

// The transform of a line of N = R C elements as a matrix of R rows (Bailey, 1990); w(n) = exp(-+ 2 pi i/n).
//
//   y[k, c] = sum over r of x[C r + c] w(R)^(r k)
//   result[k + R l] = z[k, l] = sum over c of w(N)^(k c) y[k, c] w(C)^(c l)
class LineTransform {
 public:
  LineTransform(const FftParams& p, const Matrix& m) : step_(p), m_(m) {
    step_.kind = FftKind::c2c, step_.length = 0, step_.out_sharding = fft::OutSharding::keep;
    step_.given.reset();
  }
  // x (R, C) -> z
  Array forth(const Array& x) const { return along(1, 1, turned(along(0, step_.scale, x))); }
  // The same sums from z to x (R, C).
  Array back(const Array& z) const { return along(0, step_.scale, turned(along(1, 1, z))); }

 private:
  Array along(int dim, double scale, const Array& x) const {
    FftParams p = step_;
    p.dims = {dim}, p.scale = scale;
    return record_fft(x, p);
  }
  Array turned(const Array& y) const {
    return record_fft_turn(y, places(m_.rows), places(m_.columns), m_.elements(), step_.sign);
  }
  FftParams step_;
  Matrix m_;
};

// Numbers that are computed where a file would be read: make()(i) at each index of a line, or of the matrix
// of its elements.
template <class R, class Make>
Array computed(const Shape& shape, std::int64_t temporary_bytes, Make make, FileNumbers& numbers) {
  auto source = std::make_shared<FileSource>();
  source->path = "factors of a transform", source->info = {shape, dtype_of<std::complex<R>>(), "computed"};
  source->times = 0;
  source->temporary_bytes = [temporary_bytes](const Shape&) { return temporary_bytes; };
  source->read = [width = shape.back(), make](const std::string&, const Box& box, std::byte* out) {
    const auto value = make();
    auto* to = reinterpret_cast<std::complex<R>*>(out);
    const Range rows = box.size() == 1 ? Range{0, 1} : box[0], columns = box.back();
    for (auto r = rows.start; r < rows.stop; ++r)
      for (auto c = columns.start; c < columns.stop; ++c) *to++ = value(r * width + c);
  };
  return record_source(std::move(source), numbers);
}

// How often an element of a line counts in the sums: of a real line's spectrum half is stored, and an element
// stands for its conjugate too, which has the same real part.
struct Weights {
  std::int64_t points, stored;
  bool is_halved;
  explicit Weights(const FftParams& p, std::int64_t given)
      : points(p.kind == FftKind::c2r ? p.length : given), stored(given), is_halved(p.kind == FftKind::c2r) {}
  double operator()(std::int64_t j) const {
    if (j >= stored) return 0;
    return !is_halved || j == 0 || 2 * j == points ? 1 : 2;
  }
};

// weight(j) exp(-+ i pi j^2 / n); `around`, if it is not 0, is the period of a line that has the same number
// at j and -j.
template <class R> class Chirp {
 public:
  Chirp(Weights weight, FftSign sign, std::int64_t around)
      : weight_(weight), around_(around), roots_(2 * weight.points, sign) {}
  std::complex<R> operator()(std::int64_t at) const {
    const auto j = around_ > 0 ? std::min(at, around_ - at) : at;
    if (j >= weight_.stored) return 0;
    return roots_.times_power(static_cast<R>(weight_(j)), square(j));
  }
  static std::int64_t bytes(std::int64_t n) {
    return static_cast<std::int64_t>(8 * std::sqrt(static_cast<double>(n)) * sizeof(std::complex<R>));
  }

 private:
  // j^2 modulo 2 n, without products above 2^63.
  std::int64_t square(std::int64_t j) const {
    const auto period = static_cast<unsigned __int128>(2 * weight_.points);
    return static_cast<std::int64_t>(static_cast<unsigned __int128>(j) * static_cast<unsigned __int128>(j) %
                                     period);
  }
  Weights weight_;
  std::int64_t around_;
  RootsOfUnity<R> roots_;
};

// The line with zeros behind it as a matrix. A conversion is done slab by slab.
Array in_matrix(const Array& given, const Matrix& m) {
  const bool is_converted = given.node()->op->name == "astype" && !given.node()->is_evaluated();
  const Array& x = is_converted ? given.node()->inputs[0] : given;
  return cast_to(reshape(record_fft_resize(x, {m.elements()}), {m.rows, m.columns}),
                 complex_dtype(given.dtype()));
}

// Few rows, since the parts of them that a slab of columns has are read one by one; none if no two factors
// of n are short enough.
Matrix factors_of(std::int64_t n, std::int64_t least, std::int64_t most) {
  std::int64_t rows = n;
  for (std::int64_t d = 2; d <= n / d; ++d)
    for (const auto factor : {d, n / d})
      if (n % d == 0 && factor >= least) rows = std::min(rows, factor);
  return rows > most || rows == n ? Matrix{} : Matrix{rows, n / rows};
}

template <class R>
Array by_factors(const Array& given, const FftParams& p, const Matrix& m, FileNumbers& numbers) {
  Array x = in_matrix(given, m);
  const Weights weights(p, given.shape()[0]);
  if (weights.is_halved)
    x = x * computed<R>(
                x.shape(), 0, [weights] { return weights; }, numbers);
  const Array z = LineTransform(p, m).forth(x);
  const Array line = reshape(transpose(z), {m.elements()});
  return p.kind == FftKind::r2c ? line(slice(0, m.elements() / 2 + 1))
         : weights.is_halved    ? real(line)
                                : line;
}

// By a cyclic convolution of a length with good factors, m.elements() >= 2 n - 1 (Bluestein, 1970), whose
// spectra stay in the order z; q[j] = exp(-+ i pi j^2 / n).
//
//   result[k] = q[k] sum over j of (x[j] q[j]) / q[k - j]
template <class R>
Array by_convolution(const Array& given, const FftParams& p, const Matrix& m, FileNumbers& numbers) {
  const Weights weights(p, given.shape()[0]);
  const auto n = weights.points;
  Weights all = weights;
  all.stored = n, all.is_halved = false;
  const auto chirp = [&](const Shape& shape, const Weights& weight, FftSign sign, std::int64_t around) {
    return computed<R>(
        shape, Chirp<R>::bytes(n), [=] { return Chirp<R>(weight, sign, around); }, numbers);
  };
  const Shape matrix{m.rows, m.columns};
  FftParams step = p;
  step.scale = 1;
  const LineTransform forth(step, m);
  step.sign = opposite(p.sign), step.scale = p.scale / static_cast<double>(m.elements());
  const LineTransform back(step, m);
  const Array spectrum = forth.forth(in_matrix(given, m) * chirp(matrix, weights, p.sign, 0)),
              of_chirp = forth.forth(chirp(matrix, all, opposite(p.sign), m.elements()));
  const auto count = p.kind == FftKind::r2c ? n / 2 + 1 : n;
  const Array sums = reshape(back.back(spectrum * of_chirp), {m.elements()})(slice(0, count));
  const Array line = sums * chirp({count}, all, p.sign, 0);
  return weights.is_halved ? real(line) : line;
}

}  // namespace

std::optional<Array> long_line(const Array& x, const FftParams& p, std::int64_t room, FileNumbers& numbers) {
  constexpr std::int64_t copies = 4, lines_at_once = 16;  // of an operand that a transform takes; of rows
  const std::int64_t n = p.kind == FftKind::c2r ? p.length : x.shape()[0];
  const Dtype dtype = complex_dtype(x.dtype());
  const std::int64_t most = room / copies / static_cast<std::int64_t>(itemsize(dtype));
  if (n / device_count() < most) return std::nullopt;
  const auto least = [&](std::int64_t points) {
    return points / std::max<std::int64_t>(most / lines_at_once, 1) + 1;
  };
  if (const Matrix m = factors_of(n, least(n), most); m.rows > 0)
    return dtype == complex64 ? by_factors<float>(x, p, m, numbers) : by_factors<double>(x, p, m, numbers);
  const auto rows = fast_length(least(2 * n));
  const Matrix m{rows, fast_length((2 * n - 2) / rows + 1)};
  if (rows > most || m.columns < 2) return std::nullopt;
  return dtype == complex64 ? by_convolution<float>(x, p, m, numbers)
                            : by_convolution<double>(x, p, m, numbers);
}

}  // namespace tessera::stream
