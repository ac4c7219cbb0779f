// Gradients of counted loops.
//
//   forward    c0 ──> c1 ──> c2 ──> c3        the loop again, which also stacks the values that the backward
//               r0     r1     r2              pass reads (residuals r); compile/loops.cpp merges both loops
//   backward   ct0 <── ct1 <── ct2 <── ct3    last step first; carries the cotangents of carried values, and
//                                             sums those of captures; reads r, makes the stacks' cotangents
//
// Tangents accompany the values: one loop over (carried, tangents), without stacks.
#include <algorithm>
#include <unordered_set>

#include "control/counted_loop.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "transforms/forward.hpp"
#include "transforms/vjp.hpp"

namespace tessera {
namespace {

// Values recomputed in the backward pass instead of stored.
bool is_recomputed(const Node& node) {
  return node.inputs.empty() || is_alias(*node.op) || is_broadcast(*node.op);
}

Array placeholder_of(const Type& type, const Array& like, std::uint64_t varying) {
  const OnBehalfOf same_place(like.node()->called());
  return make_placeholder({type.shape, type.dtype, false}, output_of(like).sharding, like.node()->region,
                          varying);
}

class LoopGradient {
 public:
  explicit LoopGradient(const VjpArgs& v) : v_(v), p_(v.node.params->as<CountedParams>()) {
    const auto& parameters = p_.body->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      is_varied_.push_back(is_inexact(parameters[i].dtype()) && (i < p_.n_carried() || v.wanted[i]));
    for (std::size_t k = 0; k < v.out.size(); ++k) {
      const bool counts = is_inexact(v.out[k].dtype()) && (k < p_.n_carried() || v.cotangents[k].node());
      if (counts) from_.push_back(k);
    }
  }

  Cotangents run() {
    Cotangents result(v_.in.size());
    if (from_.empty()) return result;
    trace_body();
    settle_axes();
    const auto residuals = keep_residuals();
    const auto made = run_backward(residuals);
    std::size_t next = 0;
    for (const auto i : summed_) result[i] = made[next++];
    for (const auto i : stacks_) result[i] = made[next++];
    return result;
  }

 private:
  bool is_capture(std::size_t i) const { return i >= p_.n_carried() && !p_.is_stack(i); }

  // Traces the body on watched operands.
  void trace_body() {
    const auto& parameters = p_.body->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      operands_.push_back(is_varied_[i] ? make_alias(parameters[i]) : parameters[i]);
      if (is_varied_[i]) watched_.push_back(operands_.back());
      if (is_varied_[i]) (p_.is_stack(i) ? stacks_ : summed_).push_back(i);
    }
    results_ = call(*p_.body, operands_);
    std::vector<Array> ends;
    for (const auto k : from_) ends.push_back(results_[k]);
    tape_ = std::make_unique<detail::Tape>(watched_, ends, std::vector<Array>{}, "grad");
    last_forward_ = last_serial();
    forward_ = cut(ends, [&](const NodePtr& node) { return is_parameter(*node); });
  }

  // Records the backward body on placeholders: from cotangents of the results to those of the watched
  // operands. In a mapped function a cotangent may start to vary along an axis after some steps; it is then
  // marked as varying from the beginning.
  void settle_axes() {
    for (const auto k : from_)
      varying_.push_back(v_.cotangents[k].node() ? output_of(v_.cotangents[k]).varying : 0);
    for (int round = 0;; ++round) {
      cotangents_.clear();
      for (std::size_t n = 0; n < from_.size(); ++n)
        cotangents_.push_back(
            placeholder_of(type_of(results_[from_[n]]), carried_or_result(from_[n]), varying_[n]));
      pulled_ = tape_->pull_back(cotangents_);
      bool changed = false;
      for (std::size_t w = 0, n = 0; w < watched_.size() && n < from_.size() && summed_carried(w); ++w, ++n) {
        const auto own = pulled_[w].node() ? output_of(pulled_[w]).varying : 0;
        if ((own & ~varying_[n]) != 0) varying_[n] |= own, changed = true;
      }
      if (!changed) return;
      if (round == 8) throw InternalError("scan: the mapped axes of the cotangents do not settle");
    }
  }
  // The carried operands come first among the watched operands, and likewise among the results with
  // cotangents, in the same order.
  bool summed_carried(std::size_t w) const { return summed_.size() > w && summed_[w] < p_.n_carried(); }
  const Array& carried_or_result(std::size_t k) const {
    return k < p_.n_carried() ? p_.body->parameters()[k] : results_[k];
  }

