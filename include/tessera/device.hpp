/// @file
/// Devices: one MPI rank is one device. Nothing here is collective.
#pragma once
#include <tessera/detail/standard.hpp>

#include <iosfwd>
#include <string>
#include <vector>

namespace tessera {

/// One MPI rank. Prints as CpuDevice(id=3). Equality and order are those of the id.
struct Device {
  int id = 0;             ///< rank number in the runtime's communicator
  int process_index = 0;  ///< equal to id: one process is one device
  std::string host;       ///< name of its host
  friend bool operator==(const Device& a, const Device& b) { return a.id == b.id; }
  friend bool operator<(const Device& a, const Device& b) { return a.id < b.id; }
};
std::ostream& operator<<(std::ostream&, const Device&);

std::vector<Device> devices();  ///< all devices of the job, by id; one in a program started without mpirun
int device_count();             ///< number of devices of the job
std::vector<Device> local_devices();  ///< this process's devices: one

}  // namespace tessera
