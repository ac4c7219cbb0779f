// Transformations of functions (API section 5): jit and explain, gradients, maps, control flow.
#pragma once
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>
#include <tessera/tree.hpp>
#if __has_include(<tessera/maps.hpp>)
#include <tessera/maps.hpp>
#endif
#if __has_include(<tessera/control.hpp>)
#include <tessera/control.hpp>
#endif
