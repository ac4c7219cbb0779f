// The factors between the two steps in which a line too long for memory is transformed as a matrix.
#include "ops/build.hpp"
#include "ops/fourier/fft_op.hpp"
#include "ops/fourier/twiddle.hpp"

namespace tessera {
namespace {

struct TurnParams {
  std::int64_t points;
  kernels::FftSign sign;
  template <class V> void fields(V&& visit) const { visit("points", points), visit("sign", sign); }
};

template <class R> void turn(const KernelArgs& args) {
  const auto& p = args.params.as<TurnParams>();
  const RootsOfUnity<R> roots(p.points, p.sign);
  const auto *rows = args.in[1].as<std::int64_t>(), *columns = args.in[2].as<std::int64_t>();
  const auto* x = args.in[0].as<std::complex<R>>();
  auto* out = args.out[0].as<std::complex<R>>();
  const std::int64_t height = args.in[1].elements(), width = args.in[2].elements();
  for (std::int64_t r = 0; r < height; ++r)
    for (std::int64_t c = 0; c < width; ++c, ++x, ++out) *out = roots.times_power(*x, rows[r] * columns[c]);
}

// The places are operands, so that slabs have their parts of them.
const OpDef turn_op{
    .name = "fft_turn",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> { return {in[0]}; },
    .sharding = Rule("r c, r, c -> r c"),
    .runs = Kernel{[](const KernelArgs& args) {
      return args.in[0].dtype == complex64 ? turn<float>(args) : turn<double>(args);
    }},
    .vjp = NoRule{"a program is planned for files after it was differentiated"},
    .batch = NoRule{"a program is planned for files after it was mapped"},
    .parts = Parts::all_dims,
};
const Registered registered_turn(turn_op);

}  // namespace

Array record_fft_turn(const Array& x, const Array& rows, const Array& columns, std::int64_t points,
                      kernels::FftSign sign) {
  return record(turn_op, make_params(TurnParams{points, sign}), {x, rows, columns});
}

}  // namespace tessera
