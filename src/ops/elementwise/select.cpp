// Choosing and converting: where, clip, astype, real and imaginary parts, copy.
#include "graph/hooks.hpp"
#include "ops/create/scalar.hpp"
#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using kernels::map;
using A = const Array&;

const ElementwiseOp where_op{map<"where">, DtypeRule::choice, "a where the condition holds, else b", reals(),
                             derivative(
                                 NoDerivative{}, [](A g, A c, A, A, A) { return where(c, g, zeros_like(g)); },
                                 [](A g, A c, A, A, A) { return where(c, zeros_like(g), g); })};

// As of maximum and minimum: at a tie each operand gets half of the cotangent.
Array halved_at(A g, A a, A b) { return where(a == b, g * 0.5, g); }
const ElementwiseOp clip_op{
    map<"clip">, DtypeRule::any, "min(max(x, lo), hi)", reals({-2, 2}, {-1.5, -0.5}, {0.5, 1.5}),
    derivative(
        [](A g, A x, A lo, A hi, A) {
          return where((x >= lo) & (x <= hi) & (lo <= hi), halved_at(halved_at(g, x, lo), x, hi),
                       zeros_like(g));
        },
        [](A g, A x, A lo, A hi, A) {
          return where((x <= lo) & (lo <= hi), halved_at(halved_at(g, x, lo), lo, hi), zeros_like(g));
        },
        [](A g, A x, A lo, A hi, A) {
          const Array raised = maximum(x, lo);
          return where(raised >= hi, halved_at(g, raised, hi), zeros_like(g));
        })};

// real(z) = (z + conj z)/2: the cotangent of z is g; that of imag is -i g (complex linear transposes without
// conjugation, as in JAX).
const ElementwiseOp real_op{map<"real">, DtypeRule::real_part, "real part", only_complexes(),
                            linear([](A g, A, A) { return make_complex(g, zeros_like(g)); })};
const ElementwiseOp imag_op{map<"imag">, DtypeRule::real_part, "imaginary part", only_complexes(),
                            linear([](A g, A, A) { return make_complex(zeros_like(g), -g); })};
const ElementwiseOp conj_op{map<"conj">, DtypeRule::any, "complex conjugate", only_complexes(),
                            linear([](A g, A, A) { return conj(g); })};
const ElementwiseOp copy_op{map<"copy">, DtypeRule::any, "x in memory of its own", reals().complexes(),
                            linear([](A g, A, A) { return g; })};
const ElementwiseOp make_complex_op{
    map<"complex">, DtypeRule::parts, "re + i im", reals(),
    linear([](A g, A, A, A) { return real(g); }, [](A g, A, A, A) { return -imag(g); })};

struct CastParams {
  Dtype dtype;
  bool weak = false;
  template <class V> void fields(V&& visit) const {
    visit("dtype", dtype);
    if (weak) visit("weak", weak);
  }
};
std::vector<Type> infer_cast(std::span<const Type> in, const Params& p) {
  return {{in[0].shape, p.as<CastParams>().dtype, p.as<CastParams>().weak}};
}
Array cast_back(A g, A x, A y) {
  const Dtype from = x.dtype();
  if (!is_inexact(from) || !is_inexact(y.dtype())) return Array();
  return is_complex(g.dtype()) && !is_complex(from) ? astype(real(g), from) : astype(g, from);
}
const ElementwiseOp cast_op{"astype", "x as another dtype",
                            derivative([](A g, A x, A y) { return cast_back(g, x, y); }), infer_cast};

[[maybe_unused]] const bool hook_is_set = [] {
  convert_half = cast_to;
  return true;
}();

}  // namespace

Array where(const Operand& condition, const Operand& a, const Operand& b) {
  return where_op({condition, a, b});
}

Array clip(const Operand& x, const Operand& lo, const Operand& hi) {
  const Call call("clip", x.where);

  if (is_complex(x.array.dtype())) throw DtypeError(call_text() + ": complex numbers have no order");
  return clip_op({x, lo, hi});
}
Array clip(const Operand& x, const Operand& lo, NoneType) {
  const Call call("clip", x.where);
  return maximum(x, lo);
}
Array clip(const Operand& x, NoneType, const Operand& hi) {
  const Call call("clip", x.where);
  return minimum(x, hi);
}
Array real(const Operand& x) {
  const Call call("real", x.where);
  return is_complex(x.array.dtype()) ? real_op({x}) : x.array;
}
Array imag(const Operand& x) {
  const Call call("imag", x.where);
  return is_complex(x.array.dtype()) ? imag_op({x}) : zeros_like(x);
}
Array conj(const Operand& x) {
  const Call call("conj", x.where);
  return is_complex(x.array.dtype()) ? conj_op({x}) : x.array;
}
Array copy(const Operand& x) { return copy_op({x}); }
Array make_complex(const Operand& re, const Operand& im) {
  const Call call("make_complex", re.where);
  return make_complex_op({re, im});
}

Array cast_as(const Array& x, WeakDtype to) {
  if (x.dtype() == to.dtype && x.is_weakly_typed() == to.weak) return x;
  if (const auto value = scalar_value(x)) return make_scalar(*value, to.dtype, to.weak);
  return record(cast_op.def, make_params(CastParams{to.dtype, to.weak}), {x});
}
Array astype(const Operand& x, Dtype dtype) {
  const Call call("astype", x.where);

  check_usable(x.array);
  if (x.array.dtype() == dtype && !x.array.is_weakly_typed()) return x.array;
  // A number keeps the digits that were written: astype(0.1, float64) is not 0.1f.
  if (const auto number = scalar_value(x.array); number && is_inexact(dtype))
    return make_scalar(*number, dtype, false);
  return record(cast_op.def, make_params(CastParams{dtype}), {x.array});
}

}  // namespace tessera
