// Functions and operations.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stablehlo/text/reader.hpp"

namespace tessera::stablehlo {

class Parser : PartReader {
 public:
  Parser(const std::string& file, std::string_view text) : PartReader(file, text) { module_.file = file; }
  Module module();

 private:
  // A result of an operation on the left of its "=": its name, and of how many values it stands for.
  struct Binding {
    Token name;
    int count = 1;
  };
  using Scope = std::map<std::string, std::vector<int>, std::less<>>;

  void top_level(std::string_view close);
  void function();
  void function_arguments(Function&);
  void function_results(Function&);
  void mesh();
  void read_partitions(const Attribute&);

  void block_until_closed(RegionText&);
  void operation(RegionText&);
  void generic_form(Operation&, std::vector<TensorType>& types);
  void short_form(Operation&, std::vector<TensorType>& types, std::size_t results);
  void short_words(Operation&);
  void short_word(Operation&);
  void group(Operation&, std::vector<int>& inits, std::vector<Token>& carried);
  std::vector<TensorType> types_of_results(Operation&, std::size_t results);
  std::vector<TensorType> types_after_arrow();
  void check_operand_types(const Operation&, const Token&, const std::vector<TensorType>&);
  void regions_of_loop(Operation&, const std::vector<Token>& carried);
  void reducer(Operation&);
  void manual_computation(Operation&, std::vector<TensorType>& types);
  RegionText region();  // { ^label(arguments): ... }
  void region_arguments(RegionText&, std::string_view close);

  int new_value(TensorType);
  int use(const Token&);
  void bind(const Token& name, std::vector<int> values);

  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::vector<Token> carried_;  // names of the loop's values between its operands and its regions
};

}  // namespace tessera::stablehlo
