// Arrays as NumPy-like text.
#pragma once
#include <tessera/array.hpp>

#include <string>

#include "base/text/format_spec.hpp"

namespace tessera {

// Whether elements of the dtype can be formatted by the spec.
bool takes_format(Dtype, const FormatSpec&);
// Elements are formatted by the spec, if there is one, which they must take.
// Large arrays show their corners. Collective over all ranks: computes x, and gathers the displayed elements.
std::string array_text(const Array& x, const FormatSpec* spec);
// The same for an array in host memory. Not collective.
std::string host_text(const HostArray& x, const FormatSpec* spec);

}  // namespace tessera
