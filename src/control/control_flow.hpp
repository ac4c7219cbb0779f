// Branches and loops of compiled functions, recorded as ops that own their bodies.
//
//   counted_loop   scan, fori_loop: (carried, stacks) -> (carried, stacks), a fixed number of steps
//   until_loop     while_loop
//   branch         cond
#pragma once
#include <string>
#include <vector>

#include "control/closed_function.hpp"
#include "program/builder.hpp"

namespace tessera {

// One step on arrays: (carried, entries of the stacks read) -> carried, then entries of the stacks made.
using StepFunction =
    std::function<std::vector<Array>(const std::vector<Array>& carried, const std::vector<Array>& entries)>;
using LeafFunction = std::function<std::vector<Array>(const std::vector<Array>&)>;

struct LoopCall {
  const char* name = "scan";                 // the name in explain
  std::vector<std::string> leaf_names = {};  // names of the carried leaves: "[0].weight"
};

// Returns the final carried values, then the stacks made. length >= 1.
std::vector<Array> record_counted_loop(const LoopCall&, const StepFunction&, std::vector<Array> init,
                                       std::vector<Array> stacks, std::int64_t length, bool reverse = false);
std::vector<Array> record_until_loop(const LoopCall&, const LeafFunction& condition, const LeafFunction& body,
                                     std::vector<Array> init);
// The results of a branch: both branches must return the same shapes and dtypes.
using Thunk = std::function<std::vector<Array>()>;
// Makes the results of two branches agree: a number without a dtype of its own takes the other's dtype.
// ArgumentError for other differences.
void join_branches(std::vector<Array>& where_true, std::vector<Array>& where_false);
std::vector<Array> record_branch(const Array& predicate, const Thunk& where_true, const Thunk& where_false);

// ---- shared by the three ----
// The types, layouts and mapped axes under which a body's results match its arguments.
struct CarriedValues {
  std::vector<Array> init, parameters;  // passed to the body: initially, and in each step
  std::vector<Array> results;           // results of one step; the first ones are carried
  std::uint64_t before = 0;             // nodes recorded up to this serial are outside the body
};
// Raises the error for a carried value that enters as `init` (`described` tells its origin) and returns with
// another type.
[[noreturn]] void throw_type_mismatch(const LoopCall&, std::size_t leaf, const Type& init,
                                      const std::string& described, const Array& result);
CarriedValues settle_carried(const LoopCall&, std::vector<Array> init, const LeafFunction& body);

// The mesh of the first committed value; if `functions` use more devices, a mesh over all of them.
std::optional<Mesh> mesh_of(const std::vector<FunctionPtr>& functions);
// The layouts of a part's operands and results: their own shardings, else replicated over the mesh.
std::vector<Sharding> layouts_on(const Mesh&, const std::vector<Array>& values);
// Bytes that one call of the function moves per rank, with its results in the layouts `results`.
std::int64_t bytes_of_call(const ClosedFunction&, const std::vector<std::optional<Sharding>>& results);
Program part_of(const ClosedFunction&, std::vector<Sharding> results, std::vector<Sharding> operands);
bool moves_anything(const Program&);
// Describes a loop's parts as expressions, for finding equal loops. An alias counts as its operand.
void add_expressions(const std::vector<FunctionPtr>& parts, Loop&);

// `entry` with a leading dim of steps, split over these axes.
Sharding stacked(const Sharding& entry, int entry_ndim, const MeshAxes& steps_over = no_axes);
Type stacked(const Type& entry, std::int64_t length);
Sharding without_first_dim(const Sharding& stack, int stack_ndim);

}  // namespace tessera
