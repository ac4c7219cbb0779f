#include "compile/cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/session.hpp"

namespace tessera {
namespace {

std::int64_t block_bytes(const ProgramValue& value) {
  return value.layout.shard_shape(value.type.shape).elements() *
         static_cast<std::int64_t>(itemsize(value.type.dtype));
}

int group_size(const Mesh& mesh, const std::vector<int>& axes) {
  int size = 1;
  for (const int a : axes) size *= mesh.axis_sizes()[a];
  return axes.empty() ? mesh.size() : size;
}

// Ring algorithms send p-1 messages (all-reduce twice as many), exchanges one per peer.
double collective_seconds(const std::string& kind, std::int64_t bytes, int p, const MachineModel& machine) {
  const double messages = kind == "all-reduce"           ? 2.0 * std::ceil(std::log2(std::max(2, p)))
                          : kind == "collective-permute" ? 1
                                                         : std::max(1, p - 1);
  return messages * machine.latency_s + static_cast<double>(bytes) / machine.bytes_per_s;
}

double flops_of(const Program& program, const Instruction& i) {
  const auto value = [&](int v) -> const ProgramValue& { return program.values[v]; };
  std::vector<Type> in, out;
  for (const int v : i.inputs)
    in.push_back({value(v).layout.shard_shape(value(v).type.shape), value(v).type.dtype});
  for (const int v : i.outputs)
    out.push_back({value(v).layout.shard_shape(value(v).type.shape), value(v).type.dtype});
  if (i.kind == InstructionKind::fused) {
    const auto& result = value(i.reduced_value >= 0 ? i.reduced_value : i.outputs[0]);
    return static_cast<double>(i.chain.size() + (i.reduced_value >= 0)) *
           static_cast<double>(result.layout.shard_shape(result.type.shape).elements());
  }
  if (i.kind != InstructionKind::kernel && i.kind != InstructionKind::talk) return 0;
  if (i.op->flops != nullptr) return i.op->flops(in, out, *i.params);
  double elements = 0;
  for (const auto& t : in) elements += static_cast<double>(t.shape.elements());
  for (const auto& t : out) elements = std::max(elements, static_cast<double>(t.shape.elements()));
  return elements;
}

std::string axes_text(const Mesh& mesh, const std::vector<int>& axes) {
  std::string text;
  for (const int a : axes) text += (text.empty() ? "" : ",") + mesh.axis_names()[a];
  return text.empty() ? "-" : text;
}

std::string human(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (bytes >= 1024 && u < 4) bytes /= 1024, ++u;
  char text[32];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
  return text;
}
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

std::string machine_model_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string base =
      cache != nullptr && *cache != 0 ? cache : std::string(home != nullptr ? home : "/tmp") + "/.cache";
  return base + "/tessera/machine.json";
}

namespace {
MachineModel read_machine_model() {
  MachineModel m;
  std::ifstream file(machine_model_path());
  if (!file) return m;
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) return m;  // a damaged cache file: the defaults
  m.latency_s = json.value("latency_s", m.latency_s);
  m.bytes_per_s = json.value("bytes_per_s", m.bytes_per_s);
  m.flops_per_s = json.value("flops_per_s", m.flops_per_s);
  m.memory_bytes_per_s = json.value("memory_bytes_per_s", m.memory_bytes_per_s);
  return m;
}

struct Machine {
  MachineModel model = read_machine_model();
};
}  // namespace

MachineModel machine_model() { return state<Machine>().model; }

void save_machine_model(const MachineModel& m) {
  const std::filesystem::path path = machine_model_path();
  std::filesystem::create_directories(path.parent_path());
  const auto unfinished = path.string() + ".tmp";
  std::ofstream(unfinished) << nlohmann::json{{"latency_s", m.latency_s},
                                              {"bytes_per_s", m.bytes_per_s},
                                              {"flops_per_s", m.flops_per_s},
                                              {"memory_bytes_per_s", m.memory_bytes_per_s}}
                                   .dump(2)
                            << "\n";
  std::filesystem::rename(unfinished, path);
}

