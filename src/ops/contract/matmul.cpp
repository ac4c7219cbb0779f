// matmul, dot, vdot, inner, outer, tensordot in terms of dot_general.
#include <numeric>

#include "base/session.hpp"
#include "base/text.hpp"
#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

void check_both(const Operand& a, const Operand& b) {
  check_usable(a.array);
  check_usable(b.array);
}

}  // namespace

namespace {
struct InnermostOptions {
  MatmulOptions options;
};
}  // namespace

const MatmulOptions& innermost_matmul_options() { return state<InnermostOptions>().options; }

MatmulScope::MatmulScope(MatmulOptions options) : before_(innermost_matmul_options()) {
  if (options.memory_limit_bytes < 0)
    throw ArgumentError("MatmulScope: memory_limit_bytes is " + std::to_string(options.memory_limit_bytes) +
                        "; it cannot be negative, and 0 stands for the default");
  state<InnermostOptions>().options = options;
}
MatmulScope::~MatmulScope() { state<InnermostOptions>().options = before_; }

Array matmul(const Operand& left, const Operand& right, MatmulOptions options) {
  const Call call("matmul", left.where);
  const MatmulScope scope(options);
  return matmul(left, right);
}

// NumPy's rule: the last two dims are matrices, the dims before them broadcast; 1-d operands are a row or a
// column.
Array matmul(const Operand& left, const Operand& right) {
  const Call call("matmul", left.where);
  check_both(left, right);
  Array a = left.array, b = right.array;
  if (a.ndim() == 0 || b.ndim() == 0)
    throw ShapeError(call_text() + ": the shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) +
                     " include a scalar; multiply with * instead");
  const int na = a.ndim(), nb = b.ndim();
  const int inner_a = na - 1, inner_b = nb == 1 ? 0 : nb - 2;
  if (na <= 2 && nb <= 2) return dot_general(a, b, {{inner_a}, {inner_b}, {}, {}});
  if (na == 1) {  // (k) . (..., k, n) -> (..., n)
    return dot_general(b, a, {{inner_b}, {0}, {}, {}});
  }
  if (nb <= 2) return dot_general(a, b, {{inner_a}, {inner_b}, {}, {}});
  // Batch dims of size 1 in one operand are free dims of the other.
  const int batch = std::max(na, nb) - 2;
  DotDims dims;
  std::vector<int> source(batch);  // 0: both, 1: a only, 2: b only
  broadcast_shapes(without_last(a.shape(), 2), without_last(b.shape(), 2));
  std::vector<std::int64_t> kept_a, kept_b;
  for (int i = 0; i < batch; ++i) {
    const int da = i - (batch - (na - 2)), db = i - (batch - (nb - 2));
    const auto ea = da >= 0 ? a.shape()[da] : 1, eb = db >= 0 ? b.shape()[db] : 1;
    source[i] = ea == eb ? 0 : eb == 1 ? 1 : 2;
    if (source[i] != 2) kept_a.push_back(ea);
    if (source[i] != 1) kept_b.push_back(eb);
  }
  for (const auto* x : {&a, &b}) {
    auto& kept = x == &a ? kept_a : kept_b;
    kept.push_back(x->shape()[x->ndim() - 2]);
    kept.push_back(x->shape()[x->ndim() - 1]);
  }
  a = reshape(a, Shape(kept_a));
  b = reshape(b, Shape(kept_b));
  int da = 0, db = 0, only_a = 0;
  for (const int s : source) {
    if (s == 0) dims.batch_a.push_back(da), dims.batch_b.push_back(db);
    only_a += s == 1;
    da += s != 2;
    db += s != 1;
  }
  dims.contract_a = {a.ndim() - 1};
  dims.contract_b = {b.ndim() - 2};
  const Array result = dot_general(a, b, dims);
  // dims of the result: shared batch, a's own batch, rows, b's own batch, columns
  std::vector<int> permutation;
  int shared = 0, own_a = static_cast<int>(dims.batch_a.size()), own_b = own_a + only_a + 1;
  const int rows = own_a + only_a;
  for (const int s : source) permutation.push_back(s == 0 ? shared++ : s == 1 ? own_a++ : own_b++);
  permutation.push_back(rows);
  permutation.push_back(result.ndim() - 1);
  return transpose(result, std::move(permutation));
}

