#include "kernels/elementwise/fused.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/thresholds.hpp"
#include "kernels/elementwise/float_chain.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/move/stream.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

using Strides = std::vector<std::int64_t>;

// The program's shape with dims merged that are contiguous for every operand. No dims are merged if an
// operand consists of parts, or if the outputs have gaps between their rows.
struct Space {
  std::vector<std::int64_t> extents;
  std::vector<Strides> strides;  // per input
  bool has_parts = false;

  Space(const Shape& shape, std::span<const FusedOperand> inputs, bool has_gaps) : strides(inputs.size()) {
    for (const auto& input : inputs) has_parts |= !input.parts.empty();
    const bool keeps_dims = has_parts || has_gaps;
    Strides dense(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) dense[d - 1] = dense[d] * shape[d];
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1 && !keeps_dims) continue;
      const auto stride = [&](std::size_t i) {
        return inputs[i].strides.empty() ? dense[d] : inputs[i].strides[d];
      };
      bool one_with_last = !extents.empty() && !keeps_dims;
      for (std::size_t i = 0; one_with_last && i < inputs.size(); ++i)
        one_with_last = strides[i].back() == stride(i) * shape[d];
      if (one_with_last)
        extents.back() *= shape[d];
      else
        extents.push_back(shape[d]);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (one_with_last)
          strides[i].back() = stride(i);
        else
          strides[i].push_back(stride(i));
      }
    }
    if (extents.empty()) {
      extents.push_back(1);
      for (auto& s : strides) s.push_back(0);
    }
  }
};

// A piece is a range of dim `split` with all dims below it: `step` slices of `slice` elements.
//
//   extents   e0 ... | e_split                | ... e_last
//             outer  | cut into ranges of step | slice
struct Pieces {
  std::size_t split = 0;
  std::int64_t slice = 1, step = 1, per_outer = 1, outer = 1;

  Pieces(const std::vector<std::int64_t>& extents, std::int64_t elements) {
    split = extents.size() - 1;
    while (split > 0 && slice * extents[split] * 2 <= elements) slice *= extents[split--];
    step = std::clamp<std::int64_t>(elements / slice, 1, extents[split]);
    per_outer = (extents[split] + step - 1) / step;
    for (std::size_t d = 0; d < split; ++d) outer *= extents[d];
  }
  std::int64_t count() const { return outer * per_outer; }
  std::int64_t largest() const { return step * slice; }
};

// The assignment of a program's registers to buffers of one piece each.
struct Registers {
  static constexpr int in_place = -1;  // lives in an operand's memory
  std::vector<int> buffer;  // per register: buffer number, in_place, or -2 - o: in the memory of output o
  std::vector<std::pair<int, int>> stores;  // register -> output, copied at the end of a piece
  int buffers = 0;
};

// Whether a block runs again at another address. Its output may then not begin at a cache line, which
// streaming stores need; and it is written where its operand was read, so streaming would gain nothing.
enum class Runs { once, again_elsewhere };

