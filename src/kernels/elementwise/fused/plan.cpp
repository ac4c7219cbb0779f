#include "kernels/elementwise/fused/plan.hpp"

#include <algorithm>

#include "base/thresholds.hpp"

namespace tessera::kernels {
namespace {

// Outputs of this size leave the cache before they are read again.
constexpr std::int64_t stream_from_bytes = std::int64_t{16} << 20;
// Steps' functions do not stream: a second loop copies what they wrote, which costs more than it saves up to
// this size.
constexpr std::int64_t stream_steps_from_bytes = std::int64_t{128} << 20;
// Operands of this size are not in the L1 cache.
constexpr std::int64_t prefetch_from_bytes = std::int64_t{128} << 10;
// Smaller programs finish before a chain would be compiled.
constexpr std::int64_t chains_from_elements = 4096;
constexpr std::int64_t elements_of_one_loop = 1 << 14;

}  // namespace

FusedPlan::FusedPlan(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
                     std::span<std::byte* const> outputs, Runs runs, std::int64_t pitch)
    : program_(program),
      inputs_(inputs),
      outputs_(outputs),
      row_pitch_(pitch > 0 && pitch != shape[1] ? pitch : 0),
      space_(shape, inputs, row_pitch_ > 0),
      pieces_(space_.extents, row_pitch_ > 0 ? space_.extents[1] : piece_elements()) {
  std::size_t widest = 1;
  for (const auto& input : program.inputs) widest = std::max(widest, itemsize(input.dtype));
  for (const auto& step : program.steps) widest = std::max(widest, itemsize(step.out));
  std::size_t output_bytes = 0;
  for (const int r : program.outputs)
    output_bytes += static_cast<std::size_t>(shape.elements()) * itemsize(dtype_of_register(r));
  const auto streams_from = [&](std::int64_t least) {
    return runs == Runs::once && static_cast<std::int64_t>(output_bytes) >= threshold(least);
  };
  streams_ = streams_from(stream_from_bytes);
  classify_inputs();
  choose_prefetches(shape.elements());
  const std::int64_t elements = shape.elements();
  is_one_loop_ = elements >= threshold(chains_from_elements) && prepare_one_loop(elements);
  if (!is_one_loop_) {
    const bool is_long = elements >= threshold(chains_from_elements);
    if (program.steps.size() == 1)
      chains_.clear();
    else if (is_long && (streams_ || chains_.empty()))
      chains_ = chains_for(elements, false);
    streams_ = streams_from(stream_steps_from_bytes);
    assign_registers(elements);
  }
  if (is_one_loop_) group_ = chains_[0].group();
  rest_only_ = is_one_loop_ && !space_.has_parts;
  const std::int64_t in_buffer = rest_only_ ? group_ : pieces_.largest();
  buffer_bytes_ = (static_cast<std::size_t>(in_buffer) * widest + 63) / 64 * 64 + 64;
}

bool FusedPlan::is_one_element(std::size_t input) const {
  const auto& strides = inputs_[input].strides;
  return !strides.empty() &&
         std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; });
}

std::int64_t FusedPlan::piece_elements() const {
  const auto n = static_cast<int>(program_.inputs.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i)
    if (!is_one_element(i)) bytes += itemsize(program_.inputs[i].dtype);
  // A result that only the next step reads reuses the buffer of one that is no longer needed.
  for (int s = 0; s < static_cast<int>(program_.steps.size()); ++s) {
    bool is_kept = s + 1 == static_cast<int>(program_.steps.size());
    for (int later = s + 2; later < static_cast<int>(program_.steps.size()); ++later) {
      const auto& step = program_.steps[later];
      is_kept |= std::find(step.in, step.in + step.n_in, n + s) != step.in + step.n_in;
    }
    if (is_kept) bytes += itemsize(program_.steps[s].out);
  }
  const auto fit = static_cast<std::int64_t>(32768 / std::max<std::size_t>(bytes, 1));
  return std::clamp<std::int64_t>(fit / 512 * 512, 1024, 4096);
}

void FusedPlan::classify_inputs() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].parts.empty()) {
      reads_.push_back(Reads::parts);
      continue;
    }
    std::int64_t expected = 1;
    bool dense = true, constant = true;
    for (std::size_t d = space_.extents.size(); d-- > pieces_.split;) {
      const std::int64_t stride = space_.strides[i][d];
      dense = dense && stride == expected;
      constant = constant && stride == 0;
      expected *= space_.extents[d];
    }
    reads_.push_back(dense ? Reads::in_place : constant ? Reads::splat : Reads::packed);
  }
}

