// Exercise 3: matrix products that follow their operands' layouts, and the same written by hand.
#include "steps.hpp"

namespace workshop {

namespace {

Array multiply_blocks(const Array& a, const Array& b) { return matmul(a, b); }

// Three pictures and the value of an automatic product.
void automatic(const std::string& number, const std::string& title, const Array& a, const Array& b,
               const Sharding& expected) {
  step(number, title);
  picture("A", a);
  picture("B", b);
  const Array c = matmul(a, b);
  picture("A B", c);
  check(close(c, matmul(matrix(0), matrix(1)), 1e-4), "the product is right");
  check(c.sharding() == expected, "it lies as " + text_of(expected.spec()));
}

// The bytes that arrive at the rank with the most while a product runs, on every rank the same.
template <class F> std::int64_t bytes_of(const F& product) {
  const debug::CommStats stats;
  block_until_ready(product());
  const auto bytes = static_cast<float>(stats.bytes());
  const auto all = array(multihost::process_allgather(array({bytes})));
  return static_cast<std::int64_t>(item<float>(max(all)));
}

// Bytes of both ways, for operands that are in place.
template <class F, class G> void say_bytes(const F& by_hand, const G& automatic) {
  const std::int64_t hand = bytes_of(by_hand), planned = bytes_of(automatic);
  say("bytes that arrive at a rank: " + std::to_string(hand) + " by hand, " + std::to_string(planned) +
      " automatic");
  check(planned <= hand, "the automatic product moves no more");
}

// Compares a product by hand with the automatic one.
void beside(const std::string& what, const Array& by_hand, const Array& product) {
  say(what + ": by hand " + text_of(by_hand.sharding().spec()) + ", automatic " +
      text_of(product.sharding().spec()));
  check(close(by_hand, product, 1e-5), what + ": the values are those of matmul");
  check(by_hand.sharding() == product.sharding(), what + ": so is the sharding");
}

void automatic_products(const Mesh& mesh) {
  step("10", "A B on one device");
  picture("uncommitted, A B would be computed on every device", matmul(matrix(0), matrix(1)));
  const Array one = matmul(device_put(matrix(0), devices()[0]), device_put(matrix(1), devices()[0]));
  picture("of operands on device 0", one);
  check(one.devices() == std::set<Device>{devices()[0]}, "the product is where its operands are");

  const Array a_rows = device_put(matrix(0), mesh, P("x")), a_whole = device_put(matrix(0), mesh, P());
  const Array b_columns = device_put(matrix(1), mesh, P(None, "y")),
              b_whole = device_put(matrix(1), mesh, P());
  automatic("11", "A by rows, B by columns", a_rows, b_columns, NamedSharding(mesh, P("x", "y")));
  automatic("12", "A by rows, B everywhere", a_rows, b_whole, NamedSharding(mesh, P("x")));
  automatic("13", "A everywhere, B by columns", a_whole, b_columns, NamedSharding(mesh, P(None, "y")));
}

// ---- 3.1: nothing has to move ----
void by_hand(const Mesh& mesh) {
  step("14", "exercise 3.1: the same three with shard_map");
  const Array a_rows = device_put(matrix(0), mesh, P("x")), a_whole = device_put(matrix(0), mesh, P());
  const Array b_columns = device_put(matrix(1), mesh, P(None, "y")),
              b_whole = device_put(matrix(1), mesh, P());
  const auto row_col = shard_map(multiply_blocks, mesh, {P("x"), P(None, "y")}, P("x", "y"));
  const auto row_replicated = shard_map(multiply_blocks, mesh, {P("x"), P()}, P("x"));
  const auto replicated_col = shard_map(multiply_blocks, mesh, {P(), P(None, "y")}, P(None, "y"));
  eval(a_rows, a_whole, b_columns, b_whole);
  const debug::CommStats stats;
  const Array rc = row_col(a_rows, b_columns), rw = row_replicated(a_rows, b_whole),
              wc = replicated_col(a_whole, b_columns);
  eval(rc, rw, wc);
  const auto bytes = stats.bytes();
  check(bytes == 0, "none of the three moves a byte");
  beside("rows times columns", rc, matmul(a_rows, b_columns));
  beside("rows times the whole", rw, matmul(a_rows, b_whole));
  beside("the whole times columns", wc, matmul(a_whole, b_columns));
}

// ---- 3.2: terms of a sum are on different devices ----
void blocks_by_rows(const Mesh& mesh, const Array& a) {
  step("15", "exercise 3.2: blocks times rows");
  const Array b = device_put(matrix(1), mesh, P("y", None));
  automatic("15a", "automatic", a, b, NamedSharding(mesh, P("x")));
  step("15b", "by hand: each device has a term of its block row, and one psum over y adds them");
  const auto product = shard_map([](const Array& a, const Array& b) { return psum(matmul(a, b), "y"); }, mesh,
                                 {P("x", "y"), P("y")}, P("x"));
  beside("blocks times rows", product(a, b), matmul(a, b));
  say_bytes([&] { return product(a, b); }, [&] { return matmul(a, b); });
}

void blocks_by_columns(const Mesh& mesh, const Array& a) {
  step("16", "blocks times columns: the block row of A is gathered over y first");
  const Array b = device_put(matrix(1), mesh, P(None, "y"));
  const auto product =
      shard_map([](const Array& a,
                   const Array& b) { return matmul(all_gather(a, "y", {.axis = 1, .tiled = true}), b); },
                mesh, {P("x", "y"), P(None, "y")}, P("x", "y"));
  beside("blocks times columns", product(a, b), matmul(a, b));
  say_bytes([&] { return product(a, b); }, [&] { return matmul(a, b); });
}

void blocks_by_whole(const Mesh& mesh, const Array& a) {
  step("17", "blocks times the whole: each device takes the rows of B that its block of A meets");
  const Array b = device_put(matrix(1), mesh, P());
  const auto product = shard_map(
      [](const Array& a, const Array& b) {
        const int rows = static_cast<int>(b.shape()[0]) / 2;  // y has two devices
        return psum(matmul(a, take(b, arange(rows) + axis_index("y") * rows, 0)), "y");
      },
      mesh, {P("x", "y"), P()}, P("x"));
  beside("blocks times the whole", product(a, b), matmul(a, b));
  say_bytes([&] { return product(a, b); }, [&] { return matmul(a, b); });
}

}  // namespace

void products() {
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  automatic_products(mesh);
  by_hand(mesh);
  const Array a = device_put(matrix(0), mesh, P("x", "y"));
  blocks_by_rows(mesh, a);
  blocks_by_columns(mesh, a);
  blocks_by_whole(mesh, a);
}

// ---- 3.3: four matrices with one collective ----
//   A P("x", None) . B P(None, "y")  ->  P("x", "y")    nothing moves
//                  . C P("y", None)  ->  P("x", None)   terms over y: the only sum
//                  . D P(None, "y")  ->  P("x", "y")    nothing moves
void chain() {
  step("18", "exercise 3.3: A B C D with one collective");
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
  const Array a = matrix(0), b = matrix(1), c = matrix(2), d = matrix(3);
  const Array a_rows = device_put(a, mesh, P("x")), b_columns = device_put(b, mesh, P(None, "y")),
              c_rows = device_put(c, mesh, P("y")), d_columns = device_put(d, mesh, P(None, "y"));
  const auto product = [](const Array& a, const Array& b, const Array& c, const Array& d) {
    return matmul(matmul(matmul(a, b), c), d);
  };
  say_of_this_machine(text_of(explain(product, a_rows, b_columns, c_rows, d_columns)));
  eval(a_rows, b_columns, c_rows, d_columns);
  const debug::CommStats stats;
  const Array abcd = block_until_ready(product(a_rows, b_columns, c_rows, d_columns));
  const auto calls = stats.calls();
  say("collectives: " + std::to_string(calls) + ", result " + text_of(abcd.sharding().spec()));
  check(calls == 1, "four matrices need one collective");
  check(close(array(multihost::process_allgather(abcd, true)), product(a, b, c, d), 1e-3),
        "gathered, the product is that of one device");

  step("19", "bonus: an iteration without a collective");
  const Array b_whole = device_put(b, mesh, P()), c_whole = device_put(c, mesh, P()),
              d_whole = device_put(d, mesh, P());
  eval(b_whole, c_whole, d_whole);
  const debug::CommStats none;
  const Array rows = block_until_ready(product(a_rows, b_whole, c_whole, d_whole));
  const auto moved = none.calls();
  check(moved == 0, "with B, C and D everywhere and A by rows, rows never move");
  check(close(rows, abcd, 1e-3), "the product is the same");
}

}  // namespace workshop