  std::vector<Array> reached() const {
    std::vector<Array> roots;
    for (const auto& x : pulled_)
      if (x.node()) roots.push_back(x);
    return roots;
  }

  // Cuts the backward body at the values of the forward body that it reads.
  Graph backward_graph() const {
    std::unordered_set<const Node*> forward;
    for (const auto& node : forward_.nodes) forward.insert(node.get());
    for (const auto& x : watched_) forward.insert(x.node().get());
    return cut(reached(), [&](const NodePtr& node) {
      if (node->is_evaluated() || is_parameter(*node)) return true;
      if (!forward.contains(node.get())) return node->serial <= last_forward_;
      return !is_recomputed(*node);
    });
  }

  // Records the loop again with more stacks: one for each value of the forward body that the backward body
  // reads.
  std::vector<Array> keep_residuals() {
    backward_ = backward_graph();
    std::unordered_set<const Node*> forward;
    for (const auto& node : forward_.nodes) forward.insert(node.get());
    auto results = results_;
    for (const auto& leaf : backward_.leaves) {
      const auto found = std::find_if(p_.body->parameters().begin(), p_.body->parameters().end(),
                                      [&](const Array& x) { return x.node() == leaf.node(); });
      const auto i = static_cast<std::size_t>(found - p_.body->parameters().begin());
      const bool is_kept =
          found == p_.body->parameters().end() ? forward.contains(leaf.node().get()) : i < p_.n_carried();
      if (is_kept) kept_.push_back(leaf);
    }
    results.insert(results.end(), kept_.begin(), kept_.end());
    if (kept_.empty()) return {};
    CountedParams params = p_;
    params.body = std::make_shared<const ClosedFunction>(p_.body->parameters(), std::move(results));
    const auto all = record_all(*v_.node.op, make_params(std::move(params)), {v_.in.begin(), v_.in.end()});
    return {all.begin() + static_cast<std::ptrdiff_t>(v_.out.size()), all.end()};
  }

  // Runs the backward loop. carried: cotangents of carried values, sums of the captures' cotangents. read:
  // cotangents of the stacks made, residuals, stacks.
  std::vector<Array> run_backward(const std::vector<Array>& residuals) {
    std::vector<Array> init, stacks, placeholders;  // placeholders: replaced by the entries
    for (const auto i : summed_) init.push_back(first_sum(i));
    for (std::size_t n = 0; n < from_.size(); ++n)
      if (from_[n] >= p_.n_carried())
        stacks.push_back(v_.cotangents[from_[n]]), placeholders.push_back(cotangents_[n]);
    for (std::size_t r = 0; r < residuals.size(); ++r)
      stacks.push_back(residuals[r]), placeholders.push_back(kept_[r]);
    ArrayMap outer;  // captures keep their outside value
    for (std::size_t i = p_.n_carried(); i < v_.in.size(); ++i) {
      const Array& parameter = p_.body->parameters()[i];
      if (p_.is_stack(i))
        stacks.push_back(v_.in[i]), placeholders.push_back(parameter);
      else
        outer[key_of_array(parameter)] = v_.in[i];
    }
    const StepFunction step = [&](const std::vector<Array>& carried, const std::vector<Array>& entries) {
      ArrayMap values = outer;
      std::size_t next = 0;
      for (std::size_t n = 0; n < from_.size(); ++n)
        if (from_[n] < p_.n_carried()) values[key_of_array(cotangents_[n])] = carried[next++];
      for (std::size_t e = 0; e < entries.size(); ++e) values[key_of_array(placeholders[e])] = entries[e];
      return backward_step(replayed(backward_, std::move(values)), carried);
    };
    return record_counted_loop({p_.name.c_str()}, step, std::move(init), std::move(stacks), p_.length,
                               !p_.reverse);
  }

  Array first_sum(std::size_t i) const {
    if (i < p_.n_carried()) return v_.cotangents[i].node() ? v_.cotangents[i] : detail::zeros_for(v_.out[i]);
    return detail::zeros_for(v_.in[i]);
  }

