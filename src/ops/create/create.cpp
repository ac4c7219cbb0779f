// Arrays without operands: scalars, constants, ranges, identity matrices. Uncommitted; each rank computes
// only its own block.
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/move/copy.hpp"
#include "kernels/visit.hpp"
#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "ops/resized.hpp"

namespace tessera {

// The integer, which may lie past int64.
static __int128 whole(const ScalarValue& value) {
  const bool is_past_int64 = value.integer < 0 && value.floating.real() > 0;
  return is_past_int64 ? __int128{static_cast<std::uint64_t>(value.integer)} : __int128{value.integer};
}

void write_scalar(const ScalarValue& value, Dtype dtype, void* out) {
  const auto put = [out](auto v) { std::memcpy(out, &v, sizeof v); };
  const auto as_integer = [&]<class T>(T) {
    if (value.is_integer) return put(static_cast<T>(value.integer));
    const double v = value.floating.real();
    if (std::isnan(v)) return put(T{0});
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return put(std::numeric_limits<T>::min());
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) return put(std::numeric_limits<T>::max());
    put(static_cast<T>(v));
  };
  const std::complex<double> v =
      value.is_integer ? std::complex<double>(static_cast<double>(whole(value))) : value.floating;
  kernels::visit_stored(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>)
      put(static_cast<std::uint8_t>(value.is_integer ? value.integer != 0 : v != 0.0));
    else if constexpr (std::is_integral_v<T>)
      as_integer(T{});
    else if constexpr (kernels::is_complex_type<T>)
      put(T(v));
    else
      put(static_cast<T>(v.real()));
  });
}

int side_of(const ScalarValue& value, Dtype dtype) {
  if (dtype == uint64 && value.floating == 0.0) return 0;  // every bit pattern
  const __int128 number = whole(value);
  return kernels::visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return number < std::numeric_limits<T>::min() ? -1 : number > std::numeric_limits<T>::max() ? 1 : 0;
    else
      return 0;
  });
}

// Throws if an integer that the user wrote would wrap around.
static void check_fits(const ScalarValue& value, Dtype dtype) {
  if (!value.is_integer || !is_integer(dtype) || side_of(value, dtype) == 0) return;
  const __int128 number = whole(value);
  const std::string text =
      number < 0 ? std::to_string(value.integer) : std::to_string(static_cast<std::uint64_t>(number));
  kernels::visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      throw ArgumentError(call_text() + ": the number " + text + " does not fit " + name(dtype) +
                          ", which holds " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                          std::to_string(std::numeric_limits<T>::max()) +
                          (sizeof(T) == 8 ? "; no integer dtype holds both: give the array float64 first"
                                          : "; give the array a wider dtype, as int64, first"));
  });
}

static bool fits_integer(__int128 value, Dtype dtype) {
  return kernels::visit_stored(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
    else
      return true;
  });
}

// The value of a number rounded to a 16-bit float.
static ScalarValue rounded(const ScalarValue& value, Dtype half) {
  const double v = value.is_integer ? static_cast<double>(whole(value)) : value.floating.real();
  return {half == bfloat16 ? float{bfloat16_t(v)} : float{float16_t(v)}, 0, false};
}

Array make_scalar(const ScalarValue& written, Dtype dtype, bool weak) {
  const ScalarValue value = is_half(dtype) ? rounded(written, dtype) : written;
  if (!weak) check_fits(value, dtype);
  Buffer buffer = Buffer::allocate(16);
  std::memset(buffer.data(), 0, 16);
  write_scalar(value, dtype, buffer.data());
  Array x = make_leaf({Shape{}, dtype, weak}, replicated_everywhere(), std::move(buffer), false);
  x.node()->params = make_params(value);
  return x;
}
Array make_scalar(double value, Dtype dtype) {
  return make_scalar(ScalarValue{value, 0, false}, dtype, false);
}

std::optional<ScalarValue> scalar_value(const Array& x) {
  const auto* params = dynamic_cast<const ParamsOf<ScalarValue>*>(x.node()->params.get());
  if (params == nullptr || x.ndim() != 0 || !is_leaf(*x.node())) return std::nullopt;
  return params->value;
}

