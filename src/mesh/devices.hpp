// The table behind tessera::devices(). The runtime fills it when it starts; before that it holds this
// process alone.
#pragma once
#include <tessera/device.hpp>

#include <span>
#include <vector>

namespace tessera {

// all: every device of the job, by id; own: the id of this process's.
void set_devices(std::vector<Device> all, int own = 0);
int own_device_id();
const std::vector<Device>& device_table();  // devices() without the copy

// Device ids for a mesh of these sizes, row-major. Axes are named in the order of rising traffic: a block of
// the last axes is placed on one host if a host has room for it, otherwise its smaller blocks are.
//
//   hosts a: 0 1 2, b: 3 4 5, sizes {3, 2}   =>   [0 1] [3 4] on one host each, [2 5] across
//   hosts a: 0 2 4 6, b: 1 3 5 7, sizes {2, 4}   =>   [0 2 4 6] [1 3 5 7]
std::vector<int> arrange_by_hosts(const std::vector<int>& sizes, std::span<const Device> devices);

}  // namespace tessera
