// Transforms in memory shared by the ranks of a host: blocks are large enough for it, unlike those of the
// other tests.
#include <tessera/debug.hpp>
#include <tessera/jit.hpp>
#include <tessera/tree.hpp>

#include <gmock/gmock.h>

#include <optional>

#include "base/settings.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/mpi/communicator.hpp"
#include "fft/reference.hpp"
#include "support/no_more_files.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

bool all_share_memory() { return comm::share_memory(comm::world().device_ids()); }

Array on_one(const Array& x) { return device_put(x, SingleDeviceSharding(devices()[0])); }

// Transforms forward, and back from the resulting layout; compares with the same on one rank.
void check(const Values& v, const Shape& shape, const Sharding& where, bool is_real, fft::OutSharding place,
           std::vector<int> axes) {
  const Array x = is_real ? real_array(v, shape, float64) : complex_array(v, shape, complex128);
  const Array split = device_put(x, where), alone = on_one(x);
  const fft::FftOptions options{.axes = axes, .out_sharding = place};
  const Array y = is_real ? fft::rfftn(split, options) : fft::fftn(split, options);
  const Array expected = is_real ? fft::rfftn(alone, {.axes = axes}) : fft::fftn(alone, {.axes = axes});
  std::ostringstream what;
  what << shape << " " << where << (is_real ? " real" : "") << (place == fft::keep ? " keep" : " transposed")
       << " axes " << axes.size();
  expect_close(y, to_vector<Complex>(expected), expected.shape(), 1e-13, what.str());
  std::vector<std::int64_t> lengths;
  for (const int d : axes) lengths.push_back(shape[d]);
  const fft::FftOptions back{.axes = axes, .out_sharding = place, .s = lengths};
  expect_close(is_real ? fft::irfftn(y, back) : fft::ifftn(y, back), v, shape, 1e-13, "back, " + what.str());
}

TEST(OnHost, equals_one_rank_for_any_shape_split_kind_and_place) {
  RandomSource random(31);
  for (int round = 0; round < 24 && !testing::Test::HasFailure(); ++round) {
    const int ndim = 2 + static_cast<int>(random.below(3));
    std::vector<std::int64_t> extents;
    const std::int64_t least[] = {0, 0, 200, 30, 13};
    for (int d = 0; d < ndim; ++d) extents.push_back(least[ndim] + random.below(least[ndim]));
    const Shape shape(extents);
    std::vector<int> axes;
    for (int d = 0; d < ndim; ++d) axes.push_back(d);
    std::shuffle(axes.begin(), axes.end(), random.engine);
    axes.resize(1 + random.below(ndim));
    const bool is_real = random.below(2) == 0;
    check(random.values(shape, !is_real), shape, random.sharding(ndim), is_real,
          random.below(2) == 0 ? fft::keep : fft::transposed, axes);
  }
}

TEST(OnHost, slabs_and_pencils_of_uneven_blocks) {
  const int p = process_count();
  RandomSource random(32);
  std::vector<Sharding> shardings = {NamedSharding(make_mesh({p}, {"x"}), P("x")),
                                     NamedSharding(make_mesh({p}, {"x"}), P(None, None, "x"))};
  if (p % 2 == 0) shardings.push_back(NamedSharding(make_mesh({2, p / 2}, {"x", "y"}), P("x", "y")));
  if (p == 8) shardings.push_back(NamedSharding(make_mesh({2, 2, 2}, {"x", "y", "z"}), P("x", "y", "z")));
  for (const auto& where : shardings)
    for (const Shape& shape :
         {Shape{37, 50, 41}, Shape{5, 131, 140}, Shape{140, 3, 131}})  // the last two: more ranks than planes
      for (const bool is_real : {false, true})
        for (const auto place : {fft::keep, fft::transposed})
          check(random.values(shape, !is_real), shape, where, is_real, place, {0, 1, 2});
}

