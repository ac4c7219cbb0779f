// The table of the job's devices. The runtime fills it once MPI is up; without a runtime the program is one device.
#pragma once
#include <tessera/device.hpp>

#include <vector>

namespace tessera {

void set_devices(std::vector<Device> all_by_id);
const std::vector<Device>& device_table();

}  // namespace tessera
