// The workshop's parts, in order.
#pragma once
#include "tutorial/support.hpp"

namespace workshop {

using namespace tutorial;

/// A random matrix of 16 x 16.
inline Array matrix(int seed) { return random::normal(random::key(seed), {16, 16}); }

void pictures();       ///< meshes and specs (exercise 1)
void batches();        ///< a linear system per device (exercise 2)
void products();       ///< products, automatic and by hand (exercises 3.1 and 3.2)
void chain();          ///< four matrices with one collective (exercise 3.3)
void fourier();        ///< a distributed FFT (exercise 4)
void linear_solver();  ///< a distributed solver, and an LU by hand (exercise 4)

}  // namespace workshop
