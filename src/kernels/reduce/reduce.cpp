#include "kernels/reduce/reduce.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
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

// Rows of (rows x n) that are added to the cascade one after the other, and rows of a thread's part.
constexpr std::int64_t block_rows = 32, rows_of_a_part = 32 * block_rows;

// Columns [j, j + width) of a dense (rows x n) matrix, few enough for the L1 cache.
struct ColumnBlock {
  MapFn fn;
  const std::byte* x;
  std::int64_t n;
  std::size_t item;

  void reduce(std::int64_t j, std::int64_t width, std::int64_t first, std::int64_t last,
              std::byte* out) const {
    PairwiseCascade cascade(fn, width, item);
    for (std::int64_t r = first; r < last; r += block_rows)
      cascade.add_rows(x + static_cast<std::size_t>(r * n + j) * item, std::min(block_rows, last - r),
                       static_cast<std::size_t>(n) * item);
    cascade.finish(out);
  }

  // Splits the rows among threads. Each part has a power of two of groups of rows, so its sum is a subtree of
  // the cascade, and the bits do not depend on the split.
  void reduce_by_parts(std::int64_t j, std::int64_t width, std::int64_t rows, std::byte* out) const {
    const std::int64_t parts = (rows - 1) / rows_of_a_part;
    const std::size_t bytes = static_cast<std::size_t>(width) * item;
    const Bytes partial = scratch((parts + 1) * static_cast<std::int64_t>(bytes));
    share(parts + 1, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        reduce(j, width, p * rows_of_a_part, std::min((p + 1) * rows_of_a_part, rows),
               partial.get() + static_cast<std::size_t>(p) * bytes);
    });
    PairwiseCascade cascade(fn, width, item);
    for (std::int64_t p = 0; p < parts; ++p)
      cascade.add_row(partial.get() + static_cast<std::size_t>(p) * bytes);
    std::memcpy(out, partial.get() + static_cast<std::size_t>(parts) * bytes, bytes);
    cascade.finish_with_rest(out);
  }
};

// out[j] = fn over r of x[r][j]; x is (rows x n) dense, rows > 0.
void reduce_columns(MapFn fn, const std::byte* x, std::int64_t rows, std::int64_t n, std::size_t itemsize,
                    std::byte* out) {
  // With few columns, several rows are joined to one longer row, which is reduced afterwards.
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
  // Threads get narrow blocks. Wider ones keep their running values in the L2 cache, and read longer runs.
  const std::int64_t block_bytes = threads() > 1 ? 16384 : 65536;
  const std::int64_t block_columns =
      std::max<std::int64_t>(block_bytes / static_cast<std::int64_t>(itemsize), 1);
  const std::int64_t blocks = (n + block_columns - 1) / block_columns;
  const ColumnBlock block{fn, x, n, itemsize};
  if (blocks < 4 * threads() && rows >= 2 * rows_of_a_part && threads() > 1) {
    for (std::int64_t j = 0; j < n; j += block_columns)
      block.reduce_by_parts(j, std::min(block_columns, n - j), rows,
                            out + static_cast<std::size_t>(j) * itemsize);
    return;
  }
  share(blocks, worth_a_thread(block_columns * rows * static_cast<std::int64_t>(itemsize)),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t j = begin * block_columns; j < std::min(end * block_columns, n);
               j += block_columns)
            block.reduce(j, std::min(block_columns, n - j), 0, rows,
                         out + static_cast<std::size_t>(j) * itemsize);
        });
}

