/// @file
/// The remaining functions of NumPy, and SciPy's special ones: less common than those of ops.hpp.
#pragma once
#include <tessera/ops.hpp>
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/edit.hpp>
#include <tessera/ops/numeric.hpp>
#include <tessera/ops/sized.hpp>
#include <tessera/ops/special.hpp>
#include <tessera/ops/statistics.hpp>
#include <tessera/ops/window.hpp>
