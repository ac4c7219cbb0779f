#include "mesh/rule.hpp"

#include <gtest/gtest.h>

#include <tessera/error.hpp>

#include "simulator.hpp"

namespace tessera {
namespace {

using namespace simulator;

FactorRule rule(std::string_view text, std::vector<Shape> in, std::vector<Shape> out) {
  return RuleText(text).on(in, out);
}
std::string error_of(std::string_view text, std::vector<Shape> in, std::vector<Shape> out) {
  try {
    RuleText(text).on(in, out);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

TEST(FactorRules, text_gives_kinds_and_sizes) {
  const auto matmul = rule("i k, k j -> i j | sum k", {{4, 5}, {5, 6}}, {{4, 6}});
  EXPECT_EQ(matmul.factors,
            (std::vector<Factor>{{4, FactorKind::pass}, {5, FactorKind::reduce}, {6, FactorKind::pass}}));
  EXPECT_EQ(matmul.inputs[1], (std::vector<DimFactors>{{1}, {2}}));
  EXPECT_EQ(matmul.outputs[0], (std::vector<DimFactors>{{0}, {2}}));
  EXPECT_EQ(to_string(matmul), "i j, j k -> i k | sum j");
}

TEST(FactorRules, sizes_of_compound_dims_follow) {
  const auto reshape = rule("(ij) k -> i (jk)", {{24, 5}}, {{4, 30}});
  EXPECT_EQ(reshape.factors[0].size, 4);
  EXPECT_EQ(reshape.factors[1].size, 6);
  EXPECT_EQ(reshape.factors[2].size, 5);
  EXPECT_EQ(to_string(reshape), "(ij) k -> i (jk)");
}

TEST(FactorRules, a_broadcast_dim_has_no_factor) {
  const auto add = rule("i j, i j -> i j", {{1, 5}, {4, 5}}, {{4, 5}});
  EXPECT_EQ(add.inputs[0], (std::vector<DimFactors>{{}, {1}}));
  EXPECT_EQ(to_string(add), "1 j, i j -> i j");
  const auto aligned = rule("{D..} -> D..", {{5}, {4, 1}}, {{4, 5}});
  EXPECT_EQ(aligned.inputs[0], (std::vector<DimFactors>{{1}}));
  EXPECT_EQ(aligned.inputs[1], (std::vector<DimFactors>{{0}, {}}));
}

TEST(FactorRules, scalars_and_clauses) {
  const auto top = rule("i j -> | max i j", {{3, 4}}, {{}});
  EXPECT_EQ(top.reduce_kind, ReduceKind::max);
  EXPECT_EQ(top.outputs[0].size(), 0u);
  const auto softmax = rule("i j -> i j | whole j", {{3, 4}}, {{3, 4}});
  EXPECT_EQ(softmax.factors[1].kind, FactorKind::whole);
  EXPECT_EQ(to_string(softmax), "i j -> i j | whole j");
  EXPECT_EQ(rule(", i -> i", {{}, {3}}, {{3}}).inputs[0].size(), 0u);
}

TEST(FactorRules, contradictions_are_named) {
  EXPECT_NE(error_of("i k, k j -> i j | sum k", {{4, 5}, {6, 6}}, {{4, 6}}).find("factor k is 5 and 6"),
            std::string::npos);
  EXPECT_NE(error_of("i k -> i", {{4, 5}}, {{4}}).find("factor k is in no output"), std::string::npos);
  EXPECT_NE(error_of("i -> i", {{4, 5}}, {{4}}).find("operand 0 has 1 dims in the text"), std::string::npos);
  EXPECT_NE(error_of("(ij) -> i (jk)", {{24}}, {{5, 5}}).find("not a multiple"), std::string::npos);
  EXPECT_NE(error_of("i j", {{4, 5}}, {{4}}).find("no '->'"), std::string::npos);
  EXPECT_NE(error_of("i, i -> i", {{4}}, {{4}}).find("2 operands in the text, 1 shapes"), std::string::npos);
}

TEST(FactorRules, reshape_finds_common_digits) {
  EXPECT_EQ(to_string(reshape_rule({24, 5}, {4, 30})), "(ij) k -> i (jk)");
  EXPECT_EQ(to_string(reshape_rule({4, 3}, {2, 6})), "(ij) k -> i (jk)");
  EXPECT_EQ(to_string(reshape_rule({6, 1, 5}, {6, 5})), "i 1 j -> i j");
  EXPECT_EQ(to_string(reshape_rule({2, 3}, {3, 2})), "i j -> k l | whole i j k l");
  EXPECT_EQ(to_string(reshape_rule({4, 9}, {6, 6})), "(ij) k -> (il) m | whole j k l m");
  EXPECT_EQ(to_string(reshape_rule({0, 3}, {3, 0})), "i j -> k l | whole i j k l");
  EXPECT_EQ(to_string(reshape_rule({}, {1, 1})), " -> 1 1");
  EXPECT_EQ(to_string(reshape_rule({8, 1}, {1, 2, 4})), "(ij) 1 -> 1 i j");
}

class PropagationTest : public testing::Test {
 protected:
  void SetUp() override { use_job(16); }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }

  struct Result {
    std::vector<PartitionSpec> in, out;
    std::vector<std::string> partial;
    std::int64_t bytes;
  };
  static Result forward(const Mesh& mesh, std::string_view text, std::vector<Shape> in, Shape out,
                        std::vector<std::optional<P>> specs) {
    const auto parsed = RuleText(text).on(in, std::vector<Shape>{out});
    std::vector<std::optional<Sharding>> shardings;
    for (const auto& spec : specs)
      shardings.push_back(spec ? std::optional(NamedSharding(mesh, *spec)) : std::nullopt);
    const auto made = propagate_forward(parsed, shardings, in, std::vector<Dtype>(in.size(), float32),
                                        std::vector<Shape>{out}, std::vector<Dtype>{float32}, mesh);
    Result result{{}, {}, {}, made.bytes};
    for (const auto& s : made.inputs) result.in.push_back(s.spec());
    for (const auto& s : made.outputs) result.out.push_back(s.spec());
    for (int axis : made.partial_axes) result.partial.push_back(mesh.axis_names()[axis]);
    return result;
  }
  static Result matmul(const Mesh& mesh, Shape a, Shape b, std::optional<P> lhs, std::optional<P> rhs) {
    return forward(mesh, "i k, k j -> i j | sum k", {a, b}, {a[0], b[1]}, {lhs, rhs});
  }
  const Shape n2{8192, 8192};
  const std::int64_t MiB = 1 << 20;
};

TEST_F(PropagationTest, matmul_row_split_times_column_split_moves_nothing) {
  const auto r = matmul(make_mesh({4, 2}, {"x", "y"}), n2, n2, P("x", None), P(None, "y"));
  EXPECT_EQ(r.out[0], P("x", "y"));
  EXPECT_EQ(r.bytes, 0);
  EXPECT_TRUE(r.partial.empty());
}

TEST_F(PropagationTest, matmul_split_along_the_contraction_gives_partial_sums) {
  for (const auto& mesh : {make_mesh({4, 2}, {"x", "y"}), make_mesh({2, 4}, {"x", "y"})}) {
    const auto r = matmul(mesh, n2, n2, P("x", "y"), P("y", None));
    EXPECT_EQ(r.in[0], P("x", "y"));
    EXPECT_EQ(r.in[1], P("y"));
    EXPECT_EQ(r.out[0], P("x"));
    EXPECT_EQ(r.partial, std::vector<std::string>{"y"});
    const std::int64_t y = mesh.axis_size("y"), shard = 8192 * 8192 * 4 / mesh.axis_size("x");
    EXPECT_EQ(r.bytes, shard * 2 * (y - 1) / y);
  }
}

TEST_F(PropagationTest, matmul_of_split_and_replicated_moves_nothing) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  EXPECT_EQ(matmul(mesh, n2, n2, P("x", None), P()).out[0], P("x"));
  EXPECT_EQ(matmul(mesh, n2, n2, P("x", None), P()).bytes, 0);
  EXPECT_EQ(matmul(mesh, n2, n2, P(), P(None, "y")).out[0], P(None, "y"));
  EXPECT_EQ(matmul(mesh, n2, n2, P(), P(None, "y")).bytes, 0);
}

TEST_F(PropagationTest, matmul_with_one_axis_wanted_twice_moves_only_the_smaller_input) {
  const auto r = matmul(make_mesh({4}, {"x"}), {4096, 2048}, {2048, 1024}, P("x", None), P(None, "x"));
  EXPECT_EQ(r.out[0], P("x"));
  EXPECT_EQ(r.in[1], P());
  EXPECT_EQ(r.bytes, 6 * MiB);
}

TEST_F(PropagationTest, ties_keep_the_first_input) {
  const auto r = matmul(make_mesh({4}, {"x"}), {64, 64}, {64, 64}, P("x", None), P(None, "x"));
  EXPECT_EQ(r.in[0], P("x"));
  EXPECT_EQ(r.out[0], P("x"));
}

TEST_F(PropagationTest, uncommitted_inputs_are_computed_where_they_are_wanted) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  const auto r = matmul(mesh, n2, n2, P("x", "y"), std::nullopt);
  EXPECT_EQ(r.in[1], P("y"));
  EXPECT_EQ(forward(mesh, "i j, i j -> i j", {n2, n2}, n2, {std::nullopt, std::nullopt}).out[0], P());
  EXPECT_EQ(forward(mesh, "i j, i j -> i j", {n2, n2}, n2, {std::nullopt, P("y", "x")}).in[0], P("y", "x"));
}

TEST_F(PropagationTest, elementwise_keeps_and_broadcasting_does_not_disturb) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  EXPECT_EQ(forward(mesh, "i j, i j -> i j", {n2, n2}, n2, {P("x", "y"), P("x", "y")}).out[0], P("x", "y"));
  const auto r = forward(mesh, "i j, j -> i j", {{8, 6}, {6}}, {8, 6}, {P("x", "y"), P()});
  EXPECT_EQ(r.out[0], P("x", "y"));
  EXPECT_EQ(r.in[1], P("y"));
  EXPECT_EQ(r.bytes, 0);
  const auto column = forward(mesh, "i j, i j -> i j", {{8, 6}, {8, 1}}, {8, 6}, {P("x", "y"), P("x")});
  EXPECT_EQ(column.in[1], P("x"));
  EXPECT_EQ(column.bytes, 0);
  // The operands are split along different dims: both are split further, nothing moves.
  const auto both = forward(mesh, "i j, i j -> i j", {{8, 6}, {8, 6}}, {8, 6}, {P("x"), P(None, "y")});
  EXPECT_EQ(both.out[0], P("x", "y"));
  EXPECT_EQ(both.bytes, 0);
}

