// All views of an array's memory, combined with all operations that write or free memory: the value seen
// through the view must not change.
#include <gtest/gtest.h>

#include <tessera/dlpack.hpp>
#include <tessera/eigen.hpp>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using Values = std::vector<float>;

Mesh all_devices() { return make_mesh({device_count()}, {"x"}); }

// This rank's block of a vector 1, 2, ..., whose rows are split or replicated.
struct Block {
  std::int64_t rows;
  PartitionSpec spec;
  NamedSharding sharding() const { return NamedSharding(all_devices(), spec); }
  Values values() const {
    const auto box = sharding().local_box(Shape{rows}, local_devices()[0].id)[0];
    Values counted(static_cast<std::size_t>(box.stop - box.start));
    std::iota(counted.begin(), counted.end(), static_cast<float>(box.start + 1));
    return counted;
  }
};

// The values seen through a view, which lives as long as the struct.
struct View {
  std::function<Values()> now;
  std::shared_ptr<const void> keeps;
};

Values copied(std::span<const float> values) { return {values.begin(), values.end()}; }
template <class Tensor> View of_tensor(Tensor* tensor) {
  const std::shared_ptr<Tensor> kept(tensor, [](Tensor* t) { t->deleter(t); });
  return {[kept] {
            const auto& block = kept->dl_tensor;
            return copied({static_cast<const float*>(block.data), static_cast<std::size_t>(block.shape[0])});
          },
          kept};
}
struct Map {
  using Scalar = float;
  Map(const float* data, std::int64_t size) : values(data, static_cast<std::size_t>(size)) {}
  std::span<const float> values;
};

struct Look {
  std::string name;
  bool outlives_the_handle;
  std::function<View(const Array&)> at;
};
const std::vector<Look>& looks() {
  static const std::vector<Look> all = {
      {"local", false,
       [](const Array& x) {
         const auto span = local<float>(x);
         return View{[span] { return copied(span); }, nullptr};
       }},
      {"local of a temporary", true,
       [](const Array& x) {
         const auto held = local<float>(Array(x));
         return View{[held] { return copied(held); }, nullptr};
       }},
      {"local_mdspan", false,
       [](const Array& x) {
         const auto view = local_mdspan<float>(x);
         return View{[view] {
                       return copied({view.data_handle(), static_cast<std::size_t>(view.size())});
                     },
                     nullptr};
       }},
      {"local_mdspan of a temporary", true,
       [](const Array& x) {
         const auto view = local_mdspan<float>(Array(x));
         return View{[view] {
                       return copied({view.data_handle(), static_cast<std::size_t>(view.size())});
                     },
                     nullptr};
       }},
      {"local_map", false,
       [](const Array& x) {
         const auto map = local_map<Map>(x);
         return View{[map] { return copied(map.values); }, nullptr};
       }},
      {"to_dlpack", true, [](const Array& x) { return of_tensor(to_dlpack(x)); }},
      {"to_dlpack with flags", true,
       [](const Array& x) { return of_tensor(to_dlpack<dlpack::ManagedTensorVersioned>(x)); }},
      {"to_dlpack and from_dlpack", true,
       [](const Array& x) {
         const HostArray host = from_dlpack(to_dlpack(x));
         return View{[host] { return copied(host.as<float>()); }, nullptr};
       }},
      {"addressable_shards", true,
       [](const Array& x) {
         const Array data = x.addressable_shards().at(0).data;
         return View{[data] { return copied(local<float>(data)); }, nullptr};
       }},
      {"the result of a function that returns its argument", true,
       [](const Array& x) {
         const Array same = jit([](const Array& a) { return a; })(x);
         return View{[same] { return copied(local<float>(same)); }, nullptr};
       }},
      {"another shape", true,
       [](const Array& x) {
         const Array same = reshape(x, {1, -1});
         eval({same});
         return View{[same] { return copied(local<float>(same)); }, nullptr};
       }},
  };
  return all;
}

// Allocates arrays of all sizes that may have been freed.
void use_memory_again(const Array& like) {
  std::vector<Array> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(device_put(full(like.shape(), -7), like.sharding()));
    eval(others);
  }
}

