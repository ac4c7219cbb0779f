// Attention, one block of keys at a time. The keys seen so far are summarized by a maximum, and a sum and a
// result weighted relative to that maximum; a block with a larger maximum scales them down:
//
//   seen (m, l, o)   block scores s, values v        m' = max(m, max s)
//                                                    l' = l e^(m - m') + sum e^(s - m')
//                                                    o' = o e^(m - m') + e^(s - m') v        result o / l
#include <tessera/nn.hpp>
#include <tessera/ops/reproducible.hpp>
#include <tessera/transforms.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mesh/axes.hpp"
#include "ops/build.hpp"

namespace tessera::nn {
namespace {

struct Heads {
  Array q, k, v;  // (batch, queries, kv heads, group, features), (batch, keys, kv heads, features)
  std::int64_t batch, queries, keys, heads, kv_heads, features;
};

void refuse(const Array& q, const Array& k, const Array& v) {
  throw ShapeError(call_text() + ": q, k and v have the shapes " + to_string(q.shape()) + ", " +
                   to_string(k.shape()) + " and " + to_string(v.shape()) +
                   "; they must be (batch, queries, heads, features) and twice (batch, keys, kv_heads, "
                   "features), where kv_heads divides heads");
}

Heads heads_of(const Array& q, const Array& k, const Array& v) {
  if (q.ndim() != 4 || k.ndim() != 4 || k.shape() != v.shape()) refuse(q, k, v);
  const auto &a = q.shape(), &b = k.shape();
  Heads h{q, k, v, a[0], a[1], b[1], a[2], b[2], a[3]};
  if (a[0] != b[0] || a[3] != b[3] || h.kv_heads == 0 || h.heads % h.kv_heads != 0) refuse(q, k, v);
  h.q = reshape(q, {h.batch, h.queries, h.kv_heads, h.heads / h.kv_heads, h.features});
  return h;
}

// The number of parts into which keys are split over axes that also split the queries.
std::int64_t parts_shared(const Array& q, const Array& k) {
  const auto &sq = output_of(q).sharding, &sk = output_of(k).sharding;
  if (!sq || !sk || !(sq->mesh() == sk->mesh())) return 1;
  const auto own = sq->dim_axes(4)[1], others = sk->dim_axes(4)[1];
  const bool overlap = std::any_of(own.begin(), own.end(), [&](int a) {
    return std::find(others.begin(), others.end(), a) != others.end();
  });
  return overlap ? devices_along(sk->mesh(), others) : 1;
}

// Keys [first, last); replicated over the axes that split them if `gathers`.
Array block_of(const Array& x, Range keys, bool gathers) {
  const Array block = x(slice(), slice(keys.start, keys.stop));
  const auto& sharding = output_of(x).sharding;
  if (!gathers || !sharding) return block;
  auto dims = sharding->dim_axes(4);
  dims[1].clear();
  return with_sharding_constraint(block, Sharding::from_dim_axes(sharding->mesh(), dims));
}

// A bias or mask, broadcastable to (batch, heads, queries, keys), for these keys and grouped heads.
Array for_scores(const Array& x, const Heads& h, Range keys) {
  std::vector<std::int64_t> extents(4, 1);
  if (x.ndim() > 4)
    throw ShapeError(call_text() + ": the bias or mask has the shape " + to_string(x.shape()) +
                     "; it must broadcast to (batch, heads, queries, keys)");
  std::copy_backward(x.shape().begin(), x.shape().end(), extents.end());
  Array part = reshape(x, Shape(extents));
  if (extents[3] != 1) part = part(slice(), slice(), slice(), slice(keys.start, keys.stop));
  const auto groups = h.heads / h.kv_heads;
  const bool one = extents[1] == 1;
  return reshape(part, {extents[0], one ? 1 : h.kv_heads, one ? 1 : groups, extents[2],
                        extents[3] == 1 ? 1 : keys.size()});
}

void check_broadcasts(const std::optional<Array>& x, const Heads& h) {
  if (!x) return;
  const Shape scores{h.batch, h.heads, h.queries, h.keys};
  if (!(broadcast_shapes(x->shape(), scores) == scores))
    throw ShapeError(call_text() + ": the bias or mask has the shape " + to_string(x->shape()) +
                     "; it must broadcast to the scores, " + to_string(scores));
}

double lowest_of(Dtype dtype) {
  return 0.7 * (dtype == float32 ? double{std::numeric_limits<float>::lowest()}
                                 : std::numeric_limits<double>::lowest());
}

// Scores of shape (batch, kv heads, group, queries, keys of the block).
Array scores_of(const Heads& h, const Array& k, Range keys, const AttentionOptions& o) {
  const double scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(h.features));
  Array scores = einsum("btkgh,bskh->bkgts", h.q, k) * scale;
  if (o.bias) scores = scores + for_scores(*o.bias, h, keys);
  const double low = lowest_of(scores.dtype());
  if (o.mask) scores = where(for_scores(*o.mask, h, keys), scores, low);
  if (o.is_causal) {
    const Array seen = expand_dims(arange(h.queries), 1) >= expand_dims(arange(keys.size()) + keys.start, 0);
    scores = where(seen, scores, low);
  }
  return scores;
}

struct Seen {
  Array largest, sum, result;  // (batch, kv heads, group, queries), the same, (..., features)
};
Seen first_block(const Heads& h, const Array& k, const Array& v, Range keys, const AttentionOptions& o) {
  const Array scores = scores_of(h, k, keys, o);
  const Array largest = stop_gradient(max(scores, -1));
  const Array weights = exp(scores - expand_dims(largest, -1));
  return {largest, sum(weights, -1), einsum("bkgts,bskh->bkgth", weights, v)};
}
Seen next_block(const Seen& seen, const Seen& block) {
  const Array largest = maximum(seen.largest, block.largest);
  const Array before = exp(seen.largest - largest), now = exp(block.largest - largest);
  return {largest, seen.sum * before + block.sum * now,
          seen.result * expand_dims(before, -1) + block.result * expand_dims(now, -1)};
}

// Keys at a time. In a ReproducibleScope layouts do not decide it.
std::int64_t keys_per_block(const Heads& h, const AttentionOptions& o, std::int64_t parts) {
  constexpr std::int64_t in_order = 4096;
  if (o.key_block > 0) return o.key_block;
  return is_reproducible() ? std::min(h.keys, in_order) : block_size(h.keys, parts);
}

Array attend(const Heads& h, const AttentionOptions& o, std::int64_t parts) {
  const auto per_block = keys_per_block(h, o, parts);
  std::optional<Seen> seen;
  for (std::int64_t first = 0; first < h.keys; first += per_block) {
    const Range keys{first, std::min(first + per_block, h.keys)};
    const Array k = block_of(h.k, keys, parts > 1), v = block_of(h.v, keys, parts > 1);
    if (per_block >= h.keys) {
      seen = first_block(h, k, v, keys, o);
      break;
    }
    // The backward pass calls this function again, when the variables of this call are gone: operands with
    // gradients are arguments, everything else is captured by value.
    const auto look =
        checkpoint([h, o, keys](const Array& q, const Array& own_k, const Array& own_v, const Array& bias) {
          Heads here = h;
          here.q = q;
          AttentionOptions options = o;
          if (o.bias) options.bias = bias;
          return first_block(here, own_k, own_v, keys, options);
        });
    const Seen block = look(h.q, k, v, o.bias ? *o.bias : zeros({}, h.q.dtype()));
    seen = seen ? next_block(*seen, block) : block;
  }
  const Array result = seen->result / expand_dims(seen->sum, -1);
  return reshape(transpose(result, {0, 3, 1, 2, 4}), {h.batch, h.queries, h.heads, h.features});
}

}  // namespace

