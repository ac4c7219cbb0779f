// Programs on machines that are not there, and explain's forecast of the same.
#include <tessera/fft.hpp>
#include <tessera/grad.hpp>
#include <tessera/jit/simulate.hpp>
#include <tessera/linalg.hpp>
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/rates.hpp"
#include "compile/forecast/panel_cost.hpp"
#include "simulate/simulation.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;

// A fat tree of hosts with 8 ranks, two to one above 16 hosts.
struct OnMachine {
  Rates before = rates();
  explicit OnMachine(const char* more = "") {
    set_rates(parse_rates(std::string(R"({"flops_per_s": 2e10, "memory_bytes_per_s": 8e9, "latency_s": 5e-7,
      "bytes_per_s": 5e9, "host_latency_s": 2e-6, "host_bytes_per_s": 1.2e10, "ranks_per_host": 8)") +
                              more + "}",
                          "test"));
  }
  ~OnMachine() { set_rates(before); }
};
const char* const two_to_one = R"(, "levels": [{"hosts": 16, "bytes_per_s": 9.6e10, "latency_s": 5e-7}])";

Array placed(const Shape& shape, const Mesh& mesh, const P& spec) {
  return device_put(zeros(shape), mesh, spec);
}

TEST(Simulate, arithmetic_alone_takes_what_explain_says) {
  const OnMachine machine;
  const Mesh mesh = abstract_mesh({16}, {"x"});
  const auto f = [](const Array& x) { return matmul(x, x); };
  const Array x = placed({4096, 64, 64}, mesh, P("x"));
  const auto run = simulate(f, {}, x);
  EXPECT_DOUBLE_EQ(run.waiting_s, 0);
  EXPECT_NEAR(run.seconds, explain(f, x).predicted_seconds, 1e-9 * run.seconds);
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.hosts, 2);
  EXPECT_EQ(run.messages, 0);
}

TEST(Simulate, a_smaller_block_takes_less) {
  const OnMachine machine;
  const auto f = [](const Array& x) { return exp(x); };
  const auto run = simulate(f, {}, placed({7, 100000}, abstract_mesh({4}, {"x"}), P("x")));  // 2 2 2 1
  EXPECT_NEAR(run.first_end_s, run.seconds / 2, 1e-9);
}

TEST(Simulate, the_forecast_of_explain_is_within_a_quarter_of_the_simulation) {
  struct Program {
    const char* name;
    std::function<Array(const Array&, const Array&)> f;
    Shape a, b;
    P spec_a, spec_b;
  };
  const Program programs[] = {
      {"fft",
       [](const Array& a, const Array&) { return fft::fftn(a, {.out_sharding = fft::transposed}); },
       {256, 256, 256},
       {1},
       P("x", "y"),
       P()},
      {"sum", [](const Array& a, const Array&) { return sum(a, 0); }, {4096, 4096}, {1}, P("x"), P()},
      {"large sum", [](const Array& a, const Array&) { return sum(a, 0); }, {256, 1 << 20}, {1}, P("x"), P()},
      {"gather",
       [](const Array& a, const Array& b) { return matmul(a, b); },
       {16384, 512},
       {512, 512},
       P("x"),
       P("x")},
      {"reshard",
       [](const Array& a, const Array&) { return transpose(a) * 2 + a; },
       {4096, 4096},
       {1},
       P("x"),
       P()},
      {"lu",
       [](const Array& a, const Array&) { return linalg::lu_factor(a).lu; },
       {2048, 2048},
       {1},
       P("x", "y"),
       P()},
      {"large lu",
       [](const Array& a, const Array&) { return linalg::lu_factor(a).lu; },
       {8192, 8192},
       {1},
       P("x", "y"),
       P()},
      {"gradient",
       [](const Array& a, const Array& b) {
         return grad([&](const Array& w) { return sum(square(maximum(matmul(a, w), 0))); })(b);
       },
       {65536, 256},
       {256, 1024},
       P("x"),
       P()},
  };
  for (const char* levels : {"", two_to_one}) {
    const OnMachine machine(levels);
    for (const int x : {4, 16, 64})
      for (const auto& p : programs) {
        const Mesh mesh = abstract_mesh({x, 4}, {"x", "y"});
        const Array a = placed(p.a, mesh, p.spec_a), b = placed(p.b, mesh, p.spec_b);
        const double simulated = simulate(p.f, {}, a, b).seconds,
                     forecast = explain(p.f, a, b).predicted_seconds;
        EXPECT_LT(forecast, 1.25 * simulated) << p.name << " on " << 4 * x << " ranks" << levels;
        EXPECT_GT(forecast, simulated / 1.25) << p.name << " on " << 4 * x << " ranks" << levels;
      }
  }
}

