// The table behind tessera::devices(). The runtime fills it when it starts; before that it holds this
// process alone.
#pragma once
#include <tessera/device.hpp>

namespace tessera {

// all: every device of the job, by id; own: the id of this process's.
void set_devices(std::vector<Device> all, int own = 0);
int own_device_id();
const std::vector<Device>& device_table();  // devices() without the copy

}  // namespace tessera
