#include <tessera/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/move/positions.hpp"
#include "kernels/parallel.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

bool inside(std::int64_t index, std::int64_t extent) {
  return static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(extent);
}

// Copies one item per index (take_items). Types matter by their size only.
template <class T>
void take_items(T* dst, const T* src, std::int64_t extent, const std::int64_t* indices, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = inside(indices[i], extent) ? src[indices[i]] : T{};
}

template <class F> void visit_item(std::size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(std::complex<double>{});
  }
}

MapFn scatter_map(std::string_view op, Dtype dtype) {
  const Map* merge = op == "set"        ? &map<"copy">
                     : op == "add"      ? &map<"add">
                     : op == "multiply" ? &map<"multiply">
                     : op == "min"      ? &map<"minimum">
                     : op == "max"      ? &map<"maximum">
                                        : nullptr;
  const MapFn fn = merge == nullptr ? nullptr : merge->of(dtype);
  if (fn == nullptr)
    throw InternalError("kernels::scatter: there is no op '" + std::string(op) + "' on " + name(dtype));
  return fn;
}

// dst = dst op src for rows of `inner` items.
struct RowUpdate {
  MapFn fn;
  bool set;
  std::size_t bytes;
  std::int64_t inner;
  void operator()(std::byte* dst, const std::byte* src) const {
    if (set) {
      std::memcpy(dst, src, bytes);
      return;
    }
    const void* in[] = {dst, src};
    fn(in, dst, inner);
  }
};

template <class T> T added(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, bool>)
    return a | b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

}  // namespace

AxisView axis_view(const Shape& shape, int axis) {
  AxisView view;
  for (int d = 0; d < shape.ndim(); ++d)
    (d < axis ? view.outer : d == axis ? view.extent : view.inner) *= shape[d];
  return view;
}

void gather(void* dst, const void* src, AxisView view, std::span<const std::int64_t> indices,
            std::size_t itemsize) {
  const auto n = static_cast<std::int64_t>(indices.size());
  const auto row_bytes = static_cast<std::size_t>(view.inner) * itemsize;
  // Copies the rows of indices [first, last) for one outer index.
  const auto take = [&](std::int64_t o, std::int64_t first, std::int64_t last) {
    auto* to = static_cast<std::byte*>(dst) + static_cast<std::size_t>(o * n + first) * row_bytes;
    const auto* from =
        static_cast<const std::byte*>(src) + static_cast<std::size_t>(o * view.extent) * row_bytes;
    if (view.inner == 1)
      return visit_item(itemsize, [&]<class T>(T) {
        take_items(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), view.extent,
                   indices.data() + first, last - first);
      });
    for (std::int64_t i = first; i < last; ++i, to += row_bytes) {
      if (inside(indices[i], view.extent))
        std::memcpy(to, from + static_cast<std::size_t>(indices[i]) * row_bytes, row_bytes);
      else
        std::memset(to, 0, row_bytes);
    }
  };
  share(view.outer * n, worth_a_thread(static_cast<std::int64_t>(row_bytes)),
        [&](std::int64_t begin, std::int64_t end) {
          while (begin < end) {
            const std::int64_t o = begin / n, last = std::min(end, (o + 1) * n);
            take(o, begin - o * n, last - o * n);
            begin = last;
          }
        });
}

void scatter(std::string_view op, Dtype dtype, void* dst, AxisView view,
             std::span<const std::int64_t> indices, const void* src) {
  const auto row_bytes = static_cast<std::size_t>(view.inner) * itemsize(dtype);
  const RowUpdate update{scatter_map(op, dtype), op == "set", row_bytes, view.inner};
  const auto n = static_cast<std::int64_t>(indices.size());
  // Each thread owns a range of the destination and goes through all indices, so that updates of one element
  // stay in order.
  const auto update_places = [&](std::int64_t o, std::int64_t first, std::int64_t last) {
    const auto is_mine = [&](std::int64_t index) { return index >= first && index < last; };
    if (view.inner == 1 && op == "add")
      return visit(dtype, [&]<class T>(T) {
        T* to = static_cast<T*>(dst) + o * view.extent;
        const T* from = static_cast<const T*>(src) + o * n;
        for (std::int64_t i = 0; i < n; ++i)
          if (const std::int64_t at = indices[i]; is_mine(at)) to[at] = added(to[at], from[i]);
      });
    auto* to = static_cast<std::byte*>(dst) + static_cast<std::size_t>(o * view.extent) * row_bytes;
    const auto* from = static_cast<const std::byte*>(src) + static_cast<std::size_t>(o * n) * row_bytes;
    if (view.inner == 1 && op == "set")
      return visit_item(itemsize(dtype), [&]<class T>(T) {
        for (std::int64_t i = 0; i < n; ++i)
          if (is_mine(indices[i])) reinterpret_cast<T*>(to)[indices[i]] = reinterpret_cast<const T*>(from)[i];
      });
    for (std::int64_t i = 0; i < n; ++i, from += row_bytes)
      if (is_mine(indices[i])) update(to + static_cast<std::size_t>(indices[i]) * row_bytes, from);
  };
  const std::int64_t places = view.outer * view.extent, updates = view.outer * n;
  const auto least = std::max(worth_a_thread(static_cast<std::int64_t>(row_bytes)) *
                                  std::max<std::int64_t>(places / std::max<std::int64_t>(updates, 1), 1),
                              std::int64_t{1});
  share(places, least, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t o = begin / view.extent, last = std::min(end, (o + 1) * view.extent);
      update_places(o, begin - o * view.extent, last - o * view.extent);
      begin = last;
    }
  });
}

