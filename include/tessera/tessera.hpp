// Everything.
#pragma once
#include <tessera/array.hpp>
#include <tessera/debug.hpp>
#include <tessera/device.hpp>
#include <tessera/dtype.hpp>
#include <tessera/error.hpp>
#include <tessera/io.hpp>
#include <tessera/jit.hpp>
#include <tessera/mesh.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>
#include <tessera/transforms.hpp>
#include <tessera/tree.hpp>
#include <tessera/visualize.hpp>
#if __has_include(<tessera/collectives.hpp>)
#include <tessera/collectives.hpp>
#endif
#if __has_include(<tessera/random.hpp>)
#include <tessera/random.hpp>
#endif
#if __has_include(<tessera/fft.hpp>)
#include <tessera/fft.hpp>
#endif
#if __has_include(<tessera/linalg.hpp>)
#include <tessera/linalg.hpp>
#endif
#if __has_include(<tessera/multihost.hpp>)
#include <tessera/multihost.hpp>
#endif
