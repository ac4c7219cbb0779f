// A communicator: an ordered list of devices that communicate. Its ranks are positions in that list.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace tessera::comm {

class Communicator {
 public:
  int rank() const;  // rank of this process
  int size() const;
  const std::vector<int>& device_ids() const;  // in rank order
  int rank_of(int device_id) const;            // -1 when the device is not in the list
  const std::string& name() const;             // "devices 0-3", for messages

  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// All devices. Before the runtime has started: this process alone.
const Communicator& world();

// The communicator of these devices, in this order, for the time of a call (to keep it longer: hold_group in
// idle_groups.hpp). The first call for a set of devices is collective over exactly its members; its other
// orders cost nothing. InternalError if this process is not among them or a device is listed twice.
const Communicator& group(const std::vector<int>& device_ids);

}  // namespace tessera::comm
