// An error names the function that the user called and the line where: of every public function that takes a
// place in the program, one wrong call. What the library calls inside itself is never cited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <functional>
#include <regex>

namespace tessera {
namespace {

using testing::HasSubstr;

struct WrongCall {
  WrongCall(const char* name, std::function<void()> call,
            std::source_location here = std::source_location::current())
      : name(name), call(std::move(call)), line(static_cast<int>(here.line())) {}
  const char* name;
  std::function<void()> call;
  int line;
};

std::string error_of(const WrongCall& wrong) {
  try {
    wrong.call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Every "file:line" of the text lies in this file.
void expect_no_line_of_the_library(const std::string& text) {
  static const std::regex site(R"(([A-Za-z_0-9]+\.[ch]pp):\d+)");
  for (std::sregex_iterator found(text.begin(), text.end(), site), end; found != end; ++found)
    EXPECT_EQ((*found)[1].str(), "call_site_test.cpp") << text;
}

void expect_the_users_call(const std::vector<WrongCall>& calls) {
  for (const auto& wrong : calls) {
    const std::string text = error_of(wrong);
    EXPECT_THAT(text,
                HasSubstr(std::string(wrong.name) + " at call_site_test.cpp:" + std::to_string(wrong.line)));
    expect_no_line_of_the_library(text);
  }
}

const Array none;  // holds nothing: no function takes it
Array scalar() { return Array(1.f); }
Array vector() { return ones({3}); }
Array matrix() { return ones({2, 3}); }
random::Key no_key() { return {none}; }

// clang-format off
TEST(call_site, elementwise_functions) {
  using Unary = Array (*)(const Operand&);
  const std::pair<const char*, Unary> unary[] = {
      {"abs", abs}, {"exp", exp}, {"exp2", exp2}, {"expm1", expm1}, {"log", log}, {"log2", log2}, {"log10", log10},
      {"log1p", log1p}, {"sin", sin}, {"cos", cos}, {"tan", tan}, {"asin", asin}, {"acos", acos}, {"atan", atan},
      {"sinh", sinh}, {"cosh", cosh}, {"tanh", tanh}, {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh},
      {"erf", erf}, {"erf_inv", erf_inv}, {"erfc", erfc}, {"lgamma", lgamma}, {"digamma", digamma}, {"sqrt", sqrt},
      {"cbrt", cbrt}, {"rsqrt", rsqrt}, {"square", square}, {"reciprocal", reciprocal}, {"negative", negative},
      {"floor", floor}, {"ceil", ceil}, {"round", round}, {"trunc", trunc}, {"sign", sign}, {"isnan", isnan},
      {"isfinite", isfinite}, {"isinf", isinf}, {"real", real}, {"imag", imag}, {"conj", conj}, {"sigmoid", sigmoid},
      {"relu", relu}, {"gelu", gelu}, {"silu", silu}, {"softplus", softplus}, {"logical_not", logical_not},
      {"bitwise_invert", bitwise_invert}, {"copy", copy}};
  for (const auto& [name, f] : unary)
    expect_the_users_call({{name, [f = f] { f(none); }, Operand(none).where}});
  using Binary = Array (*)(const Operand&, const Operand&);
  const std::pair<const char*, Binary> binary[] = {
      {"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide}, {"power", power},
      {"maximum", maximum}, {"minimum", minimum}, {"atan2", atan2}, {"hypot", hypot}, {"logaddexp", logaddexp},
      {"remainder", remainder}, {"floor_divide", floor_divide}, {"copysign", copysign}, {"nextafter", nextafter},
      {"equal", equal}, {"not_equal", not_equal}, {"less", less}, {"less_equal", less_equal}, {"greater", greater},
      {"greater_equal", greater_equal}, {"logical_and", logical_and}, {"logical_or", logical_or},
      {"logical_xor", logical_xor}, {"bitwise_and", bitwise_and}, {"bitwise_or", bitwise_or},
      {"bitwise_xor", bitwise_xor}, {"bitwise_left_shift", bitwise_left_shift},
      {"bitwise_right_shift", bitwise_right_shift}, {"make_complex", make_complex}, {"matmul", matmul}, {"dot", dot},
      {"vdot", vdot}, {"inner", inner}, {"outer", outer}};
  for (const auto& [name, f] : binary)
    expect_the_users_call({{name, [f = f] { f(vector(), none); }, Operand(none).where}});
  expect_the_users_call({
      {"add", [] { vector() + ones({4}); }},
      {"subtract", [] { Array x = vector(); x -= ones({4}); }},
      {"negative", [] { -none; }},
      {"clip", [] { clip(none, 0, 1); }},
      {"where", [] { where(vector() > 0, vector(), ones({4})); }},
      {"astype", [] { astype(none, int32); }},
  });
}

TEST(call_site, reductions_and_what_is_made_of_them) {
  using Reduce = Array (*)(const Operand&, Axes, bool);
  const std::pair<const char*, Reduce> reductions[] = {
      {"sum", sum}, {"mean", mean}, {"prod", prod}, {"max", max}, {"min", min}, {"any", any}, {"all", all},
      {"var", var}, {"std", tessera::std}, {"count_nonzero", count_nonzero}, {"logsumexp", logsumexp}, {"ptp", ptp}};
  for (const auto& [name, f] : reductions)
    expect_the_users_call({{name, [f = f] { f(matrix(), 5, false); }, Operand(none).where}});
  expect_the_users_call({
      {"argmax", [] { argmax(none); }},
      {"argmax", [] { argmax(vector(), 3); }},
      {"argmin", [] { argmin(vector(), 3); }},
      {"softmax", [] { softmax(matrix(), 4); }},
      {"log_softmax", [] { log_softmax(matrix(), 4); }},
      {"cumsum", [] { cumsum(vector(), 1); }},
      {"cumprod", [] { cumprod(vector(), 1); }},
      {"median", [] { median(none); }},
      {"median", [] { median(vector(), 2); }},
      {"average", [] { average(none, vector()); }},
      {"diff", [] { diff(vector(), 1, 2); }},
      {"isclose", [] { isclose(vector(), ones({4})); }},
      {"allclose", [] { allclose(vector(), ones({4})); }},
  });
}

TEST(call_site, shapes_and_indices) {
  expect_the_users_call({
      {"reshape", [] { reshape(vector(), {2, 2}); }},
      {"transpose", [] { transpose(none); }},
      {"transpose", [] { transpose(matrix(), {0, 0}); }},
      {"T", [] { none.T(); }},
      {"swapaxes", [] { swapaxes(matrix(), 0, 2); }},
      {"moveaxis", [] { moveaxis(matrix(), 0, 2); }},
      {"squeeze", [] { squeeze(matrix(), 0); }},
      {"expand_dims", [] { expand_dims(vector(), 3); }},
      {"broadcast_to", [] { broadcast_to(vector(), {4}); }},
      {"concatenate", [] { concatenate({}); }},
      {"stack", [] { stack({vector(), matrix()}); }},
      {"split", [] { split(vector(), 2); }},
      {"split_at", [] { split_at(vector(), {1}, 1); }},
      {"flip", [] { flip(vector(), 1); }},
      {"roll", [] { roll(vector(), 1, 1); }},
      {"pad", [] { pad(vector(), {{1, 1}, {1, 1}}); }},
      {"tile", [] { tile(vector(), {-1}); }},
      {"repeat", [] { repeat(vector(), 2, 1); }},
      {"tril", [] { tril(vector()); }},
      {"triu", [] { triu(vector()); }},
      {"diagonal", [] { diagonal(vector()); }},
      {"trace", [] { trace(vector()); }},
      {"take", [] { take(vector(), arange(2), 1); }},
      {"take_along_axis", [] { take_along_axis(vector(), arange(2), 1); }},
      {"searchsorted", [] { searchsorted(matrix(), vector()); }},
      {"sort", [] { sort(vector(), 1); }},
      {"argsort", [] { argsort(vector(), 1); }},
      {"top_k", [] { top_k(vector(), 4); }},
      {"meshgrid", [] { meshgrid({vector()}, "zz"); }},
      {"tensordot", [] { tensordot(vector(), ones({4}), 1); }},
      {"einsum", [] { einsum("i,i", vector(), ones({4})); }},
      {"conv", [] { conv(vector(), vector()); }},
      {"index", [] { vector()(5); }},
      {"index", [] { vector()(0, 0); }},
      {"x.at", [] { vector().at(5).get(); }},
      {"x.at", [] { vector().at(5).set(1); }},
      {"x.at", [] { vector().at(5).add(1); }},
      {"x.at", [] { vector().at(5).subtract(1); }},
      {"x.at", [] { vector().at(5).multiply(1); }},
      {"x.at", [] { vector().at(5).divide(1); }},
      {"x.at", [] { vector().at(5).min(1); }},
      {"x.at", [] { vector().at(5).max(1); }},
  });
}

TEST(call_site, arrays_are_made_and_read) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x", None));
  expect_the_users_call({
      {"zeros", [] { zeros({-1}); }},
      {"ones", [] { ones({-1}); }},
      {"full", [] { full({-1}, 2); }},
      {"full", [] { full({2}, vector()); }},
      {"zeros_like", [] { zeros_like(none); }},
      {"ones_like", [] { ones_like(none); }},
      {"eye", [] { eye(-1); }},
      {"eye", [] { eye(2, -1); }},
      {"arange", [] { arange(0, 5, 0); }},
      {"arange", [] { arange(0.0, 5.0, 0.0); }},
      {"linspace", [] { linspace(0, 1, -1); }},
      {"array", [] { array(std::vector<float>{1, 2}, {3}); }},
      {"array", [] { array({{1, 2}, {3}}); }},
      {"HostArray", [] { HostArray(std::vector<float>{1, 2}, {3}); }},
      {"HostArray::as", [] { HostArray({3}, float32).as<int>(); }},
      {"make_array_from_callback", [&] { make_array_from_callback({4}, rows, [](const Index&) { return HostArray(); }); }},
      {"make_array_from_process_local_data", [&] { make_array_from_process_local_data(rows, HostArray({2}, float32)); }},
      {"device_put", [&] { device_put(vector(), rows); }},
      {"device_put", [&] { device_put(vector(), mesh, P("x", None)); }},
      {"with_sharding_constraint", [&] { with_sharding_constraint(vector(), rows); }},
      {"eval", [] { eval({none}); }},
      {"to_host", [] { to_host(none); }},
      {"to_string", [] { to_string(none); }},
      {"print", [] { print(none); }},
      {"item", [] { item<float>(vector()); }},
      {"to_vector", [] { to_vector<bool>(none); }},
      {"local", [] { local<int>(vector()); }},
      {"addressable_shards", [] { none.addressable_shards(); }},
      {"delete_", [] { Array x; x.delete_(); }},
  });
}

TEST(call_site, linear_algebra) {
  using namespace linalg;
  expect_the_users_call({
      {"solve", [] { solve(matrix(), vector()); }},
      {"solve", [] { solve(eye(2), vector()); }},
      {"lu", [] { lu(vector()); }},
      {"lu_factor", [] { lu_factor(vector()); }},
      {"lu_solve", [] { lu_solve(lu_factor(eye(2)), vector()); }},
      {"cholesky", [] { cholesky(matrix()); }},
      {"cholesky_solve", [] { cholesky_solve(matrix(), vector()); }},
      {"triangular_solve", [] { triangular_solve(matrix(), vector()); }},
      {"qr", [] { qr(vector()); }},
      {"svd", [] { svd(vector()); }},
      {"svdvals", [] { svdvals(vector()); }},
      {"eigh", [] { eigh(matrix()); }},
      {"eigvalsh", [] { eigvalsh(matrix()); }},
      {"inv", [] { inv(matrix()); }},
      {"det", [] { det(matrix()); }},
      {"slogdet", [] { slogdet(matrix()); }},
      {"norm", [] { norm(none); }},
      {"norm", [] { norm(matrix(), 3.0); }},
      {"norm", [] { norm(matrix(), "max"); }},
      {"cond", [] { cond(matrix(), 1); }},
      {"rcond", [] { rcond(matrix()); }},
      {"lstsq", [] { lstsq(matrix(), vector()); }},
      {"matrix_power", [] { matrix_power(matrix(), 3); }},
      {"matrix_rank", [] { matrix_rank(none); }},
      {"pinv", [] { pinv(vector()); }},
      {"expm", [] { expm(matrix()); }},
  });
}

TEST(call_site, fourier_transforms) {
  using namespace fft;
  using Transform = Array (*)(const Operand&, FftOptions);
  const std::pair<const char*, Transform> transforms[] = {
      {"fft", fft::fft}, {"ifft", ifft}, {"rfft", rfft}, {"irfft", irfft}, {"hfft", hfft}, {"ihfft", ihfft},
      {"fft2", fft2}, {"ifft2", ifft2}, {"rfft2", rfft2}, {"irfft2", irfft2}, {"fftn", fftn}, {"ifftn", ifftn},
      {"rfftn", rfftn}, {"irfftn", irfftn}};
  for (const auto& [name, f] : transforms)
    expect_the_users_call({{name, [f = f] { f(matrix(), {.norm = "none"}); }, Operand(none).where}});
  expect_the_users_call({
      {"fft", [] { fft::fft(vector(), 0); }},
      {"fftfreq", [] { fftfreq(0); }},
      {"rfftfreq", [] { rfftfreq(0); }},
      {"fftshift", [] { fftshift(vector(), 1); }},
      {"ifftshift", [] { ifftshift(vector(), 1); }},
      {"convolve", [] { convolve(vector(), matrix()); }},
      {"correlate", [] { correlate(vector(), matrix()); }},
  });
}

TEST(call_site, random_numbers) {
  using namespace random;
  const Key k = key(0);
  expect_the_users_call({
      {"split", [] { split(no_key()); }},
      {"split_batch", [&] { split_batch(k, {-1}); }},
      {"fold_in", [&] { fold_in(k, vector()); }},
      {"wrap_key_data", [] { wrap_key_data(vector()); }},
      {"bits", [&] { bits(k, {-1}); }},
      {"uniform", [&] { uniform(k, {-1}); }},
      {"uniform", [&] { uniform(k, {2}, float32, vector(), 1.f); }},
      {"normal", [&] { normal(k, {2}, int32); }},
      {"randint", [&] { randint(k, {2}, 0, 3, float32); }},
      {"bernoulli", [&] { bernoulli(k, 0.5, {-1}); }},
      {"bernoulli", [&] { bernoulli(k, vector(), {2}); }},
      {"rademacher", [&] { rademacher(k, {-1}); }},
      {"geometric", [&] { geometric(k, vector(), {2}); }},
      {"exponential", [&] { exponential(k, {-1}); }},
      {"gumbel", [&] { gumbel(k, {-1}); }},
      {"laplace", [&] { laplace(k, {-1}); }},
      {"logistic", [&] { logistic(k, {-1}); }},
      {"cauchy", [&] { cauchy(k, {-1}); }},
      {"maxwell", [&] { maxwell(k, {-1}); }},
      {"double_sided_maxwell", [&] { double_sided_maxwell(k, 0.f, 1.f, {-1}); }},
      {"truncated_normal", [&] { truncated_normal(k, -1, 1, {-1}); }},
      {"truncated_normal", [&] { truncated_normal(k, vector(), 1.f, {2}); }},
      {"pareto", [&] { pareto(k, vector(), {2}); }},
      {"weibull_min", [&] { weibull_min(k, 1.f, 1.f, {-1}); }},
      {"rayleigh", [&] { rayleigh(k, vector(), {2}); }},
      {"lognormal", [&] { lognormal(k, vector(), {2}); }},
      {"triangular", [&] { triangular(k, vector(), 0.f, 1.f, {2}); }},
      {"wald", [&] { wald(k, vector(), {2}); }},
      {"gamma", [&] { gamma(k, vector(), {2}); }},
      {"loggamma", [&] { loggamma(k, vector(), {2}); }},
      {"beta", [&] { beta(k, vector(), 1.f, {2}); }},
      {"dirichlet", [&] { dirichlet(k, scalar()); }},
      {"chisquare", [&] { chisquare(k, vector(), {2}); }},
      {"t", [&] { random::t(k, vector(), {2}); }},
      {"f", [&] { random::f(k, vector(), 1.f, {2}); }},
      {"generalized_normal", [&] { generalized_normal(k, 2, {-1}); }},
      {"ball", [&] { ball(k, -1); }},
      {"poisson", [&] { poisson(k, vector(), {2}); }},
      {"binomial", [&] { binomial(k, vector(), 0.5f, {2}); }},
      {"multinomial", [&] { multinomial(k, 3, scalar()); }},
      {"permutation", [&] { permutation(k, -1); }},
      {"permutation", [&] { permutation(k, vector(), 1); }},
      {"choice", [&] { choice(k, vector(), {4}, false); }},
      {"categorical", [&] { categorical(k, scalar()); }},
      {"multivariate_normal", [&] { multivariate_normal(k, vector(), matrix()); }},
      {"orthogonal", [&] { orthogonal(k, -1); }},
  });
}

TEST(call_site, transformations_and_control_flow) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto same = [](Array x) { return x; };
  const auto step = [](Array carry, Array x) { return std::pair{carry, x}; };
  expect_the_users_call({
      {"grad", [&] { grad(same)(vector()); }},
      {"value_and_grad", [&] { value_and_grad(same)(vector()); }},
      {"jacrev", [] { jacrev([](Array x) { return make_complex(x, x); })(vector()); }},
      {"jvp", [&] { jvp(same, std::tuple{vector()}, std::tuple{matrix()}); }},
      {"stop_gradient", [] { stop_gradient(none); }},
      {"jit", [&] { jit(same, {.donate_argnums = {3}})(vector()); }},
      {"jit", [&] { jit(same)(none); }},
      {"vmap", [&] { vmap(same, {.in_axes = 3})(vector()); }},
      {"pmap", [&] { pmap(same, {.in_axes = 3})(vector()); }},
      {"shard_map", [&] { shard_map(same, mesh, P("y"), P()); }},
      {"shard_map", [&] { shard_map(same, mesh, P("y"), P())(vector()); }},
      {"scan", [&] { scan(step, scalar(), scalar()); }},
      {"cond", [&] { cond(vector(), same, same, vector()); }},
      {"while_loop", [] { while_loop([](Array x) { return x > 0; }, [](Array x) { return x; }, vector()); }},
      {"psum", [] { psum(vector(), "nowhere"); }},
      {"pmean", [] { pmean(vector(), "nowhere"); }},
      {"pmax", [] { pmax(vector(), "nowhere"); }},
      {"pmin", [] { pmin(vector(), "nowhere"); }},
      {"psum_scatter", [] { psum_scatter(vector(), "nowhere"); }},
      {"all_gather", [] { all_gather(vector(), "nowhere"); }},
      {"all_to_all", [] { all_to_all(vector(), "nowhere", 0, 0); }},
      {"ppermute", [] { ppermute(vector(), "nowhere", {}); }},
      {"pshuffle", [] { pshuffle(vector(), "nowhere", {}); }},
      {"pswapaxes", [] { pswapaxes(vector(), "nowhere", 0); }},
      {"pbroadcast", [] { pbroadcast(vector(), "nowhere", 0); }},
      {"pargmax", [] { pargmax(vector(), "nowhere"); }},
      {"pargmin", [] { pargmin(vector(), "nowhere"); }},
      {"axis_index", [] { axis_index("nowhere"); }},
      {"axis_size", [] { axis_size("nowhere"); }},
  });
}

TEST(call_site, pictures_and_processes) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x", None));
  expect_the_users_call({
      {"visualize_sharding", [&] { debug::visualize_sharding({3}, rows); }},
      {"visualize_array_sharding", [] { debug::visualize_array_sharding(none); }},
      {"inspect_array_sharding", [] { debug::inspect_array_sharding(none, [](const Sharding&) {}); }},
      {"sharding_html", [&] { debug::sharding_html({3}, rows); }},
      {"sharding_svg", [&] { debug::sharding_svg({3}, rows); }},
      {"process_allgather", [] { multihost::process_allgather(none); }},
      {"assert_equal", [] { multihost::assert_equal(none); }},
  });
}

// Where the library calls back, the lines of the function that it calls count again.
TEST(call_site, functions_that_the_library_calls_have_lines_of_their_own) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x"));
  const auto n = device_count();
  expect_the_users_call({
      {"reshape", [] { jit([](Array x) { return reshape(x, {7}); })(vector()); }},
      {"reshape", [] { grad([](Array x) { return sum(reshape(x, {7})); })(vector()); }},
      {"reshape", [] { vmap([](Array x) { return reshape(x, {7}); })(matrix()); }},
      {"reshape", [&] { pmap([](Array x) { return reshape(x, {7}); })(ones({n, 3})); }},
      {"reshape", [&] { shard_map([](Array x) { return reshape(x, {7}); }, mesh, P("x"), P("x"))(ones({n})); }},
      {"reshape", [] { jit([](Array x) { return fori_loop(0, 20, [](Array, Array y) { return reshape(y, {7}); }, x); })(vector()); }},
      {"reshape", [] { jit([](Array x) { return fori_loop(0, 20, [](auto, Array y) { return reshape(y, {7}); }, x); })(vector()); }},
      {"reshape", [] { jit([](Array x) { return while_loop([](Array y) { return sum(y) < 3; }, [](Array y) { return reshape(y, {7}); }, x); })(vector()); }},
      {"reshape", [] { jit([](Array x) { return scan([](Array c, Array y) { return std::pair{c, reshape(y, {7})}; }, scalar(), broadcast_to(x, {20, 3})).second; })(vector()); }},
      {"reshape", [] { jit([](Array x) { return cond(sum(x) > 0, [](Array y) { return reshape(y, {7}); }, [](Array y) { return y; }, x); })(vector()); }},
      {"reshape", [] { grad(checkpoint([](Array x) { return sum(reshape(x, {7})); }))(vector()); }},
      {"reshape", [&] { make_array_from_callback({n}, rows, [](const Index&) { return to_host(reshape(vector(), {7})); }); }},
      {"reshape", [] { debug::inspect_array_sharding(vector(), [](const Sharding&) { reshape(vector(), {7}); }); }},
  });
}

TEST(call_site, a_function_that_failed_leaves_nothing_behind) {
  EXPECT_THROW(softmax(matrix(), 5), IndexError);
  expect_the_users_call({{"reshape", [] { reshape(vector(), {7}); }}});
}

TEST(call_site, a_backward_rule_has_lines_of_its_own) {
  const auto f = custom_vjp([](Array x) { return x * 2; }, [](Array x) { return std::pair{x * 2, x}; },
                            [](Array, Array g) { return std::tuple{reshape(g, {7})}; });
  const int line_of_rule = __LINE__ - 1;
  const std::string text = error_of({"reshape", [&] { grad([&](Array x) { return sum(f(x)); })(vector()); }});
  EXPECT_THAT(text, HasSubstr("reshape at call_site_test.cpp:" + std::to_string(line_of_rule)));
}
// clang-format on

}  // namespace
}  // namespace tessera
