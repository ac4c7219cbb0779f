// Ops that arrange elements anew: shapes, order of axes, joining, splitting, shifting, repeating.
#pragma once
#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops/axes.hpp>

namespace tessera {

// ---- shape and order of axes ----
Array reshape(const Operand& x, Shape shape);  // one extent may be -1
Array transpose(const Operand& x);
Array transpose(const Operand& x, std::vector<int> permutation);
Array swapaxes(const Operand& x, int a, int b);
Array moveaxis(const Operand& x, int from, int to);
Array squeeze(const Operand& x, Axes axes = {});
Array expand_dims(const Operand& x, int axis);
Array broadcast_to(const Operand& x, Shape shape);

// ---- joining and splitting ----
Array concatenate(std::vector<Array> arrays, int axis = 0,
                  std::source_location where = std::source_location::current());
Array stack(std::vector<Array> arrays, int axis = 0,
            std::source_location where = std::source_location::current());
std::vector<Array> split(const Operand& x, int parts, int axis = 0);
std::vector<Array> split_at(const Operand& x, std::vector<std::int64_t> places,
                            int axis = 0);  // [0:p0], [p0:p1], ...

// ---- shifting, padding, repeating ----
Array flip(const Operand& x, Axes axes = {});
Array roll(const Operand& x, int shift, int axis);
Array pad(const Operand& x, std::vector<std::pair<int, int>> widths,
          double value = 0);  // one pair stands for all dims
Array tile(const Operand& x, std::vector<int> repeats);
Array repeat(const Operand& x, int n, int axis);

// ---- parts of matrices ----
Array tril(const Operand& x, int k = 0);
Array triu(const Operand& x, int k = 0);
Array diagonal(const Operand& x, int offset = 0);

// ---- grids and differences ----
std::vector<Array> meshgrid(std::vector<Array> axes, const std::string& indexing = "xy",
                            std::source_location where = std::source_location::current());
Array diff(const Operand& x, int n = 1, int axis = -1);  // x[1:] - x[:-1], n times

}  // namespace tessera
