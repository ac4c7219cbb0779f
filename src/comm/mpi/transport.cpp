#include "comm/mpi/transport.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "comm/mpi/mpi_api.hpp"

namespace tessera::comm {
namespace {

// MPI's tool interface by name, since an MPI may come without it. Handles are pointers in Open MPI and MPICH.
template <class... Arguments> bool tool(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<int (*)(Arguments...)>(mpi_symbol(name));
  return function != nullptr && function(arguments...) == MPI_SUCCESS;
}

bool has_variable(const char* name, int* index) { return tool("MPI_T_cvar_get_index", name, index); }

std::int64_t variable(const char* name) {  // 0: there is none
  std::array<std::byte, 4096> value = {};
  void* handle = nullptr;
  int index = 0, count = 0;
  if (!has_variable(name, &index)) return 0;
  if (!tool("MPI_T_cvar_handle_alloc", index, static_cast<void*>(nullptr), &handle, &count)) return 0;
  tool("MPI_T_cvar_read", handle, static_cast<void*>(value.data()));
  tool("MPI_T_cvar_handle_free", &handle);
  std::int64_t number = 0;
  std::memcpy(&number, value.data(), sizeof number);
  return number;
}

}  // namespace

std::int64_t longest_without_handshake() {
  constexpr std::int64_t least = 32 << 10;  // a shorter limit is meant to make handshakes
  int provided = 0, index = 0;
  if (!tool("MPI_T_init_thread", 0, &provided)) return std::numeric_limits<std::int64_t>::max();
  // Components that were not chosen are closed, and their variables with them.
  const std::int64_t limit = has_variable("pml_ob1_verbose", &index) ? variable("btl_tcp_eager_limit") : 0;
  tool("MPI_T_finalize");
  const std::int64_t headers = limit / 16;
  return limit < least ? std::numeric_limits<std::int64_t>::max() : limit - headers;
}

}  // namespace tessera::comm