namespace {

void add_cost(CostAnalysis& sum, const CostAnalysis& other, std::int64_t times) {
  sum.flops += other.flops * static_cast<double>(times);
  sum.bytes_accessed += other.bytes_accessed * times;
  sum.communication_bytes += other.communication_bytes * times;
  sum.communication_calls += other.communication_calls * times;
}

// A loop costs its body times its count, one that runs until a condition fails one step; of a branch the
// costlier part counts.
CostAnalysis cost_of_control(const Control& control) {
  CostAnalysis cost;
  for (const auto& part : control.parts) {
    const auto own = cost_of(part);
    if (control.kind != ControlKind::branch) {
      add_cost(cost, own, control.length);
      continue;
    }
    cost.flops = std::max(cost.flops, own.flops);
    cost.bytes_accessed = std::max(cost.bytes_accessed, own.bytes_accessed);
    cost.communication_bytes = std::max(cost.communication_bytes, own.communication_bytes);
    cost.communication_calls = std::max(cost.communication_calls, own.communication_calls);
  }
  return cost;
}

std::int64_t peak_inside(const Instruction& i) {
  std::int64_t peak = 0;
  if (i.control)
    for (const auto& part : i.control->parts) {
      const auto memory = memory_of(part);
      peak = std::max(peak, memory.peak_bytes - memory.argument_bytes);
    }
  return peak;
}

}  // namespace

CostAnalysis cost_of(const Program& program) {
  CostAnalysis cost;
  for (const auto& i : program.instructions) {
    if (i.control) {
      add_cost(cost, cost_of_control(*i.control), 1);
      continue;
    }
    cost.flops += flops_of(program, i);
    if (i.kind != InstructionKind::alias)
      for (const auto* list : {&i.inputs, &i.outputs})
        for (const int v : *list) cost.bytes_accessed += block_bytes(program.values[v]);
    for (const auto& t : traffic_of(i))
      cost.communication_bytes += t.bytes, cost.communication_calls += t.calls;
  }
  return cost;
}

MemoryAnalysis memory_of(const Program& program) {
  MemoryAnalysis memory;
  std::vector<std::size_t> last_use(program.values.size(), 0);
  std::vector<int> buffer(program.values.size());  // aliases share one
  for (std::size_t v = 0; v < buffer.size(); ++v) buffer[v] = static_cast<int>(v);
  const auto count = program.instructions.size();
  for (std::size_t n = 0; n < count; ++n) {
    const auto& i = program.instructions[n];
    if (i.kind == InstructionKind::alias) buffer[i.outputs[0]] = buffer[i.inputs[0]];
    for (const auto* list : {&i.inputs, &i.outputs})
      for (const int v : *list) last_use[buffer[v]] = n;
  }
  std::vector<bool> is_input(program.values.size()), is_output(program.values.size());
  for (const int v : program.inputs)
    memory.argument_bytes += block_bytes(program.values[v]), is_input[v] = true;
  for (const int v : program.outputs) {
    const auto b = static_cast<std::size_t>(buffer[v]);
    if (!is_input[b] && !is_output[b]) memory.output_bytes += block_bytes(program.values[b]);
    is_output[b] = true;
    last_use[b] = count;
  }
  std::int64_t live = 0, peak = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const auto& i = program.instructions[n];
    for (const int v : i.outputs)
      if (buffer[v] == v) live += block_bytes(program.values[v]);
    peak = std::max(peak, live + peak_inside(i));
    for (const auto* list : {&i.inputs, &i.outputs})
      for (const int v : *list) {
        const auto b = static_cast<std::size_t>(buffer[v]);
        if (last_use[b] != n || is_input[b]) continue;
        live -= block_bytes(program.values[b]);
        last_use[b] = count + 1;  // freed once
      }
  }
  memory.peak_bytes = memory.argument_bytes + std::max(peak, memory.output_bytes);
  memory.temporary_bytes = std::max<std::int64_t>(0, peak - memory.output_bytes);
  return memory;
}

