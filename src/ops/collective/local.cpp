// Collectives over a vmap's name, once the examples are side by side: arithmetic on the batch dim.
//
//   x of 4 examples, shape (2):   [4, 2];  groups {0, 2}, {1, 3}: [group 2, member 2, 2]
#include <algorithm>

#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/collective/collective.hpp"
#include "ops/collective/reorder.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

bool sums(const OpDef& op) { return &op == &psum_op || &op == &psum_groups_op || &op == &psum_scatter_op; }

// The examples of a frame by group: [group, member, ...]. Without groups there is one group of all.
class Examples {
 public:
  Examples(const BatchArgs& args, const CollectiveParams& p) : p_(p), size_(args.size) {
    Array x = batched_in_front(args, 0);
    const bool is_sum = sums(*args.node.op);
    Groups groups = p.groups;
    if (groups.empty()) {
      groups.emplace_back();
      for (int i = 0; i < size_; ++i) groups[0].push_back(i);
    }
    members_ = 0;
    for (const auto& group : groups) members_ = std::max(members_, static_cast<std::int64_t>(group.size()));
    group_of_.resize(size_);
    slot_of_.resize(size_);
    std::vector<int> order;
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::int64_t m = 0; m < members_; ++m) {
        const bool is_member = m < static_cast<std::int64_t>(groups[g].size());
        if (is_member) {
          const auto example = static_cast<std::size_t>(groups[g][m]);
          group_of_[example] = static_cast<int>(g);
          slot_of_[example] = static_cast<int>(order.size());
        }
        // Shorter groups are padded with neutral members: zeros for sums, else the first member again.
        order.push_back(is_member ? groups[g][m] : is_sum ? -1 : groups[g][0]);
      }
    groups_ = static_cast<std::int64_t>(groups.size());
    if (!p.groups.empty()) x = reorder(x, std::move(order), 0);
    x_ = split(x, 0, groups_);
  }

  const Array& x() const { return x_; }
  std::int64_t members() const { return members_; }

  // Expands one value per group to one per example; a single group shares its value.
  Batched for_all_members(const Array& by_group) const {
    if (p_.groups.empty()) return {{squeeze(by_group, Axes(0))}, {not_batched}};
    return {{reorder(by_group, group_of_, 0)}, {0}};
  }
  // Converts [group, member, ...] to one value per example.
  Batched by_member(const Array& y) const {
    const Array flat = merge(y, 0);
    return {{p_.groups.empty() ? flat : reorder(flat, slot_of_, 0)}, {0}};
  }

  // Splits dim d of n into (parts, n / parts).
  Array split(const Array& x, int d, std::int64_t parts) const {
    Shape extents = x.shape();
    extents[d] /= parts;
    return reshape(x, with_dim(extents, d, parts));
  }
  // Merges dims d and d + 1.
  Array merge(const Array& x, int d) const {
    Shape extents = x.shape();
    extents[d + 1] *= extents[d];
    return reshape(x, without_dim(extents, d));
  }
  Array move(const Array& x, int from, int to) const { return moveaxis(x, from, to); }

 private:
  const CollectiveParams& p_;
  std::int64_t size_, members_ = 1, groups_ = 1;
  std::vector<int> group_of_, slot_of_;
  Array x_;
};

Array reduce_dim(const OpDef& op, const Array& x, int dim) {
  const Operand operand(x);
  if (sums(op)) return astype(sum(operand, Axes(dim)), x.dtype());
  const bool largest = &op == &pmax_op || &op == &pmax_groups_op;
  if (is_bool(x.dtype())) return largest ? any(operand, Axes(dim)) : all(operand, Axes(dim));
  return largest ? max(operand, Axes(dim)) : min(operand, Axes(dim));
}

Batched over_examples(const BatchArgs& args, const CollectiveParams& p) {
  const OpDef& op = *args.node.op;
  const bool same_for_all = args.dims[0] == not_batched && p.groups.empty();
  if (same_for_all && &op == &psum_op)
    return {{astype(multiply(args.in[0], args.size), args.in[0].dtype())}, {not_batched}};
  if (same_for_all && (&op == &pmax_op || &op == &pmin_op || &op == &pbroadcast_op))
    return {{args.in[0]}, {not_batched}};

  if (&op == &ppermute_op || &op == &pbroadcast_op) {
    const Array x = batched_in_front(args, 0);
    if (&op == &pbroadcast_op) return {{squeeze(reorder(x, {p.pairs[0].first}, 0), Axes(0))}, {not_batched}};
    std::vector<int> source(args.size, -1);
    for (const auto& [from, to] : p.pairs) source[to] = from;
    return {{reorder(x, std::move(source), 0)}, {0}};
  }

  const Examples examples(args, p);
  const int dim = p.dim + 2, other = p.other + 2;  // in [group, member, ...]
  if (&op == &all_gather_op)
    return examples.for_all_members(examples.merge(examples.move(examples.x(), 1, dim - 1), dim - 1));
  if (&op == &psum_scatter_op) {
    const Array total = reduce_dim(op, examples.x(), 1);  // [group, ...]
    return examples.by_member(examples.move(examples.split(total, dim - 1, examples.members()), dim - 1, 1));
  }
  if (&op == &all_to_all_op) {
    const Array chunks = examples.move(examples.split(examples.x(), dim, examples.members()), dim,
                                       1);  // [group, to, from, ...]
    return examples.by_member(examples.merge(examples.move(chunks, 2, other), other));
  }
  return examples.for_all_members(reduce_dim(op, examples.x(), 1));
}

}  // namespace

Batched batch_collective(const BatchArgs& args) {
  const auto& p = args.node.params->as<CollectiveParams>();
  if (p.frame != 0 && p.frame == replayed_frame()) return over_examples(args, p);
  auto shifted = p;
  ++shifted.dim;
  ++shifted.other;
  std::vector<Array> in(args.in.begin(), args.in.end());
  in[0] = batch_first(in[0], args.dims[0]);
  if (p.frame != 0) shifted.index = in[1];
  return {{record(*args.node.op, make_params(std::move(shifted)), std::move(in))}, {0}};
}

}  // namespace tessera
