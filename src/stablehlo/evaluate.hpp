// A function of a module on arrays: operation by operation, each by the rule of its name. Rules record ops;
// nothing is computed here.
#pragma once
#include <tessera/array.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stablehlo/text/syntax.hpp"

namespace tessera::stablehlo {

using Arrays = std::vector<Array>;
struct OpCall;
using Rule = Arrays (*)(OpCall&);
using Rules = std::map<std::string, Rule, std::less<>>;

// The meshes of a module over the ranks of the job, and what to make of layouts.
struct Layouts {
  std::map<std::string, Mesh> meshes;
  bool ignored = false;
};

// The axes over which a region sees blocks of single devices.
struct Manual {
  const Mesh* mesh = nullptr;
  std::vector<std::string> axes;
};

// An array that stands for LAPACK's packed QR of a matrix: matrices/packed.hpp.
struct PackedQr {
  Array self, taus, source, q, r;
};

// Bits of threefry for row-major counters: rules/known.hpp.
struct CountedDraw {
  Array high, low, key_1, key_2;
};

// The values of one call of a function.
struct CallFrame {
  const Function& function;
  const std::vector<const Operation*>&
      makers;  // for each value the operation that makes it; null: an argument
  Arrays values;
};

class Evaluator {
 public:
  using Makers = std::map<const Function*, std::vector<const Operation*>>;
  Evaluator(const Module& module, const Makers& makers, const Layouts& layouts)
      : module(module), layouts(layouts), makers_(makers) {}

  Arrays call(const Function&, Arrays arguments, TextPlace from);
  // A region of the frame's function on these arguments.
  Arrays region(CallFrame&, const RegionText&, const Arrays& arguments);
  // A region that is written for scalars, applied to the elements of arrays of one shape.
  Arrays elementwise(CallFrame&, const RegionText&, const Arrays& arguments);
  const Function& function(std::string_view name, TextPlace from) const;
  const std::vector<const Operation*>& makers_of(const Function& function) const {
    return makers_.at(&function);
  }
  [[noreturn]] void refuse(TextPlace, const std::string& text) const;
  std::source_location line(TextPlace) const;

  const Module& module;
  const Layouts& layouts;
  Manual manual;
  std::map<std::pair<const Node*, int>, PackedQr> packed;    // by the array that stands for it
  std::map<std::pair<const Node*, int>, CountedDraw> draws;  // by the array of high words

 private:
  void run(CallFrame&, const Operation&);
  Arrays lifted(OpCall&);
  const Makers& makers_;
  int depth_ = 0;
  std::int64_t recorded_ = 0;
  bool is_lifted_ = false;
};

// One operation that is being evaluated, with its operands.
struct OpCall {
  Evaluator& run;
  CallFrame& frame;
  const Operation& op;
  Arrays x;
  bool is_lifted = false;  // in a region of scalars that is applied to whole arrays

  const TensorType& type(std::size_t result = 0) const;  // as the text declares it
  std::size_t results() const { return op.results.size(); }
  [[noreturn]] void refuse(const std::string& text) const { run.refuse(op.place, op.name + ": " + text); }
  void want_operands(std::size_t count) const;  // refuses another number

  // ---- attributes ----
  const Attribute* find(std::string_view name) const { return op.attributes.find(name); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::vector<std::int64_t> integers(std::string_view name) const;  // a list, or a dense one; none: empty
  std::vector<std::int64_t> integers(std::string_view name, std::int64_t otherwise, std::size_t count) const;
  std::vector<int> dims(std::string_view name, int ndim) const;  // dims of an array; refuses others
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::string word(std::string_view name) const;  // "" if it is not there
  bool flag(std::string_view name) const { return word(name) == "true"; }
  int dim(std::string_view name, int ndim) const;

  // The operation that makes an operand; null for arguments and in lifted regions.
  const Operation* maker(int value) const { return frame.makers[static_cast<std::size_t>(value)]; }
};

std::vector<std::int64_t> integers_of(const OpCall&, const Attribute&);
// The number that all elements of a value are known to have: of constants, broadcast and converted.
std::optional<double> constant_of(const CallFrame&, int value, int most_steps = 8);
const Rules& rules();
// Element by element: what may stand in a region that is applied to whole arrays.
bool is_elementwise(std::string_view name);

}  // namespace tessera::stablehlo
