// The sharding rule of an op: one sentence about its dims, for any number of dims.
//
//   matmul      "B.. M.. K.., B.. K.. N.. -> B.. M.. N.. | sum K"
//   softmax     "B.. n -> B.. n | whole n"
//   add         "{D..} -> D.."
//   gather      "L.. A.. R.., {I..} -> L.. I.. R.. | sum A"
//   conv        "n (g c) ~S.., (g o) c T.. -> n (g o) S.. | sum c | whole T"
//   reshape     "(D..) -> (D..)"
//
// A small letter, perhaps with digits, is a factor: all dims of that name are split together. A capital
// letter is a group of any number of dims, one factor each. Commas separate operands.
//
//   {..}    any number of operands like this one
//   (g c)   a compound dim: its index is that of g and c together, row-major
//   ~s      a dim that is split as s is, though its extent is another: blocks with a margin, strided windows
//   1       a dim of size 1 without factor
//   | sum k l    (also prod max min any all)  a split leaves partial results, combined in this way
//   | whole k l  never split
//
// A dim of size 1 whose factor is larger elsewhere is broadcast: it gets no factor. A rule that is one group
// also aligns dims from the last, as NumPy does; (D..) -> (D..) keeps the order of elements and cuts them
// into other dims.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/factors.hpp"

namespace tessera {

// Facts that shapes alone do not determine: they come from the op's params.
struct RuleReading {
  // The number of dims of a group, or the size of a factor; at most two entries.
  struct Size {
    char name = 0;
    std::int64_t value = 0;
  };
  std::array<Size, 2> sizes = {};
  // The dims of each input in the order in which the rule names them; empty: in their natural order.
  std::vector<std::vector<int>> order;
};

class RuleText {
 public:
  // InternalError if the text is not a valid rule.
  explicit RuleText(std::string_view sentence);

  // The factors of operands of these shapes. InternalError if the shapes do not fit the rule.
  FactorRule on(std::span<const Shape> in, std::span<const Shape> out, const RuleReading& = {}) const;

  // ---- for users' rules, whose operands are not broadcast ----
  // The shapes of the results that follow from those of the operands. InternalError if they do not follow.
  std::vector<Shape> results_of(std::span<const Shape> in) const;
  // InternalError unless all dims of a factor have one extent; dims marked ~ are not checked.
  void check_exact(std::span<const Shape> in, std::span<const Shape> out) const;
  // The factor of each dim of arrays of these shapes (`out` may be unknown: {}); "" for a compound dim and
  // for 1.
  struct DimName {
    std::string factor;
    bool is_about = false;  // marked ~
  };
  struct DimNames {
    std::vector<std::vector<DimName>> in, out;
  };
  DimNames dim_names(std::span<const Shape> in, std::span<const Shape> out) const;
  // A factor that is passed through but missing in one of several outputs, which would depend on the layout;
  // "" where there is none.
  std::string missing_in_an_output() const;
  bool is_passed(const std::string& factor) const;  // whether the factor is neither reduced nor whole
  bool has_about(const std::string& factor) const;  // some operand has a dim of it that is marked ~
  bool reduces() const;                             // some factor leaves partial results
  ReduceKind reduce_kind() const { return reduce_kind_; }
  bool is_repeated(std::size_t operand) const { return in_[operand].is_repeated; }

  const std::string& text() const { return text_; }
  // The letters of an operand's dims, without groups: "nc" of B.. n c.
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

  static std::string shortened(const std::string& text);
  [[noreturn]] static void fail_reading(const std::string& rule, const std::string& why);
  int symbol(char letter) const;  // index of the symbol
  bool is_regrouping() const;     // (D..) -> (D..)
  bool is_one_group() const;      // {D..} -> D..

  std::string text_;
  std::vector<Symbol> symbols_;
  std::vector<Operand> in_, out_;
  ReduceKind reduce_kind_ = ReduceKind::sum;
  bool is_regrouping_ = false, is_one_group_ = false, has_compound_ = false;
};

}  // namespace tessera
