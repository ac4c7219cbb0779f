// A simulation that resumes: each run makes ten steps from the latest checkpoint and saves a new one, on any
// number of ranks.
//
//   tessera run -n 3 example_restart /tmp/waves
//   tessera run -n 8 example_restart /tmp/waves
//
// The state consists of integers, stepped without rounding: the result of any chain of runs is known exactly.
#include "example.hpp"

using namespace tessera;

namespace {

constexpr int n = 500, steps_per_call = 10;

struct State {
  Array cells;  // integers below 2^31
  Array steps;
};

// Pascal's triangle, modulo a prime: adds each cell and its left neighbour.
State step(const State& s) { return {(s.cells + roll(s.cells, 1, 0)) % 1000003, s.steps + 1}; }

State start(const Mesh& mesh) {
  return {device_put(where(arange(n) == 0, 1, 0), mesh, P("x")), device_put(zeros({}, int32), mesh, P())};
}

// Row `steps` of the triangle, computed without tessera.
std::vector<int> exact_cells(int steps) {
  std::vector<int> cells(n, 0);
  cells[0] = 1;
  for (int s = 0; s < steps; ++s) {
    std::vector<int> next(n);
    for (int i = 0; i < n; ++i) next[i] = (cells[i] + cells[(i + n - 1) % n]) % 1000003;
    cells = next;
  }
  return cells;
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [&] {
    const std::string folder = argc > 1 ? argv[1] : "waves";
    State state = start(example::all_devices());
    if (io::checkpoint::latest_step(folder)) state = io::checkpoint::restore(folder, state);
    const int before = item<int>(state.steps);
    for (int i = 0; i < steps_per_call; ++i) state = step(state);
    const int after = before + steps_per_call;
    io::checkpoint::save(folder, after, state);
    debug::print("{} ranks: steps {} to {}", process_count(), before, after);
    example::picture("cells", log(1 + astype(state.cells(slice(0, 72)), float64)));
    example::expect_close("restart", state.cells, array(exact_cells(after)), 0);
  });
}
