/// @file
/// The rest of NumPy's functions, and SciPy's special ones: what ops.hpp is not made of every day.
#pragma once
#include <tessera/ops.hpp>
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/edit.hpp>
#include <tessera/ops/numeric.hpp>
#include <tessera/ops/sized.hpp>
#include <tessera/ops/special.hpp>
#include <tessera/ops/statistics.hpp>
#include <tessera/ops/window.hpp>