TEST_F(PropagationTest, reductions_over_a_split_dim_are_partial) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  const auto r = forward(mesh, "i j -> j | sum i", {{16, 6}}, {6}, {P("x", "y")});
  EXPECT_EQ(r.out[0], P("y"));
  EXPECT_EQ(r.partial, std::vector<std::string>{"x"});
  EXPECT_EQ(r.bytes, 3 * 4 * 2 * 3 / 4);
}

TEST_F(PropagationTest, a_small_replicated_input_is_not_cut_to_pay_for_a_large_reduction) {
  // a P(None, 'x') . b replicated: splitting b is free, but the partial result is far larger than gathering
  // a.
  const Mesh mesh = make_mesh({4}, {"x"});
  const auto thin = matmul(mesh, {4096, 8}, {8, 4096}, P(None, "x"), P());
  EXPECT_TRUE(thin.partial.empty());
  EXPECT_EQ(thin.in[0], P());
  const auto thick = matmul(mesh, {8, 4096}, {4096, 8}, P(None, "x"), P());
  EXPECT_EQ(thick.partial, std::vector<std::string>{"x"});
  EXPECT_EQ(thick.in[1], P("x"));
}

TEST_F(PropagationTest, whole_factors_are_gathered_or_moved_away) {
  const Mesh mesh = make_mesh({4}, {"x"});
  const auto r = forward(mesh, "i j -> i j | whole j", {{8, 8}}, {8, 8}, {P(None, "x")});
  EXPECT_EQ(r.in[0], P());
  EXPECT_EQ(forward(mesh, "i j -> i j | whole j", {{8, 8}}, {8, 8}, {P("x")}).in[0], P("x"));
}

