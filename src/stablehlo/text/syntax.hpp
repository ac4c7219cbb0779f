// A module as its text says it: functions, their operations, regions and attributes. Plain data, made by the
// parser, never changed afterwards.
#pragma once
#include <tessera/array/host.hpp>
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stablehlo/text/lexer.hpp"

namespace tessera::stablehlo {

struct TensorType {
  Shape shape;
  Dtype dtype = float32;
  bool is_token = false;  // orders what XLA runs; carries nothing
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string to_string(const TensorType&);  // float32(3, 4)

// The value of a constant: all elements, or one that stands for all.
struct Constant {
  TensorType type;
  HostArray values;
  bool is_splat = false;
};

struct Attribute {
  enum class Kind : std::uint8_t { unit, number, word, string, symbol, list, dictionary, dense, skipped };
  struct Entry;

  Kind kind = Kind::unit;
  TextPlace place;
  std::string text;              // word, string, symbol; the digits of a number
  std::vector<Attribute> items;  // list
  std::vector<Entry> entries;    // dictionary
  std::shared_ptr<const Constant> dense;

  const Attribute* find(std::string_view name) const;  // an entry of a dictionary; null: there is none
};
struct Attribute::Entry {
  Entry(std::string name, Attribute value) : first(std::move(name)), second(std::move(value)) {}
  std::string first;
  Attribute second;
};

struct Operation;

// A block of operations with arguments; the last one returns.
struct RegionText {
  std::vector<int> arguments;
  std::vector<Operation> operations;
};

struct Operation {
  std::string name;  // "stablehlo.add"
  TextPlace place;
  std::vector<int> operands, results;  // numbers of the function's values
  Attribute attributes;                // a dictionary
  std::vector<std::string> words;      // of the short form, in order: LT, SIGNED
  std::vector<RegionText> regions;
};

struct Function {
  std::string name;
  TextPlace place;
  RegionText body;
  std::vector<TensorType> values;  // by number
  std::vector<TensorType> results;
  std::vector<Attribute> argument_attributes, result_attributes;  // dictionaries
};

// An axis of a mesh of the text.
struct NamedAxis {
  std::string name;
  std::int64_t size = 0;
};
struct MeshText {
  TextPlace place;
  std::vector<NamedAxis> axes;
  std::vector<std::int64_t> devices;  // empty: in order
};

struct Module {
  std::string file;  // for errors
  std::map<std::string, Function> functions;
  std::map<std::string, MeshText> meshes;
  std::int64_t partitions = 0;  // devices that it was written for; 0: it does not say
};

// ArgumentError with line and column for a text that is not MLIR as JAX prints it, for types without a
// counterpart, and for nesting or extents beyond all programs.
Module parse_module(const std::string& file, std::string_view text);

// For programs that have no other word for it: what the first operation or function says.
inline constexpr int deepest_nesting = 100;

}  // namespace tessera::stablehlo