// Merges 2^k blocks in each part of a row of n elements: the same tree as a single call's, on all threads.
void reduce_long_row(RowReduceFn fn, Dtype dtype, const std::byte* row, std::int64_t n, std::byte* out) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype)), block = row_block(dtype);
  std::int64_t part = block;
  while (part * item < std::int64_t{256} << 10) part *= 2;
  const std::int64_t count = (n - block) / part;  // at least one block remains for the last call
  if (threads() == 1 || count < 2) return fn(row, 1, n, out);
  const Bytes parts = scratch((count + 1) * item);
  const auto at = [&](std::int64_t p) { return parts.get() + p * item; };
  share(count + 1, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      fn(row + p * part * item, 1, p < count ? part : n - count * part, at(p));
  });
  const auto merge = [&](const std::byte* left, const std::byte* right, std::byte* to) {
    alignas(16) std::byte pair[32];
    std::memcpy(pair, left, static_cast<std::size_t>(item));
    std::memcpy(pair + item, right, static_cast<std::size_t>(item));
    fn(pair, 1, 2, to);
  };
  for (std::int64_t step = 1; step < count; step *= 2)
    for (std::int64_t p = 0; p + 2 * step <= count; p += 2 * step) merge(at(p), at(p + step), at(p));
  for (std::int64_t step = 1, end = count; end > 0; step *= 2)  // like the last carries of a counter
    if ((count & step) != 0) merge(at(end -= step), at(count), at(count));
  std::memcpy(out, at(count), static_cast<std::size_t>(item));
}

void reduce_all_rows(RowReduceFn fn, Dtype dtype, const std::byte* data, std::int64_t rows, std::int64_t n,
                     std::byte* out) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  if (rows < threads())
    for (std::int64_t r = 0; r < rows; ++r)
      reduce_long_row(fn, dtype, data + r * n * item, n, out + r * item);
  else
    share(rows, worth_a_thread(n * item), [&](std::int64_t begin, std::int64_t end) {
      fn(data + begin * n * item, end - begin, n, out + begin * item);
    });
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

// Sum, prod, max, min: each pass reduces the innermost reduced run of (outer, rows, inner), until there is
// none.
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
      reduce_all_rows(fn, dtype, data, outer, rows, target);
    } else {
      const MapFn fn = combine_map(kind, dtype);
      const auto reduce_planes = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t o = begin; o < end; ++o)
          reduce_columns(fn, data + static_cast<std::size_t>(o * rows * inner) * item, rows, inner, item,
                         target + static_cast<std::size_t>(o * inner) * item);
      };
      if (outer < 4 * threads())  // each row on all threads
        reduce_planes(0, outer);
      else
        share(outer, worth_a_thread(rows * inner * static_cast<std::int64_t>(item)), reduce_planes);
    }
    if (last) return;
    kept = std::move(next);
    data = kept.get();
  }
}

void count_long_row(RowReduceFn fn, const std::byte* row, std::int64_t item, std::int64_t n, std::byte* out) {
  std::atomic<std::int64_t> total{0};
  share(n, worth_a_thread(item), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t part = 0;
    fn(row + begin * item, 1, end - begin, &part);
    total += part;
  });
  const std::int64_t count = total;
  std::memcpy(out, &count, sizeof count);
}

// The innermost reduced run of (outer, rows, inner), and the runs without it.
struct Pass {
  std::int64_t outer = 1, rows = 1, inner = 1;
  std::vector<Run> others;
};
Pass innermost_pass(std::vector<Run> runs) {
  Pass pass;
  const auto reduced = std::find_if(runs.rbegin(), runs.rend(), [](const Run& run) { return run.reduced; });
  for (auto run = runs.rbegin(); run != reduced; ++run) pass.inner *= run->extent;
  if (reduced != runs.rend()) {
    pass.rows = reduced->extent;
    for (auto run = std::next(reduced); run != runs.rend(); ++run) pass.outer *= run->extent;
    runs.erase(std::next(reduced).base());
  }
  pass.others = std::move(runs);
  return pass;
}