TEST(Simulate, a_better_machine_takes_no_longer) {
  const Mesh mesh = abstract_mesh({8, 8}, {"x", "y"});
  const Array x = placed({128, 128, 128}, mesh, P("x", "y"));
  const auto f = [](const Array& v) { return fft::fftn(v); };
  double before = 1e300;
  for (const char* rate : {"2e9", "4e9", "8e9", "1.6e10", "1e12"}) {
    const OnMachine machine(
        (std::string(R"(, "levels": [{"hosts": 2, "bytes_per_s": )") + rate + "}]").c_str());
    const double now = simulate(f, {}, x).seconds;
    EXPECT_LE(now, before);
    before = now;
  }
}

TEST(Simulate, a_factorization_is_followed_panel_by_panel) {
  const OnMachine machine;
  const auto f = [](const Array& a) { return linalg::lu_factor(a).lu; };
  const auto on = [&](int x, int y) {
    return simulate(f, {}, placed({4096, 4096}, abstract_mesh({x, y}, {"x", "y"}), P("x", "y")));
  };
  const auto small = on(2, 4), large = on(8, 8);
  EXPECT_LT(large.seconds, small.seconds);
  EXPECT_GT(large.waiting_s / large.seconds, small.waiting_s / small.seconds);
  EXPECT_GT(small.computing_s, 0.9 * 2 / 3 * std::pow(4096, 3) / 8 / 4e10);  // float32
  EXPECT_THAT(to_string(large), HasSubstr("broadcast for lu_factor"));
}

TEST(Simulate, hpl_is_followed_panel_by_panel) {
  const OnMachine machine;
  constexpr std::int64_t n = 2000, block = 128, panels = (n + block - 1) / block;
  for (const auto& [rows, columns] : {std::pair(1, 1), {1, 7}, {2, 4}, {3, 3}, {8, 12}}) {
    const int p = rows * columns;
    const auto run = simulation_of_hpl(n, rows, columns, {});
    EXPECT_EQ(run.ranks, p);
    EXPECT_GT(run.seconds, 2.0 / 3 * std::pow(n, 3) / p / 2e10);
    // Each rank but the owners gets its rows of each panel in one message.
    std::int64_t broadcasts = 0;
    for (const auto& call : run.calls) broadcasts += call.kind == "broadcast" ? call.messages : 0;
    EXPECT_EQ(broadcasts, panels * rows * (columns - 1));
    EXPECT_EQ(run.messages == 0, p == 1);
  }
  EXPECT_LT(simulation_of_hpl(4000, 4, 4, {}).seconds, simulation_of_hpl(4000, 2, 2, {}).seconds);
  EXPECT_THROW(simulation_of_hpl(4000, 4, 4, {.most_messages = 10}), ArgumentError);
}

TEST(PanelCost, counts_the_passes_over_a_panel) {
  Rates rates;
  rates.flops_per_s = 1e30, rates.memory_bytes_per_s = 1e9;
  const PanelCost lu(rates, true, 8, 1), cholesky(rates, false, 8, 1);
  const double rows = 1000;
  // One column is searched and divided; four also subtract each other; then it is copied out.
  EXPECT_NEAR(lu.factor_seconds(rows, 1), (3 + 2) * rows * 8 / 1e9, 1e-15);
  EXPECT_NEAR(lu.factor_seconds(rows, 4), (7.5 + 2) * 4 * rows * 8 / 1e9, 1e-15);
  EXPECT_NEAR(lu.factor_seconds(rows, 16), (7.5 + 2 * 1.5 + 2) * 16 * rows * 8 / 1e9, 1e-15);
  EXPECT_NEAR(cholesky.factor_seconds(rows, 16), 4 * 16 * rows * 8 / 1e9, 1e-15);
  EXPECT_NEAR(lu.apply_seconds(rows, 500, 16), (2 * rows + 4 * 500) * 16 * 8 / 1e9, 1e-15);
  rates.cache_bytes = 1e5, rates.cache_bytes_per_s = 1e10;  // four columns of these rows, not the panel
  EXPECT_NEAR(lu.factor_seconds(rows, 16), (7.5 / 10 + 1.5 / 10 + 1.5 + 2) * 16 * rows * 8 / 1e9, 1e-15);
  rates.flops_per_s = 1e9, rates.memory_bytes_per_s = rates.cache_bytes_per_s = 1e30;
  EXPECT_NEAR(PanelCost(rates, true, 8, 4).factor_seconds(rows, 16), 4 * rows * 16 * 16 / 1e9, 1e-12);
  EXPECT_NEAR(lu.apply_seconds(rows, 500, 16), 500 * 16 * 16 / 1e9, 1e-12);
}

