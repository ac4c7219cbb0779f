// Programs as JAX prints them give JAX's results, on any number of ranks.
#include "golden.hpp"

#include <tessera/jit.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>

namespace tessera::test {
namespace {

// Arguments split along their first dim over all ranks.
std::vector<Array> split(const std::vector<Array>& arguments) {
  const Mesh mesh = make_mesh({device_count()}, {"ranks"}, devices());
  std::vector<Array> placed;
  for (const auto& x : arguments) placed.push_back(device_put(x, mesh, x.ndim() > 0 ? P("ranks") : P()));
  return placed;
}

class GoldenText : public testing::TestWithParam<std::string> {};

TEST_P(GoldenText, gives_the_results_of_jax) {
  const auto golden = golden_program(GetParam());
  if (golden.devices() > device_count()) {
    EXPECT_THROW((void)stablehlo::parse(golden.text, golden.name)(arguments_of(golden)), ShardingError);
    return;
  }
  const auto program = stablehlo::parse(golden.text, golden.name);
  expect_results(golden, program(arguments_of(golden)));
}

TEST_P(GoldenText, gives_them_for_split_arguments_too) {
  const auto golden = golden_program(GetParam());
  const bool needs_its_mesh = golden.text.find("manual_computation") != std::string::npos;
  if (needs_its_mesh && golden.devices() > device_count()) return;
  const auto program = stablehlo::parse(golden.text, golden.name, {.ignore_shardings = !needs_its_mesh});
  expect_results(golden, program(split(arguments_of(golden))));
}

TEST_P(GoldenText, gives_them_for_each_of_a_batch) {
  const auto golden = golden_program(GetParam());
  const bool has_a_mesh = golden.devices() > 1 || golden.text.find("manual_computation") != std::string::npos;
  const auto arguments = arguments_of(golden);
  if (has_a_mesh || arguments.empty()) return;
  std::vector<Array> batch;
  for (const auto& x : arguments) batch.push_back(stack({x, x, x}, 0));
  const auto program = stablehlo::parse(golden.text, golden.name, {.ignore_shardings = true});
  const auto results = jit(vmap(program))(split(batch));
  std::vector<Array> last;
  for (const auto& x : results) last.push_back(x(2));
  expect_results(golden, last);
}

INSTANTIATE_TEST_SUITE_P(programs, GoldenText, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
