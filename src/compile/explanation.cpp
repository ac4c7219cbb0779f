// The table of explain(): the collectives of a program with their bytes and predicted times.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/rates.hpp"
#include "base/text.hpp"
#include "compile/cost.hpp"
#include "compile/crossing.hpp"

namespace tessera {
namespace {

// Ring algorithms send p-1 messages (all-reduce twice as many), exchanges one per peer. What crosses between
// hosts takes their link.
double collective_seconds(const std::string& kind, std::int64_t bytes, std::int64_t crossing, std::int64_t p,
                          const Rates& machine) {
  const double others = static_cast<double>(std::max<std::int64_t>(1, p - 1));
  const double messages = kind == "all-reduce"           ? 2.0 * std::ceil(std::log2(others + 1))
                          : kind == "collective-permute" ? 1
                                                         : others;
  const double across =
      crossing == 0 ? 0
                    : machine.between.latency_s + static_cast<double>(crossing) / machine.between.bytes_per_s;
  return messages * machine.inside.latency_s +
         static_cast<double>(bytes - crossing) / machine.inside.bytes_per_s + across;
}

// The context of a row: "in 100 steps of scan at train.cpp:12".
std::string inside_text(const Instruction& i, std::size_t part) {
  const Control& control = *i.control();
  const auto name = (control.call.empty() ? i.op->name : control.call) + " at " + site(i.where);
  return std::visit(overloaded{[&](const CountedLoop& loop) {
                                 return ", in " + std::to_string(loop.length) + " steps of " + name;
                               },
                               [&](const Branch&) {
                                 return ", where the predicate of " + name +
                                        (part == 0 ? " is true" : " is false");
                               },
                               [&](const UntilLoop&) { return ", in each step of " + name; }},
                    control.kind);
}

std::string rule_text(const Instruction& i) {
  const Rule* rule = i.op != nullptr ? rule_of(*i.op) : nullptr;
  return rule == nullptr ? "" : rule->text.text();
}

class Rows {
 public:
  Rows(Explanation& explanation, const Rates& machine) : e_(explanation), machine_(machine) {}

  // Adds the rows of a program that runs `times` times. Both parts of a branch have rows; cost_of counts its
  // arithmetic.
  void add(const Program& program, std::int64_t times, const std::string& inside) {
    for (auto choice : program.choices) {
      choice.what += inside;
      e_.choices.push_back(std::move(choice));
    }
    for (const auto& i : program.instructions) {
      const auto what = (i.call != nullptr ? i.call
                         : i.op            ? i.op->name
                                           : std::string("result")) +
                        " at " + site(i.where) + inside;
      for (const auto& t : traffic_of(i))
        add(t, mesh_of(program, i), crossing_bytes(program, i, t), times, what, rule_text(i));
      if (const auto* control = i.control())
        for (std::size_t p = 0; p < control->parts.size(); ++p)
          add(control->parts[p], times * control->steps(), inside_text(i, p) + inside);
    }
  }

 private:
  static constexpr std::int64_t most_rows = 64;  // of one instruction: past that one row stands for all

  void add(const TalkCost& t, const Mesh& mesh, std::int64_t crossing, std::int64_t times,
           const std::string& what, const std::string& rule) {
    const auto calls = t.calls * times;
    const auto p = t.axes.empty() ? mesh.size() : devices_along(mesh, t.axes);
    const auto axes = t.axes.empty() ? std::string("-") : axes_text(mesh, t.axes);
    if (calls > most_rows) {
      const double each =
          collective_seconds(t.kind, t.bytes / t.calls + t.bytes % t.calls, crossing / t.calls, p, machine_);
      add_row({t.kind, axes, t.bytes * times, static_cast<double>(calls) * each, what, rule, calls,
               crossing * times});
      return;
    }
    for (std::int64_t call = 0; call < calls; ++call) {
      const auto bytes = t.bytes / t.calls + (call < times ? t.bytes % t.calls : 0);
      const auto across = crossing / t.calls + (call < times ? crossing % t.calls : 0);
      add_row({t.kind, axes, bytes, collective_seconds(t.kind, bytes, across, p, machine_), what, rule, 1,
               across});
    }
  }

  void add_row(PlannedCollective row) {
    e_.predicted_seconds += row.seconds;
    e_.collectives.push_back(std::move(row));
  }

