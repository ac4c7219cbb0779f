// Calls, branches and loops: tessera's own, so that a loop is planned once and runs in the program.
#include <tessera/control.hpp>
#include <tessera/ops.hpp>

#include <limits>

#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/known.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

detail::LoopSite site_of(const OpCall& s, std::size_t leaves) {
  detail::LoopSite site{"stablehlo.while", s.run.line(s.op.place), {}};
  for (std::size_t i = 0; i < leaves; ++i) site.leaf_names.push_back("[" + std::to_string(i) + "]");
  return site;
}

// ---- calls ----

Arrays call(OpCall& s) {
  const Function& function = s.run.function(s.word("callee"), s.op.place);
  if (auto results = known_call(s, function)) return *results;
  return s.run.call(function, s.x, s.op.place);
}

// An operation with a meaning of its own, by that if it is known, or by the function that describes it.
Arrays composite(OpCall& s) {
  const auto name = s.word("name");
  const auto rule = rules().find(name);
  const Attribute* attributes = s.find("composite_attributes");
  if (name.starts_with("chlo.") && rule != rules().end()) {
    Operation op;
    op.name = name, op.place = s.op.place, op.operands = s.op.operands, op.results = s.op.results;
    if (attributes != nullptr) op.attributes = *attributes;
    OpCall known{s.run, s.frame, op, s.x, s.is_lifted};
    return rule->second(known);
  }
  return s.run.call(s.run.function(s.word("decomposition"), s.op.place), s.x, s.op.place);
}

// ---- branches ----

using Branch = std::function<Arrays()>;

Arrays branched(OpCall& s, const Array& predicate, const Branch& yes, const Branch& no) {
  return detail::compiled_cond(Operand(predicate, s.run.line(s.op.place)), yes, no);
}

Branch branch_of(OpCall& s, std::size_t n) {
  return [&s, n] { return s.run.region(s.frame, s.op.regions[n], {}); };
}

// An index out of range chooses the last branch.
Arrays case_rule(OpCall& s) {
  s.want_operands(1);
  const auto count = s.op.regions.size();
  if (count == 0 || count > 1000 || s.x[0].ndim() != 0 || !is_integer(s.x[0].dtype()))
    s.refuse("takes an integer and 1 to 1000 branches");
  const std::function<Arrays(std::size_t)> from = [&](std::size_t n) {
    if (n + 1 == count) return branch_of(s, n)();
    return branched(s, equal(s.x[0], number_like(static_cast<std::int64_t>(n), s.x[0])), branch_of(s, n),
                    [&from, n] { return from(n + 1); });
  };
  return from(0);
}

Arrays if_rule(OpCall& s) {
  s.want_operands(1);
  if (s.op.regions.size() != 2 || s.x[0].ndim() != 0 || s.x[0].dtype() != bool_)
    s.refuse("takes a bool and two branches");
  return branched(s, s.x[0], branch_of(s, 0), branch_of(s, 1));
}

// ---- loops ----

