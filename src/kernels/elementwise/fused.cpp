#include "kernels/elementwise/fused.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "base/thresholds.hpp"
#include "kernels/elementwise/fused/plan.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/move/stream.hpp"
#include "kernels/move/strided_copy.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

// Follows a plan, piece by piece.
class FusedRun : FusedPlan {
 public:
  using FusedPlan::FusedPlan;
  void run() { run(std::move(chains_)); }
  // Runs again with the current addresses of operands and outputs.
  void run_again() { run(std::vector(chains_)); }

 private:
  void run(std::vector<FloatChain> chains) {
    const std::int64_t count = pieces_.count();
    const bool is_worth_a_team =
        row_pitch_ == 0 || count * pieces_.largest() >= threshold(elements_of_a_team);
    const int team = is_worth_a_team ? static_cast<int>(std::min<std::int64_t>(threads(), count / 4)) : 1;
    if (team <= 1) return run_range(0, count, std::move(chains));
    share(team, 1, [&](std::int64_t begin, std::int64_t end) {
      run_range(count * begin / team, count * end / team, std::vector(chains));  // chains hold addresses
    });
  }

  // The largest prefetch distance in bytes.
  static constexpr std::size_t fetched_ahead = 4096;
  static constexpr std::int64_t elements_of_a_team = 1 << 16;

  void run_range(std::int64_t first, std::int64_t last, std::vector<FloatChain> chains) {
    const std::size_t bytes = buffer_bytes_ * static_cast<std::size_t>(registers_.buffers);
    const std::unique_ptr<std::byte, decltype(&std::free)> memory(
        bytes == 0 ? nullptr : static_cast<std::byte*>(std::aligned_alloc(64, bytes)), &std::free);
    if (!memory && bytes > 0) throw std::bad_alloc();
    std::vector<Packed> packed(inputs_.size());
    std::vector<std::byte*> at(registers_.buffer.size());
    Box box(space_.has_parts ? space_.extents.size() : 0);
    for (std::int64_t piece = first; piece < last; ++piece)
      run_piece(piece, memory.get(), packed, at, box, chains);
    if (streams_) finish_streaming();
  }

  // The contents of a packed operand's buffer: a piece that needs the same elements does not pack again.
  struct Packed {
    const std::byte* from = nullptr;
    std::int64_t elements = 0;
    std::optional<StridedCopy> copy = {};  // of pieces of so many elements
  };

