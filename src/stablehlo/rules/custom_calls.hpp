// custom_call: functions that are known by name.
#pragma once
#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

Arrays custom_call(OpCall&);
// Layouts in GSPMD's form: rules/layouts.cpp.
Arrays gspmd_sharding(OpCall&);
Arrays approx_top_k(OpCall&);  // rules/sorts.cpp

}  // namespace tessera::stablehlo
