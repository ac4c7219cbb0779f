// Factorizations in LAPACK's form: tessera's distributed ones, and what JAX's custom calls want of them.
#pragma once
#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

// lapack_sgetrf_ffi and its relatives, by the name without precision: "getrf". Null: not known.
Rule lapack_rule(std::string_view call);
// An attribute of the call's configuration that holds a letter as its character code (uplo = 76: 'L'); '\0'
// if it is missing.
char letter_of(const OpCall&, const char* name);

// A packed QR or another form of Householder reflections, and its factors: see householder.cpp.
struct Packed {
  Array packed, taus;
};
Packed householder_qr(const Array& a);
Packed householder_hessenberg(const Array& a);
Array product_of_reflections(const Array& packed, const Array& taus, int columns);

}  // namespace tessera::stablehlo
