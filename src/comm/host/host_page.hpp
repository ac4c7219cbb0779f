// Zeroed memory that all ranks of a host map. It does not belong to MPI, so it outlives MPI_Finalize.
#pragma once
#include <cstddef>
#include <string>

namespace tessera::comm {

class HostPage {
 public:
  HostPage() = default;
  HostPage(const HostPage&) = delete;
  HostPage& operator=(const HostPage&) = delete;
  ~HostPage() { close(); }

  static std::string new_name();  // a name of fixed length, unique on the host
  void create(const std::string& name,
              std::size_t bytes);  // by one rank; the others open it afterwards. If /dev/shm is
  void open(const std::string& name, std::size_t bytes);  // missing or full, data() stays nullptr
  static void unlink(const std::string& name);            // once all have opened it
  void* data() const { return data_; }
  void close();

 private:
  void map(const std::string& name, std::size_t bytes, int flags);
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tessera::comm