class Fused {
 public:
  // pitch: elements from one row of the outputs to the next, for a shape (rows, columns); 0: dense.
  Fused(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
        std::span<std::byte* const> outputs, Runs runs = Runs::once, std::int64_t pitch = 0)
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
    streams_ = runs == Runs::once && static_cast<std::int64_t>(output_bytes) >= threshold(stream_from_bytes);
    classify_inputs();
    choose_prefetches(shape.elements());
    const std::int64_t elements = shape.elements();
    is_one_loop_ = elements >= threshold(chains_from_elements) && prepare_one_loop(elements);
    if (!is_one_loop_) {
      if (elements >= threshold(chains_from_elements) && (streams_ || chains_.empty()))
        chains_ = chains_for(elements, false);
      assign_registers(elements);
    }
    if (is_one_loop_) group_ = chains_[0].group();
    rest_only_ = is_one_loop_ && !space_.has_parts;
    const std::int64_t in_buffer = rest_only_ ? group_ : pieces_.largest();
    buffer_bytes_ = (static_cast<std::size_t>(in_buffer) * widest + 63) / 64 * 64 + 64;
  }

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

  // Outputs of this size leave the cache before they are read again.
  static constexpr std::int64_t stream_from_bytes = std::int64_t{8} << 20;

  // Operands of this size are not in the L1 cache.
  static constexpr std::int64_t prefetch_from_bytes = std::int64_t{128} << 10;
  // The largest prefetch distance in bytes.
  static constexpr std::size_t fetched_ahead = 4096;
  // Smaller programs finish before a chain would be compiled.
  static constexpr std::int64_t chains_from_elements = 4096;
  static constexpr std::int64_t elements_of_one_loop = 1 << 14;
  static constexpr std::int64_t elements_of_a_team = 1 << 16;

  enum class Reads { in_place, splat, packed, parts };

  Dtype dtype_of_register(int r) const {
    const auto n = static_cast<int>(program_.inputs.size());
    return r < n ? program_.inputs[r].dtype : program_.steps[r - n].out;
  }

  bool is_one_element(std::size_t input) const {
    const auto& strides = inputs_[input].strides;
    return !strides.empty() &&
           std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; });
  }

  // The elements of a piece: few enough that all its buffers and the next piece's operands fit the L1 cache,
  // many enough to make a call per step worthwhile. Whole strips, so that chains have no remainder.
  std::int64_t piece_elements() const {
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

  void classify_inputs() {
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

  // Operands too large for the L1 cache are prefetched one piece ahead.
  void choose_prefetches(std::int64_t elements) {
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

  std::vector<FloatChain> chains_for(std::int64_t elements, bool streams) const {
    std::vector<ChainInput> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(
          {reads_[i] == Reads::splat, is_one_element(i) ? inputs_[i].data : nullptr, prefetched_[i]});
    return find_chains(program_, inputs, elements, streams);
  }

  // Runs the whole program as machine code, if every operand is memory or a number. The code writes the
  // outputs itself, bypassing the cache if they are large; buffers serve only the elements of the last,
  // partial group.
  bool prepare_one_loop(std::int64_t elements) {
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
    if (!space_.has_parts) pieces_ = Pieces(space_.extents, threshold(elements_of_one_loop, 64));
    return true;
  }

  // Whether every piece of every output begins at a cache line.
  bool are_outputs_on_lines() const {
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const auto item = static_cast<std::int64_t>(itemsize(dtype_of_register(program_.outputs[o])));
      const std::int64_t piece = pieces_.largest() * item,
                         between =
                             pieces_.outer > 1 ? space_.extents[pieces_.split] * pieces_.slice * item : 0;
      if (reinterpret_cast<std::uintptr_t>(outputs_[o]) % 64 != 0 || between % 64 != 0) return false;
      if (pieces_.per_outer > 1 && piece % 64 != 0) return false;
    }
    return true;
  }

  void assign_registers(std::int64_t elements) {
    const auto n = static_cast<int>(program_.inputs.size());
    const auto total = n + static_cast<int>(program_.steps.size());
    std::vector<int> last_use(total, -1);
    for (int s = 0; s < total - n; ++s)
      for (int k = 0; k < program_.steps[s].n_in; ++k) last_use[program_.steps[s].in[k]] = s;
    for (const int r : program_.outputs) last_use[r] = total;

    registers_.buffer.assign(total, Registers::in_place);
    for (int i = 0; i < n; ++i)
      if (reads_[i] != Reads::in_place) registers_.buffer[i] = registers_.buffers++;
    std::vector<int> free;
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
        if (target == Registers::in_place && itemsize(dtype_of_register(r)) == itemsize(step.out))
          target = dying;
        else
          dead_.push_back(dying);
      }
      if (target == Registers::in_place) {
        if (free.empty())
          target = registers_.buffers++;
        else
          target = free.back(), free.pop_back();
      }
      free.insert(free.end(), dead_.begin(), dead_.end());
      dead_.clear();
    }
    for (std::size_t o = 0; o < program_.outputs.size(); ++o) {
      const int r = program_.outputs[o];
      if (registers_.buffer[r] != -2 - static_cast<int>(o))
        registers_.stores.emplace_back(r, static_cast<int>(o));
    }
  }

  // A step whose result is an output may write it directly, unless that memory is an operand of a later step.
  int direct_output(int r, int step, const std::vector<int>& last_use, std::int64_t elements) const {
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

  void run_range(std::int64_t first, std::int64_t last, std::vector<FloatChain> chains) {
    const std::size_t bytes = buffer_bytes_ * static_cast<std::size_t>(registers_.buffers);
    const std::unique_ptr<std::byte, decltype(&std::free)> memory(
        static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64))), &std::free);
    if (!memory) throw std::bad_alloc();
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
      else
        pack(i, source, steps, at[i]);
      packed[i] = {source, needed};
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
        prefetch_next(at, n, static_cast<int>(s));
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

  // Prefetches, while this piece is computed, the next piece of the operands that step s is the first to
  // read.
  [[gnu::noinline]] void prefetch_next(const std::vector<std::byte*>& at, std::int64_t n, int s) const {
    asm volatile("");  // compilers would drop a call that only prefetches as free of effects
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (prefetched_[i] != s) continue;
      const std::size_t bytes = static_cast<std::size_t>(n) * itemsize(program_.inputs[i].dtype);
      for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(at[i] + bytes + line);
    }
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

  void pack(std::size_t i, const std::byte* source, std::int64_t steps, std::byte* target) const {
    Strides extents(space_.extents.begin() + static_cast<std::ptrdiff_t>(pieces_.split),
                    space_.extents.end());
    extents[0] = steps;
    Strides dense(extents.size(), 1);
    for (std::size_t d = extents.size(); d-- > 1;) dense[d - 1] = dense[d] * extents[d];
    const std::span<const std::int64_t> strides(space_.strides[i].data() + pieces_.split, extents.size());
    copy_strided(target, dense, source, strides, Shape(std::move(extents)),
                 itemsize(program_.inputs[i].dtype));
  }

  const FusedProgram& program_;
  std::span<const FusedOperand> inputs_;
  std::span<std::byte* const> outputs_;
  std::int64_t row_pitch_;  // of outputs with gaps between their rows; 0: dense
  Space space_;
  Pieces pieces_;
  std::vector<Reads> reads_;
  Registers registers_;
  std::vector<int> dead_;
  std::vector<FloatChain> chains_;
  std::size_t buffer_bytes_ = 0;
  std::vector<int> prefetched_;  // per input: the step that fetches its next piece, or -1
  bool streams_ = false;         // outputs bypass the cache
  bool is_one_loop_ = false;
  bool rest_only_ = false;  // buffers hold only the elements of the last, partial group
  std::int64_t group_ = 1;  // of the loop
};

}  // namespace

void run_fused(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
               std::span<std::byte* const> outputs) {
  if (shape.elements() == 0) return;
  Fused(program, shape, inputs, outputs).run();
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
  Fused fused_;
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
