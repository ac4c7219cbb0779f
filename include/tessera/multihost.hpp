/// @file
/// Operations of several processes outside of arrays. All functions are collective over all processes.
#pragma once
#include <source_location>
#include <string>

#include <tessera/array.hpp>

namespace tessera::multihost {

/// The processes' values on every process. Collective over all processes: one all-gather. Values are stacked
/// along a new first dim, or (tiled) concatenated along the first one; scalars are always stacked.
/// ArgumentError, on every process, if shapes or dtypes differ.
HostArray process_allgather(const HostArray& x, bool tiled = false,
                            std::source_location where = std::source_location::current());
/// The whole value of an array that is distributed over processes: requires `tiled`, ArgumentError otherwise
/// (as JAX). An array that each process holds for itself (uncommitted, or a job of one process) is gathered
/// as a HostArray. Collective over all processes.
HostArray process_allgather(const Array& x, bool tiled = false,
                            std::source_location where = std::source_location::current());

/// The whole value of an array on process 0, and a host array without elements on the others. Each process
/// sends its blocks only to process 0, so no other one needs the memory. Collective over all processes.
HostArray process_gather(const Array& x, std::source_location where = std::source_location::current());

/// The value of process 0 on every process. Collective over all processes: one broadcast. ArgumentError if
/// shapes or dtypes differ.
HostArray broadcast_one_to_all(const HostArray& x,
                               std::source_location where = std::source_location::current());

/// Returns when all processes have called it. Collective over all processes. CommError, on every process, if
/// their names differ.
void sync_global_devices(const std::string& name,
                         std::source_location where = std::source_location::current());

/// Checks that all processes hold the same. Collective over all processes: ArgumentError, on every process,
/// naming the first process and element that differ from process 0's. NaNs equal themselves.
void assert_equal(const HostArray& x, std::source_location where = std::source_location::current());
void assert_equal(const Array& x, std::source_location where = std::source_location::current());

}  // namespace tessera::multihost
