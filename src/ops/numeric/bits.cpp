// Eight bools as one byte, and back: an unpacked byte is a word of eight bytes, the first bool the lowest.
#include <tessera/ops/edit.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/move/positions.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little);

struct BitOrder {
  bool lowest_first;
  template <class V> void fields(V&& visit) const { visit("lowest_first", lowest_first); }
};

constexpr std::uint64_t every_byte = 0x0101010101010101;

void pack(const KernelArgs& a) {
  kernels::pack_bits(a.in[0].as<std::uint8_t>(), a.out[0].elements(), a.params.as<BitOrder>().lowest_first,
                     a.out[0].as<std::uint8_t>());
}
// Byte i of the word keeps one bit of its copy of the byte; adding 127 moves any bit to the highest.
void unpack(const KernelArgs& a) {
  const std::uint64_t kept = a.params.as<BitOrder>().lowest_first ? 0x8040201008040201 : 0x0102040810204080;
  const auto* const from = a.in[0].as<std::uint8_t>();
  std::byte* const to = a.out[0].data;
  const std::int64_t count = a.in[0].elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bools = (((from[i] * every_byte) & kept) + 127 * every_byte) >> 7 & every_byte;
    std::memcpy(to + 8 * i, &bools, 8);
  }
}

OpDef bits_record(const char* name, const char* sentence, void (*kernel)(const KernelArgs&)) {
  OpDef op;
  op.name = name;
  op.sharding = Rule(sentence);
  op.runs = Kernel{kernel};
  op.vjp = NoRule{"bits are no numbers"};
  op.batch = batch_leading;
  op.parts = Parts::all_dims;
  return op;
}
const OpDef pack_bits_op = [] {
  OpDef op = bits_record("pack_bits", "D.. k -> D.. | whole k", pack);
  op.infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
    return {{without_last(in[0].shape, 1), uint8}};
  };
  return op;
}();
const OpDef unpack_bits_op = [] {
  OpDef op = bits_record("unpack_bits", "D.. -> D.. k | whole k", unpack);
  op.infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
    return {{join(in[0].shape, {8}), uint8}};
  };
  return op;
}();
const Registered registered[] = {Registered(pack_bits_op), Registered(unpack_bits_op)};

ParamsPtr order_named(const std::string& bitorder) {
  if (bitorder != "big" && bitorder != "little")
    throw ArgumentError(call_text() + ": there is no bitorder '" + bitorder + "'; take big or little");
  return make_params(BitOrder{bitorder == "little"});
}

}  // namespace

Array packbits(const Operand& x, int axis, const std::string& bitorder) {
  const Call call("packbits", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (!is_integer(x.array.dtype()) && !is_bool(x.array.dtype()))
    throw DtypeError(call_text() + ": bits of " + name(x.array.dtype()) + "; it takes bools and integers");
  Array bools = moveaxis(is_bool(x.array.dtype()) ? x.array : x.array != 0, dim, -1);
  auto extents = bools.shape().vector();
  if (const auto missing = (8 - extents.back() % 8) % 8; missing != 0) {
    std::vector<std::pair<int, int>> widths(extents.size(), {0, 0});
    widths.back().second = static_cast<int>(missing);
    bools = pad(bools, widths);
  }
  extents.back() = (extents.back() + 7) / 8;
  extents.push_back(8);
  const Array bytes =
      record(pack_bits_op, order_named(bitorder), {reshape(bools, Shape(std::move(extents)))});
  return moveaxis(bytes, -1, dim);
}
Array unpackbits(const Operand& x, int axis, const std::string& bitorder) {
  const Call call("unpackbits", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (x.array.dtype() != uint8)
    throw DtypeError(call_text() + ": bytes of " + name(x.array.dtype()) + "; it takes uint8");
  auto extents = x.array.shape().vector();
  std::rotate(extents.begin() + dim, extents.begin() + dim + 1, extents.end());
  extents.back() *= 8;
  const Array bits = record(unpack_bits_op, order_named(bitorder), {moveaxis(x, dim, -1)});
  return moveaxis(reshape(bits, Shape(std::move(extents))), -1, dim);
}

}  // namespace tessera