  void run_piece(std::int64_t piece, std::byte* memory, std::vector<Packed>& packed,
                 std::vector<std::byte*>& at, Box& box, std::vector<FloatChain>& chains) {
    const std::int64_t outer = piece / pieces_.per_outer, start = piece % pieces_.per_outer * pieces_.step;
    const std::int64_t steps = std::min(pieces_.step, space_.extents[pieces_.split] - start);
    const std::int64_t n = steps * pieces_.slice;
    const std::int64_t offset = row_pitch_ > 0
                                    ? outer * row_pitch_ + start
                                    : (outer * space_.extents[pieces_.split] + start) * pieces_.slice;
    const auto buffer = [&](int b) { return memory + static_cast<std::size_t>(b) * buffer_bytes_; };

    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::size_t item = itemsize(program_.inputs[i].dtype);
      if (reads_[i] == Reads::parts) {
        at[i] = in_parts(inputs_[i], box_of(outer, start, steps, inputs_[i].origin, box), item,
                         buffer(registers_.buffer[i]));
        continue;
      }
      std::int64_t from = start * space_.strides[i][pieces_.split], rest = outer;
      for (std::size_t d = pieces_.split; d-- > 0; rest /= space_.extents[d])
        from += rest % space_.extents[d] * space_.strides[i][d];
      const std::byte* source = inputs_[i].data + from * static_cast<std::int64_t>(item);
      if (reads_[i] == Reads::in_place) {
        at[i] = const_cast<std::byte*>(source);
        continue;
      }
      // Only the code runs, and it reads one element of an operand that is constant over the piece.
      if (is_one_loop_ && reads_[i] == Reads::splat && n % group_ == 0) {
        at[i] = const_cast<std::byte*>(source);
        continue;
      }
      at[i] = buffer(registers_.buffer[i]);
      const std::int64_t needed = rest_only_ ? std::min(n, group_) : n;
      if (packed[i].from == source && packed[i].elements >= needed) continue;
      if (reads_[i] == Reads::splat)
        fill(at[i], source, item, needed);
      else {
        if (!packed[i].copy || packed[i].elements != n) packed[i].copy = copy_of(i, steps);
        packed[i].copy->run(at[i], source);
      }
      packed[i].from = source;
      packed[i].elements = needed;
    }
    const std::size_t n_inputs = inputs_.size(), n_steps = program_.steps.size();
    for (std::size_t s = 0; s < n_steps; ++s) {
      const int b = registers_.buffer[n_inputs + s];
      at[n_inputs + s] =
          b >= 0 ? buffer(b)
                 : outputs_[-2 - b] + static_cast<std::size_t>(offset) * itemsize(program_.steps[s].out);
    }
    auto chain = chains.begin();
    for (std::size_t s = 0; s < n_steps;) {
      if (chain != chains.end() && chain->first == static_cast<int>(s)) {
        run_chain(*chain, at, n);
        s = static_cast<std::size_t>((chain++)->last);
      } else {
        run_step(s++, at, 0, n);
      }
    }
    for (const auto& [r, o] : registers_.stores) {
      const std::size_t item = itemsize(dtype_of_register(r));
      std::byte* target = outputs_[o] + static_cast<std::size_t>(offset) * item;
      if (streams_)
        stream_copy(target, at[r], static_cast<std::size_t>(n) * item);
      else if (target != at[r])
        std::memmove(target, at[r], static_cast<std::size_t>(n) * item);
    }
  }

  // The box of a piece in an operand's parts.
  const Box& box_of(std::int64_t outer, std::int64_t start, std::int64_t steps,
                    std::span<const std::int64_t> origin, Box& box) const {
    for (std::size_t d = 0; d < box.size(); ++d) box[d] = {0, space_.extents[d]};
    box[pieces_.split] = {start, start + steps};
    for (std::size_t d = pieces_.split; d-- > 0; outer /= space_.extents[d])
      box[d] = {outer % space_.extents[d], outer % space_.extents[d] + 1};
    for (std::size_t d = 0; d < origin.size(); ++d) box[d].start += origin[d], box[d].stop += origin[d];
    return box;
  }

  static std::byte* in_parts(const FusedOperand& operand, const Box& box, std::size_t item,
                             std::byte* buffer) {
    if (const auto* in_place = dense_in_parts(operand.parts, box, item))
      return const_cast<std::byte*>(in_place);
    pack_parts(operand.parts, box, item, buffer);
    return buffer;
  }

  // Runs a step's function on elements [from, n) of a piece.
  void run_step(std::size_t s, const std::vector<std::byte*>& at, std::int64_t from, std::int64_t n) const {
    const auto& step = program_.steps[s];
    const auto place = [&](int r) {
      const bool begins_at_from = rest_only_ && registers_.buffer[r] >= 0;
      return begins_at_from ? at[r]
                            : at[r] + from * static_cast<std::int64_t>(itemsize(dtype_of_register(r)));
    };
    const void* in[3] = {place(step.in[0]), step.n_in > 1 ? place(step.in[1]) : nullptr,
                         step.n_in > 2 ? place(step.in[2]) : nullptr};
    step.fn(in, place(static_cast<int>(program_.inputs.size() + s)), n - from);
  }

  // Runs whole groups by the chain's code, the remainder step by step.
  void run_chain(FloatChain& chain, const std::vector<std::byte*>& at, std::int64_t n) const {
    const std::int64_t whole = n / chain.group() * chain.group();
    chain.run(at, whole, std::min(static_cast<std::size_t>(n) * itemsize(chain.dtype), fetched_ahead));
    if (whole < n)
      for (int s = chain.first; s < chain.last; ++s) run_step(s, at, whole, n);
  }

  StridedCopy copy_of(std::size_t i, std::int64_t steps) const {
    Strides extents(space_.extents.begin() + static_cast<std::ptrdiff_t>(pieces_.split),
                    space_.extents.end());
    extents[0] = steps;
    Strides dense(extents.size(), 1);
    for (std::size_t d = extents.size(); d-- > 1;) dense[d - 1] = dense[d] * extents[d];
    const std::span<const std::int64_t> strides(space_.strides[i].data() + pieces_.split, extents.size());
    return {dense, strides, Shape(std::move(extents)), itemsize(program_.inputs[i].dtype)};
  }
};

// A chain of few steps on few elements calls their functions without a plan, whose making would take longer.
// Operands are dense, one element, or short enough to be packed.
class ShortChain {
 public:
  // Returns false for other programs.
  static bool run(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
                  std::span<std::byte* const> outputs) {
    const std::size_t registers = inputs.size() + program.steps.size();
    if (program.steps.empty() || outputs.size() != 1 || registers > most_registers ||
        program.outputs[0] != static_cast<int>(registers) - 1 || shape.elements() > threshold(most_elements))
      return false;
    ShortChain chain{shape.elements()};
    return chain.accepts(program, shape, inputs) && (chain.run(program, inputs.size(), outputs[0]), true);
  }

 private:
  static constexpr std::int64_t most_elements = 4096;  // from here on a plan is worth its time
  static constexpr std::size_t most_registers = 8;
  static constexpr std::int64_t register_bytes = 4096;

  explicit ShortChain(std::int64_t n) : n_(n), piece_(n) {}

