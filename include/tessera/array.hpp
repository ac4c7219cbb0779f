/// @file
/// Arrays: the handle, index expressions, creation, layouts, values.
#pragma once
#include <tessera/array/create.hpp>
#include <tessera/array/handle.hpp>
#include <tessera/array/host.hpp>
#include <tessera/array/index.hpp>
#include <tessera/array/memory.hpp>
#include <tessera/array/read.hpp>
#include <tessera/error.hpp>
