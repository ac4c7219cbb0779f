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
  int line;
  const char* name;
  std::function<void()> call;
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
    expect_the_users_call({{__LINE__, name, [f = f] { f(none); }}});
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
    expect_the_users_call({{__LINE__, name, [f = f] { f(vector(), none); }}});
  expect_the_users_call({
      {__LINE__, "add", [] { vector() + ones({4}); }},
      {__LINE__, "subtract", [] { Array x = vector(); x -= ones({4}); }},
      {__LINE__, "negative", [] { -none; }},
      {__LINE__, "clip", [] { clip(none, 0, 1); }},
      {__LINE__, "where", [] { where(vector() > 0, vector(), ones({4})); }},
      {__LINE__, "astype", [] { astype(none, int32); }},
  });
}

TEST(call_site, reductions_and_what_is_made_of_them) {
  using Reduce = Array (*)(const Operand&, Axes, bool);
  const std::pair<const char*, Reduce> reductions[] = {
      {"sum", sum}, {"mean", mean}, {"prod", prod}, {"max", max}, {"min", min}, {"any", any}, {"all", all},
      {"var", var}, {"std", tessera::std}, {"count_nonzero", count_nonzero}, {"logsumexp", logsumexp}, {"ptp", ptp}};
  for (const auto& [name, f] : reductions)
    expect_the_users_call({{__LINE__, name, [f = f] { f(matrix(), 5, false); }}});
  expect_the_users_call({
      {__LINE__, "argmax", [] { argmax(none); }},
      {__LINE__, "argmax", [] { argmax(vector(), 3); }},
      {__LINE__, "argmin", [] { argmin(vector(), 3); }},
      {__LINE__, "softmax", [] { softmax(matrix(), 4); }},
      {__LINE__, "log_softmax", [] { log_softmax(matrix(), 4); }},
      {__LINE__, "cumsum", [] { cumsum(vector(), 1); }},
      {__LINE__, "cumprod", [] { cumprod(vector(), 1); }},
      {__LINE__, "median", [] { median(none); }},
      {__LINE__, "median", [] { median(vector(), 2); }},
      {__LINE__, "average", [] { average(none, vector()); }},
      {__LINE__, "diff", [] { diff(vector(), 1, 2); }},
      {__LINE__, "isclose", [] { isclose(vector(), ones({4})); }},
      {__LINE__, "allclose", [] { allclose(vector(), ones({4})); }},
  });
}

TEST(call_site, shapes_and_indices) {
  expect_the_users_call({
      {__LINE__, "reshape", [] { reshape(vector(), {2, 2}); }},
      {__LINE__, "transpose", [] { transpose(none); }},
      {__LINE__, "transpose", [] { transpose(matrix(), {0, 0}); }},
      {__LINE__, "T", [] { none.T(); }},
      {__LINE__, "swapaxes", [] { swapaxes(matrix(), 0, 2); }},
      {__LINE__, "moveaxis", [] { moveaxis(matrix(), 0, 2); }},
      {__LINE__, "squeeze", [] { squeeze(matrix(), 0); }},
      {__LINE__, "expand_dims", [] { expand_dims(vector(), 3); }},
      {__LINE__, "broadcast_to", [] { broadcast_to(vector(), {4}); }},
      {__LINE__, "concatenate", [] { concatenate({}); }},
      {__LINE__, "stack", [] { stack({vector(), matrix()}); }},
      {__LINE__, "split", [] { split(vector(), 2); }},
      {__LINE__, "split_at", [] { split_at(vector(), {1}, 1); }},
      {__LINE__, "flip", [] { flip(vector(), 1); }},
      {__LINE__, "roll", [] { roll(vector(), 1, 1); }},
      {__LINE__, "pad", [] { pad(vector(), {{1, 1}, {1, 1}}); }},
      {__LINE__, "tile", [] { tile(vector(), {-1}); }},
      {__LINE__, "repeat", [] { repeat(vector(), 2, 1); }},
      {__LINE__, "tril", [] { tril(vector()); }},
      {__LINE__, "triu", [] { triu(vector()); }},
      {__LINE__, "diagonal", [] { diagonal(vector()); }},
      {__LINE__, "trace", [] { trace(vector()); }},
      {__LINE__, "take", [] { take(vector(), arange(2), 1); }},
      {__LINE__, "take_along_axis", [] { take_along_axis(vector(), arange(2), 1); }},
      {__LINE__, "searchsorted", [] { searchsorted(matrix(), vector()); }},
      {__LINE__, "sort", [] { sort(vector(), 1); }},
      {__LINE__, "argsort", [] { argsort(vector(), 1); }},
      {__LINE__, "top_k", [] { top_k(vector(), 4); }},
      {__LINE__, "meshgrid", [] { meshgrid({vector()}, "zz"); }},
      {__LINE__, "tensordot", [] { tensordot(vector(), ones({4}), 1); }},
      {__LINE__, "einsum", [] { einsum("i,i", vector(), ones({4})); }},
      {__LINE__, "conv", [] { conv(vector(), vector()); }},
      {__LINE__, "index", [] { vector()(5); }},
      {__LINE__, "index", [] { vector()(0, 0); }},
      {__LINE__, "x.at", [] { return vector().at(5).get(); }},
      {__LINE__, "x.at", [] { return vector().at(5).set(1); }},
      {__LINE__, "x.at", [] { return vector().at(5).add(1); }},
      {__LINE__, "x.at", [] { return vector().at(5).subtract(1); }},
      {__LINE__, "x.at", [] { return vector().at(5).multiply(1); }},
      {__LINE__, "x.at", [] { return vector().at(5).divide(1); }},
      {__LINE__, "x.at", [] { return vector().at(5).min(1); }},
      {__LINE__, "x.at", [] { return vector().at(5).max(1); }},
  });
}