TEST(OnHost, one_instruction_there_messages_elsewhere) {
  const int p = process_count();
  if (p == 1) GTEST_SKIP() << "one rank moves nothing";
  if (!all_share_memory()) GTEST_SKIP() << "the ranks are on several hosts";
  const Sharding where = NamedSharding(make_mesh({p}, {"x"}), P("x"));
  RandomSource random(33);
  const Values v = random.values({64, 64, 40}, true);
  const Array x = device_put(complex_array(v, {64, 64, 40}, complex128), where);
  const auto transform = [](const Array& a) { return fft::fftn(a); };
  const Array in_memory = transform(x);
  eval(in_memory);
  EXPECT_THAT(jit(transform).lower(x).compile().as_text(), HasSubstr("fft_on_host"));
  const auto planned = explain(transform, x);
  const SettingScope messages("TESSERA_COLLECTIVES", "mpi");
  const auto other = [](const Array& a) { return fft::ifftn(conj(fft::fftn(a))); };
  const auto text = jit(other).lower(x).compile().as_text();
  EXPECT_THAT(text, Not(HasSubstr("fft_on_host")));
  EXPECT_THAT(text, Not(HasSubstr("all-gather")));
  // ifft(conj(fft(x))) = conj(x) at negated indices: applying it twice gives x.
  expect_close(other(other(x)), v, {64, 64, 40}, 1e-13, "by messages");
  EXPECT_EQ(planned.calls("all-to-all"), 2);
}

struct Refused {
  explicit Refused(bool refuse) { comm::refuse_host_memory(refuse); }
  ~Refused() { comm::refuse_host_memory(false); }
};

// A limit of files, their size or mappings that one rank has reached, or all of them: messages instead.
TEST(OnHost, goes_on_by_messages_where_a_rank_gets_no_shared_memory) {
  const int p = process_count();
  if (p == 1) GTEST_SKIP() << "one rank moves nothing";
  RandomSource random(34);
  std::vector<Sharding> shardings = {NamedSharding(make_mesh({p}, {"x"}), P("x"))};
  if (p % 2 == 0) shardings.push_back(NamedSharding(make_mesh({2, p / 2}, {"x", "y"}), P("x", "y")));
  for (const int who : {0, p - 1, p})  // p: all ranks
    for (const auto& where : shardings)
      for (const Shape& shape : {Shape{37, 50, 41}, Shape{5, 131, 140}}) {
        release_memory();  // a kept buffer would satisfy the allocation
        const Refused refused(who == p || process_index() == who);
        for (const bool is_real : {false, true})
          for (const auto place : {fft::keep, fft::transposed})
            check(random.values(shape, !is_real), shape, where, is_real, place, {0, 1, 2});
      }
  check(random.values({37, 50, 41}, true), {37, 50, 41}, shardings[0], false, fft::keep, {0, 1, 2});
}

// At most the operand, the result and one further block; with messages between hosts two more in transit.
TEST(OnHost, three_blocks_of_memory_at_most) {
  const int p = process_count();
  const std::int64_t blocks = p == 1 || all_share_memory() ? 3 : 5;
  std::vector<Sharding> shardings = {NamedSharding(make_mesh({p}, {"x"}), P("x"))};
  if (p % 2 == 0) shardings.push_back(NamedSharding(make_mesh({2, p / 2}, {"x", "y"}), P("x", "y")));
  for (const auto& where : shardings) {
    const Shape shape{128, 128, 128};
    const Array x = device_put(full(shape, 0.5, complex128), where);
    eval(x);
    const std::int64_t shard = where.shard_shape(shape).elements() * 16;
    for (const auto place : {fft::keep, fft::transposed}) {
      eval(fft::fftn(x, {.out_sharding = place}));
      const auto others = memory_use().live_bytes - shard;
      reset_peak_memory();
      eval(fft::fftn(x, {.out_sharding = place}));
      EXPECT_LE(memory_use().peak_bytes - others, blocks * shard + (std::int64_t{1} << 20))
          << where << " of " << shard;
    }
  }
}

// The last rank alone has no file descriptor left: results that are kept need none, so nobody is refused.
TEST(OnHost, results_are_kept_where_one_rank_can_open_no_file) {
  const NamedSharding rows(make_mesh({device_count()}, {"x"}), P("x"));
  const Array x = device_put(astype(reshape(arange(128 * 130), {128, 130}), complex128), rows);
  eval(fft::fftn(x));  // opens what is opened once
  std::vector<Array> kept;
  {
    std::optional<NoMoreFiles> limit;
    if (process_index() + 1 == process_count()) limit.emplace();
    for (int i = 0; i < 60; ++i) eval(kept.emplace_back(fft::fftn(x * (i + 1))));
  }
  const auto once = to_vector<Complex>(fft::fftn(on_one(x)));
  for (const int i : {0, 31, 59}) {
    auto expected = once;
    for (auto& value : expected) value *= i + 1;
    expect_close(kept[i], expected, x.shape(), 1e-12, "result " + std::to_string(i));
  }
}

}  // namespace
}  // namespace tessera::test
