#include <tessera/error.hpp>

#include <cstring>
#include <string>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

bool inside(std::int64_t index, std::int64_t extent) { return index >= 0 && index < extent; }

// take_items: one item per index. Item types only move bytes.
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
  for (std::int64_t o = 0; o < view.outer; ++o) {
    auto* to = static_cast<std::byte*>(dst) + static_cast<std::size_t>(o * n) * row_bytes;
    const auto* from =
        static_cast<const std::byte*>(src) + static_cast<std::size_t>(o * view.extent) * row_bytes;
    if (view.inner == 1) {
      visit_item(itemsize, [&]<class T>(T) {
        take_items(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), view.extent, indices.data(),
                   n);
      });
      continue;
    }
    for (const std::int64_t index : indices) {
      if (inside(index, view.extent))
        std::memcpy(to, from + static_cast<std::size_t>(index) * row_bytes, row_bytes);
      else
        std::memset(to, 0, row_bytes);
      to += row_bytes;
    }
  }
}

void scatter(std::string_view op, Dtype dtype, void* dst, AxisView view,
             std::span<const std::int64_t> indices, const void* src) {
  const auto row_bytes = static_cast<std::size_t>(view.inner) * itemsize(dtype);
  const RowUpdate update{scatter_map(op, dtype), op == "set", row_bytes, view.inner};
  const auto n = static_cast<std::int64_t>(indices.size());
  if (view.inner == 1 && op == "add") {
    visit(dtype, [&]<class T>(T) {
      for (std::int64_t o = 0; o < view.outer; ++o) {
        T* to = static_cast<T*>(dst) + o * view.extent;
        const T* from = static_cast<const T*>(src) + o * n;
        for (std::int64_t i = 0; i < n; ++i)
          if (const std::int64_t at = indices[i]; inside(at, view.extent)) to[at] = added(to[at], from[i]);
      }
    });
    return;
  }
  for (std::int64_t o = 0; o < view.outer; ++o) {
    auto* to = static_cast<std::byte*>(dst) + static_cast<std::size_t>(o * view.extent) * row_bytes;
    const auto* from = static_cast<const std::byte*>(src) + static_cast<std::size_t>(o * n) * row_bytes;
    for (const std::int64_t index : indices) {
      if (inside(index, view.extent)) update(to + static_cast<std::size_t>(index) * row_bytes, from);
      from += row_bytes;
    }
  }
}

void gather_along(void* dst, const void* src, AxisView view, const std::int64_t* indices, std::int64_t n,
                  std::size_t itemsize) {
  visit_item(itemsize, [&]<class T>(T) {
    auto* to = static_cast<T*>(dst);
    for (std::int64_t o = 0; o < view.outer; ++o) {
      const T* from = static_cast<const T*>(src) + o * view.extent * view.inner;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < view.inner; ++j, ++to, ++indices)
          *to = inside(*indices, view.extent) ? from[*indices * view.inner + j] : T{};
    }
  });
}

void scatter_along(std::string_view op, Dtype dtype, void* dst, AxisView view, const std::int64_t* indices,
                   std::int64_t n, const void* src) {
  const std::size_t item = itemsize(dtype);
  const RowUpdate update{scatter_map(op, dtype), op == "set", item, 1};
  const auto* from = static_cast<const std::byte*>(src);
  for (std::int64_t o = 0; o < view.outer; ++o) {
    auto* to = static_cast<std::byte*>(dst) + static_cast<std::size_t>(o * view.extent * view.inner) * item;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < view.inner; ++j, from += item, ++indices)
        if (inside(*indices, view.extent))
          update(to + static_cast<std::size_t>(*indices * view.inner + j) * item, from);
  }
}

namespace {
template <class Number> void iota_of(Dtype dtype, void* out, std::int64_t n, Number start, Number step) {
  visit(dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(out);
    for (std::int64_t i = 0; i < n; ++i) {
      const Number value =
          std::is_integral_v<Number>
              ? static_cast<Number>(static_cast<std::uint64_t>(start) +
                                    static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step))
              : start + static_cast<Number>(i) * step;
      if constexpr (is_complex_type<T>)
        to[i] = T(static_cast<typename T::value_type>(value));
      else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        to[i] = static_cast<T>(static_cast<std::int64_t>(value));
      else
        to[i] = static_cast<T>(value);
    }
  });
}
}  // namespace

void iota(Dtype dtype, void* out, std::int64_t n, std::int64_t start, std::int64_t step) {
  iota_of(dtype, out, n, start, step);
}
void iota(Dtype dtype, void* out, std::int64_t n, double start, double step) {
  iota_of(dtype, out, n, start, step);
}

}  // namespace tessera::kernels
