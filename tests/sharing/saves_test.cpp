// An asynchronous save writes the values at its call, whatever happens to the arrays afterwards.
#include <tessera/checkpoint.hpp>

#include <functional>
#include <vector>

#include "io/folder.hpp"

namespace tessera::test {
namespace {

using io::checkpoint::Manager;

using Saves = InFolder;

TEST_F(Saves, under_way_write_what_was_there_when_they_began) {
  const auto next = jit([](const Array& x) { return x * -1; }, {.donate_argnums = {0}});
  const auto numbers = [] { return device_put(astype(arange(1 << 20), float64), all_rows()); };
  const auto expected = to_vector<double>(numbers());
  Manager saves(folder_);
  int step = 0;
  for (const auto& act : std::vector<std::function<void(Array&)>>{
           [&](Array& x) { x = next(x); }, [](Array& x) { x.delete_(); }, [](Array& x) { x = Array(); }}) {
    Array x = numbers() + 0;
    saves.save(++step, x);
    act(x);
    release_memory();
    eval({numbers() - 7, numbers() - 8});  // would take freed memory
    saves.wait();
    EXPECT_EQ(to_vector<double>(io::checkpoint::restore(folder_, numbers() * 0)), expected) << step;
  }
}

}  // namespace
}  // namespace tessera::test