  bool accepts(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto item = static_cast<std::int64_t>(itemsize(program.inputs[i].dtype));
      const bool is_one = is_number(inputs[i]);
      at_[i] = is_one ? inputs[i].data : dense(i, inputs[i], shape, itemsize(program.inputs[i].dtype));
      if (at_[i] == nullptr) return false;
      advance_[i] = is_one ? 0 : item;
      if (is_one) fit(item);
    }
    for (std::size_t s = 0; s + 1 < program.steps.size(); ++s)
      fit(static_cast<std::int64_t>(itemsize(program.steps[s].out)));
    return true;
  }
  // The address of an operand's elements one after the other, packed if need be. nullptr: they do not fit.
  const std::byte* dense(std::size_t i, const FusedOperand& operand, const Shape& shape, std::size_t item) {
    const bool fits = n_ * static_cast<std::int64_t>(item) <= register_bytes;
    if (operand.parts.empty()) {
      if (is_dense(operand, shape)) return operand.data;
      if (fits)
        copy_strided(memory_[i], row_major_strides(shape), operand.data, operand.strides, shape, item);
    } else {
      Box box = whole_box(shape);
      for (std::size_t d = 0; d < operand.origin.size(); ++d)
        box[d].start += operand.origin[d], box[d].stop += operand.origin[d];
      if (const auto* const in_place = dense_in_parts(operand.parts, box, item)) return in_place;
      if (fits) pack_parts(operand.parts, box, item, memory_[i]);
    }
    return fits ? memory_[i] : nullptr;
  }
  void fit(std::int64_t item) { piece_ = std::min(piece_, register_bytes / item); }

  void run(const FusedProgram& program, std::size_t n_inputs, std::byte* out) {
    for (std::size_t i = 0; i < n_inputs; ++i)
      if (advance_[i] == 0) {
        fill(memory_[i], at_[i], itemsize(program.inputs[i].dtype), piece_);
        at_[i] = memory_[i];
      }
    const auto out_item = static_cast<std::int64_t>(itemsize(program.steps.back().out));
    for (std::int64_t from = 0; from < n_; from += piece_) {
      for (std::size_t s = 0; s < program.steps.size(); ++s) {
        const FusedStep& step = program.steps[s];
        const bool is_last = s + 1 == program.steps.size();
        const void* in[3] = {};
        for (int k = 0; k < step.n_in; ++k) in[k] = at_[step.in[k]];
        std::byte* const result = is_last ? out + from * out_item : memory_[n_inputs + s];
        step.fn(in, result, std::min(piece_, n_ - from));
        at_[n_inputs + s] = result;
      }
      for (std::size_t i = 0; i < n_inputs; ++i) at_[i] += piece_ * advance_[i];
    }
  }

  static bool is_dense(const FusedOperand& operand, const Shape& shape) {
    if (operand.strides.empty()) return true;
    std::int64_t expected = 1;
    for (std::size_t d = shape.size(); d-- > 0; expected *= shape[d])
      if (shape[d] != 1 && operand.strides[d] != expected) return false;
    return true;
  }
  static bool is_number(const FusedOperand& operand) {
    return operand.parts.empty() && !operand.strides.empty() &&
           std::all_of(operand.strides.begin(), operand.strides.end(),
                       [](auto stride) { return stride == 0; });
  }

  std::int64_t n_, piece_;
  alignas(64) std::byte memory_[most_registers][register_bytes];  // not initialised
  const std::byte* at_[most_registers] = {};   // the address of each register's current piece
  std::int64_t advance_[most_registers] = {};  // bytes from an operand's element to the next; 0: a number
};

}  // namespace

void run_fused(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
               std::span<std::byte* const> outputs) {
  if (shape.elements() == 0 || ShortChain::run(program, shape, inputs, outputs)) return;
  FusedRun(program, shape, inputs, outputs).run();
}

class FusedBlock::Ready {
 public:
  Ready(const FusedProgram& program, std::int64_t rows, std::int64_t columns,
        std::span<const FusedOperand> operands, std::byte* output, std::int64_t pitch)
      : operands_(operands.begin(), operands.end()),
        output_(output),
        fused_(program, Shape{rows, columns}, operands_, std::span(&output_, 1), Runs::again_elsewhere,
               pitch) {}
  void run(std::span<const std::byte* const> operands, std::byte* output) {
    for (std::size_t i = 0; i < operands.size(); ++i) operands_[i].data = operands[i];
    output_ = output;
    fused_.run_again();
  }

 private:
  std::vector<FusedOperand> operands_;
  std::byte* output_;
  FusedRun fused_;
};

FusedBlock::FusedBlock(const FusedProgram& program, std::int64_t rows, std::int64_t columns,
                       std::span<const FusedOperand> operands, std::byte* output, std::int64_t pitch)
    : ready_(std::make_unique<Ready>(program, rows, columns, operands, output, pitch)) {}
FusedBlock::~FusedBlock() = default;
FusedBlock::FusedBlock(FusedBlock&&) noexcept = default;
void FusedBlock::run(std::span<const std::byte* const> operands, std::byte* output) {
  ready_->run(operands, output);
}

}  // namespace tessera::kernels
