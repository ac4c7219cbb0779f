// Shardings and their pictures: the workshop with its exercises solved.
//
//   tessera run -n 8 workshop
#include "steps.hpp"

int main(int argc, char** argv) {
  bool small = false;
  CLI::App app("Shardings, products, FFT and solvers over 8 devices: the exercises, solved", "workshop");
  app.add_flag("--small", small, "changes nothing: the workshop is small");
  return tutorial::main_of(app, argc, argv, [] {
    workshop::pictures();
    workshop::batches();
    workshop::products();
    workshop::chain();
    workshop::fourier();
    workshop::linear_solver();
  });
}
