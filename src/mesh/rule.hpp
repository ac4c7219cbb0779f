// The sharding rule of an op: one sentence about its dims, for any number of dims.
//
//   matmul      "B.. M.. K.., B.. K.. N.. -> B.. M.. N.. | sum K"
//   softmax     "B.. n -> B.. n | whole n"
//   add         "{D..} -> D.."
//   gather      "L.. A.. R.., {I..} -> L.. I.. R.. | sum A"
//   conv        "n (g c) ~S.., (g o) c T.. -> n (g o) S.. | sum c | whole T"
//   reshape     "(D..) -> (D..)"
//
// A small letter, perhaps with digits, is a factor: the dims of that name are split together. A capital
// letter is a group of any number of dims, one factor each. Operands are parted by commas.
//
//   {..}    any number of operands like this one
//   (g c)   a compound dim: its index is that of g and c together, row-major
//   ~s      a dim that is split as s is, though its extent is another: blocks with a margin, strided windows
//   1       a dim of size 1 without factor
//   | sum k l    (also prod max min any all)  a split of it leaves partial results, which combine so
//   | whole k l  never split
//
// A dim of size 1 whose factor is larger elsewhere is broadcast: it gets no factor. A rule of one group alone
// also aligns dims from the last, as NumPy does; (D..) -> (D..) keeps the elements in order and cuts them
// into other dims.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/factors.hpp"

namespace tessera {

// Facts that a rule cannot know from shapes: the params of the op say them.
struct RuleReading {
  // How many dims a group has, or how large a factor is; at most two.
  struct Size {
    char name = 0;
    std::int64_t value = 0;
  };
  std::array<Size, 2> sizes = {};
  // The dims of each input in the order in which the sentence names them; empty: in their own order.
  std::vector<std::vector<int>> order;
};

class RuleText {
 public:
  // InternalError where the sentence is none.
  explicit RuleText(std::string_view sentence);

  // The factors of operands of these shapes. InternalError where they do not fit.
  FactorRule on(std::span<const Shape> in, std::span<const Shape> out, const RuleReading& = {}) const;

  const std::string& text() const { return text_; }
  // The letters of an operand's dims, groups left out: "nc" of B.. n c.
  std::string letters(bool is_output, std::size_t operand) const;
  std::size_t operands(bool is_output) const { return (is_output ? out_ : in_).size(); }
  bool is_whole(char factor) const;

 private:
  struct Symbol {
    std::string name;
    bool is_group;
    FactorKind kind = FactorKind::pass;
    char letter() const { return name[0]; }
  };
  enum class Dim { lone, about, compound };
  struct Term {
    Dim kind;
    std::vector<int> symbols;  // none: "1"
  };
  struct Operand {
    std::vector<Term> terms;
    bool is_repeated = false;
  };
  static constexpr int most_symbols = 16;
  class Parser;
  class Fit;

  [[noreturn]] static void fail_reading(const std::string& rule, const std::string& why);
  int symbol(char letter) const;  // its number
  bool is_regrouping() const;     // (D..) -> (D..)
  bool is_one_group() const;      // {D..} -> D..

  std::string text_;
  std::vector<Symbol> symbols_;
  std::vector<Operand> in_, out_;
  ReduceKind reduce_kind_ = ReduceKind::sum;
  bool is_regrouping_ = false, is_one_group_ = false, has_compound_ = false;
};

}  // namespace tessera