Array Array::weak_bool(bool value, std::source_location where) {
  const Call call("Array", where);
  return make_scalar({0, value ? 1 : 0, true}, bool_, false);
}
Array Array::weak_integer(std::int64_t value, std::source_location where) {
  const Call call("Array", where);
  // A value beyond int32 would wrap around where only plain numbers meet.
  return make_scalar({0, value, true}, std::in_range<std::int32_t>(value) ? int32 : int64, true);
}
Array make_plain_integer(std::uint64_t bits, bool is_negative, std::source_location where) {
  const Call call("Array", where);
  const auto integer = static_cast<std::int64_t>(bits);
  const bool is_past_int64 = integer < 0 && !is_negative;
  const double value = is_past_int64 ? static_cast<double>(bits) : static_cast<double>(integer);
  const Dtype dtype = is_past_int64 ? uint64 : std::in_range<std::int32_t>(integer) ? int32 : int64;
  return make_scalar({value, integer, true}, dtype, true);
}
Array Array::weak_floating(double value, std::source_location where) {
  const Call call("Array", where);
  return make_scalar({value, 0, false}, float32, true);
}
Array Array::weak_complex(std::complex<double> value, std::source_location where) {
  const Call call("Array", where);
  return make_scalar({value, 0, false}, complex64, true);
}

namespace {

// ---- no inputs ----
Cotangents no_cotangents(const VjpArgs&) { return {}; }
Batched not_reached(const BatchArgs& args) {
  return {{record(*args.node.op, args.node.params, {})}, {not_batched}};
}

struct FullParams {
  Shape shape;
  Dtype dtype;
  ScalarValue value;
  template <class V> void fields(V&& visit) const {
    visit("shape", shape);
    visit("dtype", dtype);
    visit("value",
          value.is_integer ? std::complex<double>(static_cast<double>(value.integer)) : value.floating);
    visit("integer", value.integer);
  }
};
const OpDef full_op{
    .name = "full",
    .infer = [](std::span<const Type>, const Params& p) -> std::vector<Type> {
      return {{p.as<FullParams>().shape, p.as<FullParams>().dtype}};
    },
    .sharding = Rule("-> D.."),
    .runs = Kernel{[](const KernelArgs& a) {
      std::byte element[16] = {};
      write_scalar(a.params.as<FullParams>().value, a.out[0].dtype, element);
      kernels::fill(a.out[0].data, element, itemsize(a.out[0].dtype), a.out[0].elements());
    }},
    .vjp = no_cotangents,
    .batch = not_reached,
    .parts = Parts::all_dims,
};
const Registered registered_full(full_op);

}  // namespace

ParamsPtr constant_with_shape(const OpDef& op, const Params& params, const Shape& shape) {
  if (&op != &full_op) return nullptr;
  auto other = params.as<FullParams>();
  other.shape = shape;
  return make_params(std::move(other));
}

ParamsPtr params_of_one_element(const OpDef& op, const Params& params) {
  if (&op != &full_op) return nullptr;
  auto one = params.as<FullParams>();
  one.shape = Shape{};
  return make_params(std::move(one));
}

namespace {

struct RangeParams {
  std::int64_t size;
  int dim;  // dim of the result along which values increase
  Shape shape;
  Dtype dtype;
  double start, step;
  std::int64_t integer_start, integer_step;
  bool has_stop =
      false;  // the last element is `stop`, from which start + (size - 1) step may differ by rounding
  double stop = 0;
  template <class V> void fields(V&& visit) const {
    visit("size", size);
    visit("dim", dim);
    visit("shape", shape);
    visit("dtype", dtype);
    visit("start", start);
    visit("step", step);
    visit("integer_start", integer_start);
    visit("integer_step", integer_step);
    visit("has_stop", has_stop);
    visit("stop", stop);
  }
};
const OpDef iota_op{
    .name = "iota",
    .infer = [](std::span<const Type>, const Params& p) -> std::vector<Type> {
      return {{p.as<RangeParams>().shape, p.as<RangeParams>().dtype}};
    },
    .sharding = Rule("-> D.."),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = a.params.as<RangeParams>();
      const Tile& out = a.out[0];
      const auto first = out.box[0].start;
      if (is_floating(p.dtype))
        kernels::iota(p.dtype, out.data, out.elements(), p.start, p.step, first);
      else
        kernels::iota(p.dtype, out.data, out.elements(), p.integer_start, p.integer_step, first);
      if (p.has_stop && out.box[0].stop == p.size && out.elements() > 0)
        out.as<double>()[out.elements() - 1] = p.stop;
    }},
    .vjp = no_cotangents,
    .batch = not_reached,
};
const Registered registered_iota(iota_op);

