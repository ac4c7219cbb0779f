// The shape of every elementwise record; the rows of the table are in arithmetic.cpp, math.cpp, compare.cpp
// and select.cpp.
#pragma once
#include "graph/elementwise_row.hpp"
#include "ops/build.hpp"
#include "types/promotion.hpp"

namespace tessera {

// Which dtypes an op takes and gives.
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
};

struct Elementwise {
  OpDef def;
  ElementwiseRow row;
  DtypeRule rule;
};

// An op of one row: name (= kernel name unless given), dtype rule, linearity ("" none, "0", "01", "0|1"),
// vjp.
Elementwise elementwise(const char* name, DtypeRule rule, Cotangents (*vjp)(const VjpArgs&),
                        std::string (*linear)(const Params&) = nullptr, const char* kernel = nullptr);
// Not differentiable, and why.
Elementwise elementwise_without_vjp(const char* name, DtypeRule rule, const char* why,
                                    const char* kernel = nullptr);

// x as that dtype, weakly typed where it says so.
Array cast_as(const Array& x, WeakDtype, std::source_location where);
// Promotes, casts, records.
Array apply(const Elementwise&, std::vector<Operand>);

inline std::string linear_unary(const Params&) { return "0"; }
inline std::string linear_both(const Params&) { return "01"; }
inline std::string linear_either(const Params&) { return "0|1"; }

// A row must live as long as the program and know its own address.
#define TESSERA_ROW(variable, ...)                                     \
  const Elementwise& variable##_row() {                                \
    static const Elementwise& row = register_elementwise(__VA_ARGS__); \
    return row;                                                        \
  }                                                                    \
  const bool variable##_registered = (variable##_row(), true);
const Elementwise& register_elementwise(Elementwise);

}  // namespace tessera
