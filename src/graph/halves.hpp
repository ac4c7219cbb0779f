// Ops on bfloat16 and float16: conversion of operands to float32, and rounding of results.
//
//     add(a bf16, b bf16)  ->  astype(add(astype(a, f32), astype(b, f32)), bf16)
//
// The op record defines the treatment of halves (Halves, in op.hpp). No kernel computes with them; the
// conversions are elementwise ops, which run in one pass with their neighbours and have gradients.
#pragma once
#include <optional>

#include "graph/op.hpp"

namespace tessera {

// The dtype of the operands for which the op must compute in float32; nullopt if it takes them unconverted.
// DtypeError if they have too few digits for the op.
std::optional<Dtype> half_to_widen(const OpDef&, const Params&, const std::vector<Array>& inputs);

// record_all with the operands of that dtype widened: results that have it by the op's own rule are rounded
// to it, the others (bools, indices) are unchanged.
std::vector<Array> record_widened(const OpDef&, ParamsPtr, std::vector<Array> inputs, Dtype half);

}  // namespace tessera