Array tensordot(const Operand& a, const Operand& b, std::pair<std::vector<int>, std::vector<int>> axes) {
  const Call call("tensordot", a.where);
  check_both(a, b);
  if (axes.first.size() != axes.second.size())
    throw ArgumentError(call_text() + ": " + format_count(axes.first.size(), "axis") +
                        " of the first operand stand against " + std::to_string(axes.second.size()) +
                        " of the second");
  for (int& d : axes.first) d = checked_dim(d, a.array.ndim());
  for (int& d : axes.second) d = checked_dim(d, b.array.ndim());
  return dot_general(a.array, b.array, {std::move(axes.first), std::move(axes.second), {}, {}});
}

Array tensordot(const Operand& a, const Operand& b, int n) {
  const Call call("tensordot", a.where);
  check_both(a, b);
  if (n < 0 || n > a.array.ndim() || n > b.array.ndim())
    throw ArgumentError(call_text() + ": cannot contract " + format_count(n, "axis") + " of shapes " +
                        to_string(a.array.shape()) + " and " + to_string(b.array.shape()));
  std::vector<int> last, first;
  for (int i = 0; i < n; ++i) last.push_back(a.array.ndim() - n + i), first.push_back(i);
  return tensordot(a, b, {std::move(last), std::move(first)});
}

// NumPy's dot: contracts the last dim of a with the second to last of b.
Array dot(const Operand& a, const Operand& b) {
  const Call call("dot", a.where);
  check_both(a, b);
  if (a.array.ndim() == 0 || b.array.ndim() == 0) return multiply(a, b);
  // A few elements decide most often what the product of two vectors of bools is.
  if (a.array.ndim() == 1 && a.array.shape() == b.array.shape() && is_bool(a.array.dtype()) &&
      is_bool(b.array.dtype()))
    return any(logical_and(a, b));
  return tensordot(a, b, {{a.array.ndim() - 1}, {b.array.ndim() == 1 ? 0 : b.array.ndim() - 2}});
}

Array vdot(const Operand& a, const Operand& b) {
  const Call call("vdot", a.where);
  check_both(a, b);
  if (a.array.size() != b.array.size())
    throw ShapeError(call_text() + ": " + to_string(a.array.shape()) + " and " + to_string(b.array.shape()) +
                     " have " + std::to_string(a.array.size()) + " and " +
                     format_count(b.array.size(), "element") +
                     "; their flattened elements are paired, so there must be as many");
  // Contracts all dims without flattening, which would move splits of minor dims.
  const bool flat_is_longer = a.array.ndim() < b.array.ndim();
  const Array x = flat_is_longer ? reshape(a, b.array.shape()) : a.array,
              y = flat_is_longer ? b.array : reshape(b, a.array.shape());
  // A fused sum makes no conjugate of x in memory.
  if (is_complex(x.dtype()) && x.dtype() == y.dtype() && x.shape() == y.shape()) return sum(conj(x) * y);
  return tensordot(conj(x), y, x.ndim());
}

Array inner(const Operand& a, const Operand& b) {
  const Call call("inner", a.where);
  check_both(a, b);
  if (a.array.ndim() == 0 || b.array.ndim() == 0) return multiply(a, b);
  return tensordot(a, b, {{a.array.ndim() - 1}, {b.array.ndim() - 1}});
}

Array outer(const Operand& a, const Operand& b) {
  const Call call("outer", a.where);
  check_both(a, b);
  return multiply(reshape(a, Shape{-1, 1}), reshape(b, Shape{1, -1}));
}

}  // namespace tessera