Array dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                            const AttentionOptions& options) {
  const Call call("dot_product_attention", q.where);
  for (const Array* x : {&q.array, &k.array, &v.array}) check_usable(*x);
  if (q.array.ndim() == 3 && k.array.ndim() == 3 && v.array.ndim() == 3) {
    const auto in_front = [](const Array& x) { return expand_dims(x, 0); };
    return squeeze(dot_product_attention(in_front(q.array), in_front(k.array), in_front(v.array), options),
                   0);
  }
  const auto wide = [](const Array& x) { return is_half(x.dtype()) ? astype(x, float32) : x; };
  const Heads h = heads_of(wide(q.array), wide(k.array), wide(v.array));
  if (options.mask && !is_bool(options.mask->dtype()))
    throw DtypeError(call_text() + ": the mask has the dtype " + name(options.mask->dtype()) +
                     "; it must be bool. Numbers that are added are the bias");
  if (options.key_block < 0)
    throw ArgumentError(call_text() + ": key_block is " + std::to_string(options.key_block) +
                        "; it must not be negative");
  if (h.keys == 0)
    throw ShapeError(call_text() + ": k has the shape " + to_string(k.array.shape()) +
                     "; there is no key to look at");
  check_broadcasts(options.bias, h);
  check_broadcasts(options.mask, h);
  AttentionOptions widened = options;
  if (options.bias) widened.bias = wide(*options.bias);
  const Array result = attend(h, widened, parts_shared(q.array, k.array));
  return is_half(q.array.dtype()) ? astype(result, q.array.dtype()) : result;  // halves are rounded once
}

}  // namespace tessera::nn
