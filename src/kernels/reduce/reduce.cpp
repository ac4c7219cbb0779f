#include "kernels/reduce/reduce.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/reduce/pairwise_cascade.hpp"
#include "kernels/reduce/reduce_rows.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

using Bytes = std::unique_ptr<std::byte[]>;
Bytes scratch(std::int64_t bytes) { return Bytes(new std::byte[std::max<std::int64_t>(bytes, 1)]); }

[[noreturn]] void refuse(ReduceKind kind, Dtype dtype) {
  throw InternalError("kernels::reduce: there is no reduction '" + std::string(name(kind)) + "' of " +
                      name(dtype));
}

// out[j] = fn over r of x[r][j]; x is (rows x n) dense, rows > 0.
void reduce_columns(MapFn fn, const std::byte* x, std::int64_t rows, std::int64_t n, std::size_t itemsize,
                    std::byte* out) {
  // Few columns: several rows are one longer row, reduced in its turn.
  constexpr std::int64_t wide = 512;
  if (n < wide / 4 && rows >= 2 * (wide / n)) {
    const std::int64_t joined = wide / n, whole = rows / joined, rest = rows % joined;
    const Bytes partial = scratch((joined + rest) * n * static_cast<std::int64_t>(itemsize));
    reduce_columns(fn, x, whole, joined * n, itemsize, partial.get());
    std::memcpy(partial.get() + static_cast<std::size_t>(joined * n) * itemsize,
                x + static_cast<std::size_t>(whole * joined * n) * itemsize,
                static_cast<std::size_t>(rest * n) * itemsize);
    reduce_columns(fn, partial.get(), joined + rest, n, itemsize, out);
    return;
  }
  const std::int64_t block_columns = std::max<std::int64_t>(8192 / static_cast<std::int64_t>(itemsize), 1);
  constexpr std::int64_t block_rows = 32;
  for (std::int64_t j = 0; j < n; j += block_columns) {
    const std::int64_t width = std::min(block_columns, n - j);
    PairwiseCascade cascade(fn, width, itemsize);
    for (std::int64_t r = 0; r < rows; r += block_rows)
      cascade.add_rows(x + static_cast<std::size_t>(r * n + j) * itemsize, std::min(block_rows, rows - r),
                       static_cast<std::size_t>(n) * itemsize);
    cascade.finish(out + static_cast<std::size_t>(j) * itemsize);
  }
}

// Dims with neighbours of the same kind merged and dims of extent 1 dropped.
struct Run {
  std::int64_t extent;
  bool reduced;
};
std::vector<Run> runs_of(const Shape& shape, const std::vector<int>& axes) {
  std::vector<Run> runs;
  for (int d = 0; d < shape.ndim(); ++d) {
    const std::int64_t extent = shape[d];
    const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (extent == 1) continue;
    if (!runs.empty() && runs.back().reduced == reduced)
      runs.back().extent *= extent;
    else
      runs.push_back({extent, reduced});
  }
  return runs;
}

// Sum, prod, max, min: each pass reduces the innermost reduced run of (outer, rows, inner), until none is
// left.
void reduce_runs(ReduceKind kind, Dtype dtype, const std::byte* data, std::vector<Run> runs, std::byte* out) {
  const std::size_t item = itemsize(dtype);
  Bytes kept;
  for (;;) {
    const auto innermost =
        std::find_if(runs.rbegin(), runs.rend(), [](const Run& run) { return run.reduced; });
    std::int64_t total = 1, inner = 1;
    for (const auto& run : runs) total *= run.extent;
    if (innermost == runs.rend()) {
      std::memcpy(out, data, static_cast<std::size_t>(total) * item);
      return;
    }
    for (auto run = runs.rbegin(); run != innermost; ++run) inner *= run->extent;
    const std::int64_t rows = innermost->extent, outer = total / rows / inner;
    runs.erase(std::next(innermost).base());
    const bool last = std::none_of(runs.begin(), runs.end(), [](const Run& run) { return run.reduced; });
    Bytes next;
    std::byte* target = out;
    if (!last) {
      next = scratch(outer * inner * static_cast<std::int64_t>(item));
      target = next.get();
    }
    if (inner == 1) {
      const RowReduceFn fn = find_row_reduce(kind, dtype);
      if (fn == nullptr) refuse(kind, dtype);
      fn(data, outer, rows, target);
    } else {
      const MapFn fn = combine_map(kind, dtype);
      for (std::int64_t o = 0; o < outer; ++o)
        reduce_columns(fn, data + static_cast<std::size_t>(o * rows * inner) * item, rows, inner, item,
                       target + static_cast<std::size_t>(o * inner) * item);
    }
    if (last) return;
    kept = std::move(next);
    data = kept.get();
  }
}