namespace {
template <class T> void repeat_items(T* dst, const T* src, std::int64_t extent, std::int64_t n) {
  if (n == 2)
    for (std::int64_t i = 0; i < extent; ++i) dst[2 * i] = dst[2 * i + 1] = src[i];
  else
    for (std::int64_t i = 0; i < extent; ++i, dst += n) std::fill_n(dst, n, src[i]);
}
}  // namespace

void repeat(void* dst, const void* src, std::int64_t extent, std::int64_t n, std::size_t itemsize) {
  visit_item(itemsize, [&]<class T>(T) {
    share(extent, worth_a_thread(n * static_cast<std::int64_t>(sizeof(T))),
          [&](std::int64_t begin, std::int64_t end) {
            repeat_items(static_cast<T*>(dst) + begin * n, static_cast<const T*>(src) + begin, end - begin,
                         n);
          });
  });
}

namespace {
// Elements [first, last) of a (outer, n, inner) result, all of one outer index. src: its part of the operand.
template <class T> void take_along(T* dst, const T* src, std::int64_t inner, const IndexArray& indices,
                                   std::int64_t first, std::int64_t last) {
  constexpr std::int64_t piece = 1024;
  std::int64_t positions[piece];
  const auto* index = static_cast<const std::byte*>(indices.data);
  for (std::int64_t column = 0; first < last; first += piece) {
    const auto size = std::min(piece, last - first);
    find_positions(indices.dtype, index + static_cast<std::size_t>(first) * itemsize(indices.dtype), size,
                   indices.dim, positions);
    if (inner == 1) {
      for (std::int64_t i = 0; i < size; ++i) dst[first + i] = positions[i] < 0 ? T{} : src[positions[i]];
      continue;
    }
    for (std::int64_t i = 0; i < size; ++i) {
      dst[first + i] = positions[i] < 0 ? T{} : src[positions[i] * inner + column];
      if (++column == inner) column = 0;
    }
  }
}
}  // namespace

void gather_along(void* dst, const void* src, AxisView view, const IndexArray& indices, std::int64_t n,
                  std::size_t itemsize) {
  const auto outer_bytes = static_cast<std::size_t>(view.extent * view.inner) * itemsize;
  visit_item(itemsize, [&]<class T>(T) {
    share(view.outer * n, worth_a_thread(view.inner * static_cast<std::int64_t>(sizeof(T))),
          [&](std::int64_t begin, std::int64_t end) {
            while (begin < end) {
              const std::int64_t o = begin / n, last = std::min(end, (o + 1) * n);
              const auto* from =
                  static_cast<const std::byte*>(src) + static_cast<std::size_t>(o) * outer_bytes;
              take_along(static_cast<T*>(dst), reinterpret_cast<const T*>(from), view.inner, indices,
                         begin * view.inner, last * view.inner);
              begin = last;
            }
          });
  });
}

void scatter_along(std::string_view op, Dtype dtype, void* dst, AxisView view, const std::int64_t* indices,
                   std::int64_t n, const void* src) {
  const std::size_t item = itemsize(dtype);
  const RowUpdate update{scatter_map(op, dtype), op == "set", item, 1};
  share(view.outer, worth_a_thread(n * view.inner * static_cast<std::int64_t>(item)),
        [&](std::int64_t first, std::int64_t last) {
          const auto* from =
              static_cast<const std::byte*>(src) + static_cast<std::size_t>(first * n * view.inner) * item;
          const std::int64_t* index = indices + first * n * view.inner;
          for (std::int64_t o = first; o < last; ++o) {
            auto* to =
                static_cast<std::byte*>(dst) + static_cast<std::size_t>(o * view.extent * view.inner) * item;
            for (std::int64_t i = 0; i < n; ++i)
              for (std::int64_t j = 0; j < view.inner; ++j, from += item, ++index)
                if (inside(*index, view.extent))
                  update(to + static_cast<std::size_t>(*index * view.inner + j) * item, from);
          }
        });
}

namespace {
// Element i is start + (first + i) step whichever block computes it, so that its last bit does not depend on
// the layout.
template <class Number>
void iota_of(Dtype dtype, void* out, std::int64_t n, Number start, Number step, std::int64_t first) {
  visit_stored(dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(out);
    share(n, worth_a_thread(sizeof(T)), [&](std::int64_t begin, std::int64_t end) {
      if constexpr (std::is_integral_v<Number> && std::is_integral_v<T> && sizeof(T) == 4) {
        const auto rise = static_cast<std::uint32_t>(step);  // what wraps at 2^64 wraps at 2^32
        const auto base = static_cast<std::uint32_t>(start) + static_cast<std::uint32_t>(first) * rise;
        for (std::int64_t i = begin; i < end; ++i)
          to[i] = static_cast<T>(base + static_cast<std::uint32_t>(i) * rise);
        return;
      }
      for (std::int64_t i = begin; i < end; ++i) {
        const Number value = std::is_integral_v<Number>
                                 ? static_cast<Number>(static_cast<std::uint64_t>(start) +
                                                       static_cast<std::uint64_t>(first + i) *
                                                           static_cast<std::uint64_t>(step))
                                 : start + static_cast<Number>(first + i) * step;
        if constexpr (is_complex_type<T>)
          to[i] = T(static_cast<typename T::value_type>(value));
        else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
          to[i] = static_cast<T>(static_cast<std::int64_t>(value));
        else
          to[i] = static_cast<T>(value);
      }
    });
  });
}
}  // namespace

void iota(Dtype dtype, void* out, std::int64_t n, std::int64_t start, std::int64_t step, std::int64_t first) {
  iota_of(dtype, out, n, start, step, first);
}
void iota(Dtype dtype, void* out, std::int64_t n, double start, double step, std::int64_t first) {
  iota_of(dtype, out, n, start, step, first);
}

}  // namespace tessera::kernels
