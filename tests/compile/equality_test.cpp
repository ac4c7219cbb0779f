// Hashes only find candidates: plans, shared instructions and merged loops are compared by value. The op of
// these tests has params that all have one hash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/control.hpp>
#include <tessera/jit.hpp>

#include <cmath>

#include "compile/graph.hpp"
#include "support/text.hpp"

namespace tessera {
namespace {

using test::count;

struct Blunt {
  std::int32_t value;
  friend bool operator==(const Blunt&, const Blunt&) = default;
};
[[maybe_unused]] std::uint64_t field_hash(Blunt) { return 7; }
[[maybe_unused]] std::string field_text(Blunt b) { return std::to_string(b.value); }

struct ShiftParams {
  Blunt by;
  template <class V> void fields(V&& visit) const { visit("by", by); }
};

void add_shift(const KernelArgs& a) {
  const auto by = a.params.as<ShiftParams>().by.value;
  const auto* in = reinterpret_cast<const std::int32_t*>(a.in[0].data);
  auto* out = reinterpret_cast<std::int32_t*>(a.out[0].data);
  for (std::int64_t i = 0; i < a.out[0].elements(); ++i) out[i] = in[i] + by;
}

OpDef shift_record() {
  OpDef op;
  op.name = "shift_by";
  op.infer = [](std::span<const Type> in, const Params&) { return std::vector<Type>{in[0]}; };
  op.sharding = Rule("{D..} -> D..");
  op.runs = Kernel{add_shift};
  return op;
}
const OpDef shift_op = shift_record();

Array shift(const Array& x, std::int32_t by) { return record(shift_op, make_params(ShiftParams{{by}}), {x}); }

template <class F> std::string text_of(F f, const Array& x) {
  return jit(std::move(f)).lower(x).compile().as_text();
}

Array three() { return zeros({3}, int32); }

TEST(Params, that_hash_alike_are_compared_by_value) {
  const auto one = make_params(ShiftParams{{1}}), two = make_params(ShiftParams{{2}});
  ASSERT_EQ(one->hash(), two->hash());
  EXPECT_FALSE(same_params(one, two));
  EXPECT_TRUE(same_params(one, make_params(ShiftParams{{1}})));
}

struct NumberParams {
  double number;
  std::vector<std::complex<double>> list = {};
  template <class V> void fields(V&& visit) const { visit("number", number), visit("list", list); }
};

TEST(Params, compare_numbers_by_their_bits) {
  const auto of = [](double x) { return make_params(NumberParams{x, {{0, x}}}); };
  EXPECT_TRUE(same_params(of(NAN), of(NAN)));
  EXPECT_FALSE(same_params(of(0.0), of(-0.0)));
}

TEST(Params, of_another_type_differ) {
  EXPECT_FALSE(same_params(no_params(), make_params(ShiftParams{{1}})));
  EXPECT_FALSE(same_params(make_params(ShiftParams{{1}}), no_params()));
  EXPECT_TRUE(same_params(no_params(), no_params()));
}

TEST(GraphForm, tells_graphs_of_one_hash_apart) {
  const Array one = shift(three(), 1), two = shift(three(), 2);
  const Graph a = collect({one}, false), b = collect({two}, false);
  ASSERT_EQ(key_of(a).hash, key_of(b).hash);
  EXPECT_FALSE(GraphForm(a).is_of(b));
  const Array again = shift(three(), 1);
  EXPECT_TRUE(GraphForm(a).is_of(collect({again}, false)));
}

TEST(GraphForm, sees_how_values_are_wired) {
  const Array x = shift(three(), 1), y = shift(three(), 2);
  const Array to_x = x - y, to_y = y - x;
  EXPECT_FALSE(GraphForm(collect({to_x}, false)).is_of(collect({to_y}, false)));
}

TEST(PlanCache, runs_a_graph_as_it_is_whatever_its_hash) {
  EXPECT_EQ(item<std::int32_t>(max(shift(three(), 1))), 1);
  EXPECT_EQ(item<std::int32_t>(max(shift(three(), 20))), 20);
  EXPECT_EQ(item<std::int32_t>(max(shift(three(), 1))), 1);
}

TEST(ShareCommon, keeps_instructions_of_one_hash_apart) {
  const auto different = [](Array x) { return shift(x, 1) * shift(x, 2); };
  const auto equal = [](Array x) { return shift(x, 1) * shift(x, 1); };
  EXPECT_EQ(count(text_of(different, three()), " shift_by("), 2);
  EXPECT_EQ(count(text_of(equal, three()), " shift_by("), 1);
}

Array looped(const Array& x, std::int32_t by) {
  return fori_loop(
      0, 20, [by](int, Array carried) { return shift(carried, by); }, x);
}

TEST(MergeLoops, keeps_loops_of_one_hash_apart) {
  const auto different = [](Array x) { return looped(x, 1) * looped(x, 2); };
  const auto equal = [](Array x) { return looped(x, 1) * looped(x, 1); };
  EXPECT_EQ(count(text_of(different, three()), "20 times  #"), 2);
  EXPECT_EQ(count(text_of(equal, three()), "20 times  #"), 1);
}

}  // namespace
}  // namespace tessera
