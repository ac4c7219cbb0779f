#include <tessera/dtype.hpp>
#include <tessera/error.hpp>

#include <array>
#include <ostream>

namespace tessera {
namespace {
constexpr std::array<const char*, dtype_count> names = {
    "bool",   "int8",    "int16",   "int32",     "int64",      "uint8",    "uint16", "uint32",
    "uint64", "float32", "float64", "complex64", "complex128", "bfloat16", "float16"};
constexpr std::array<const char*, dtype_count> short_names = {
    "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128", "bf16", "f16"};
}  // namespace

std::string name(Dtype d) { return names.at(d.code); }
std::string short_name(Dtype d) { return short_names.at(d.code); }
std::ostream& operator<<(std::ostream& out, Dtype d) { return out << name(d); }

Dtype dtype_from_name(const std::string& text) {
  std::string known;
  for (int code = 0; code < dtype_count; ++code) {
    const auto i = static_cast<std::size_t>(code);
    if (text == names[i] || text == short_names[i]) return Dtype{code};
    known += (code ? ", " : "") + std::string(names[i]);
  }
  throw ArgumentError("unknown dtype '" + text + "'; tessera has " + known);
}

}  // namespace tessera
