#include "graph/node.hpp"

#include <sstream>

#include "base/text.hpp"
#include "graph/op.hpp"

namespace tessera {

ParamsPtr no_params() {
  static const ParamsPtr none = std::make_shared<const Params>();
  return none;
}

namespace {
void lose_reader(Node& node) {
  if (--node.readers > 0) return;
  for (auto& output : node.outputs)
    if (output.deleted && output.stored) output.stored->buffer.reset();
}
}  // namespace

void drop_inputs(Node& node) {
  for (const auto& x : node.inputs) lose_reader(*x.node());
  node.inputs.clear();
}

// Releases inputs iteratively: the default destructor would recurse once per node, and a chain of a million
// ops would overflow the stack. The nodes to release form an intrusive list, so no memory is needed.
Node::~Node() {
  if (inputs.empty()) return;
  NodePtr first;
  const auto take = [&first](Node& node) {
    while (!node.inputs.empty()) {
      NodePtr released = node.inputs.back().node();
      node.inputs.pop_back();
      if (!released) continue;
      lose_reader(*released);
      if (released.use_count() != 1) continue;
      released->next_released = std::move(first);
      first = std::move(released);
    }
  };
  take(*this);
  while (first) {
    const NodePtr node = std::move(first);
    first = std::move(node->next_released);
    take(*node);
  }
}

// The owners that an InExpression accounts for: the expression's handle, and itself.
constexpr std::uint32_t owners_of_a_mark = 2;

detail::InExpression::InExpression(const Array& part) : node_(part.node()) {
  if (node_) node_->owners_in_expressions += owners_of_a_mark;
}
detail::InExpression::InExpression(const InExpression& other) : node_(other.node_) {
  if (node_) node_->owners_in_expressions += owners_of_a_mark;
}
detail::InExpression& detail::InExpression::operator=(InExpression other) noexcept {
  std::swap(node_, other.node_);
  return *this;
}
detail::InExpression::~InExpression() {
  if (node_) node_->owners_in_expressions -= owners_of_a_mark;
}

std::string to_string(const Type& type) {
  std::string text = name(type.dtype) + "[";
  for (std::size_t d = 0; d < type.shape.size(); ++d) text += (d ? "," : "") + std::to_string(type.shape[d]);
  return text + "]";
}

std::string site(const std::source_location& where) { return format_site(where); }

std::string describe(const Array& x) {
  std::ostringstream text;
  const auto& output = output_of(x);
  text << to_string(output.type);
  if (output.sharding)
    text << " " << output.sharding->spec() << " over " << output.sharding->mesh();
  else
    text << " (uncommitted)";
  if (x.node()->where.line() != 0) text << " from " << site(x.node()->where);
  return text.str();
}

}  // namespace tessera