TEST(call_site, arrays_are_made_and_read) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x", None));
  expect_the_users_call({
      {__LINE__, "zeros", [] { zeros({-1}); }},
      {__LINE__, "ones", [] { ones({-1}); }},
      {__LINE__, "full", [] { full({-1}, 2); }},
      {__LINE__, "full", [] { full({2}, vector()); }},
      {__LINE__, "zeros_like", [] { zeros_like(none); }},
      {__LINE__, "ones_like", [] { ones_like(none); }},
      {__LINE__, "eye", [] { eye(-1); }},
      {__LINE__, "eye", [] { eye(2, -1); }},
      {__LINE__, "arange", [] { arange(0, 5, 0); }},
      {__LINE__, "arange", [] { arange(0.0, 5.0, 0.0); }},
      {__LINE__, "linspace", [] { linspace(0, 1, -1); }},
      {__LINE__, "array", [] { array(std::vector<float>{1, 2}, {3}); }},
      {__LINE__, "array", [] { array({{1, 2}, {3}}); }},
      {__LINE__, "HostArray", [] { HostArray(std::vector<float>{1, 2}, {3}); }},
      {__LINE__, "HostArray::as", [] { HostArray({3}, float32).as<int>(); }},
      {__LINE__, "make_array_from_callback", [&] { make_array_from_callback({4}, rows, [](const Index&) { return HostArray(); }); }},
      {__LINE__, "make_array_from_process_local_data", [&] { make_array_from_process_local_data(rows, HostArray({2}, float32)); }},
      {__LINE__, "device_put", [&] { device_put(vector(), rows); }},
      {__LINE__, "device_put", [&] { device_put(vector(), mesh, P("x", None)); }},
      {__LINE__, "with_sharding_constraint", [&] { with_sharding_constraint(vector(), rows); }},
      {__LINE__, "eval", [] { eval({none}); }},
      {__LINE__, "to_host", [] { to_host(none); }},
      {__LINE__, "to_string", [] { to_string(none); }},
      {__LINE__, "print", [] { print(none); }},
      {__LINE__, "item", [] { item<float>(vector()); }},
      {__LINE__, "to_vector", [] { to_vector<bool>(none); }},
      {__LINE__, "local", [] { local<int>(vector()); }},
      {__LINE__, "addressable_shards", [] { none.addressable_shards(); }},
      {__LINE__, "delete_", [] { Array x; x.delete_(); }},
  });
}

