// Compares the search with planning every combination, on twenty programs. TESSERA_TEST_ALL=1: all of them,
// on 8 and 4,096 ranks (minutes); TESSERA_TEST_ALL=CG: those with CG in their names; else those of one or two
// arguments.
#include <tessera/jit/advise.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "advise/programs.hpp"
#include "advise/search.hpp"

namespace tessera {
namespace {

bool is_whole() { return std::getenv("TESSERA_TEST_ALL") != nullptr; }

bool is_asked_for(const test::Program& program) {
  if (!is_whole()) return program.shapes.size() <= 2;
  const std::string part = std::getenv("TESSERA_TEST_ALL");
  return part == "1" || program.name.find(part) != std::string::npos;
}

Advice advised(const test::Program& program, const Mesh& mesh, int most_plans) {
  std::vector<Array> arguments;
  for (const auto& shape : program.shapes) arguments.push_back(zeros(shape));
  return advise(program.run, {.meshes = {mesh}, .best = 1, .most_plans = most_plans}, arguments);
}

void compare(const test::Program& program, const Mesh& mesh) {
  const auto all = advised(program, mesh, 100'000);
  EXPECT_TRUE(all.is_exhaustive);
  if (all.plans <= 40) return;  // a program with so few plans is planned exhaustively
  const int few = std::min(all.plans * 2 / 3, 200);
  const auto found = advised(program, mesh, few);
  const double ratio = found.best[0].predicted_seconds / all.best[0].predicted_seconds;
  if (is_whole())
    std::printf("%-28s %5d ranks: %4d of %4d plans, %.3f of the least\n", program.name.c_str(), mesh.size(),
                found.plans, all.plans, ratio);
  EXPECT_FALSE(found.is_exhaustive);
  EXPECT_LE(ratio, 1.05) << program.name << " on " << mesh;
}

TEST(AdvisePrograms, a_search_comes_within_a_twentieth_of_all_combinations) {
  for (const auto& program : test::programs()) {
    if (!is_asked_for(program)) continue;
    compare(program, abstract_mesh({4, 2}, {"x", "y"}));
    if (is_whole()) compare(program, abstract_mesh({64, 64}, {"x", "y"}));
  }
}

// The processor time of this thread.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// 1,000 ops with TESSERA_TEST_ALL, else 100.
TEST(AdvisePrograms, long_programs_take_no_more_plans_than_there_are_layouts) {
  const int layers = is_whole() ? 500 : 50;
  const Mesh mesh = abstract_mesh({4, 2}, {"x", "y"});
  const auto deep = [layers](const Array& x, const Array& w) {
    Array y = x;
    for (int i = 0; i < layers; ++i) y = maximum(matmul(y, w), 0);
    return y;
  };
  const double start = cpu_seconds();
  const auto advice =
      advise(deep, {.meshes = {mesh}, .most_plans = 1000}, zeros({4096, 512}), zeros({512, 512}));
  const double taken = cpu_seconds() - start;
  RecordProperty("cpu_seconds", std::to_string(taken));
  std::printf("%d ops: %.2f s of CPU for %d plans\n", 2 * layers, taken, advice.plans);
  EXPECT_LE(advice.plans, 81);
}

}  // namespace
}  // namespace tessera
