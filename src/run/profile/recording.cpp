#include "run/profile/recording.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "compile/cost.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

// "matmul", "all-gather for matmul", "add+multiply+exp"
std::string name_of(const Instruction& i) {
  const auto kind = collective_kind(i);
  std::string op = i.op != nullptr ? i.op->name : std::string();
  if (const auto* chain = i.as<FusedChain>()) {
    op = chain_text(*chain);
    if (op.size() > 48) op = op.substr(0, 45) + "...";
  }
  if (kind.empty()) return op.empty() ? "copy" : op;
  return op.empty() ? kind : kind + " for " + op;
}

std::int64_t operand_bytes(const StepTime& time) {
  std::int64_t bytes = 0;
  for (const auto* list : {&time.instruction.inputs, &time.instruction.outputs})
    for (const int v : *list) bytes += block_bytes(time.program.values[v]);
  return bytes;
}

}  // namespace

ProfileRecording::ProfileRecording()
    : known_peak_(memory_use().peak_bytes), outer_(run_watcher()), start_s_(watch_clock_s()) {
  run_watcher() = this;
}
ProfileRecording::~ProfileRecording() {
  if (run_watcher() == this) run_watcher() = outer_;
}

void ProfileRecording::step(const StepTime& time) {
  const auto kind = collective_kind(time.instruction);
  const auto at = site(time.instruction.where);
  const std::int64_t bytes = kind.empty() || time.ends ? 0 : time.instruction.bytes;
  events_.push_back({name_of(time.instruction), kind.empty() ? "compute" : kind, at, time.start_s,
                     time.seconds, bytes, time.crossing_bytes, time.ends});
  const auto& event = events_.back();
  auto& sum = sums_[event.name + " at " + event.site];
  sum.kind = event.category;
  sum.seconds += time.seconds;
  sum.crossing_bytes += time.crossing_bytes;
  if (!time.ends) {
    ++sum.calls;
    sum.bytes += bytes;
    sum.flops += flops_of(time.program, time.instruction);
    sum.accessed_bytes += static_cast<double>(accessed_bytes(time.program, time.instruction));
  }
  look_at_memory(time, event.name + " at " + event.site);
}

// Accounts for a kernel's temporaries, which are freed when it returns, by the process's peak.
void ProfileRecording::look_at_memory(const StepTime& time, const std::string& step) {
  const auto use = memory_use();
  const auto inside = use.peak_bytes > known_peak_ ? use.peak_bytes : 0;
  known_peak_ = std::max(known_peak_, use.peak_bytes);
  const auto bytes = std::max(inside, use.live_bytes);
  if (bytes > peak_.bytes) peak_ = {bytes, std::min(bytes, operand_bytes(time)), step};
}

std::string recording_text(const ProfileRecording& recording) {
  nlohmann::json steps = nlohmann::json::object();
  for (const auto& [name, s] : recording.sums())
    steps[name] = {s.kind, s.calls, s.bytes, s.crossing_bytes, s.seconds, s.flops, s.accessed_bytes};
  const auto& peak = recording.peak();
  return nlohmann::json{{"steps", steps}, {"peak", {peak.bytes, peak.step_bytes, peak.step}}}.dump();
}

}  // namespace tessera
