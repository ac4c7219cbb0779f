#include "mesh/devices.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <ostream>
#include <string>

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

namespace {

class Arrangement {
 public:
  Arrangement(const std::vector<int>& sizes, std::span<const Device> devices) : sizes_(sizes) {
    std::map<std::string, std::size_t> number;
    for (const auto& device : devices) {
      const auto host = number.try_emplace(device.host, free_.size()).first->second;
      if (host == free_.size()) free_.emplace_back();
      free_[host].push_back(device.id);
    }
    block_.assign(sizes.size() + 1, 1);
    for (std::size_t axis = sizes.size(); axis-- > 0;)
      block_[axis] = block_[axis + 1] * static_cast<std::size_t>(sizes[axis]);
  }

  // Places the block of the axes from `axis` on: on the first host with room for all of it, else part by
  // part.
  void place(std::size_t axis) {
    const std::size_t wanted = block_[axis];
    const auto host = std::find_if(free_.begin() + static_cast<std::ptrdiff_t>(first_), free_.end(),
                                   [&](const auto& left) { return left.size() >= wanted; });
    if (host == free_.end()) {
      for (int part = 0; part < sizes_[axis]; ++part) place(axis + 1);
      return;
    }
    ids.insert(ids.end(), host->begin(), host->begin() + static_cast<std::ptrdiff_t>(wanted));
    host->erase(host->begin(), host->begin() + static_cast<std::ptrdiff_t>(wanted));
    while (first_ < free_.size() && free_[first_].empty()) ++first_;
  }

  std::vector<int> ids;

 private:
  const std::vector<int>& sizes_;
  std::vector<std::deque<int>> free_;  // by host
  std::vector<std::size_t> block_;     // devices in a block of the axes from this one on
  std::size_t first_ = 0;              // first host with unplaced devices
};

}  // namespace

std::vector<int> arrange_by_hosts(const std::vector<int>& sizes, std::span<const Device> devices) {
  Arrangement arrangement(sizes, devices);
  arrangement.place(0);
  return std::move(arrangement.ids);
}

}  // namespace tessera
