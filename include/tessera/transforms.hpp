/// @file
/// Transformations of functions: jit and explain, gradients, maps, control flow; and the trees that they work
/// on.
#pragma once
#include <tessera/control.hpp>
#include <tessera/control/lax.hpp>
#include <tessera/grad.hpp>
#include <tessera/grad/forward.hpp>
#include <tessera/jit.hpp>
#include <tessera/maps.hpp>
#include <tessera/tree.hpp>
