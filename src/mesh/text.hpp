// Text helpers for the error messages of src/mesh.
#pragma once
#include <tessera/sharding.hpp>

#include <string>
#include <vector>

namespace tessera {

std::string to_text(const Mesh&);
std::string to_text(const PartitionSpec&);
std::string to_text(const Sharding&);
std::string to_text(const PositionalSharding&);

std::string counted(std::size_t n, const std::string& thing);  // "1 axis", "2 axes"
std::string listed(const std::vector<int>&);                   // (4, 2)
std::string quoted_list(const std::vector<std::string>&);      // ('x', 'y')

// "its axes are 'rows', 'cols'. Did you mean 'rows'?"
std::string known_names(const std::string& wanted, const std::vector<std::string>& known,
                        const std::string& things);

}  // namespace tessera