TEST_F(PropagationTest, compound_dims_are_split_where_block_boundaries_agree) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  EXPECT_EQ(forward(mesh, "(ij) -> i j", {{24}}, {8, 3}, {P("x")}).out[0], P("x"));
  EXPECT_EQ(forward(mesh, "(ij) -> i j", {{24}}, {6, 4}, {P("x")}).in[0],
            P());  // 6 % 4: blocks of 6 are not rows of 4
  EXPECT_EQ(forward(mesh, "(ij) -> i j", {{16}}, {4, 4}, {P(axes("x", "y"))}).out[0], P("x", "y"));
  EXPECT_EQ(forward(mesh, "(ij) -> i j", {{32}}, {8, 4}, {P(axes("x", "y"))}).out[0], P(axes("x", "y")));
  EXPECT_EQ(forward(mesh, "i j -> (ij)", {{8, 3}}, {24}, {P("x")}).out[0], P("x"));
  EXPECT_EQ(forward(mesh, "i j -> (ij)", {{8, 3}}, {24}, {P(None, "y")}).in[0],
            P());  // the minor dim only inside single rows
  EXPECT_EQ(forward(mesh, "i j -> (ij)", {{7, 3}}, {21}, {P("x")}).in[0], P());  // 7 rows over 4 are 2 2 2 1
}