TEST(call_site, linear_algebra) {
  using namespace linalg;
  expect_the_users_call({
      {__LINE__, "solve", [] { solve(matrix(), vector()); }},
      {__LINE__, "solve", [] { solve(eye(2), vector()); }},
      {__LINE__, "lu", [] { lu(vector()); }},
      {__LINE__, "lu_factor", [] { lu_factor(vector()); }},
      {__LINE__, "lu_solve", [] { lu_solve(lu_factor(eye(2)), vector()); }},
      {__LINE__, "cholesky", [] { cholesky(matrix()); }},
      {__LINE__, "cholesky_solve", [] { cholesky_solve(matrix(), vector()); }},
      {__LINE__, "triangular_solve", [] { triangular_solve(matrix(), vector()); }},
      {__LINE__, "qr", [] { qr(vector()); }},
      {__LINE__, "svd", [] { svd(vector()); }},
      {__LINE__, "svdvals", [] { svdvals(vector()); }},
      {__LINE__, "eigh", [] { eigh(matrix()); }},
      {__LINE__, "eigvalsh", [] { eigvalsh(matrix()); }},
      {__LINE__, "inv", [] { inv(matrix()); }},
      {__LINE__, "det", [] { det(matrix()); }},
      {__LINE__, "slogdet", [] { slogdet(matrix()); }},
      {__LINE__, "norm", [] { norm(none); }},
      {__LINE__, "norm", [] { norm(matrix(), 3.0); }},
      {__LINE__, "norm", [] { norm(matrix(), "max"); }},
      {__LINE__, "cond", [] { cond(matrix(), 1); }},
      {__LINE__, "rcond", [] { rcond(matrix()); }},
      {__LINE__, "lstsq", [] { lstsq(matrix(), vector()); }},
      {__LINE__, "matrix_power", [] { matrix_power(matrix(), 3); }},
      {__LINE__, "matrix_rank", [] { matrix_rank(none); }},
      {__LINE__, "pinv", [] { pinv(vector()); }},
      {__LINE__, "expm", [] { expm(matrix()); }},
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
    expect_the_users_call({{__LINE__, name, [f = f] { f(matrix(), {.norm = "none"}); }}});
  expect_the_users_call({
      {__LINE__, "fft", [] { fft::fft(vector(), 0); }},
      {__LINE__, "fftfreq", [] { fftfreq(0); }},
      {__LINE__, "rfftfreq", [] { rfftfreq(0); }},
      {__LINE__, "fftshift", [] { fftshift(vector(), 1); }},
      {__LINE__, "ifftshift", [] { ifftshift(vector(), 1); }},
      {__LINE__, "convolve", [] { fft::convolve(vector(), matrix()); }},
      {__LINE__, "correlate", [] { fft::correlate(vector(), matrix()); }},
  });
}

TEST(call_site, random_numbers) {
  using namespace random;
  const Key k = key(0);
  expect_the_users_call({
      {__LINE__, "split", [] { split(no_key()); }},
      {__LINE__, "split_batch", [&] { split_batch(k, {-1}); }},
      {__LINE__, "fold_in", [&] { fold_in(k, vector()); }},
      {__LINE__, "wrap_key_data", [] { wrap_key_data(vector()); }},
      {__LINE__, "bits", [&] { bits(k, {-1}); }},
      {__LINE__, "uniform", [&] { uniform(k, {-1}); }},
      {__LINE__, "uniform", [&] { uniform(k, {2}, float32, vector(), 1.f); }},
      {__LINE__, "normal", [&] { normal(k, {2}, int32); }},
      {__LINE__, "randint", [&] { randint(k, {2}, 0, 3, float32); }},
      {__LINE__, "bernoulli", [&] { bernoulli(k, 0.5, {-1}); }},
      {__LINE__, "bernoulli", [&] { bernoulli(k, vector(), {2}); }},
      {__LINE__, "rademacher", [&] { rademacher(k, {-1}); }},
      {__LINE__, "geometric", [&] { geometric(k, vector(), {2}); }},
      {__LINE__, "exponential", [&] { exponential(k, {-1}); }},
      {__LINE__, "gumbel", [&] { gumbel(k, {-1}); }},
      {__LINE__, "laplace", [&] { laplace(k, {-1}); }},
      {__LINE__, "logistic", [&] { logistic(k, {-1}); }},
      {__LINE__, "cauchy", [&] { cauchy(k, {-1}); }},
      {__LINE__, "maxwell", [&] { maxwell(k, {-1}); }},
      {__LINE__, "double_sided_maxwell", [&] { double_sided_maxwell(k, 0.f, 1.f, {-1}); }},
      {__LINE__, "truncated_normal", [&] { truncated_normal(k, -1, 1, {-1}); }},
      {__LINE__, "truncated_normal", [&] { truncated_normal(k, vector(), 1.f, {2}); }},
      {__LINE__, "pareto", [&] { pareto(k, vector(), {2}); }},
      {__LINE__, "weibull_min", [&] { weibull_min(k, 1.f, 1.f, {-1}); }},
      {__LINE__, "rayleigh", [&] { rayleigh(k, vector(), {2}); }},
      {__LINE__, "lognormal", [&] { lognormal(k, vector(), {2}); }},
      {__LINE__, "triangular", [&] { triangular(k, vector(), 0.f, 1.f, {2}); }},
      {__LINE__, "wald", [&] { wald(k, vector(), {2}); }},
      {__LINE__, "gamma", [&] { gamma(k, vector(), {2}); }},
      {__LINE__, "loggamma", [&] { loggamma(k, vector(), {2}); }},
      {__LINE__, "beta", [&] { beta(k, vector(), 1.f, {2}); }},
      {__LINE__, "dirichlet", [&] { dirichlet(k, scalar()); }},
      {__LINE__, "chisquare", [&] { chisquare(k, vector(), {2}); }},
      {__LINE__, "t", [&] { random::t(k, vector(), {2}); }},
      {__LINE__, "f", [&] { random::f(k, vector(), 1.f, {2}); }},
      {__LINE__, "generalized_normal", [&] { generalized_normal(k, 2, {-1}); }},
      {__LINE__, "ball", [&] { ball(k, -1); }},
      {__LINE__, "poisson", [&] { poisson(k, vector(), {2}); }},
      {__LINE__, "binomial", [&] { binomial(k, vector(), 0.5f, {2}); }},
      {__LINE__, "multinomial", [&] { multinomial(k, 3, scalar()); }},
      {__LINE__, "permutation", [&] { permutation(k, -1); }},
      {__LINE__, "permutation", [&] { permutation(k, vector(), 1); }},
      {__LINE__, "choice", [&] { choice(k, vector(), {4}, false); }},
      {__LINE__, "categorical", [&] { categorical(k, scalar()); }},
      {__LINE__, "multivariate_normal", [&] { multivariate_normal(k, vector(), matrix()); }},
      {__LINE__, "orthogonal", [&] { orthogonal(k, -1); }},
  });
}

TEST(call_site, transformations_and_control_flow) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto same = [](Array x) { return x; };
  const auto step = [](Array carry, Array x) { return std::pair{carry, x}; };
  expect_the_users_call({
      {__LINE__, "grad", [&] { grad(same)(vector()); }},
      {__LINE__, "value_and_grad", [&] { value_and_grad(same)(vector()); }},
      {__LINE__, "jacrev", [] { jacrev([](Array x) { return make_complex(x, x); })(vector()); }},
      {__LINE__, "jvp", [&] { jvp(same, std::tuple{vector()}, std::tuple{matrix()}); }},
      {__LINE__, "stop_gradient", [] { stop_gradient(none); }},
      {__LINE__, "jit", [&] { jit(same, {.donate_argnums = {3}})(vector()); }},
      {__LINE__, "jit", [&] { jit(same)(none); }},
      {__LINE__, "vmap", [&] { vmap(same, {.in_axes = 3})(vector()); }},
      {__LINE__, "pmap", [&] { pmap(same, {.in_axes = 3})(vector()); }},
      {__LINE__, "shard_map", [&] { shard_map(same, mesh, P("y"), P())(vector()); }},
      {__LINE__, "scan", [&] { scan(step, scalar(), scalar()); }},
      {__LINE__, "cond", [&] { cond(vector(), same, same, vector()); }},
      {__LINE__, "while_loop", [] { while_loop([](Array x) { return x > 0; }, [](Array x) { return x; }, vector()); }},
      {__LINE__, "psum", [] { psum(vector(), "nowhere"); }},
      {__LINE__, "pmean", [] { pmean(vector(), "nowhere"); }},
      {__LINE__, "pmax", [] { pmax(vector(), "nowhere"); }},
      {__LINE__, "pmin", [] { pmin(vector(), "nowhere"); }},
      {__LINE__, "psum_scatter", [] { psum_scatter(vector(), "nowhere"); }},
      {__LINE__, "all_gather", [] { all_gather(vector(), "nowhere"); }},
      {__LINE__, "all_to_all", [] { all_to_all(vector(), "nowhere", 0, 0); }},
      {__LINE__, "ppermute", [] { ppermute(vector(), "nowhere", {}); }},
      {__LINE__, "pshuffle", [] { pshuffle(vector(), "nowhere", {}); }},
      {__LINE__, "pswapaxes", [] { pswapaxes(vector(), "nowhere", 0); }},
      {__LINE__, "pbroadcast", [] { pbroadcast(vector(), "nowhere", 0); }},
      {__LINE__, "pargmax", [] { pargmax(vector(), "nowhere"); }},
      {__LINE__, "pargmin", [] { pargmin(vector(), "nowhere"); }},
      {__LINE__, "axis_index", [] { axis_index("nowhere"); }},
      {__LINE__, "axis_size", [] { axis_size("nowhere"); }},
  });
}

TEST(call_site, pictures_and_processes) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x", None));
  expect_the_users_call({
      {__LINE__, "visualize_sharding", [&] { debug::visualize_sharding({3}, rows); }},
      {__LINE__, "visualize_array_sharding", [] { debug::visualize_array_sharding(none); }},
      {__LINE__, "inspect_array_sharding", [] { debug::inspect_array_sharding(none, [](const Sharding&) {}); }},
      {__LINE__, "sharding_html", [&] { debug::sharding_html({3}, rows); }},
      {__LINE__, "sharding_svg", [&] { debug::sharding_svg({3}, rows); }},
      {__LINE__, "process_allgather", [] { multihost::process_allgather(none); }},
      {__LINE__, "assert_equal", [] { multihost::assert_equal(none); }},
  });
}