  Explanation& e_;
  const Rates& machine_;
};

std::string human_seconds(double s) {
  char text[32];
  if (s < 1e-3)
    std::snprintf(text, sizeof text, "%.1f us", s * 1e6);
  else if (s < 1)
    std::snprintf(text, sizeof text, "%.2f ms", s * 1e3);
  else
    std::snprintf(text, sizeof text, "%.2f s", s);
  return text;
}

}  // namespace

Explanation explanation_of(const Program& program) {
  Explanation e;
  const auto machine = rates();
  Rows(e, machine).add(program, 1, "");
  e.cost = cost_of(program);
  e.memory = memory_of(program);
  e.predicted_seconds += e.cost.flops / machine.flops_per_s +
                         static_cast<double>(e.cost.bytes_accessed) / machine.memory_bytes_per_s;
  for (const int v : program.outputs) {
    const auto& value = program.values[v];
    std::ostringstream text;
    text << to_string(value.type) << " " << value.layout.spec() << " over " << value.layout.mesh()
         << ", block " << to_string(value.layout.shard_shape(value.type.shape));
    e.outputs.push_back(text.str());
  }
  return e;
}

std::int64_t Explanation::bytes() const {
  std::int64_t total = 0;
  for (const auto& c : collectives) total += c.bytes;
  return total;
}
std::int64_t Explanation::bytes(const std::string& kind) const {
  std::int64_t total = 0;
  for (const auto& c : collectives)
    if (c.kind == kind) total += c.bytes;
  return total;
}
std::int64_t Explanation::host_crossing_bytes() const {
  std::int64_t total = 0;
  for (const auto& c : collectives) total += c.host_crossing_bytes;
  return total;
}
std::int64_t Explanation::calls(const std::string& kind) const {
  std::int64_t total = 0;
  for (const auto& c : collectives)
    if (kind.empty() || c.kind == kind) total += c.calls;
  return total;
}

const Explanation& Explanation::forbid(const std::string& kind) const {
  static const char* const kinds[] = {"all-gather",         "all-reduce", "reduce-scatter", "all-to-all",
                                      "collective-permute", "broadcast",  "panels"};
  if (std::find(std::begin(kinds), std::end(kinds), kind) == std::end(kinds))
    throw ArgumentError("forbid: there is no collective '" + kind +
                        "'; name one of all-gather, all-reduce, reduce-scatter, all-to-all, "
                        "collective-permute, broadcast, panels");
  if (calls(kind) == 0) return *this;
  std::ostringstream text;
  text << "explain: " << calls(kind) << " " << kind << " would move " << format_bytes(bytes(kind))
       << " per rank, and " << kind << " is forbidden:";
  for (const auto& c : collectives)
    if (c.kind == kind)
      text << "\n  " << c.kind << " over " << c.axes << ", " << format_bytes(c.bytes) << " per rank, for "
           << c.what;
  text << "\nPlace the operands so that their split dimensions agree, or allow it.";
  throw ShardingError(text.str());
}

const Explanation& Explanation::limit_bytes(std::int64_t budget) const {
  if (bytes() <= budget) return *this;
  throw ShardingError("explain: " + std::to_string(bytes()) + " bytes per rank would move, the budget is " +
                      std::to_string(budget) + ":\n" + to_string(*this));
}

namespace {

bool alike(const PlannedCollective& a, const PlannedCollective& b) {
  return a.kind == b.kind && a.axes == b.axes && a.what == b.what;
}

std::string row_text(const PlannedCollective& c) {
  const std::string kind = c.kind + (c.calls > 1 ? " ×" + std::to_string(c.calls) : "");
  const int width = c.calls > 1 ? 20 : 19;  // × has two bytes
  char row[160];
  std::snprintf(row, sizeof row, "%-*s %-8s %12s %11s  ", width, kind.c_str(), c.axes.c_str(),
                format_bytes(c.bytes).c_str(), human_seconds(c.seconds).c_str());
  const std::string across =
      c.host_crossing_bytes > 0 ? " (" + format_bytes(c.host_crossing_bytes) + " between hosts)" : "";
  return row + c.what + across + (c.rule.empty() ? "" : " by \"" + c.rule + "\"") + "\n";
}

// Rows that follow each other and are alike become one: "broadcast ×9", the bytes and seconds of all.
std::string rows_text(const std::vector<PlannedCollective>& rows) {
  std::string text;
  for (std::size_t n = 0; n < rows.size();) {
    PlannedCollective sum = rows[n];
    for (++n; n < rows.size() && alike(rows[n], sum); ++n)
      sum.bytes += rows[n].bytes, sum.host_crossing_bytes += rows[n].host_crossing_bytes,
          sum.seconds += rows[n].seconds, sum.calls += rows[n].calls;
    text += row_text(sum);
  }
  return text.empty() ? "(none: nothing moves)\n" : text;
}

// The candidates of one product: a line each, the chosen one marked.
std::string choice_text(const PlannedChoice& choice) {
  std::string text = "candidates for " + choice.what + "\n";
  for (const auto& c : choice.candidates) {
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, "%11s %12s moved %12s temporary  ",
                  human_seconds(c.seconds).c_str(), format_bytes(c.bytes).c_str(),
                  format_bytes(c.temporary_bytes).c_str());
    text += std::string(c.chosen ? "* " : "  ") + numbers + c.strategy + ": " + c.why + "\n";
  }
  return text;
}

std::string memory_text(const MemoryAnalysis& memory) {
  return "memory per rank: arguments " + format_bytes(memory.argument_bytes) + ", results " +
         format_bytes(memory.output_bytes) + ", temporaries " + format_bytes(memory.temporary_bytes) +
         ", peak " + format_bytes(memory.peak_bytes) + "\n";
}

}  // namespace

std::string to_string(const Explanation& e) {
  char totals[200];
  const std::string across =
      e.host_crossing_bytes() > 0 ? " (" + format_bytes(e.host_crossing_bytes()) + " between hosts)" : "";
  std::snprintf(totals, sizeof totals, "total moved per rank %s%s, %.3g flop per rank, predicted %s\n",
                format_bytes(e.bytes()).c_str(), across.c_str(), e.cost.flops,
                human_seconds(e.predicted_seconds).c_str());
  std::string text = "collective          over      bytes/rank   predicted  for\n" +
                     rows_text(e.collectives) + totals + memory_text(e.memory);
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    text += "result " + std::to_string(i) + ": " + e.outputs[i] + "\n";
  for (const auto& choice : e.choices) text += choice_text(choice);
  return text;
}
std::ostream& operator<<(std::ostream& out, const Explanation& e) { return out << to_string(e); }

}  // namespace tessera