TEST_F(PropagationTest, inputs_on_another_mesh_over_the_same_devices_count_as_they_lie) {
  const Mesh line = make_mesh({8}, {"i"}), grid = make_mesh({4, 2}, {"x", "y"});
  const std::vector<Shape> shapes = {{16}, {16}};
  const auto add = rule("{D..} -> D..", shapes, {{16}});
  const std::vector<std::optional<Sharding>> same = {NamedSharding(grid, P(axes("x", "y"))),
                                                     NamedSharding(line, P("i"))};
  const std::vector<Dtype> dtypes = {float32, float32};
  const auto kept = propagate_forward(add, same, shapes, dtypes, std::vector<Shape>{{16}},
                                      std::vector<Dtype>{float32}, grid);
  EXPECT_EQ(kept.bytes, 0);
  EXPECT_EQ(kept.outputs[0].mesh(), grid);
  // No common refinement of 2 x 3 and 3 x 2: the second is moved to the first's layout.
  const Mesh a = make_mesh({2, 3}, {"x", "y"}), b = make_mesh({3, 2}, {"u", "v"});
  const std::vector<std::optional<Sharding>> other = {NamedSharding(a, P("y")), NamedSharding(b, P("u"))};
  const auto moved =
      propagate_forward(add, other, shapes, dtypes, std::vector<Shape>{{16}}, std::vector<Dtype>{float32}, a);
  EXPECT_EQ(moved.inputs[0], *other[0]);
  EXPECT_EQ(moved.outputs[0], *other[0]);
  EXPECT_GT(moved.bytes, 0);
}

TEST_F(PropagationTest, results_look_as_the_user_wrote_them) {
  const PositionalSharding grid = PositionalSharding(devices()).reshape(4, 4);
  const std::vector<std::optional<Sharding>> in = {Sharding(grid)};
  const std::vector<Shape> shapes = {{8, 8}};
  const auto made =
      propagate_forward(rule("{D..} -> D..", shapes, {{8, 8}}), in, shapes, std::vector<Dtype>{float32},
                        shapes, std::vector<Dtype>{float32}, in[0]->mesh());
  EXPECT_EQ(made.outputs[0].identity(), in[0]->identity());
}

// The range of each factor that a device works on, from one operand's box; empty boxes determine none.
std::optional<std::vector<Range>> factor_ranges(const FactorRule& rule, const std::vector<DimFactors>& dims,
                                                const Index& box) {
  std::vector<Range> ranges(rule.factors.size(), {-1, -1});
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].empty()) continue;
    if (box[d].size() <= 0) return std::nullopt;
    std::int64_t minor = 1;
    for (int f : dims[d]) minor *= rule.factors[f].size;
    std::int64_t start = box[d].start, size = box[d].size();
    for (int f : dims[d]) {
      minor /= rule.factors[f].size;
      const std::int64_t first = start / minor, count = std::max<std::int64_t>(1, size / minor);
      ranges[f] = {first, first + count};
      start -= first * minor;
      EXPECT_TRUE(count == 1 || (start == 0 && size == count * minor)) << "a block cuts across its factors";
      if (count > 1) size = minor, start = 0;
    }
  }
  return ranges;
}

