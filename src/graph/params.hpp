// The attributes of a recorded op. An op declares a plain struct and lists its members once, in fields();
// equality, hash and text are derived from it.
//
//   struct RollParams { std::int64_t shift; int dim;
//     template <class V> void fields(V&& visit) const { visit("shift", shift); visit("dim", dim); } };
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace tessera {

// Hash, equality and text of every member type that occurs in a params struct.
template <class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) std::uint64_t field_hash(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
inline std::uint64_t field_hash(std::complex<double> v) {
  return mix(field_hash(v.real()), field_hash(v.imag()));
}
inline std::uint64_t field_hash(Dtype d) { return static_cast<std::uint64_t>(d.code); }
inline std::uint64_t field_hash(const std::string& s) { return hash_bytes(s.data(), s.size()); }
inline std::uint64_t field_hash(const Sharding& s) { return s.hash(); }
inline std::uint64_t field_hash(const Mesh& m) { return m.hash(); }
inline std::uint64_t field_hash(const Shape& s);
inline std::uint64_t field_hash(const Range& r) {
  return mix(static_cast<std::uint64_t>(r.start), static_cast<std::uint64_t>(r.stop));
}
template <class A, class B> std::uint64_t field_hash(const std::pair<A, B>& p);
template <class T> std::uint64_t field_hash(const std::vector<T>& values);
template <class T> std::uint64_t field_hash(const std::optional<T>& value) {
  return value ? mix(1, field_hash(*value)) : 0;
}
template <class A, class B> std::uint64_t field_hash(const std::pair<A, B>& p) {
  return mix(field_hash(p.first), field_hash(p.second));
}
template <class T> std::uint64_t field_hash(const std::vector<T>& values) {
  std::uint64_t h = values.size();
  for (const auto& v : values) h = mix(h, field_hash(static_cast<const T&>(v)));  // T: bool for its bits
  return h;
}
inline std::uint64_t field_hash(const Shape& s) {
  std::uint64_t h = s.size();
  for (const auto extent : s) h = mix(h, field_hash(extent));
  return h;
}

// Compares by value; numbers by their bits, so that 0 differs from -0 and a NaN equals itself.
template <class T> bool same_field(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::memcmp(&a, &b, sizeof a) == 0;
  else
    return a == b;
}
inline bool same_field(std::complex<double> a, std::complex<double> b) {
  return same_field(a.real(), b.real()) && same_field(a.imag(), b.imag());
}
template <class T> bool same_field(const std::vector<T>& a, const std::vector<T>& b);
template <class T> bool same_field(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same_field(*a, *b));
}
template <class A, class B> bool same_field(const std::pair<A, B>& a, const std::pair<A, B>& b) {
  return same_field(a.first, b.first) && same_field(a.second, b.second);
}
template <class T> bool same_field(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const T& x, const T& y) { return same_field(x, y); });
}

template <class T>
requires(std::is_arithmetic_v<T>) std::string field_text(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else {
    std::ostringstream text;
    text << +value;
    return text.str();
  }
}
template <class T>
requires(std::is_enum_v<T>) std::string field_text(T value) {
  return std::to_string(static_cast<int>(value));
}
inline std::string field_text(std::complex<double> v) {
  std::ostringstream text;
  text << v.real();
  if (v.imag() != 0) text << (v.imag() < 0 ? "" : "+") << v.imag() << "j";
  return text.str();
}
inline std::string field_text(Dtype d) { return short_name(d); }
inline std::string field_text(const std::string& s) { return s; }
inline std::string field_text(const Shape& s) { return to_string(s); }
inline std::string field_text(const Range& r) {
  return std::to_string(r.start) + ":" + std::to_string(r.stop);
}
inline std::string field_text(const Sharding& s) {
  std::ostringstream text;
  text << s;
  return text.str();
}
inline std::string field_text(const Mesh& m) {
  std::ostringstream text;
  text << m;
  return text.str();
}
template <class T> std::string field_text(const std::vector<T>& values);
template <class T> std::string field_text(const std::optional<T>& value) {
  return value ? field_text(*value) : "none";
}
template <class A, class B> std::string field_text(const std::pair<A, B>& p) {
  return "(" + field_text(p.first) + "," + field_text(p.second) + ")";
}
template <class T> std::string field_text(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + field_text(T(values[i]));
  return text + "]";
}

// Whether two params list the same fields with the same values.
template <class P> bool same_fields(const P& a, const P& b) {
  int count_a = 0, count_b = 0, same = 0;
  b.fields([&](const char*, const auto&) { ++count_b; });
  a.fields([&](const char*, const auto& mine) {
    int at = 0;
    b.fields([&](const char*, const auto& theirs) {
      if constexpr (std::is_same_v<decltype(mine), decltype(theirs)>)
        if (at == count_a && same_field(mine, theirs)) ++same;
      ++at;
    });
    ++count_a;
  });
  return count_a == count_b && same == count_a;
}

// The base class through which a node holds its params.
class Params {
 public:
  virtual ~Params() = default;
  virtual std::uint64_t hash() const { return 0; }
  // Hash of the members that must agree on all ranks.
  virtual std::uint64_t agreed_hash() const { return hash(); }
  virtual bool equals(const Params& other) const { return typeid(other) == typeid(*this); }  // by value
  virtual std::string text() const { return ""; }  // "shift=3 dim=1"
  template <class P> const P& as() const;
};

template <class P> class ParamsOf final : public Params {
 public:
  explicit ParamsOf(P value) : value(std::move(value)) {
    this->value.fields([&](const char*, const auto& field) { hash_ = mix(hash_, field_hash(field)); });
  }
  std::uint64_t hash() const override { return hash_; }
  std::uint64_t agreed_hash() const override {
    if constexpr (requires { value.agreed_hash(); })
      return value.agreed_hash();
    else
      return hash_;
  }
  bool equals(const Params& other) const override {
    if (&other == this) return true;
    return other.hash() == hash_ && typeid(other) == typeid(*this) &&
           same_fields(value, static_cast<const ParamsOf&>(other).value);
  }
  std::string text() const override {
    std::string text;
    value.fields([&](const char* name, const auto& field) {
      text += (text.empty() ? "" : " ") + std::string(name) + "=" + field_text(field);
    });
    return text;
  }
  P value;

 private:
  std::uint64_t hash_ = 0x51ed270b;
};

template <class P> const P& Params::as() const { return static_cast<const ParamsOf<P>&>(*this).value; }
using ParamsPtr = std::shared_ptr<const Params>;
template <class P> ParamsPtr make_params(P value) {
  return std::make_shared<const ParamsOf<P>>(std::move(value));
}
ParamsPtr no_params();
inline bool same_params(const ParamsPtr& a, const ParamsPtr& b) { return a == b || a->equals(*b); }

}  // namespace tessera