// Lines of a function that the library calls back count again.
TEST(call_site, functions_that_the_library_calls_have_lines_of_their_own) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x"));
  const auto n = device_count();
  expect_the_users_call({
      {__LINE__, "reshape", [] { jit([](Array x) { return reshape(x, {7}); })(vector()); }},
      {__LINE__, "reshape", [] { grad([](Array x) { return sum(reshape(x, {7})); })(vector()); }},
      {__LINE__, "reshape", [] { vmap([](Array x) { return reshape(x, {7}); })(matrix()); }},
      {__LINE__, "reshape", [&] { pmap([](Array x) { return reshape(x, {7}); })(ones({n, 3})); }},
      {__LINE__, "reshape", [&] { shard_map([](Array x) { return reshape(x, {7}); }, mesh, P("x"), P("x"))(ones({n})); }},
      {__LINE__, "reshape", [] { jit([](Array x) { return fori_loop(0, 20, [](Array, Array y) { return reshape(y, {7}); }, x); })(vector()); }},
      {__LINE__, "reshape", [] { jit([](Array x) { return fori_loop(0, 20, [](auto, Array y) { return reshape(y, {7}); }, x); })(vector()); }},
      {__LINE__, "reshape", [] { jit([](Array x) { return while_loop([](Array y) { return sum(y) < 3; }, [](Array y) { return reshape(y, {7}); }, x); })(vector()); }},
      {__LINE__, "reshape", [] { jit([](Array x) { return scan([](Array c, Array y) { return std::pair{c, reshape(y, {7})}; }, scalar(), broadcast_to(x, {20, 3})).second; })(vector()); }},
      {__LINE__, "reshape", [] { jit([](Array x) { return cond(sum(x) > 0, [](Array y) { return reshape(y, {7}); }, [](Array y) { return y; }, x); })(vector()); }},
      {__LINE__, "reshape", [] { grad(checkpoint([](Array x) { return sum(reshape(x, {7})); }))(vector()); }},
      {__LINE__, "reshape", [&] { make_array_from_callback({n}, rows, [](const Index&) { return to_host(reshape(vector(), {7})); }); }},
      {__LINE__, "reshape", [] { debug::inspect_array_sharding(vector(), [](const Sharding&) { reshape(vector(), {7}); }); }},
  });
}

TEST(call_site, a_function_that_failed_leaves_nothing_behind) {
  EXPECT_THROW(softmax(matrix(), 5), IndexError);
  expect_the_users_call({{__LINE__, "reshape", [] { reshape(vector(), {7}); }}});
}

TEST(call_site, a_backward_rule_has_lines_of_its_own) {
  const auto f = custom_vjp([](Array x) { return x * 2; }, [](Array x) { return std::pair{x * 2, x}; },
                            [](Array, Array g) { return std::tuple{reshape(g, {7})}; });
  const int line_of_rule = __LINE__ - 1;
  const std::string text = error_of({__LINE__, "reshape", [&] { grad([&](Array x) { return sum(f(x)); })(vector()); }});
  EXPECT_THAT(text, HasSubstr("reshape at call_site_test.cpp:" + std::to_string(line_of_rule)));
}
// clang-format on

}  // namespace
}  // namespace tessera