  // Converts the cotangents of watched operands to the carried values and entries of the backward loop.
  std::vector<Array> backward_step(const std::vector<Array>& found, const std::vector<Array>& carried) const {
    std::vector<Array> pulled(p_.body->parameters().size());
    std::size_t next = 0;
    for (std::size_t w = 0, i = 0; i < pulled.size(); ++i)
      if (is_varied_[i]) {
        if (pulled_[w].node()) pulled[i] = found[next++];
        ++w;
      }
    std::vector<Array> out;
    for (std::size_t s = 0; s < summed_.size(); ++s) {
      const Array& term = pulled[summed_[s]];
      if (is_capture(summed_[s]))
        out.push_back(term.node() ? carried[s] + term : carried[s]);
      else
        out.push_back(term.node() ? term : detail::zeros_for(carried[s]));
    }
    for (const auto i : stacks_)
      out.push_back(pulled[i].node() ? pulled[i] : detail::zeros_for(p_.body->parameters()[i]));
    return out;
  }

  const VjpArgs& v_;
  const CountedParams& p_;
  std::vector<bool> is_varied_;  // per operand of the body
  std::vector<std::size_t>
      from_;  // results with cotangents: all inexact carried ones, and stacks with a cotangent
  std::vector<std::size_t> summed_, stacks_;  // watched operands: carried values and captures; stacks
  std::vector<Array> operands_, watched_, results_;
  std::unique_ptr<detail::Tape> tape_;
  std::uint64_t last_forward_ = 0;
  Graph forward_, backward_;
  std::vector<std::uint64_t> varying_;
  std::vector<Array> cotangents_, pulled_, kept_;
};

}  // namespace

Cotangents vjp_of_counted_loop(const VjpArgs& v) { return LoopGradient(v).run(); }

std::vector<Array> jvp_of_counted_loop(const JvpArgs& args) {
  const auto& p = args.node.params->as<CountedParams>();
  const auto n = p.n_carried();
  const auto& parameters = p.body->parameters();
  std::vector<bool> varied;
  std::vector<Array> init(args.in.begin(), args.in.begin() + static_cast<std::ptrdiff_t>(n)), stacks,
      first_tangents, stack_tangents;
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    varied.push_back(i < n ? is_inexact(parameters[i].dtype()) : args.tangents[i].node() != nullptr);
    if (i < n && varied[i])
      first_tangents.push_back(args.tangents[i].node() ? args.tangents[i] : detail::zeros_for(args.in[i]));
    if (p.is_stack(i)) stacks.push_back(args.in[i]);
    if (p.is_stack(i) && varied[i]) stack_tangents.push_back(args.tangents[i]);
  }
  const auto n_stacks = stacks.size();
  init.insert(init.end(), first_tangents.begin(), first_tangents.end());
  stacks.insert(stacks.end(), stack_tangents.begin(), stack_tangents.end());
  std::vector<bool> made_tangent;
  const StepFunction step = [&](const std::vector<Array>& carried, const std::vector<Array>& entries) {
    std::vector<Array> operands, watched, tangents;
    std::size_t next_carried = n, next_entry = n_stacks;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Array value = i < n ? carried[i] : p.is_stack(i) ? entries[i - n] : args.in[i];
      operands.push_back(varied[i] ? make_alias(value) : value);
      if (!varied[i]) continue;
      watched.push_back(operands.back());
      tangents.push_back(i < n           ? carried[next_carried++]
                         : p.is_stack(i) ? entries[next_entry++]
                                         : args.tangents[i]);
    }
    auto results = call(*p.body, operands);
    const auto pushed = detail::Tape(watched, results, {}, args.call).push_forward(tangents);
    std::vector<Array> out(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(n));
    for (std::size_t i = 0; i < n; ++i)
      if (varied[i]) out.push_back(pushed[i].node() ? pushed[i] : detail::zeros_for(results[i]));
    out.insert(out.end(), results.begin() + static_cast<std::ptrdiff_t>(n), results.end());
    made_tangent.assign(results.size(), false);
    for (std::size_t k = n; k < results.size(); ++k)
      if (pushed[k].node()) out.push_back(pushed[k]), made_tangent[k] = true;
    return out;
  };
  const auto all =
      record_counted_loop({p.name.c_str()}, step, std::move(init), std::move(stacks), p.length, p.reverse);
  std::vector<Array> result(args.out.size());
  std::size_t next = n;
  for (std::size_t k = 0; k < n; ++k)
    if (varied[k]) result[k] = all[next++];
  next += args.out.size() - n;
  for (std::size_t k = n; k < result.size(); ++k)
    if (made_tangent[k]) result[k] = all[next++];
  return result;
}

}  // namespace tessera
