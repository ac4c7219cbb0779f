// An elementwise op is one row of a table, in arithmetic.cpp, math.cpp, compare.cpp and select.cpp:
//
//   const ElementwiseOp log1p_op{map<"log1p">, DtypeRule::inexact, "log(1 + x), exact where x is near 0",
//                                reals(-0.6, 2).complexes(0.3, 0.9).within(1.1, std::log1p),
//                                derivative([](A g, A x, A) { return g / (x + 1); })};
//   Array log1p(const Operand& x) { return log1p_op({x}); }
//
// The row generates the record, its registration, the samples of the catalogue's tests (tests/catalogue), the
// accuracy test (tests/kernels) and the line in TABLE.md. map<"log1p"> is the kernel, in kernels/elementwise.
#pragma once
#include "graph/elementwise_row.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "ops/build.hpp"
#include "ops/elementwise/derivative.hpp"
#include "ops/elementwise/trials.hpp"
#include "types/promotion.hpp"

namespace tessera {

// The dtypes that an op accepts and returns.
enum class DtypeRule {
  numeric,     // any but bool (bool becomes int32); the result is the promoted dtype
  ordered,     // numeric, but not complex
  any,         // any, kept
  inexact,     // integers become float32
  real_part,   // numeric; complex -> its real dtype
  predicate,   // any -> bool
  comparison,  // promoted -> bool
  integral,    // bool or integers only
  shift,       // integers only
  floating,    // float only (integers become float32); no complex
  parts,       // floating -> the complex dtype of that size
  choice,      // a bool, then any: the promoted dtype of the latter
};

// The operands of one call, by reference: add_op({x, y}).
class OperandList {
 public:
  OperandList(const Operand& a) : all_{&a}, size_(1) {}
  OperandList(const Operand& a, const Operand& b) : all_{&a, &b}, size_(2) {}
  OperandList(const Operand& a, const Operand& b, const Operand& c) : all_{&a, &b, &c}, size_(3) {}
  OperandList(const std::vector<Operand>& few) : size_(few.size()) {
    for (std::size_t i = 0; i < size_; ++i) all_[i] = &few[i];
  }
  std::size_t size() const { return size_; }
  const Operand& operator[](std::size_t i) const { return *all_[i]; }

 private:
  const Operand* all_[3];
  std::size_t size_;
};

// Must outlive all graphs: records point to it.
class ElementwiseOp {
 public:
  // Named after its kernel unless `name` is given.
  ElementwiseOp(const kernels::Map& kernel, DtypeRule, const char* says, Trials, Derivative,
                const char* name = nullptr);
  // For ops like cast: broadcast operands of one dtype, with the dtype of the result given by infer.
  ElementwiseOp(const char* name, const char* says, Derivative,
                std::vector<Type> (*infer)(std::span<const Type>, const Params&));
  ElementwiseOp(const ElementwiseOp&) = delete;
  ElementwiseOp& operator=(const ElementwiseOp&) = delete;

  // Promotes, casts and records.
  Array operator()(const OperandList&) const;

  const DtypeRule rule;
  const char* const says;  // one line that describes what it computes
  const Trials trials;
  const ElementwiseRow row;
  const OpDef def;
};

// All rows that are linked into the program.
const std::vector<const ElementwiseOp*>& elementwise_ops();
// The table of the documentation, in Markdown.
std::string elementwise_table();

// x cast to that dtype, weakly typed if the WeakDtype is.
Array cast_as(const Array& x, WeakDtype);

}  // namespace tessera