// Counts nonzero elements over the innermost reduced run as int64, then sums the counts.
void count_nonzero(Dtype in, const std::byte* data, std::vector<Run> runs, std::int64_t* out) {
  const auto item = static_cast<std::int64_t>(itemsize(in));
  Pass pass = innermost_pass(runs);
  const ColumnCountFn of_columns = pass.inner > 1 && pass.rows > 1 ? find_column_count(in) : nullptr;
  if (of_columns == nullptr && pass.inner > 1)  // element by element
    pass = {pass.outer * pass.rows * pass.inner, 1, 1, std::move(runs)};
  const Bytes counts = scratch(pass.outer * pass.inner * 8);
  auto* count = reinterpret_cast<std::int64_t*>(counts.get());
  if (of_columns != nullptr) {
    constexpr std::int64_t strip = 2048;
    const std::int64_t strips = (pass.inner + strip - 1) / strip;
    share(pass.outer * strips, worth_a_thread(pass.rows * strip * item),
          [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              const std::int64_t o = i / strips, j = i % strips * strip;
              of_columns(data + (o * pass.rows * pass.inner + j) * item, pass.inner, pass.rows,
                         std::min(strip, pass.inner - j), count + o * pass.inner + j);
            }
          });
  } else {
    const RowReduceFn fn = find_row_reduce(ReduceKind::count_nonzero, in);
    if (pass.outer < threads())
      for (std::int64_t r = 0; r < pass.outer; ++r)
        count_long_row(fn, data + r * pass.rows * item, item, pass.rows, counts.get() + r * 8);
    else
      share(pass.outer, worth_a_thread(pass.rows * item), [&](std::int64_t begin, std::int64_t end) {
        fn(data + begin * pass.rows * item, end - begin, pass.rows, counts.get() + begin * 8);
      });
  }
  reduce_runs(ReduceKind::sum, int64, counts.get(), std::move(pass.others),
              reinterpret_cast<std::byte*>(out));
}

// any and all over everything: reads elements until the result is decided.
bool is_decided(ReduceKind kind, Dtype in, const std::byte* data, std::int64_t n) {
  constexpr std::int64_t piece = 1 << 18;
  const RowReduceFn fn = find_row_reduce(ReduceKind::count_nonzero, in);
  const auto item = static_cast<std::int64_t>(itemsize(in));
  std::atomic<bool> decided{false};
  share(n, worth_a_thread(item), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin, size = 4096; at < end && !decided;
         at += size, size = std::min(2 * size, piece)) {
      const std::int64_t stop = std::min(at + size, end);
      std::int64_t count = 0;
      fn(data + at * item, 1, stop - at, &count);
      if (kind == ReduceKind::any ? count > 0 : count < stop - at) decided = true;
    }
  });
  return decided;
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

// Whether the reduction is computed by counting: any, all, count_nonzero.
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

void extreme_numbers_of_columns(bool max, Dtype dtype, const std::byte* x, ColumnsShape shape,
                                std::byte* out) {
  const MapFn fn = (max ? map<"fmax"> : map<"fmin">).of(dtype);
  const auto item = static_cast<std::int64_t>(itemsize(dtype)), n = shape.columns;
  const auto reduce_planes = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      reduce_columns(fn, x + o * shape.rows * n * item, shape.rows, n, itemsize(dtype), out + o * n * item);
  };
  if (shape.outer < 4 * threads())  // each plane on all threads
    reduce_planes(0, shape.outer);
  else
    share(shape.outer, worth_a_thread(shape.rows * n * item), reduce_planes);
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      T* values = reinterpret_cast<T*>(out);
      const T of_none = max ? lowest<T>() : highest<T>();
      for (std::int64_t i = 0; i < shape.outer * n; ++i)
        if (values[i] != values[i]) values[i] = of_none;
    }
  });
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
  // Bools whose last dim remains: columns of bytes, without a count of 8 bytes each.
  if (in == bool_ && kept > 1 && std::find(axes.begin(), axes.end(), shape.ndim() - 1) == axes.end()) {
    if (kind == ReduceKind::any) kind = ReduceKind::max;
    if (kind == ReduceKind::all) kind = ReduceKind::min;
  }
  if (!is_counted(kind))
    return reduce_runs(kind, in, bytes, runs_of(shape, axes), static_cast<std::byte*>(out));

  if (kept == 1 && kind != ReduceKind::count_nonzero) {
    *static_cast<bool*>(out) = is_decided(kind, in, bytes, reduced) == (kind == ReduceKind::any);
    return;
  }
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
