// The table of explain(): the collectives of a program with their bytes and predicted times.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/rates.hpp"
#include "base/text.hpp"
#include "compile/cost.hpp"
#include "compile/forecast/forecast.hpp"
#include "graph/op.hpp"
#include "ops/reduce/tree.hpp"

namespace tessera {
namespace {

// Ring algorithms send p-1 messages (all-reduce twice as many), exchanges one per peer. Bytes that cross
// between hosts use the rates of that link.
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

// The parts of a program that a ReproducibleScope adds: ordered kernels, and the bytes that they move.
struct SameBitsShare {
  std::int64_t trees = 0, others = 0;  // kernels
  std::int64_t bytes = 0;
  double seconds = 0;

  void count(const Instruction& i) {
    if (!i.is<KernelCall>() && !i.is<CommunicatingCall>() && !i.is<FusedChain>()) return;
    const TreeStep step = tree_step(*i.op);
    if (step == TreeStep::root) return;  // its nodes are counted
    ++(step == TreeStep::none ? others : trees);
  }
  PlannedChoice choice() const {
    std::vector<std::string> orders;
    if (trees > 0) orders.push_back(std::to_string(trees) + " as binary trees over global positions");
    if (others > 0)
      orders.push_back(std::to_string(others) + " in the order of the summed dim, which is whole on a rank");
    return {"the same bits on every number of ranks",
            {{"sums " + join(orders, ", "), seconds, bytes, 0, true, "ReproducibleScope"}}};
  }
};
bool is_of_scope(const Instruction& i) { return i.op != nullptr && i.op->same_bits == SameBits::made_for_it; }

class Rows {
 public:
  Rows(Explanation& explanation, const Rates& machine)
      : e_(explanation), machine_(machine), forecast_(machine) {}

  // Adds the rows of a program that runs `times` times. Both parts of a branch have rows, although cost_of
  // counts only the arithmetic of one.
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
      if (is_of_scope(i)) same_bits_.count(i);
      const std::size_t first = e_.collectives.size();
      for (const auto& t : traffic_of(i)) {
        e_.agreement_seconds =
            std::max(e_.agreement_seconds, forecast_.agreement_seconds(mesh_of(program, i)));
        const double panels_s = seconds_of_panels(program, i, t);
        if (panels_s > 0)
          add_row({t.kind, axes_of(t, mesh_of(program, i)), t.bytes * times,
                   panels_s * static_cast<double>(times), what, rule_text(i), t.calls * times,
                   crossing_of(program, i, t) * times});
        else
          add(t, mesh_of(program, i), crossing_of(program, i, t), times, what, rule_text(i));
      }
      e_.predicted_seconds -= overlapped_seconds(program, i, times, first);
      for (std::size_t row = first; is_of_scope(i) && row < e_.collectives.size(); ++row)
        same_bits_.bytes += e_.collectives[row].bytes, same_bits_.seconds += e_.collectives[row].seconds;
      if (const auto* control = i.control())
        for (std::size_t p = 0; p < control->parts.size(); ++p)
          add(control->parts[p], times * control->steps(), inside_text(i, p) + inside);
    }
  }

  const SameBitsShare& same_bits() const { return same_bits_; }

 private:
  // Limit per instruction: beyond it a single row sums up all candidates.
  static constexpr std::int64_t most_rows = 64;

  std::int64_t crossing_of(const Program& program, const Instruction& i, const CommunicationCost& t) {
    const Mesh mesh = mesh_of(program, i);
    return mesh.is_abstract() && forecast_.applies_to(mesh)
               ? forecast_.crossing_bytes(t.kind, t.bytes, mesh, t.axes)
               : crossing_bytes(program, i, t);
  }
  // The seconds of a factorization's panels, which overlap with its updates; 0 for other collectives.
  double seconds_of_panels(const Program& program, const Instruction& i, const CommunicationCost& t) {
    if (t.kind != "broadcast" || !forecast_.applies_to(mesh_of(program, i))) return 0;
    const auto* factorization = grid_factorization_of(program, i);
    return factorization != nullptr ? forecast_.factorization_seconds(program, i, *factorization) : 0;
  }
  // Panels arrive while a product computes, so that only the longer of both counts: on machines from a
  // file, and where messages pass between hosts. The measured rates inside a host include the overlap.
  double overlapped_seconds(const Program& program, const Instruction& i, std::int64_t times,
                            std::size_t first_row) const {
    double moving = 0;
    std::int64_t crossing = 0;
    for (std::size_t row = first_row; row < e_.collectives.size(); ++row) {
      if (e_.collectives[row].kind != "panels") return 0;
      moving += e_.collectives[row].seconds;
      crossing += e_.collectives[row].host_crossing_bytes;
    }
    const Mesh mesh = mesh_of(program, i);
    const bool overlaps =
        mesh.is_abstract() ? machine_.topology.overlaps && forecast_.applies_to(mesh) : crossing > 0;
    if (moving <= 0 || !overlaps) return 0;
    const double computing = local_seconds(program, i, machine_);
    return std::min(computing * static_cast<double>(times), moving);
  }
  static std::string axes_of(const CommunicationCost& t, const Mesh& mesh) {
    return t.axes.empty() ? std::string("-") : axes_text(mesh, t.axes);
  }
  double seconds_of(const CommunicationCost& t, const Mesh& mesh, std::int64_t bytes, std::int64_t crossing) {
    if (forecast_.applies_to(mesh)) return forecast_.seconds(t.kind, bytes, mesh, t.axes);
    const auto p = t.axes.empty() ? mesh.size() : devices_along(mesh, t.axes);
    return collective_seconds(t.kind, bytes, crossing, p, machine_);
  }

