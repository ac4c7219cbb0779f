// Reinterprets the same bits as elements of another type.
#include <tessera/control/lax.hpp>

#include <cstring>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

struct BitcastParams {
  Dtype to;
  template <class V> void fields(V&& visit) const { visit("to", to); }
};

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  const Dtype to = params.as<BitcastParams>().to;
  auto extents = in[0].shape.vector();
  const auto before = itemsize(in[0].dtype), after = itemsize(to);
  if (after < before) extents.push_back(static_cast<std::int64_t>(before / after));
  if (after > before) extents.pop_back();
  return {{Shape(std::move(extents)), to}};
}
void kernel(const KernelArgs& a) {
  if (a.out[0].bytes() > 0)
    std::memcpy(a.out[0].data, a.in[0].data, static_cast<std::size_t>(a.out[0].bytes()));
}
OpDef bitcast_record(const char* name, const char* sentence) {
  OpDef op;
  op.name = name;
  op.halves = moves_halves;
  op.infer = infer;
  op.sharding = Rule(sentence);
  op.runs = Kernel{kernel};
  op.vjp = NoRule{"bits are no numbers"};
  op.batch = batch_leading;
  op.parts = Parts::all_dims;
  return op;
}
const OpDef bitcast_op = bitcast_record("bitcast", "D.. -> D.."),
            bitcast_split_op = bitcast_record("bitcast_split", "D.. -> D.. k | whole k"),
            bitcast_join_op = bitcast_record("bitcast_join", "D.. k -> D.. | whole k");
const Registered registered[] = {Registered(bitcast_op), Registered(bitcast_split_op),
                                 Registered(bitcast_join_op)};

void check_dtype(Dtype dtype) {
  if (is_bool(dtype) || is_complex(dtype))
    throw DtypeError(call_text() + ": " + name(dtype) + " has no bits of its own; take integers or floats");
}

}  // namespace

Array bitcast_convert_type(const Operand& x, Dtype dtype) {
  const Call call("bitcast_convert_type", x.where);
  check_usable(x.array);
  check_dtype(x.array.dtype());
  check_dtype(dtype);
  const auto before = itemsize(x.array.dtype()), after = itemsize(dtype);
  const Array strong = cast_to(x.array, x.array.dtype());
  if (before == after) return record(bitcast_op, make_params(BitcastParams{dtype}), {strong});
  if (before > after) return record(bitcast_split_op, make_params(BitcastParams{dtype}), {strong});
  const auto wanted = static_cast<std::int64_t>(after / before);
  if (x.array.ndim() == 0 || x.array.shape().back() != wanted)
    throw ShapeError(call_text() + ": " + std::to_string(wanted) + " elements of " + name(x.array.dtype()) +
                     " make one of " + name(dtype) + "; the last extent of shape " +
                     to_string(x.array.shape()) + " must be that");
  return record(bitcast_join_op, make_params(BitcastParams{dtype}), {strong});
}

}  // namespace tessera
