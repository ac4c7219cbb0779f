// argmax and argmin along a streamed dim, written with ops whose results are put together from those of
// slabs.
#pragma once
#include <tessera/array.hpp>

namespace tessera::stream {

// argmax (or argmin) of x along the dim, or in row-major order of all of x for dim ArgParams::all_dims: the
// number of elements before the first that equals the extremum. Two passes: one for the extremum, and one for
// a running maximum of the comparison. The first NaN counts as the extremum, as in argmax.
Array position_of_extreme(const Array& x, int dim, bool is_max);

}  // namespace tessera::stream
