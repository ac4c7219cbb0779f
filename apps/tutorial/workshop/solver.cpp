// Exercise 4, second half: one linear system over all devices, and an LU decomposition written by hand.
#include "lu.hpp"
#include "steps.hpp"

namespace workshop {

namespace {

struct System {
  Array a, b;
};

bool solves(const System& s, const Array& x) { return close(dot(s.a, x), s.b, 1e-5); }

void say_collectives(const std::string& what, const std::string& text) {
  std::string list;
  for (const char* kind :
       {"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "broadcast"})
    if (names(text, kind)) list += std::string(list.empty() ? "" : ", ") + kind;
  say_gathers(what, text);
  say("  its collectives: " + (list.empty() ? "none" : list));
}

void library_solver(const System& local, const System& split) {
  step("25", "a linear system in one process");
  check(solves(local, linalg::solve(local.a, local.b)), "A x is b");

  step("26", "the same with A by rows over 8 x 1 devices");
  picture("A", split.a);
  const Array x = linalg::solve(split.a, split.b);
  check(solves(local, x), "A x is b");
  step("27", "where x lies");
  picture("x", x);
  say("x: " + description(x));
  check(x.sharding() == NamedSharding(split.a.sharding().mesh(), P("x")), "each device has its part of x");

  step("28", "what the compiled programs say");
  const std::string solve_text = jit([](const Array& a, const Array& b) { return linalg::solve(a, b); })
                                     .lower(split.a, split.b)
                                     .compile()
                                     .as_text();
  const std::string lu_text =
      jit([](const Array& a) { return linalg::lu(a).u; }).lower(split.a).compile().as_text();
  say_of_this_machine(solve_text);
  say_of_this_machine(lu_text);
  say_collectives("the solver", solve_text);
  say_collectives("the LU decomposition", lu_text);
  check(!names(solve_text, "all-gather") && !names(lu_text, "all-gather"), "neither gathers the matrix");
}

// P A = L U by hand; the library's A = P L U.
void compare_factors(const std::string& what, const Factors& f, const Array& a) {
  const auto library = linalg::lu(a);
  check(close(dot(f.p, a), dot(f.l, f.u), 1e-5), what + ": P A is L U");
  check(close(f.p.T(), library.p, 0) && close(f.l, library.l, 1e-5) && close(f.u, library.u, 1e-5),
        what + ": P, L and U are those of linalg::lu");
}

void by_hand(const System& local, const System& split) {
  step("29", "LU with argmax, cond and at().set, row by row");
  const Factors f = lu_decomposition(local.a);
  show("the rows that P takes", argmax(f.p, 1));
  compare_factors("op by op", f, local.a);

  step("30", "a solver of it: forward and backward substitution");
  const Array x = solve_by_hand(local.a, local.b), expected = linalg::solve(local.a, local.b);
  show("x", x);
  check(solves(local, x), "A x is b");
  check(close(x, expected, 1e-5), "x is that of linalg::solve");

  step("31", "the same functions under jit: the decisions are part of the program");
  const auto jitted = jit([](const Array& a) {
    const Factors inner = lu_decomposition(a);
    return std::vector<Array>{inner.p, inner.l, inner.u};
  });
  const auto g = jitted(local.a);
  compare_factors("under jit", {g[0], g[1], g[2]}, local.a);
  const Array z = jit(solve_by_hand)(local.a, local.b);
  show("x", z);
  check(close(z, expected, 1e-5), "x is that of linalg::solve");

  step("32", "by rows over the devices, with shard_map: pmax and pmin find the pivot, psum sends its row");
  const auto distributed = jit(shard_map(solve_rows, split.a.sharding().mesh(), {P("x", None), P("x")}, P()));
  const Array y = distributed(split.a, split.b);
  show("x", y);
  check(close(y, expected, 1e-5), "x is that of linalg::solve");
  const std::string text = distributed.lower(split.a, split.b).compile().as_text();
  say_collectives("the solver by hand", text);
  check(!names(text, "all-gather"),
        "\"all-gather\" is absent from the compiled text: two rows travel per step, never a block");
}

}  // namespace

void linear_solver() {
  const System local{matrix(0), random::normal(random::key(1), {16})};
  const Mesh mesh = make_mesh({8, 1}, {"x", "y"});
  const System split{with_sharding_constraint(local.a, NamedSharding(mesh, P("x", None))), local.b};
  library_solver(local, split);
  by_hand(local, {split.a, device_put(local.b, mesh, P("x"))});
}

}  // namespace workshop