TEST_F(PropagationTest, every_operand_of_a_random_op_holds_the_blocks_of_the_same_factors) {
  Random random(21);
  const std::vector<std::string> texts = {
      "i k, k j -> i j | sum k", "i j, i j -> i j",      "i j -> j i",
      "i j, j -> i j",           "(ij) k -> i (jk)",     "i (jk) -> (ij) k",
      "i j -> i | max j",        "i j -> i j | whole j", "b i k, b k j -> b i j | sum k"};
  const std::vector<std::int64_t> extents = {1, 2, 3, 4, 5, 6, 8, 12};
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    const std::string& text = random.pick(texts);
    std::map<char, std::int64_t> size;
    for (char letter : std::string("bijk")) size[letter] = random.pick(extents);
    const auto shapes_of = [&](std::string list) {
      std::vector<Shape> shapes;
      std::vector<std::int64_t> dims;
      std::int64_t compound = 0;
      for (char c : list + ",") {
        if (c == ',') shapes.push_back(Shape(dims)), dims.clear();
        if (c == '(') compound = 1;
        if (c == ')') dims.push_back(compound), compound = 0;
        if (!std::isalpha(static_cast<unsigned char>(c))) continue;
        if (compound)
          compound *= size[c];
        else
          dims.push_back(size[c]);
      }
      return shapes;
    };
    const auto arrow = text.find("->");
    const auto in = shapes_of(text.substr(0, arrow)),
               out = shapes_of(text.substr(arrow + 2, text.find('|') - arrow - 2));
    const FactorRule parsed = RuleText(text).on(in, out);
    const Mesh mesh = random.mesh(12);
    std::vector<std::optional<Sharding>> shardings;
    for (const auto& shape : in)
      shardings.push_back(random.below(8) ? std::optional(random.sharding(mesh, shape.ndim()))
                                          : std::nullopt);
    const std::vector<Dtype> in_dtypes(in.size(), float32), out_dtypes(out.size(), float32);
    const auto made = propagate_forward(parsed, shardings, in, in_dtypes, out, out_dtypes, mesh);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << text << " " << in[0] << " on " << mesh
                                    << " from " << (shardings[0] ? to_string(parsed) : "uncommitted")
                                    << " to " << made.inputs[0] << " -> " << made.outputs[0]);
    EXPECT_TRUE(is_allowed(parsed, made.factor_axes, mesh));
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (shardings[i]) bytes += plan_reshard(*shardings[i], made.inputs[i], in[i], float32).bytes;
    if (made.partial_axes.empty()) {
      EXPECT_EQ(made.bytes, bytes);
    }
    EXPECT_GE(made.bytes, bytes);
    for (int id : mesh.device_ids()) {
      std::vector<Range> work(parsed.factors.size(), {-1, -1});
      const auto agree = [&](const std::vector<DimFactors>& dims, const Sharding& sharding,
                             const Shape& shape) {
        const auto ranges = factor_ranges(parsed, dims, sharding.local_box(shape, id));
        if (!ranges) return;
        for (std::size_t f = 0; f < work.size(); ++f) {
          if ((*ranges)[f].start < 0) continue;
          if (work[f].start < 0) work[f] = (*ranges)[f];
          EXPECT_EQ(work[f], (*ranges)[f]) << "device " << id << " factor " << f;
        }
      };
      for (std::size_t i = 0; i < in.size(); ++i) agree(parsed.inputs[i], made.inputs[i], in[i]);
      for (std::size_t o = 0; o < out.size(); ++o) agree(parsed.outputs[o], made.outputs[o], out[o]);
    }
    // Following any single input is never cheaper, unless it avoids a reduction that the inputs agree on.
    for (std::size_t leader = 0; leader < in.size(); ++leader) {
      if (!shardings[leader] || !made.partial_axes.empty()) continue;
      const FactorAxes alone = factors_of(parsed, *shardings[leader], static_cast<int>(leader), false);
      if (!is_allowed(parsed, alone, mesh)) continue;
      std::int64_t cost = 0;
      bool reduces = false;
      for (std::size_t f = 0; f < alone.size(); ++f)
        reduces = reduces || (parsed.factors[f].kind == FactorKind::reduce && !alone[f].empty());
      for (std::size_t i = 0; i < in.size(); ++i)
        if (shardings[i])
          cost += plan_reshard(*shardings[i], sharding_of(parsed, alone, mesh, static_cast<int>(i), false),
                               in[i], float32)
                      .bytes;
      if (!reduces) {
        EXPECT_LE(made.bytes, cost) << "following input " << leader;
      }
    }
  }
}

TEST_F(PropagationTest, many_axes_are_decided_one_by_one) {
  // 3^6 = 729 combinations, more than are tried. Four axes on the rows and two on the columns move less than
  // gathering b on every rank.
  const auto all = axes("a", "b", "c", "d", "e", "f");
  const Mesh mesh = abstract_mesh({2, 2, 2, 2, 2, 2}, {"a", "b", "c", "d", "e", "f"});
  const auto r = matmul(mesh, {4096, 4096}, {4096, 1024}, P(all, None), P(None, all));
  EXPECT_TRUE(r.partial.empty());
  EXPECT_EQ(r.out[0], P(axes("c", "d", "e", "f"), axes("a", "b")));
  EXPECT_LT(r.bytes, 16 * MiB * 63 / 64);
}

TEST_F(PropagationTest, backward_projection_is_the_inverse_of_forward) {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  const auto matmul = rule("i k, k j -> i j | sum k", {{8, 8}, {8, 8}}, {{8, 8}});
  const auto wanted = factors_of(matmul, NamedSharding(mesh, P("x", "y")), 0, true);
  EXPECT_EQ(sharding_of(matmul, wanted, mesh, 0, false).spec(), P("x"));
  EXPECT_EQ(sharding_of(matmul, wanted, mesh, 1, false).spec(), P(None, "y"));
}

}  // namespace
}  // namespace tessera