struct EyeParams {
  std::int64_t n, m, k;
  Dtype dtype;
  template <class V> void fields(V&& visit) const {
    visit("n", n);
    visit("m", m);
    visit("k", k);
    visit("dtype", dtype);
  }
};
const OpDef eye_op{
    .name = "eye",
    .infer = [](std::span<const Type>, const Params& p) -> std::vector<Type> {
      return {{Shape{p.as<EyeParams>().n, p.as<EyeParams>().m}, p.as<EyeParams>().dtype}};
    },
    .sharding = Rule("-> D.."),
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile& out = a.out[0];
      const auto item = static_cast<std::int64_t>(itemsize(out.dtype));
      std::memset(out.data, 0, out.bytes());
      std::byte one[16] = {};
      write_scalar({0, 1, true}, out.dtype, one);
      const auto width = out.box[1].size();
      for (auto row = out.box[0].start; row < out.box[0].stop; ++row) {
        const auto column = row + a.params.as<EyeParams>().k;
        if (column < out.box[1].start || column >= out.box[1].stop) continue;
        std::memcpy(out.data + ((row - out.box[0].start) * width + column - out.box[1].start) * item, one,
                    item);
      }
    }},
    .vjp = no_cotangents,
    .batch = not_reached,
};
const Registered registered_eye(eye_op);

ScalarValue scalar_from_host(const void* element, Dtype dtype) {
  return kernels::visit_stored(dtype, [element]<class T>(T) {
    std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T> v;
    std::memcpy(&v, element, sizeof v);
    if constexpr (std::is_same_v<T, bool>)
      return ScalarValue{0, v != 0, true};
    else if constexpr (std::is_integral_v<T>)
      return ScalarValue{0, static_cast<std::int64_t>(v), true};
    else
      return ScalarValue{std::complex<double>(v), 0, false};
  });
}

Array full_of(Shape shape, const ScalarValue& value, Dtype dtype) {
  checked_bytes(shape, itemsize(dtype), current_call().name);
  check_fits(value, dtype);
  if (shape.empty()) return make_scalar(value, dtype, false);
  return record(full_op, make_params(FullParams{std::move(shape), dtype, value}), {});
}

}  // namespace

bool fills_with_zero(const OpDef& op, const Params& params) {
  if (&op != &full_op) return false;
  const auto& value = params.as<FullParams>().value;
  return value.is_integer ? value.integer == 0
                          : value.floating == std::complex<double>() && !std::signbit(value.floating.real());
}

Array full_from_host(Shape shape, const void* element, Dtype of_element, Dtype dtype, const char* name,
                     std::source_location where) {
  const Call call(name, where);
  return full_of(std::move(shape), scalar_from_host(element, of_element), dtype);
}
Array detail::array_as(const Array& values, Dtype dtype, std::source_location where) {
  return astype({values, where}, dtype);
}
Array full(Shape shape, const Array& value, std::source_location where) {
  const Call call("full", where);
  return broadcast_to(value, std::move(shape));
}
Array zeros(Shape shape, Dtype dtype, std::source_location where) {
  const Call call("zeros", where);
  return full_of(std::move(shape), {0, 0, true}, dtype);
}
Array ones(Shape shape, Dtype dtype, std::source_location where) {
  const Call call("ones", where);
  return full_of(std::move(shape), {0, 1, true}, dtype);
}
Array zeros_like(const Operand& x) {
  const Call call("zeros_like", x.where);
  check_usable(x.array);
  return zeros(x.array.shape(), x.array.dtype());
}
Array ones_like(const Operand& x) {
  const Call call("ones_like", x.where);
  check_usable(x.array);
  return ones(x.array.shape(), x.array.dtype());
}

