// Arrays as NumPy-like text.
#pragma once
#include <tessera/array.hpp>

#include <string>

#include "base/format_spec.hpp"

namespace tessera {

// Each element as the spec says, where there is one: ArgumentError where an element cannot be written so.
// Of large arrays the corners. Collective over all ranks: computes x, and gathers what is shown.
std::string array_text(const Array& x, const FormatSpec* spec);
// The same of memory of one's own. Not collective.
std::string host_text(const HostArray& x, const FormatSpec* spec);

}  // namespace tessera
