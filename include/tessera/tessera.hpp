/// @file
/// Everything: distributed arrays and what can be done with them.
#pragma once
#include <tessera/detail/standard.hpp>

#include <tessera/array.hpp>
#include <tessera/collectives.hpp>
#include <tessera/debug.hpp>
#include <tessera/device.hpp>
#include <tessera/dtype.hpp>
#include <tessera/error.hpp>
#include <tessera/fft.hpp>
#include <tessera/io.hpp>
#include <tessera/io/hdf5_writer.hpp>
#include <tessera/linalg.hpp>
#include <tessera/mesh.hpp>
#include <tessera/multihost.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/numpy.hpp>
#include <tessera/ops/products.hpp>
#include <tessera/progress.hpp>
#include <tessera/random.hpp>
#include <tessera/runtime.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>
#include <tessera/transforms.hpp>
#include <tessera/visualize.hpp>
#include <tessera/viz.hpp>
