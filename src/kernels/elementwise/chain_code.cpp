#include "kernels/elementwise/chain_code.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/recent.hpp"

#if defined(__x86_64__) && __has_include(<xbyak/xbyak.h>)
#include <xbyak/xbyak.h>
#define TESSERA_MAKES_CODE 1
#else
#define TESSERA_MAKES_CODE 0
#endif

namespace tessera::kernels {
namespace {

bool is_on = true;

#if TESSERA_MAKES_CODE

enum class Vectors { none, avx2, avx512 };
Vectors vectors_of_cpu() {  // the same vectors as the strip machine's
  const auto bytes = strip_elements(float32) * static_cast<std::int64_t>(sizeof(float)) / vectors_in_strip;
  return bytes == 64 ? Vectors::avx512 : bytes == 32 ? Vectors::avx2 : Vectors::none;
}

// Registers are assigned in blocks: one register per vector of a group. Block 0 holds values that no later
// instruction reads; the last blocks hold numbers, one register each.
class Writer : public ChainCode, private Xbyak::CodeGenerator {
 public:
  Writer(const ChainRecipe& recipe, Vectors vectors, int unrolled, int blocks_of_numbers)
      : Xbyak::CodeGenerator(bytes_at_most(recipe), Xbyak::DontSetProtectRWE),
        recipe_(recipe),
        wide_(vectors == Vectors::avx512),
        is_double_(recipe.dtype == float64),
        unrolled_(unrolled),
        vector_bytes_(wide_ ? 64 : 32),
        blocks_((wide_ ? 32 : 16) / unrolled - blocks_of_numbers),
        numbers_in_registers_(std::min(recipe.numbers, blocks_of_numbers * unrolled)),
        fewest_free_(blocks_) {
    group_ = unrolled * vector_bytes_ / static_cast<std::int64_t>(itemsize(recipe.dtype));
    count_uses();
    for (int block = blocks_; block-- > 1;) free_.push_back(block);
  }

  // The number of blocks that were never used.
  int spare_blocks() const { return std::max(0, fewest_free_ - least_free); }

  // Returns false if there are not enough registers.
  bool write() {
    const std::size_t pointers = recipe_.arrays + recipe_.prefetched.size();
    if (pointers > pointers_.size()) return false;
    for (std::size_t i = kept_from; i < std::min(pointers, kept_to); ++i) push(pointers_[i]);
    for (std::size_t i = 0; i < pointers; ++i) mov(pointers_[i], ptr[rdi + 8 * static_cast<int>(i)]);
    for (int i = 0; i < numbers_in_registers_; ++i)
      vmovups(number_register(i), ptr[rsi + i * static_cast<int>(ChainNumbers::vector_bytes)]);
    xor_(rax, rax);
    align(32);
    Xbyak::Label again;
    L(again);
    prefetch();
    for (int s = 0; s < static_cast<int>(recipe_.steps.size()); ++s)
      if (!write_step(s)) return false;
    add(rax, unrolled_ * vector_bytes_);
    cmp(rax, rdx);
    jl(again, T_NEAR);
    vzeroupper();
    for (std::size_t i = std::min(pointers, kept_to); i-- > kept_from;) pop(pointers_[i]);
    ret();
    setProtectModeRE();
    run_ = getCode<Function>();
    return true;
  }

 private:
  static std::size_t bytes_at_most(const ChainRecipe& recipe) { return 4096 + recipe.steps.size() * 512; }
  using Operand = ChainOperand;

  void count_uses() {
    uses_of_array_.assign(recipe_.arrays, 0);
    uses_of_result_.assign(recipe_.steps.size(), 0);
    block_of_array_.assign(recipe_.arrays, -1);
    block_of_result_.assign(recipe_.steps.size(), -1);
    for (const auto& step : recipe_.steps)
      for (const Operand& x : {step.a, step.b})
        if (int* uses = uses_of(x)) ++*uses;
  }
  int* uses_of(Operand x) {
    if (x.kind == Operand::Kind::memory) return &uses_of_array_[x.index];
    return x.kind == Operand::Kind::result ? &uses_of_result_[x.index] : nullptr;
  }
  int* block_of(Operand x) {
    if (x.kind == Operand::Kind::memory) return &block_of_array_[x.index];
    return x.kind == Operand::Kind::result ? &block_of_result_[x.index] : nullptr;
  }
  bool is_in_register(Operand x) {
    const int* block = block_of(x);
    return block != nullptr && *block >= 0;
  }
  void used(Operand x) {
    int* uses = uses_of(x);
    if (uses == nullptr || --*uses > 0) return;
    if (int* block = block_of(x); *block >= 0) free_.push_back(*block), *block = -1;
  }

