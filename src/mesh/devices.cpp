#include "mesh/devices.hpp"

#include <ostream>
#include <utility>

namespace tessera {
namespace {
std::vector<Device>& table() {
  static auto* devices = new std::vector<Device>{{0, 0, "localhost"}};  // outlives every static mesh of the program
  return *devices;
}
}  // namespace

void set_devices(std::vector<Device> all_by_id) { table() = std::move(all_by_id); }
const std::vector<Device>& device_table() { return table(); }

std::vector<Device> devices() { return table(); }
int device_count() { return static_cast<int>(table().size()); }
std::ostream& operator<<(std::ostream& out, const Device& device) { return out << "CpuDevice(id=" << device.id << ")"; }

}  // namespace tessera
