// A program against the wheel, which is linked with no MPI and includes none.
#include <tessera/tessera.hpp>

#include <iostream>

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const auto mesh = tessera::make_mesh({tessera::device_count()}, {"x"});
    const auto a = tessera::device_put(tessera::arange(100), tessera::NamedSharding(mesh, tessera::P("x")));
    const int total = tessera::item<int>(tessera::sum(a));
    const int ranks = tessera::process_count();
    if (tessera::is_main_process())
      std::cout << ranks << (ranks == 1 ? " rank: " : " ranks: ") << total << std::endl;
  });
}