struct Act {
  std::string name;
  bool drops_handle;
  std::function<void(Array&)> on;
};
template <class F> Act donated(std::string name, F f) {
  return {"donated to " + std::move(name), false, [f](Array& x) {
            const auto compiled = jit(f, {.donate_argnums = {0}});
            const Array another = device_put(zeros(x.shape()), x.sharding());
            eval({another});
            eval({compiled(x)});
            eval({compiled(another)});
          }};
}
const std::vector<Act>& acts() {
  static const std::vector<Act> all = {
      donated("a chain", [](const Array& x) { return x * 2 + 1; }),
      donated("a sum that cannot use it", [](const Array& x) { return sum(x); }),
      donated("a sort", [](const Array& x) { return sort(-x); }),
      donated("a loop",
              [](const Array& x) {
                return fori_loop(
                    0, 3, [](int, Array a) { return a * 2; }, x);
              }),
      donated("a branch",
              [](const Array& x) {
                return cond(
                    x(0) < 0, [](Array a) { return a + 1; }, [](Array a) { return a * 3; }, x);
              }),
      donated("a gather", [](const Array& x) { return device_put(x + 1, all_devices(), P()); }),
      {"deleted", false, [](Array& x) { x.delete_(); }},
      {"deleted, and memory released", false,
       [](Array& x) {
         x.delete_();
         release_memory();
       }},
      {"dropped", true, [](Array& x) { x = Array(); }},
      {"dropped, and memory released", true,
       [](Array& x) {
         x = Array();
         release_memory();
       }},
      {"used for the last time", true,
       [](Array& x) {
         Array y = std::move(x) * 2 + 1;
         x = Array();
         eval({y});
       }},
  };
  return all;
}

// Sizes around the thresholds from which memory is shared on a host (64 KiB), mapped separately (4 MiB) and
// written past the cache (8 MiB), and odd ones.
std::vector<Block> blocks() {
  std::vector<Block> all;
  const std::int64_t ranks = device_count();
  for (const std::int64_t rows : {1000L, 16383L, 16387L, (1L << 20) + 3, (2L << 20) + 5}) {
    if (rows > 1L << 19 && ranks > 2) continue;
    all.push_back({rows * ranks, P("x")});
    all.push_back({rows, P()});
  }
  return all;
}

TEST(Views, show_the_same_value_whatever_becomes_of_the_array) {
  for (const Block& block : blocks()) {
    const Values expected = block.values();
    for (const Look& look : looks())
      for (const Act& act : acts()) {
        if (act.drops_handle && !look.outlives_the_handle) continue;
        Array x = device_put(astype(arange(block.rows), float32) + 1, block.sharding());
        const View view = look.at(x);
        ASSERT_EQ(view.now(), expected) << look.name;
        const Array like = device_put(zeros({block.rows}), block.sharding());
        act.on(x);
        use_memory_again(like);
        ASSERT_EQ(view.now(), expected) << look.name << " of " << block.rows << " rows that are " << act.name;
      }
  }
}

// The reverse: the memory of the array belongs to another owner.
TEST(Views, the_owner_of_adopted_memory_sees_his_values_whatever_becomes_of_the_array) {
  for (const Block& block : blocks()) {
    const Values expected = block.values();
    for (const Act& act : acts())
      for (const bool by_dlpack : {false, true}) {
        Values mine = expected;
        int released = 0;
        {
          const Shape shape{static_cast<std::int64_t>(mine.size())};
          HostArray host = HostArray::adopt(mine.data(), shape, float32, [&] { ++released; });
          std::int64_t extent = shape[0], stride = 1;
          dlpack::ManagedTensor tensor{
              {mine.data(), {1, 0}, 1, {2, 32, 1}, &extent, &stride, 0},
              &released,
              [](dlpack::ManagedTensor* t) { ++*static_cast<int*>(t->manager_ctx); }};
          if (by_dlpack) host = from_dlpack(&tensor);
          released = 0;
          Array x = make_array_from_process_local_data(block.sharding(), std::move(host), Shape{block.rows});
          ASSERT_EQ(local<float>(x).data(), mine.data()) << "it is not copied";
          const Array like = device_put(zeros({block.rows}), block.sharding());
          x = device_put(x, block.sharding());
          act.on(x);
          use_memory_again(like);
        }
        ASSERT_EQ(mine, expected) << block.rows << " rows that are " << act.name;
        ASSERT_EQ(released, 1) << act.name;
      }
  }
}

TEST(Views, memory_that_is_not_looked_at_any_more_is_reused) {
  const auto next = jit([](const Array& x) { return x * 2; }, {.donate_argnums = {0}});
  const Shape shape{(1L << 18) * device_count()};
  const std::int64_t bytes = 4L << 18;
  Array x = next(device_put(ones(shape), all_devices(), P("x")));
  const auto peak_of_a_step = [&] {
    reset_peak_memory();
    const auto before = memory_use().live_bytes;
    x = next(x);
    return memory_use().peak_bytes - before;
  };
  EXPECT_LT(peak_of_a_step(), bytes);
  auto* const tensor = to_dlpack(x);
  EXPECT_GE(peak_of_a_step(), bytes) << "the tensor has the old one";
  tensor->deleter(tensor);
  EXPECT_LT(peak_of_a_step(), bytes);
  const Array other = x;
  (void)local<float>(other);
  EXPECT_GE(peak_of_a_step(), bytes) << "the span is valid as long as a handle is";
  EXPECT_LT(peak_of_a_step(), bytes);
}

}  // namespace
}  // namespace tessera::test
