// Factorizations in LAPACK's form: tessera's distributed ones, and what JAX's custom calls want of them.
#pragma once
#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

// lapack_sgetrf_ffi and its relatives, by the name without precision: "getrf". Null: not known.
Rule lapack_rule(std::string_view call);
// The letter of an attribute of the call's configuration that is written as its code; '\0': it is not there.
char letter_of(const OpCall&, const char* name);

// A packed QR or another form of Householder reflections, and its factors: see householder.cpp.
struct Packed {
  Array packed, taus;
};
Packed householder_qr(const Array& a);
Packed householder_hessenberg(const Array& a);
Array product_of_reflections(const Array& packed, const Array& taus, int columns);

}  // namespace tessera::stablehlo
