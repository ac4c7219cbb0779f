// Picking elements by number, searching and sorting.
#pragma once
#include <string>
#include <utility>

#include <tessera/array.hpp>

namespace tessera {

Array take(const Operand& x, const Operand& indices, int axis);
Array take_along_axis(const Operand& x, const Operand& indices, int axis);
Array searchsorted(const Operand& sorted, const Operand& values, const std::string& side = "left");
Array sort(const Operand& x, int axis = -1);
Array argsort(const Operand& x, int axis = -1);
std::pair<Array, Array> top_k(const Operand& x, int k);

}  // namespace tessera