TEST(Simulate, explain_divides_the_arithmetic_of_a_factorization_among_its_ranks) {
  const OnMachine machine;
  const auto f = [](const Array& a) { return linalg::lu_factor(a).lu; };
  for (const int side : {2, 8, 1000}) {
    const double n = 8192;
    const auto plan = explain(f, placed({8192, 8192}, abstract_mesh({side, side}, {"x", "y"}), P("x", "y")));
    EXPECT_NEAR(plan.cost.flops, 2.0 / 3 * n * n * n / (side * side), 0.05 * plan.cost.flops) << side;
  }
}

TEST(Simulate, a_step_that_fits_the_cache_takes_less) {
  const char* const cache = R"(, "cache_bytes": 1e6, "cache_bytes_per_s": 8e10)";
  const auto f = [](const Array& x) { return x + 1; };
  for (const int n : {1000, 1000000}) {  // 8 and 8,000 KB read and written
    double seconds[2];
    for (const bool has_cache : {false, true}) {
      const OnMachine machine(has_cache ? cache : "");
      const Array x = placed({n}, abstract_mesh({1}, {"x"}), P());
      seconds[has_cache] = explain(f, x).predicted_seconds;
      EXPECT_NEAR(simulate(f, {}, x).seconds, seconds[has_cache], 1e-9 * seconds[has_cache]);
    }
    EXPECT_EQ(seconds[1] < seconds[0], n == 1000);
  }
  EXPECT_THROW(parse_rates(R"({"cache_bytes": 1e6})", "test"), ArgumentError);
}

TEST(Simulate, a_loop_of_more_steps_takes_longer_by_these) {
  const OnMachine machine;
  const Array x = placed({64, 64}, abstract_mesh({16}, {"x"}), P("x"));
  const auto seconds = [&](int steps) {
    return simulate(
               [&](const Array& v) {
                 return fori_loop(
                     0, steps, [](const Array&, const Array& s) { return s + sum(s) * 1e-3; }, v);
               },
               {}, x)
        .seconds;
  };
  EXPECT_NEAR(seconds(400) - seconds(200), seconds(300) - seconds(100), 1e-6 * seconds(400));
  EXPECT_GT(seconds(400), 3.5 * seconds(100));
}

TEST(Simulate, writes_a_timeline_of_the_first_ranks) {
  const OnMachine machine;
  const std::string path = testing::TempDir() + "simulated" + std::to_string(process_index()) + ".json";
  const Array x = placed({256, 256}, abstract_mesh({16}, {"x"}), P("x"));
  const auto run =
      simulate([](const Array& v) { return v + sum(v); }, {.trace_path = path, .trace_ranks = 3}, x);
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  double end_us = 0;
  for (const auto& event : json["traceEvents"]) {
    EXPECT_LT(event["pid"].get<int>(), 3);
    if (event["ph"] == "X") end_us = std::max(end_us, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_NEAR(end_us, run.seconds * 1e6, 1e-3 * run.seconds * 1e6);
  std::remove(path.c_str());
}

TEST(Simulate, refuses_what_it_cannot_do) {
  const OnMachine machine;
  const Array x = placed({256, 256}, abstract_mesh({16}, {"x"}), P("x"));
  const auto f = [](const Array& v) { return sum(v); };
  EXPECT_THROW(simulate(f, {.trace_ranks = 0}, x), ArgumentError);
  EXPECT_THROW(simulate(f, {.most_messages = 3}, x), ArgumentError);
  EXPECT_THROW(simulate(f, {.trace_path = "/nowhere/t.json"}, x), IoError);
}

TEST(Machine, files_with_wrong_levels_are_refused) {
  EXPECT_THROW(parse_rates(R"({"levels": 3})", "m"), ArgumentError);
  EXPECT_THROW(parse_rates(R"({"levels": [{"hosts": 4}]})", "m"), ArgumentError);
  EXPECT_THROW(parse_rates(R"({"ranks_per_host": 2.5})", "m"), ArgumentError);
  EXPECT_THROW(
      parse_rates(R"({"levels": [{"hosts": 4, "bytes_per_s": 1}, {"hosts": 6, "bytes_per_s": 1}]})", "m"),
      ArgumentError);
  const char* text =
      R"({"ranks_per_host": 4, "contention": 0.2, "levels": [{"hosts": 4, "bytes_per_s": 1e9}]})";
  const auto r = parse_rates(text, "m");
  EXPECT_EQ(parse_rates(rates_text(r), "m"), r);
}

}  // namespace
}  // namespace tessera