Array eye(std::int64_t n, std::int64_t m, int k, Dtype dtype, std::source_location where) {
  const Call call("eye", where);
  if (n < 0 || m < 0)
    throw ShapeError(call_text() + ": the sizes " + std::to_string(n) + " and " + std::to_string(m) +
                     " must not be negative");
  checked_bytes(Shape{n, m}, itemsize(dtype), "eye");
  return record(eye_op, make_params(EyeParams{n, m, k, dtype}), {});
}
Array eye(std::int64_t n, Dtype dtype, std::source_location where) { return eye(n, n, 0, dtype, where); }

Array arange_of(std::int64_t start, std::int64_t stop, std::int64_t step, Dtype dtype,
                std::source_location where) {
  const Call call("arange", where);
  if (step == 0)
    throw ArgumentError(call_text() + ": the step is 0; give a step that leads from start to stop");
  const auto span = static_cast<__int128>(stop) - start;
  const __int128 count =
      (span > 0) == (step > 0) && span != 0 ? (span + step - (step > 0 ? 1 : -1)) / step : 0;
  if (count > std::numeric_limits<std::int64_t>::max())
    throw ArgumentError(call_text() + ": more than 2^63 elements; use a larger step");
  const auto n = static_cast<std::int64_t>(count);
  const __int128 last = start + (count - 1) * static_cast<__int128>(step);
  if (is_integer(dtype) && n > 0 && !(fits_integer(start, dtype) && fits_integer(last, dtype)))
    throw ArgumentError(call_text() + ": the values from " + std::to_string(start) + " to " +
                        std::to_string(static_cast<std::int64_t>(last)) + " do not fit " + name(dtype) +
                        "; give a wider dtype, as arange(start, stop, step, int64)");
  return record(iota_op,
                make_params(RangeParams{n, 0, Shape{n}, dtype, static_cast<double>(start),
                                        static_cast<double>(step), start, step}),
                {});
}

Array arange_of(double start, double stop, double step, Dtype dtype, std::source_location where) {
  const Call call("arange", where);
  if (is_integer(dtype)) return astype(arange_of(start, stop, step, float64, where), dtype);
  if (step == 0 || std::isnan(start) || std::isnan(stop) || std::isnan(step))
    throw ArgumentError(call_text() + ": start " + std::to_string(start) + ", stop " + std::to_string(stop) +
                        ", step " + std::to_string(step) + ": the step must be a number other than 0");
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  if (!(count < 9.2e18))
    throw ArgumentError(call_text() + ": about " + std::to_string(count) +
                        " elements do not fit 64 bits; use a larger step");
  const auto n = static_cast<std::int64_t>(count);
  return record(iota_op, make_params(RangeParams{n, 0, Shape{n}, dtype, start, step, 0, 0}), {});
}

Array linspace(double start, double stop, std::int64_t num, std::source_location where) {
  const Call call("linspace", where);
  if (num < 0)
    throw ArgumentError(call_text() + ": num is " + std::to_string(num) + "; it must not be negative");
  const double step = num > 1 ? (stop - start) / static_cast<double>(num - 1) : 0;
  return record(iota_op, make_params(RangeParams{num, 0, Shape{num}, float32, start, step, 0, 0}), {});
}

Array linspace(double start, double stop, Dtype dtype, std::source_location where) {
  return linspace(start, stop, 50, dtype, true, where);
}
Array linspace(double start, double stop, std::int64_t num, Dtype dtype, bool endpoint,
               std::source_location where) {
  const Call call("linspace", where);
  if (num < 0)
    throw ArgumentError(call_text() + ": num is " + std::to_string(num) + "; it must not be negative");
  const auto steps = endpoint ? num - 1 : num;
  const double step = steps > 0 ? (stop - start) / static_cast<double>(steps) : 0;
  const Array values = record(
      iota_op,
      make_params(RangeParams{num, 0, Shape{num}, float64, start, step, 0, 0, endpoint && num > 1, stop}),
      {});
  return astype(is_inexact(dtype) ? values : floor(values), dtype);
}

}  // namespace tessera