namespace {

// Where a row of the table stands: "in 100 steps of scan at train.cpp:12".
std::string inside_text(const Instruction& i, std::size_t part) {
  const auto name = (i.control->call.empty() ? i.op->name : i.control->call) + " at " + site(i.where);
  if (i.control->kind == ControlKind::counted)
    return ", in " + std::to_string(i.control->length) + " steps of " + name;
  if (i.control->kind == ControlKind::branch)
    return std::string(", where the predicate of ") + name + (part == 0 ? " is true" : " is false");
  return ", in each step of " + name;
}

std::string rule_text(const Instruction& i) {
  const Rule* rule = i.op != nullptr ? rule_of(*i.op) : nullptr;
  return rule == nullptr ? "" : rule->text.text();
}

// The rows of a program that runs `times` times. Both parts of a branch have rows; its arithmetic is counted
// by cost_of.
void add_rows(Explanation& e, const Program& program, std::int64_t times, const std::string& inside,
              const MachineModel& machine) {
  for (const auto& i : program.instructions) {
    if (i.control) {
      for (std::size_t p = 0; p < i.control->parts.size(); ++p)
        add_rows(e, i.control->parts[p], times * i.control->length, inside_text(i, p) + inside, machine);
      continue;
    }
    const Mesh mesh = i.step ? i.step->from.mesh() : program.values[i.outputs[0]].layout.mesh();
    for (const auto& t : traffic_of(i)) {
      const auto calls = t.calls * times;
      for (std::int64_t call = 0; call < calls; ++call) {
        const auto bytes = t.bytes / t.calls + (call < times ? t.bytes % t.calls : 0);
        const double seconds = collective_seconds(t.kind, bytes, group_size(mesh, t.axes), machine);
        e.collectives.push_back(
            {t.kind, axes_text(mesh, t.axes), bytes, seconds,
             (i.op ? i.op->name : std::string("result")) + " at " + site(i.where) + inside, rule_text(i)});
        e.predicted_seconds += seconds;
        if (calls > 64) {  // one row stands for all of them
          e.collectives.back().bytes = t.bytes * times;
          e.collectives.back().seconds = static_cast<double>(calls) * seconds;
          e.predicted_seconds += static_cast<double>(calls - 1) * seconds;
          break;
        }
      }
    }
  }
}

}  // namespace

Explanation explanation_of(const Program& program) {
  Explanation e;
  const auto machine = machine_model();
  add_rows(e, program, 1, "", machine);
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
std::int64_t Explanation::calls(const std::string& kind) const {
  return std::count_if(collectives.begin(), collectives.end(),
                       [&](const PlannedCollective& c) { return kind.empty() || c.kind == kind; });
}

const Explanation& Explanation::forbid(const std::string& kind) const {
  static const char* const kinds[] = {"all-gather", "all-reduce",         "reduce-scatter",
                                      "all-to-all", "collective-permute", "broadcast"};
  if (std::find(std::begin(kinds), std::end(kinds), kind) == std::end(kinds))
    throw ArgumentError(
        "forbid: there is no collective '" + kind +
        "'; name one of all-gather, all-reduce, reduce-scatter, all-to-all, collective-permute, broadcast");
  if (calls(kind) == 0) return *this;
  std::ostringstream text;
  text << "explain: " << calls(kind) << " " << kind << " would move "
       << human(static_cast<double>(bytes(kind))) << " per rank, and " << kind << " is forbidden:";
  for (const auto& c : collectives)
    if (c.kind == kind)
      text << "\n  " << c.kind << " over " << c.axes << ", " << human(static_cast<double>(c.bytes))
           << " per rank, for " << c.what;
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
}  // namespace

std::string to_string(const Explanation& e) {
  std::ostringstream text;
  text << "collective          over      bytes/rank   predicted  for\n";
  // Rows that follow each other and are alike become one: "broadcast ×9", the bytes and seconds of all.
  for (std::size_t n = 0; n < e.collectives.size();) {
    const auto& c = e.collectives[n];
    std::int64_t bytes = 0, times = 0;
    double seconds = 0;
    for (; n < e.collectives.size() && alike(e.collectives[n], c); ++n)
      bytes += e.collectives[n].bytes, seconds += e.collectives[n].seconds, ++times;
    const std::string kind = c.kind + (times > 1 ? " ×" + std::to_string(times) : "");
    char row[160];
    std::snprintf(row, sizeof row, "%-*s %-8s %12s %11s  ", times > 1 ? 20 : 19, kind.c_str(),
                  c.axes.c_str(),  // × has two bytes
                  human(static_cast<double>(bytes)).c_str(), human_seconds(seconds).c_str());
    text << row << c.what << (c.rule.empty() ? "" : " by \"" + c.rule + "\"") << "\n";
  }
  if (e.collectives.empty()) text << "(none: nothing moves)\n";
  char line[200];
  std::snprintf(line, sizeof line, "total moved per rank %s, %.3g flop per rank, predicted %s\n",
                human(static_cast<double>(e.bytes())).c_str(), e.cost.flops,
                human_seconds(e.predicted_seconds).c_str());
  std::string all = text.str() + line;
  all += "memory per rank: arguments " + human(static_cast<double>(e.memory.argument_bytes)) + ", results " +
         human(static_cast<double>(e.memory.output_bytes)) + ", temporaries " +
         human(static_cast<double>(e.memory.temporary_bytes)) + ", peak " +
         human(static_cast<double>(e.memory.peak_bytes)) + "\n";
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    all += "result " + std::to_string(i) + ": " + e.outputs[i] + "\n";
  return all;
}
std::ostream& operator<<(std::ostream& out, const Explanation& e) { return out << to_string(e); }

}  // namespace tessera
