// A user's first program: built against an installed tessera, run under mpirun.
#include <tessera/error.hpp>
#include <tessera/mpi.hpp>
#include <tessera/runtime.hpp>
#include <tessera/sharding.hpp>

#include <iostream>

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const tessera::Mesh mesh = tessera::make_mesh({tessera::device_count()}, {"x"});
    const tessera::Sharding rows = tessera::NamedSharding(mesh, tessera::P("x", tessera::None));
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != tessera::process_count())
      throw tessera::InternalError("the library and the program see different jobs");
    if (tessera::is_main_process()) std::cout << mesh << " " << rows.shard_shape({10, 4}) << std::endl;
  });
}
