// An error names the function that the user called and the line where, also in functions that the library
// calls back. Functions of arrays have their refused calls in tests/catalogue.
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

// Every "file:line" in the text must be in this file.
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

const Array none;  // an empty array: no function accepts it
Array scalar() { return Array(1.f); }
Array vector() { return ones({3}); }
Array matrix() { return ones({2, 3}); }

// clang-format off
TEST(call_site, arrays_are_made_and_read) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const auto rows = NamedSharding(mesh, P("x", None));
  expect_the_users_call({
      {__LINE__, "full", [] { full({2}, vector()); }},
      {__LINE__, "zeros_like", [] { zeros_like(none); }},
      {__LINE__, "ones_like", [] { ones_like(none); }},
      {__LINE__, "eye", [] { eye(2, -1); }},
      {__LINE__, "arange", [] { arange(0.0, 5.0, 0.0); }},
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

TEST(call_site, meshes_and_layouts_are_made) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const int too_many = device_count() + 1;
  expect_the_users_call({
      {__LINE__, "make_mesh", [&] { make_mesh({too_many}, {"x"}); }},
      {__LINE__, "make_mesh", [] { make_mesh({1}, {"x", "y"}); }},
      {__LINE__, "make_mesh", [&] { make_mesh({too_many}, {"x"}, devices()); }},
      {__LINE__, "Mesh", [] { make_mesh({2}, {"x"}, {devices()[0], devices()[0]}); }},
      {__LINE__, "Mesh", [&] { Mesh(NdDevices{0, too_many}, {"x"}); }},
      {__LINE__, "Mesh", [&] { mesh.with_axes({device_count()}, {""}); }},
      {__LINE__, "abstract_mesh", [] { abstract_mesh({0}, {"x"}); }},
      {__LINE__, "create_device_mesh", [&] { create_device_mesh({too_many}); }},
      {__LINE__, "NamedSharding", [&] { NamedSharding(mesh, P("y")); }},
      {__LINE__, "NamedSharding", [&] { Sharding rows(mesh, P("x", "x")); }},
      {__LINE__, "Mesh", [&] { SingleDeviceSharding(Device{too_many, too_many, ""}); }},
      {__LINE__, "device_put", [&] { device_put(vector(), mesh, P("y")); }},
      {__LINE__, "device_put", [&] { device_put(vector(), Device{too_many, too_many, ""}); }},
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
      {__LINE__, "jit", [&] { jit(same, {.donate_argnums = {3}})(vector()); }},
      {__LINE__, "jit", [&] { jit(same)(none); }},
      {__LINE__, "vmap", [&] { vmap(same, {.in_axes = 3})(vector()); }},
      {__LINE__, "pmap", [&] { pmap(same, {.in_axes = 3})(vector()); }},
      {__LINE__, "shard_map", [&] { shard_map(same, mesh, P("y"), P())(vector()); }},
      {__LINE__, "scan", [&] { scan(step, scalar(), scalar()); }},
      {__LINE__, "cond", [&] { cond(vector(), same, same, vector()); }},
      {__LINE__, "while_loop", [] { while_loop([](Array x) { return x > 0; }, [](Array x) { return x; }, vector()); }},
      {__LINE__, "pshuffle", [] { pshuffle(vector(), "nowhere", {}); }},
      {__LINE__, "pswapaxes", [] { pswapaxes(vector(), "nowhere", 0); }},
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

// For functions that the library calls back, lines inside them are cited.
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
