#include "stream/roles.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/call.hpp"
#include "ops/contract/dot_general.hpp"
#include "stream/file_source.hpp"
#include "stream/spill/selections.hpp"

namespace tessera::stream {
namespace {

std::string called(const Node& node) {
  return node.call != nullptr ? call_text(node.called()) : "'" + node.op->name + "'";
}

class Finder {
 public:
  Finder(const Graph& graph, const DimClasses& dims, int dim_class) : dims_(dims) {
    roles_.dim_class = dim_class;
    // A placeholder stands for a value that an earlier stage leaves in memory.
    for (const auto& leaf : graph.leaves)
      roles_.of[leaf.node().get()] = {is_parameter(*leaf.node()) ? Role::whole : Role::memory, 0};
    for (const auto& node : graph.nodes) {
      const Role role = role_of(*node);
      roles_.of[node.get()] = role;
      if (role.kind == Role::slab || role.kind == Role::partial)
        roles_.passes = std::max(roles_.passes, role.pass + 1);
      if (!roles_.refusal.empty()) return;
    }
  }
  Roles found() && { return std::move(roles_); }

 private:
  Role role_of(const Node& node) {
    int pass = 0;
    const bool is_at_places = read_at_places(node).has_value();
    bool is_of_files = is_at_places || is_file(node), has_slab = false;
    for (const auto& x : node.inputs) {
      const Role& role = roles_.role(x);
      is_of_files |= role.kind != Role::memory;
      has_slab |= role.kind == Role::slab;
      pass = std::max(pass, role.kind == Role::partial ? role.pass + 1 : role.pass);
    }
    if (!is_of_files) return {Role::memory, 0};
    if (is_file(node)) return file_role(node);
    return has_slab || is_spread(node, is_at_places) ? streamed_role(node, pass) : Role{Role::whole, pass};
  }
  Role file_role(const Node& node) {
    const int dim = dims_.dim_in(roles_.dim_class, node, 0);
    if (dim == -2) refuse(node, "has two dims that would have to be streamed together");
    return {dim >= 0 ? Role::slab : Role::whole, 0};
  }
  // A value repeated along the streamed dim, as a mean that is subtracted, or elements of a file at places
  // that are in memory.
  bool is_spread(const Node& node, bool is_at_places) const {
    if (!is_broadcast(*node.op) && !is_at_places) return false;
    const auto link = link_in(node, dims_, roles_.dim_class);
    return link && (link->in[0] == -1) != is_at_places && link->out[0] >= 0;
  }
  Role streamed_role(const Node& node, int pass) {
    const auto link = link_in(node, dims_, roles_.dim_class);
    const auto in_order = length_in_order(node);
    if (node.same_bits && (!link || (link->is_reduced && !is_tree(node) && in_order == 0)))
      refuse(node, "adds up in the order of a ReproducibleScope, which slabs do not keep");
    if (link && link->is_reduced) {
      has_trees_ |= is_tree(node);
      if (in_order > 0) in_order_ = std::lcm(std::max<std::int64_t>(in_order_, 1), in_order);
      if (has_trees_ &&
          !std::has_single_bit(static_cast<std::uint64_t>(std::max<std::int64_t>(in_order_, 1))))
        refuse(node, "adds up in slabs of other lengths than a product's, which has " +
                         std::to_string(in_order_) + " indices each; compute them one after the other");
    }
    if (!link) {
      refuse(node, "needs all of the dim at a time (" + reason(node) + ")");
      return {Role::whole, pass};
    }
    if (link->is_reduced)
      if (const auto centred = in_pass_of_total(node)) pass = *centred;
    return {link->is_reduced ? Role::partial : Role::slab, pass};
  }
  // The pass of the mean, if the node sums up the squared distances from it.
  std::optional<int> in_pass_of_total(const Node& node) {
    auto centred = centred_sum_of(node);
    if (!centred) return std::nullopt;
    const Role &total = roles_.role(centred->total), &x = roles_.role(centred->x);
    if (total.kind != Role::partial || x.kind != Role::slab || x.pass > total.pass) return std::nullopt;
    roles_.centred.emplace(&node, std::move(*centred));
    return total.pass;
  }
  static std::string reason(const Node& node) {
    const Rule* rule = rule_of(*node.op);
    return rule != nullptr ? "its dims: " + rule->text.text() : "op '" + node.op->name + "'";
  }
  void refuse(const Node& node, const std::string& why) {
    if (!roles_.refusal.empty()) return;
    roles_.refusal = called(node) + " " + why;
    roles_.refused_by = &node;
  }

  const DimClasses& dims_;
  Roles roles_;
  bool has_trees_ = false;     // sums whose slabs have 2^k indices
  std::int64_t in_order_ = 0;  // products whose slabs have multiples of this
};

// Whether each operand and result has its dim of the class where the link says, and no other.
bool carries(const DimLink& link, const Node& node, const DimClasses& dims, int dim_class) {
  for (std::size_t i = 0; i < link.in.size(); ++i)
    if (dims.dim_in(dim_class, node.inputs[i]) != link.in[i]) return false;
  for (std::size_t i = 0; i < link.out.size(); ++i)
    if (dims.dim_in(dim_class, node, static_cast<int>(i)) != link.out[i]) return false;
  const bool has_result = std::all_of(link.out.begin(), link.out.end(), [](int d) { return d >= 0; });
  return link.is_reduced || has_result;
}

}  // namespace

std::optional<DimLink> link_in(const Node& node, const DimClasses& dims, int dim_class) {
  for (const auto& link : dims.links(node))
    if (carries(link, node, dims, dim_class)) return link;
  return std::nullopt;
}

bool is_tree(const Node& node) { return parts_of(*node.op) == Parts::tree_nodes; }

Roles roles_in(const Graph& graph, const DimClasses& dims, int dim_class) {
  return Finder(graph, dims, dim_class).found();
}

}  // namespace tessera::stream