  Xbyak::Xmm vector(int block, int lane) const {
    const int index = block * unrolled_ + lane;
    if (wide_) return Xbyak::Zmm(index);
    return Xbyak::Ymm(index);
  }
  Xbyak::Xmm number_register(int number) const {
    const int index = blocks_ * unrolled_ + number;
    if (wide_) return Xbyak::Zmm(index);
    return Xbyak::Ymm(index);
  }
  bool is_number_in_register(Operand x) const {
    return x.kind == Operand::Kind::number && x.index < numbers_in_registers_;
  }
  Xbyak::Address in_memory(Operand x, int lane) const {
    const int offset = lane * vector_bytes_;
    if (x.kind == Operand::Kind::number)
      return ptr[rsi + x.index * static_cast<int>(ChainNumbers::vector_bytes)];
    return ptr[pointers_[x.index] + rax + offset];
  }
  Xbyak::Address constant(ChainNumbers::Constant which) const {
    return ptr[rsi +
               (recipe_.numbers + static_cast<int>(which)) * static_cast<int>(ChainNumbers::vector_bytes)];
  }

  void prefetch() {
    for (std::size_t i = 0; i < recipe_.prefetched.size(); ++i)
      for (int line = 0; line < unrolled_ * vector_bytes_; line += 64)
        prefetcht0(ptr[pointers_[recipe_.arrays + i] + rax + line]);
  }

  void load(int block, Operand x) {
    for (int lane = 0; lane < unrolled_; ++lane) vmovups(vector(block, lane), in_memory(x, lane));
  }
  // Loads an array into a register if it is read more than once and a register is free.
  void bring_if_read_again(Operand x) {
    if (x.kind != Operand::Kind::memory || is_in_register(x) || uses_of_array_[x.index] < 2 ||
        free_.size() < 2)
      return;
    block_of_array_[x.index] = free_.back();
    free_.pop_back();
    load(block_of_array_[x.index], x);
  }

  bool write_step(int s) {
    const ChainStep& step = recipe_.steps[s];
    bring_if_read_again(step.a);
    bring_if_read_again(step.b);
    fewest_free_ = std::min(fewest_free_, static_cast<int>(free_.size()));
    if (fewest_free_ < least_free) return false;
    const int target = free_.back();  // never an operand's block: some operations read their operands twice
    free_.pop_back();
    if (!is_in_register(step.a) && !is_number_in_register(step.a)) load(0, step.a);
    for (int lane = 0; lane < unrolled_; ++lane) {
      const Xbyak::Xmm to = vector(target, lane), a = first_operand(step.a, lane);
      if (is_unary(step.op))
        unary(step.op, to, a);
      else if (is_number_in_register(step.b))
        binary(step, to, a, number_register(step.b.index));
      else if (is_in_register(step.b))
        binary(step, to, a, vector(*block_of(step.b), lane));
      else
        binary(step, to, a, in_memory(step.b, lane));
    }
    used(step.a);
    used(step.b);
    if (step.stored_to >= 0) store(step.stored_to, target);
    if (uses_of_result_[s] > 0)
      block_of_result_[s] = target;
    else
      free_.push_back(target);
    return true;
  }
  Xbyak::Xmm first_operand(Operand x, int lane) {
    if (is_number_in_register(x)) return number_register(x.index);
    return vector(is_in_register(x) ? *block_of(x) : 0, lane);
  }
  void store(int array, int block) {
    for (int lane = 0; lane < unrolled_; ++lane) {
      const auto place = ptr[pointers_[array] + rax + lane * vector_bytes_];
      recipe_.streams ? vmovntps(place, vector(block, lane)) : vmovups(place, vector(block, lane));
    }
  }

