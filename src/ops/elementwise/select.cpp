// Choosing and converting: where, clip, astype, real and imaginary parts, copy.
#include "ops/create/scalar.hpp"
#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

const Array& g(const VjpArgs& v) { return v.cotangents[0]; }

Elementwise where_elementwise() {
  auto op = elementwise("where", DtypeRule::any, [](const VjpArgs& v) -> Cotangents {
    Cotangents result(3);
    if (v.wanted[1]) result[1] = sum_to_operand(where(v.in[0], g(v), zeros_like(g(v))), v.in[1]);
    if (v.wanted[2]) result[2] = sum_to_operand(where(v.in[0], zeros_like(g(v)), g(v)), v.in[2]);
    return result;
  });
  op.row.dtype_input = 1;
  return op;
}
TESSERA_ROW(where, where_elementwise())

TESSERA_ROW(clip, elementwise("clip", DtypeRule::any, [](const VjpArgs& v) -> Cotangents {
              const Array &x = v.in[0], &lo = v.in[1], &hi = v.in[2];
              const auto part = [&](const Array& mask, const Array& operand) {
                return sum_to_operand(where(mask, g(v), zeros_like(g(v))), operand);
              };
              Cotangents result(3);
              if (v.wanted[0]) result[0] = part((x >= lo) & (x <= hi), x);
              if (v.wanted[1]) result[1] = part((x < lo) & (lo < hi), lo);
              if (v.wanted[2]) result[2] = part(x > hi, hi);
              return result;
            }))

// real(z) = (z + conj z)/2: the cotangent of z is g; that of imag is -i g (complex linear transposes without
// conjugation, as in JAX).
TESSERA_ROW(real, elementwise(
                      "real", DtypeRule::real_part,
                      [](const VjpArgs& v) -> Cotangents { return {make_complex(g(v), zeros_like(g(v)))}; },
                      linear_unary))
TESSERA_ROW(imag, elementwise(
                      "imag", DtypeRule::real_part,
                      [](const VjpArgs& v) -> Cotangents { return {make_complex(zeros_like(g(v)), -g(v))}; },
                      linear_unary))
TESSERA_ROW(conj, elementwise(
                      "conj", DtypeRule::any, [](const VjpArgs& v) -> Cotangents { return {conj(g(v))}; },
                      linear_unary))
TESSERA_ROW(copy,
            elementwise(
                "copy", DtypeRule::any, [](const VjpArgs& v) -> Cotangents { return {g(v)}; }, linear_unary))

Elementwise complex_elementwise() {
  auto op = elementwise(
      "complex", DtypeRule::floating,
      [](const VjpArgs& v) -> Cotangents {
        Cotangents result(2);
        if (v.wanted[0]) result[0] = sum_to_shape(real(g(v)), v.in[0].shape());
        if (v.wanted[1]) result[1] = sum_to_shape(-imag(g(v)), v.in[1].shape());
        return result;
      },
      linear_both);
  op.def.infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
    return {{broadcast_shapes(in[0].shape, in[1].shape, "complex", std::source_location::current()),
             complex_dtype(in[0].dtype)}};
  };
  return op;
}
TESSERA_ROW(make_complex, complex_elementwise())

struct CastParams {
  Dtype dtype;
  bool weak = false;
  template <class V> void fields(V&& visit) const {
    visit("dtype", dtype);
    if (weak) visit("weak", weak);
  }
};
Elementwise cast_elementwise() {
  auto op = elementwise(
      "astype", DtypeRule::any,
      [](const VjpArgs& v) -> Cotangents {
        const Dtype from = v.in[0].dtype();
        if (!is_inexact(from) || !is_inexact(v.out[0].dtype())) return {Array()};
        if (is_complex(g(v).dtype()) && !is_complex(from)) return {astype(real(g(v)), from)};
        return {astype(g(v), from)};
      },
      [](const Params&) -> std::string { return ""; });
  op.def.infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
    return {{in[0].shape, p.as<CastParams>().dtype, p.as<CastParams>().weak}};
  };
  op.row.kernel = nullptr;
  return op;
}
TESSERA_ROW(cast, cast_elementwise())

}  // namespace

Array where(const Operand& condition, const Operand& a, const Operand& b) {
  const auto site = condition.where;
  for (const auto* x : {&condition, &a, &b}) check_usable(x->array, "where");
  broadcast_shapes(condition.array.shape(), broadcast_shapes(a.array.shape(), b.array.shape(), "where", site),
                   "where", site);
  const auto dtype = promote(WeakDtype{a.array.dtype(), a.array.is_weakly_typed()},
                             WeakDtype{b.array.dtype(), b.array.is_weakly_typed()});
  return record(
      where_row().def, no_params(),
      {cast_to(condition.array, bool_, site), cast_as(a.array, dtype, site), cast_as(b.array, dtype, site)},
      site);
}

Array clip(const Operand& x, const Operand& lo, const Operand& hi) {
  if (is_complex(x.array.dtype()))
    throw DtypeError(call_text("clip", x.where) + ": complex numbers have no order");
  return apply(clip_row(), {x, lo, hi});
}
Array real(const Operand& x) { return is_complex(x.array.dtype()) ? apply(real_row(), {x}) : x.array; }
Array imag(const Operand& x) {
  return is_complex(x.array.dtype()) ? apply(imag_row(), {x}) : zeros_like(x.array);
}
Array conj(const Operand& x) { return is_complex(x.array.dtype()) ? apply(conj_row(), {x}) : x.array; }
Array copy(const Operand& x) { return apply(copy_row(), {x}); }
Array make_complex(const Operand& re, const Operand& im) { return apply(make_complex_row(), {re, im}); }

Array cast_as(const Array& x, WeakDtype to, std::source_location where) {
  if (x.dtype() == to.dtype && x.is_weakly_typed() == to.weak) return x;
  if (const auto value = scalar_value(x)) return make_scalar(*value, to.dtype, to.weak, where);
  return record(cast_row().def, make_params(CastParams{to.dtype, to.weak}), {x}, where);
}
Array astype(const Operand& x, Dtype dtype) {
  check_usable(x.array, "astype");
  if (x.array.dtype() == dtype && !x.array.is_weakly_typed()) return x.array;
  return record(cast_row().def, make_params(CastParams{dtype}), {x.array}, x.where);
}

}  // namespace tessera
