#include "stablehlo/matrices/packed.hpp"

#include <tessera/linalg.hpp>
#include <tessera/ops.hpp>

#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/moves.hpp"

namespace tessera::stablehlo {
namespace {

std::pair<const Node*, int> key_of(const Array& x) { return {x.node().get(), x.output()}; }

const PackedQr* find(const Evaluator& run, const Array& x) {
  const auto found = run.packed.find(key_of(x));
  return found == run.packed.end() ? nullptr : &found->second;
}

std::int64_t rows_of(const Array& x) { return x.shape()[static_cast<std::size_t>(x.ndim()) - 2]; }

// row - 1 >= column of the last two dims
bool is_below_diagonal(const OpCall& s, int value) {
  const Operation* op = s.maker(value);
  if (op != nullptr && op->name == "stablehlo.broadcast_in_dim" && op->operands.size() == 1) {
    const TensorType& wide = s.frame.function.values[static_cast<std::size_t>(value)];
    const Attribute* dims = op->attributes.find("dims");
    const int ndim = wide.shape.ndim();
    if (dims == nullptr || dims->items.size() != 2 || dims->items[0].text != std::to_string(ndim - 2) ||
        dims->items[1].text != std::to_string(ndim - 1))
      return false;
    op = s.maker(op->operands[0]);
  }
  if (op == nullptr || op->name != "stablehlo.compare" || comparison_of(*op).first != "GE" ||
      op->operands.size() != 2)
    return false;
  const Operation* shifted = s.maker(op->operands[0]);
  if (shifted == nullptr || shifted->name != "stablehlo.add" || shifted->operands.size() != 2) return false;
  return is_iota_along(s, shifted->operands[0], 0) && constant_of(s.frame, shifted->operands[1]) == -1 &&
         is_iota_along(s, op->operands[1], 1);
}

}  // namespace

void note_packed(Evaluator& run, const Array& packed, const Array& taus, const Array& x) {
  const auto [q, r] = linalg::qr(x);
  run.packed[key_of(packed)] = {packed, taus, x, q, r};
}

void keep_packed(OpCall& s, const Array& result) {
  const PackedQr* found = find(s.run, s.x[0]);
  if (found == nullptr) return;
  PackedQr kept = *found;
  kept.self = result;
  s.run.packed[key_of(result)] = kept;
}

std::optional<Array> q_of_packed(Evaluator& run, const Array& packed, const Array& taus,
                                 std::int64_t columns) {
  const PackedQr* found = find(run, packed);
  if (found == nullptr || rows_of(packed) != rows_of(found->source)) return std::nullopt;
  if (key_of(taus) != key_of(found->taus)) return std::nullopt;
  if (columns == found->q.shape().back()) return found->q;
  if (columns != rows_of(found->source)) return std::nullopt;
  return linalg::qr(found->source, {true}).q;
}

std::optional<Array> upper_of_packed(const OpCall& s) {
  const PackedQr* found = s.is_lifted ? nullptr : find(s.run, s.x[2]);
  if (found == nullptr || s.x[2].shape() != s.x[0].shape() || constant_of(s.frame, s.op.operands[1]) != 0 ||
      !is_below_diagonal(s, s.op.operands[0]))
    return std::nullopt;
  const Array& packed = s.x[2];
  const auto rows = rows_of(packed), columns = packed.shape().back();
  if (columns > found->r.shape().back()) return std::nullopt;
  Array r = part_along(found->r, packed.ndim() - 1, 0, columns);
  const auto have = rows_of(r);
  if (rows < have) r = part_along(r, packed.ndim() - 2, 0, rows);
  if (rows > have) {
    Shape extents = packed.shape();
    extents[extents.size() - 2] = rows - have;
    r = concatenate({r, zeros(extents, r.dtype())}, packed.ndim() - 2);
  }
  return r;
}

}  // namespace tessera::stablehlo