  using Emitter = void (Xbyak::CodeGenerator::*)(const Xbyak::Xmm&, const Xbyak::Operand&,
                                                 const Xbyak::Operand&);
  void emit(Emitter of_float, Emitter of_double, const Xbyak::Xmm& to, const Xbyak::Operand& a,
            const Xbyak::Operand& b) {
    (this->*(is_double_ ? of_double : of_float))(to, a, b);
  }

  void unary(StripOp op, const Xbyak::Xmm& to, const Xbyak::Xmm& a) {
    using Constant = ChainNumbers::Constant;
    switch (op) {
      case StripOp::negative:
        return emit(&CodeGenerator::vxorps, &CodeGenerator::vxorpd, to, a, constant(Constant::sign));
      case StripOp::abs:
        return emit(&CodeGenerator::vandps, &CodeGenerator::vandpd, to, a, constant(Constant::magnitude));
      case StripOp::square: return emit(&CodeGenerator::vmulps, &CodeGenerator::vmulpd, to, a, a);
      case StripOp::reciprocal:
        vmovups(to, constant(Constant::one));
        return emit(&CodeGenerator::vdivps, &CodeGenerator::vdivpd, to, to, a);
      default:  // relu: a NaN stays, and -0 becomes 0
        vmovups(to, constant(Constant::zero));
        emit(&CodeGenerator::vmaxps, &CodeGenerator::vmaxpd, to, to, a);
        return emit(&CodeGenerator::vaddps, &CodeGenerator::vaddpd, to, to, constant(Constant::zero));
    }
  }
  void binary(const ChainStep& step, const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Operand& b) {
    switch (step.op) {
      case StripOp::add: return emit(&CodeGenerator::vaddps, &CodeGenerator::vaddpd, to, a, b);
      case StripOp::subtract: return emit(&CodeGenerator::vsubps, &CodeGenerator::vsubpd, to, a, b);
      case StripOp::multiply: return emit(&CodeGenerator::vmulps, &CodeGenerator::vmulpd, to, a, b);
      case StripOp::divide: return emit(&CodeGenerator::vdivps, &CodeGenerator::vdivpd, to, a, b);
      default: return extreme(step, to, a, b);
    }
  }
  // vmaxps and vminps return b for NaN and for two zeros; maximum and minimum return a if a is NaN, fmax and
  // fmin if b is NaN.
  void extreme(const ChainStep& step, const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Operand& b) {
    const auto own = [&](const Xbyak::Operand& first, const Xbyak::Operand& second) {
      if (step.op == StripOp::maximum || step.op == StripOp::fmax)
        emit(&CodeGenerator::vmaxps, &CodeGenerator::vmaxpd, to, first, second);
      else
        emit(&CodeGenerator::vminps, &CodeGenerator::vminpd, to, first, second);
    };
    const bool prefers_numbers = step.op == StripOp::fmax || step.op == StripOp::fmin;
    // The operand whose NaN the instruction must not lose comes second; of fmax and fmin, the number.
    if (step.is_plain && (step.b.kind == Operand::Kind::number) != prefers_numbers) {
      if (!b.isMEM()) return own(b, a);
      vmovups(to, b);
      return own(to, a);
    }
    own(a, b);
    if (step.is_plain) return;
    constexpr int unordered = 3;
    const Xbyak::Xmm& tested = prefers_numbers ? to : a;  // `to` is NaN where b is
    if (wide_) {
      is_double_ ? vcmppd(k1, tested, tested, unordered) : vcmpps(k1, tested, tested, unordered);
      is_double_ ? vmovapd(to | k1, a) : vmovaps(to | k1, a);
    } else {
      const Xbyak::Xmm is_nan = vector(free_.back(), 0);
      is_double_ ? vcmppd(is_nan, tested, tested, unordered) : vcmpps(is_nan, tested, tested, unordered);
      is_double_ ? vblendvpd(to, to, a, is_nan) : vblendvps(to, to, a, is_nan);
    }
  }