  void add(const CommunicationCost& t, const Mesh& mesh, std::int64_t crossing, std::int64_t times,
           const std::string& what, const std::string& rule) {
    const auto calls = t.calls * times;
    const auto axes = axes_of(t, mesh);
    if (calls > most_rows) {
      const double each = seconds_of(t, mesh, t.bytes / t.calls + t.bytes % t.calls, crossing / t.calls);
      add_row({t.kind, axes, t.bytes * times, static_cast<double>(calls) * each, what, rule, calls,
               crossing * times});
      return;
    }
    for (std::int64_t call = 0; call < calls; ++call) {
      const auto bytes = t.bytes / t.calls + (call < times ? t.bytes % t.calls : 0);
      const auto across = crossing / t.calls + (call < times ? crossing % t.calls : 0);
      add_row({t.kind, axes, bytes, seconds_of(t, mesh, bytes, across), what, rule, 1, across});
    }
  }

  void add_row(PlannedCollective row) {
    e_.predicted_seconds += row.seconds;
    e_.collectives.push_back(std::move(row));
  }

  Explanation& e_;
  const Rates& machine_;
  CollectiveForecast forecast_;
  SameBitsShare same_bits_;
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
  const auto machine = rates_of_job();
  Rows rows(e, machine);
  rows.add(program, 1, "");
  if (const auto& share = rows.same_bits(); share.trees + share.others > 0)
    e.choices.push_back(share.choice());
  e.cost = cost_of(program);
  e.memory = memory_of(program);
  e.predicted_seconds += e.agreement_seconds + local_seconds(program, machine);
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
std::int64_t Explanation::kept_bytes() const {
  std::int64_t total = 0;
  for (const auto& value : kept) total += value.is_argument ? 0 : value.bytes;
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

// Merges consecutive equal rows into one: "broadcast ×9", with the bytes and seconds of all.
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

std::string agreement_text(const Explanation& e) {
  if (e.agreement_seconds <= 0) return "";
  return "before it all ranks compare the call: " + human_seconds(e.agreement_seconds) + "\n";
}

// The candidates of one product, a line each; the chosen one is marked.
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

// Text of the layouts chosen for P::automatic, with reasons.
std::string layouts_text(const Explanation& e) {
  std::string text;
  for (const auto& chosen : e.layouts) {
    std::ostringstream layout;
    if (chosen.sharding)
      layout << chosen.sharding->spec() << " over " << chosen.sharding->mesh();
    else
      layout << "as propagated";
    text += "automatic " + chosen.what + ": " + layout.str() + "\n";
  }
  return text + (e.layouts_reason.empty() ? "" : "  " + e.layouts_reason + "\n");
}

// The values that backward passes read, the largest with their lines.
std::string kept_text(const Explanation& e) {
  if (e.kept.empty()) return "";
  constexpr std::size_t most_lines = 12;
  std::string text = "kept for the backward pass, besides arguments: " + format_bytes(e.kept_bytes()) + "\n";
  for (std::size_t i = 0; i < std::min(e.kept.size(), most_lines); ++i)
    text += "  " + e.kept[i].type + ", " + format_bytes(e.kept[i].bytes) + ": " + e.kept[i].what + "\n";
  if (e.kept.size() > most_lines)
    text += "  and " + format_count(static_cast<std::int64_t>(e.kept.size() - most_lines), "smaller value") +
            "\n";
  return text;
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
                     rows_text(e.collectives) + agreement_text(e) + totals + memory_text(e.memory);
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    text += "result " + std::to_string(i) + ": " + e.outputs[i] + "\n";
  for (const auto& choice : e.choices) text += choice_text(choice);
  text += layouts_text(e) + kept_text(e);
  return e.hint.empty() ? text : text + "hint: " + e.hint + "\n";
}
std::ostream& operator<<(std::ostream& out, const Explanation& e) { return out << to_string(e); }

}  // namespace tessera