void FusedPlan::choose_prefetches(std::int64_t elements) {
  prefetched_.assign(inputs_.size(), -1);
  for (int s = static_cast<int>(program_.steps.size()); s-- > 0;) {
    const auto& step = program_.steps[s];
    for (int k = 0; k < step.n_in; ++k) {
      const auto r = static_cast<std::size_t>(step.in[k]);
      if (r >= inputs_.size() || reads_[r] != Reads::in_place) continue;
      if (elements * static_cast<std::int64_t>(itemsize(program_.inputs[r].dtype)) >=
          threshold(prefetch_from_bytes))
        prefetched_[r] = s;
    }
  }
}

std::vector<FloatChain> FusedPlan::chains_for(std::int64_t elements, bool streams) const {
  std::vector<ChainInput> inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    inputs.push_back(
        {reads_[i] == Reads::splat, is_one_element(i) ? inputs_[i].data : nullptr, prefetched_[i]});
  return find_chains(program_, inputs, elements, streams);
}

bool FusedPlan::prepare_one_loop(std::int64_t elements) {
  if (space_.extents.size() != 1 && !space_.has_parts) return false;
  const bool is_packed = std::find(reads_.begin(), reads_.end(), Reads::packed) != reads_.end();
  if (is_packed && !space_.has_parts) return false;  // buffers hold the rest of a piece alone
  if (streams_ && !are_outputs_on_lines()) return false;
  chains_ = chains_for(elements, streams_);
  if (!tessera::kernels::is_one_loop(program_, chains_)) return false;
  is_one_loop_ = true;
  assign_registers(elements);
  if (!registers_.stores.empty()) {  // an output is read by a later step, or is an output twice
    registers_ = {}, chains_.clear();
    return false;
  }
  if (!space_.has_parts) pieces_ = FusedPieces(space_.extents, threshold(elements_of_one_loop, 64));
  return true;
}

bool FusedPlan::are_outputs_on_lines() const {
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const auto item = static_cast<std::int64_t>(itemsize(dtype_of_register(program_.outputs[o])));
    const std::int64_t piece = pieces_.largest() * item,
                       between = pieces_.outer > 1 ? space_.extents[pieces_.split] * pieces_.slice * item : 0;
    if (reinterpret_cast<std::uintptr_t>(outputs_[o]) % 64 != 0 || between % 64 != 0) return false;
    if (pieces_.per_outer > 1 && piece % 64 != 0) return false;
  }
  return true;
}

void FusedPlan::assign_registers(std::int64_t elements) {
  const auto n = static_cast<int>(program_.inputs.size());
  const auto total = n + static_cast<int>(program_.steps.size());
  std::vector<int> last_use(total, -1);
  for (int s = 0; s < total - n; ++s)
    for (int k = 0; k < program_.steps[s].n_in; ++k) last_use[program_.steps[s].in[k]] = s;
  for (const int r : program_.outputs) last_use[r] = total;
  registers_.buffer.assign(total, FusedRegisters::in_place);
  for (int i = 0; i < n; ++i)
    if (reads_[i] != Reads::in_place) registers_.buffer[i] = registers_.buffers++;
  std::vector<int> free, dead;
  for (int s = 0; s < total - n; ++s) {
    const auto& step = program_.steps[s];
    int& target = registers_.buffer[n + s];
    const int output = direct_output(n + s, s, last_use, elements);
    if (output >= 0) target = -2 - output;
    // An operand that is not read again and has the same item size is overwritten in place. Operands packed
    // into a buffer stay valid over pieces.
    for (int k = 0; k < step.n_in; ++k) {
      const int r = step.in[k];
      if (r < n || last_use[r] != s || registers_.buffer[r] < 0) continue;
      if (std::find(step.in, step.in + k, r) != step.in + k) continue;
      const int dying = registers_.buffer[r];
      if (target == FusedRegisters::in_place && itemsize(dtype_of_register(r)) == itemsize(step.out))
        target = dying;
      else
        dead.push_back(dying);
    }
    if (target == FusedRegisters::in_place) {
      if (free.empty())
        target = registers_.buffers++;
      else
        target = free.back(), free.pop_back();
    }
    free.insert(free.end(), dead.begin(), dead.end());
    dead.clear();
  }
  for (std::size_t o = 0; o < program_.outputs.size(); ++o) {
    const int r = program_.outputs[o];
    if (registers_.buffer[r] != -2 - static_cast<int>(o))
      registers_.stores.emplace_back(r, static_cast<int>(o));
  }
}

int FusedPlan::direct_output(int r, int step, const std::vector<int>& last_use, std::int64_t elements) const {
  if (streams_ && !is_one_loop_) return -1;
  for (std::size_t o = 0; o < program_.outputs.size(); ++o) {
    if (program_.outputs[o] != r) continue;
    const std::byte* begin = outputs_[o];
    const std::byte* end = begin + static_cast<std::size_t>(elements) * itemsize(dtype_of_register(r));
    bool safe = true;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].data >= begin && inputs_[i].data < end && last_use[i] > step) safe = false;
    if (safe) return static_cast<int>(o);
  }
  return -1;
}

}  // namespace tessera::kernels