  const ChainRecipe recipe_;
  const bool wide_, is_double_;
  const int unrolled_, vector_bytes_, blocks_, numbers_in_registers_;
  static constexpr int least_free = 2;  // for the result of a step, and for its temporary
  int fewest_free_;
  std::vector<int> free_, uses_of_array_, uses_of_result_, block_of_array_, block_of_result_;
  // Registers that a call may clobber come first and last; those in between are callee-saved.
  static constexpr std::size_t kept_from = 5, kept_to = 11;
  const std::array<Xbyak::Reg64, most_arrays> pointers_{rcx, r8,  r9,  r10, r11, rbx,
                                                        rbp, r12, r13, r14, r15, rdi};
};

// Writes the code twice: the first run finds how many registers are left for numbers.
std::shared_ptr<const ChainCode> written(const ChainRecipe& recipe, Vectors vectors) try {
  for (int unrolled = vectors == Vectors::avx512 ? 4 : 2; unrolled > 0; unrolled /= 2) {
    Writer trial(recipe, vectors, unrolled, 0);
    if (!trial.write()) continue;
    const auto code = std::make_shared<Writer>(recipe, vectors, unrolled, trial.spare_blocks());
    if (code->write()) return code;
  }
  return nullptr;
} catch (const Xbyak::Error&) {  // the system forbids executable memory
  return nullptr;
}

std::string key_of(const ChainRecipe& recipe, Vectors vectors) {
  std::string key;
  key.reserve(8 + recipe.prefetched.size() + recipe.steps.size() * 7);
  const auto put = [&key](auto... values) { (key.push_back(static_cast<char>(values)), ...); };
  put(recipe.dtype == float64, recipe.streams, vectors, recipe.arrays, recipe.numbers);
  for (const int array : recipe.prefetched) put(array);
  put(-1);
  for (const auto& step : recipe.steps)
    put(step.op, step.a.kind, step.a.index, step.b.kind, step.b.index, step.stored_to, step.is_plain);
  return key;
}

struct Kept {
  bool is_written = false;
  std::shared_ptr<const ChainCode> code;
};
#endif

}  // namespace

ChainNumbers::ChainNumbers(Dtype dtype, int numbers)
    : item_(itemsize(dtype)), vectors_(static_cast<std::size_t>(numbers) + 4) {
  const auto constants = [&]<class T, class Bits>(T, Bits) {
    const Bits sign = Bits{1} << (8 * sizeof(Bits) - 1), magnitude = ~sign;
    const T one = 1, zero = 0;
    const void* const elements[] = {&sign, &magnitude, &one, &zero};
    for (int c = 0; c < 4; ++c) set(numbers + c, static_cast<const std::byte*>(elements[c]));
  };
  dtype == float64 ? constants(double{}, std::uint64_t{}) : constants(float{}, std::uint32_t{});
}

void ChainNumbers::set(int number, const std::byte* element) {
  std::byte* bytes = vectors_[static_cast<std::size_t>(number)].bytes;
  if (std::memcmp(bytes, element, item_) == 0 &&
      std::memcmp(bytes + vector_bytes - item_, element, item_) == 0)
    return;  // unchanged since the last piece
  for (std::size_t at = 0; at < vector_bytes; at += item_) std::memcpy(bytes + at, element, item_);
}

bool set_chain_code(bool on) { return std::exchange(is_on, on); }

#if TESSERA_MAKES_CODE
std::shared_ptr<const ChainCode> chain_code(const ChainRecipe& recipe, std::int64_t elements) {
  constexpr std::int64_t worth_writing_at_once = 1 << 16;
  static std::mutex one_at_a_time;
  static RecentMap<std::string, Kept> known(256);
  const Vectors vectors = vectors_of_cpu();
  if (!is_on || vectors == Vectors::none) return nullptr;
  const std::scoped_lock lock(one_at_a_time);
  const std::string key = key_of(recipe, vectors);
  Kept* kept = known.find(key);
  const bool is_new = kept == nullptr;
  if (is_new) kept = &known.insert(key, {});
  if (!kept->is_written && (!is_new || elements >= worth_writing_at_once))
    *kept = {true, written(recipe, vectors)};
  return kept->code;
}
#else
std::shared_ptr<const ChainCode> chain_code(const ChainRecipe&, std::int64_t) { return nullptr; }
#endif

}  // namespace tessera::kernels
