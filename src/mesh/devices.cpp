#include "mesh/devices.hpp"

#include <ostream>

#include "base/session.hpp"

namespace tessera {
namespace {
struct Table {
  std::vector<Device> all{{0, 0, "localhost"}};
  int own = 0;
};
Table& table() { return state<Table>(); }
}  // namespace

void set_devices(std::vector<Device> all, int own) { table() = {std::move(all), own}; }
int own_device_id() { return table().own; }
const std::vector<Device>& device_table() { return table().all; }

std::vector<Device> devices() { return table().all; }
int device_count() { return static_cast<int>(table().all.size()); }
std::vector<Device> local_devices() { return {table().all[table().own]}; }

std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << "CpuDevice(id=" << device.id << ")";
}

}  // namespace tessera