class Loop {
 public:
  explicit Loop(OpCall& s) : s_(s), condition_(s.op.regions[0]), body_(s.op.regions[1]) {
    const auto& returned = body_.operations.back().operands;
    if (returned.size() != s.x.size())
      s.refuse("the body returns " + std::to_string(returned.size()) + " values and not " +
               std::to_string(s.x.size()));
    find_counter();
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      is_fixed_.push_back(returned[i] == body_.arguments[i]);
      if (!is_fixed_[i] && !(counter_ && *counter_ == i)) carried_.push_back(i);
    }
  }

  Arrays run() { return counter_ ? run_counted() : run_until(); }

 private:
  // i of `i < n` that the body counts up by one from a known number to a known number.
  void find_counter() {
    const auto& answer = condition_.operations.back().operands;
    const Operation* less = answer.size() == 1 ? maker_in(condition_, answer[0]) : nullptr;
    if (less == nullptr || less->name != "stablehlo.compare" || comparison_of(*less).first != "LT" ||
        less->operands.size() != 2)
      return;
    for (std::size_t i = 0; i < s_.x.size(); ++i) {
      if (less->operands[0] != condition_.arguments[i] || !is_integer(s_.x[i].dtype()) || s_.x[i].ndim() != 0)
        continue;
      const auto stop = constant_of(s_.frame, less->operands[1]),
                 start = constant_of(s_.frame, s_.op.operands[i]);
      const Operation* next = maker_in(body_, body_.operations.back().operands[i]);
      if (!stop || !start || next == nullptr || next->name != "stablehlo.add" || next->operands.size() != 2)
        return;
      const bool is_left = next->operands[0] == body_.arguments[i],
                 is_right = next->operands[1] == body_.arguments[i];
      if (is_left == is_right || constant_of(s_.frame, next->operands[is_left ? 1 : 0]) != 1) return;
      constexpr double most = std::numeric_limits<int>::max();
      if (*start < -most || *start > most || *stop < -most || *stop > most) return;
      counter_ = i, start_ = static_cast<int>(*start), stop_ = static_cast<int>(*stop);
    }
  }

  // All values of the loop from those that it carries.
  Arrays all(const Arrays& carried, const Array& counter = {}) const {
    Arrays values = s_.x;
    for (std::size_t n = 0; n < carried_.size(); ++n) values[carried_[n]] = carried[n];
    if (counter_) values[*counter_] = counter;
    return values;
  }
  Arrays only_carried(const Arrays& values) const {
    Arrays carried;
    for (const auto i : carried_) carried.push_back(values[i]);
    return carried;
  }
  Arrays step(const Arrays& carried, const Array& counter = {}) const {
    return only_carried(s_.run.region(s_.frame, body_, all(carried, counter)));
  }

  Arrays run_counted() const {
    const auto steps = static_cast<std::int64_t>(stop_) - start_;
    if (steps <= 0) return s_.x;
    const Dtype dtype = s_.x[*counter_].dtype();
    Arrays carried = only_carried(s_.x);
    constexpr std::int64_t longest_unrolled = 8;  // as tessera's own loops
    if (steps <= longest_unrolled || carried.empty()) {
      for (int i = start_; i < stop_ && !carried.empty(); ++i)
        carried = step(carried, number_of(std::int64_t{i}, dtype));
    } else {
      carried = detail::compiled_fori(
          site_of(s_, carried.size()), start_, stop_,
          [&](const Array& i, const Arrays& values) { return step(values, astype(i, dtype)); }, carried);
    }
    return all(carried, number_of(std::int64_t{stop_}, dtype));
  }

  Arrays run_until() const {
    if (carried_.empty()) s_.refuse("no value of the loop changes: it would not end, or never begin");
    const auto condition = [&](const Arrays& values) {
      return Arrays{s_.run.region(s_.frame, condition_, all(values)).at(0)};
    };
    const auto body = [&](const Arrays& values) { return step(values); };
    return all(detail::compiled_while(site_of(s_, carried_.size()), condition, body, only_carried(s_.x)));
  }

  OpCall& s_;
  const RegionText &condition_, &body_;
  std::vector<bool> is_fixed_;        // given back as it was
  std::vector<std::size_t> carried_;  // neither fixed nor the counter
  std::optional<std::size_t> counter_;
  int start_ = 0, stop_ = 0;
};

Arrays while_rule(OpCall& s) {
  if (s.op.regions.size() != 2 || s.op.regions[0].arguments.size() != s.x.size() ||
      s.op.regions[1].arguments.size() != s.x.size())
    s.refuse("takes a condition and a body of as many values as it carries");
  if (s.op.regions[0].operations.back().operands.size() != 1) s.refuse("the condition returns one value");
  if (auto results = known_loop(s)) return *results;
  return Loop(s).run();
}

}  // namespace

void add_control(Rules& rules) {
  rules["call"] = call;
  rules["func.call"] = call;
  rules["stablehlo.composite"] = composite;
  rules["stablehlo.case"] = case_rule;
  rules["stablehlo.if"] = if_rule;
  rules["stablehlo.while"] = while_rule;
}

}  // namespace tessera::stablehlo
