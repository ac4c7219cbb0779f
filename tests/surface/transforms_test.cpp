// Spellings of transformations, and of collectives by axis name.
#include "surface/gives.hpp"

namespace tessera::test {
namespace {

using Two = std::pair<Array, Array>;
constexpr auto f = [](const Array& a, const Array& b) { return sum(a * b); };
constexpr auto g = [](const Array& a) { return a + 1; };

GIVES(Array, jit(f)(x, y));
COMPILES(jit(f, JitOptions{.in_shardings = {sharding, None},
                           .out_shardings = sharding,
                           .donate_argnums = {0},
                           .static_argnums = {1}}));
COMPILES(jit(f, {.in_shardings = {PositionalSharding(devices()), sharding}}));
GIVES(std::string, jit(f).lower(x, y).as_text());
GIVES(std::string, jit(f).lower(x, y).compile().as_text());
GIVES(Array, jit(f).lower(x, y).compile()(x, y));
GIVES(std::vector<Sharding>, jit(f).lower(x, y).compile().input_shardings());
GIVES(std::vector<Sharding>, jit(f).lower(x, y).compile().output_shardings());
COMPILES(jit(f).lower(x, y).compile().cost_analysis(), jit(f).lower(x, y).compile().memory_analysis());
GIVES(Explanation, explain(f, x, y));
COMPILES(out << explain(f, x, y));
GIVES(ShapeDtype, eval_shape(f, x, y));
GIVES(Array, tree_map(g, x));
GIVES(std::vector<Array>, tree_leaves(std::tuple(x, y)));

#if __has_include(<tessera/grad.hpp>)
GIVES(Array, grad(f)(x, y));
GIVES(Array, grad<1>(f)(x, y));
using TwoOfTuple = std::tuple<Array, Array>;
GIVES(TwoOfTuple, grad<0, 1>(f)(x, y));
GIVES(Two, value_and_grad(f)(x, y));
constexpr auto with_aux = [](const Array& a) { return std::pair{sum(a), a}; };
COMPILES(value_and_grad_aux(with_aux)(x));
GIVES(Array, vjp(g, x).first);
COMPILES(vjp(g, x).second(x));
GIVES(Two, jvp(g, std::tuple(x), std::tuple(y)));
GIVES(Array, jacrev(g)(x));
GIVES(Array, hessian([](const Array& a) { return sum(a * a); })(x));
GIVES(Array, stop_gradient(x));
GIVES(Array, checkpoint(g)(x));
GIVES(Array, custom_vjp(
                 g,
                 [](const Array& a) {
                   return std::pair{a, a};
                 },
                 [](const Array& r, const Array& ct) { return std::tuple{r * ct}; })(x));
#endif

#if __has_include(<tessera/maps.hpp>)
GIVES(Array, vmap(g)(x));
GIVES(Array,
      vmap(f, VmapOptions{.in_axes = {0, None}, .out_axes = 0, .axis_name = "i", .axis_size = 4})(x, y));
GIVES(Array, vmap(f, {.in_axes = {0, 1}})(x, y));
GIVES(Array, pmap(g)(x));
GIVES(Array, pmap(f, PmapOptions{.axis_name = "i",
                                 .in_axes = {0, None},
                                 .out_axes = 0,
                                 .devices = devices(),
                                 .donate_argnums = {0}})(x, y));
GIVES(Array, shard_map(g, mesh, P("x"), P("x"))(x));
GIVES(Array,
      shard_map(f, mesh, {P("x"), P()}, P(), ShardMapOptions{.axis_names = {"x"}, .check_vma = false})(x, y));
#endif

#if __has_include(<tessera/control.hpp>)
GIVES(Array, fori_loop(
                 0, 3, [](const Array&, const Array& a) { return a + 1; }, x));
GIVES(Array, while_loop([](const Array& a) { return sum(a) < 3; }, g, x));
GIVES(Two, scan([](const Array& c, const Array& a) { return std::pair{c + a, c}; }, x, y));
GIVES(Array, cond(
                 x, g, [](const Array& a) { return a - 1; }, y));
#endif

#if __has_include(<tessera/collectives.hpp>)
GIVES(Array, psum(x, "i"));
GIVES(Array, psum(x, axes("x", "y")));
GIVES(Two, psum(Two(x, y), "i", {.axis_index_groups = {{0, 1}, {2, 3}}}));
GIVES(Array, pmean(x, "i"));
GIVES(Array, pmax(x, "i"));
GIVES(Array, pmin(x, "i"));
GIVES(Array, psum_scatter(x, "i", {.scatter_dimension = 1, .tiled = true}));
GIVES(Array, all_gather(x, "i", {.axis = 1, .tiled = true}));
GIVES(Array, all_to_all(x, "i", 0, 1, {.tiled = true}));
GIVES(Array, ppermute(x, "i", {{0, 1}, {1, 0}}));
GIVES(Array, pshuffle(x, "i", {1, 0}));
GIVES(Array, pswapaxes(x, "i", 0));
GIVES(Array, pbroadcast(x, "i", 0));
GIVES(Array, pargmax(x, "i"));
GIVES(Array, pargmin(x, "i"));
GIVES(Array, axis_index("i"));
GIVES(int, axis_size("i"));
#endif

}  // namespace
}  // namespace tessera::test