// Numbers of nonzero elements over the innermost reduced run as int64, then a sum.
void count_nonzero(Dtype in, const std::byte* data, std::vector<Run> runs, std::int64_t* out) {
  const bool last_is_reduced = !runs.empty() && runs.back().reduced;
  std::int64_t total = 1;
  for (const auto& run : runs) total *= run.extent;
  const std::int64_t rows = last_is_reduced ? total / runs.back().extent : total;
  const Bytes counts = scratch(rows * 8);
  find_row_reduce(ReduceKind::count_nonzero, in)(data, rows, last_is_reduced ? runs.back().extent : 1,
                                                 counts.get());
  if (last_is_reduced) runs.pop_back();
  reduce_runs(ReduceKind::sum, int64, counts.get(), std::move(runs), reinterpret_cast<std::byte*>(out));
}

// The elementwise kernel that combines two partial results.
const Map* map_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::count_nonzero: return &map<"add">;
    case ReduceKind::prod: return &map<"multiply">;
    case ReduceKind::max: return &map<"maximum">;
    case ReduceKind::min: return &map<"minimum">;
    case ReduceKind::any: return &map<"logical_or">;
    case ReduceKind::all: return &map<"logical_and">;
    case ReduceKind::logsumexp: return &map<"logaddexp">;
    default: return nullptr;
  }
}

// Found by counting: any, all, count_nonzero.
bool is_counted(ReduceKind kind) {
  return kind == ReduceKind::any || kind == ReduceKind::all || kind == ReduceKind::count_nonzero;
}

template <class T> T identity_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::any:
    case ReduceKind::count_nonzero: return T{};
    case ReduceKind::prod:
    case ReduceKind::all: return T(1);
    case ReduceKind::max:
    case ReduceKind::logsumexp: return lowest<T>();
    case ReduceKind::min: return highest<T>();
    default: refuse(kind, dtype_of<T>());
  }
}

}  // namespace

MapFn combine_map(ReduceKind kind, Dtype dtype) {
  const Map* merge = map_of(kind);
  const MapFn fn = merge == nullptr ? nullptr : merge->of(dtype);
  if (fn == nullptr) refuse(kind, dtype);
  return fn;
}

Dtype reduce_result(ReduceKind kind, Dtype in) {
  if (kind == ReduceKind::count_nonzero) return int32;
  return is_counted(kind) ? bool_ : in;
}

void combine(ReduceKind kind, Dtype dtype, const void* in, void* out, std::int64_t n) {
  const void* operands[] = {out, in};
  combine_map(kind, dtype)(operands, out, n);
}

void fill_identity(ReduceKind kind, Dtype dtype, void* out, std::int64_t n) {
  visit(dtype, [&]<class T>(T) {
    const T identity = identity_of<T>(kind);
    fill(out, &identity, sizeof identity, n);
  });
}

void reduce(ReduceKind kind, Dtype in, const void* data, const Shape& shape, const std::vector<int>& axes,
            void* out) {
  std::int64_t kept = 1, reduced = 1;
  for (int d = 0; d < shape.ndim(); ++d)
    (std::find(axes.begin(), axes.end(), d) != axes.end() ? reduced : kept) *= shape[d];
  if (kept == 0) return;
  if (reduced == 0) return fill_identity(kind, reduce_result(kind, in), out, kept);
  const auto* bytes = static_cast<const std::byte*>(data);
  if (!is_counted(kind))
    return reduce_runs(kind, in, bytes, runs_of(shape, axes), static_cast<std::byte*>(out));

  const Bytes counts = scratch(kept * 8);
  auto* count = reinterpret_cast<std::int64_t*>(counts.get());
  count_nonzero(in, bytes, runs_of(shape, axes), count);
  for (std::int64_t i = 0; i < kept; ++i) {
    if (kind == ReduceKind::count_nonzero)
      static_cast<std::int32_t*>(out)[i] = static_cast<std::int32_t>(count[i]);
    else
      static_cast<bool*>(out)[i] = kind == ReduceKind::any ? count[i] != 0 : count[i] == reduced;
  }
}

}  // namespace tessera::kernels
