// NumPy-like text of an array: aligned columns, long dims abbreviated. Only displayed elements are
// communicated.
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <sstream>

#include <tessera/runtime.hpp>

#include "api/evaluate.hpp"
#include "api/print.hpp"
#include "kernels/visit.hpp"
#include "ops/collective/manual.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

constexpr std::int64_t most_elements = 1000, edge_items = 3;
constexpr std::size_t line_width = 75;

constexpr int most_decimals = 8;

struct FloatStyle {
  bool scientific = false;
  int decimals = 0;
};

// The text with the fewest decimals that parses back to v; if most_decimals do not suffice, most_decimals
// without trailing zeros.
std::string shortest_text(double v, bool scientific, bool is_double) {
  char text[400];
  for (int decimals = 0; decimals <= most_decimals; ++decimals) {
    std::snprintf(text, sizeof text, scientific ? "%.*e" : "%.*f", decimals, v);
    if (is_double ? std::strtod(text, nullptr) == v : std::strtof(text, nullptr) == static_cast<float>(v))
      return text;
  }
  std::string result = text, exponent;
  if (const auto e = result.find('e'); e != std::string::npos) exponent = result.substr(e), result.resize(e);
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result + exponent;
}
int decimals_in(const std::string& text) {
  const auto point = text.find('.'), end = std::min(text.find('e'), text.size());
  return point == std::string::npos ? 0 : static_cast<int>(end - point - 1);
}

// As in NumPy: fixed notation with the decimals that the longest number needs (8 at most), scientific if the
// range is large.
FloatStyle style_of(const std::vector<double>& values, bool is_double) {
  FloatStyle style;
  double largest = 0, smallest = INFINITY;
  for (const double v : values) {
    if (!std::isfinite(v) || v == 0) continue;
    largest = std::max(largest, std::fabs(v));
    smallest = std::min(smallest, std::fabs(v));
  }
  style.scientific = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000.0));
  for (const double v : values)
    if (std::isfinite(v))
      style.decimals = std::max(style.decimals, decimals_in(shortest_text(v, style.scientific, is_double)));
  return style;
}
// In fixed notation each number shows the decimals that it needs, padded so that the decimal points align.
std::string float_text(double v, const FloatStyle& style, bool is_double) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  if (style.scientific) {
    char text[400];
    std::snprintf(text, sizeof text, "%#.*e", style.decimals,
                  v);  // '#' keeps the point without decimals
    return text;
  }
  std::string result = shortest_text(v, false, is_double);
  const int decimals = decimals_in(result);
  if (decimals == 0) result += ".";
  return result + std::string(style.decimals - decimals, ' ');
}

// A single number as Python shows it: all its digits, 1.0 and not "1.", and an exponent if the number is very
// large or small.
template <class T> std::string scalar_text(T v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  const auto size = std::abs(static_cast<double>(v));
  const bool fixed = v == 0 || (size >= 1e-4 && size < 1e16);
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string result(text, end);
  if (!fixed || result.find('.') != std::string::npos) return result;
  // Drops the meaningless digits of a large float: 100000000.0, not 99999997.0.
  const auto digits = std::to_chars(text, text + sizeof text, v, std::chars_format::scientific).ptr;
  *digits = '\0';
  const auto e = std::find(text, digits, 'e');
  std::string shortest;
  std::copy_if(text, e, std::back_inserter(shortest), [](char c) { return c != '.'; });
  const auto places =
      static_cast<std::size_t>(std::atoi(e + 1)) + (v < 0 ? 2 : 1);  // before the point, and the sign
  shortest.resize(std::max(shortest.size(), places), '0');
  return shortest + ".0";
}
// The number with the fewest digits that rounds to v in its type.
template <class Half> double shortest_decimal(Half v) {
  char text[32];
  for (int digits = 0;; ++digits) {
    std::snprintf(text, sizeof text, "%.*e", digits, static_cast<double>(v));
    const double decimal = std::strtod(text, nullptr);
    if (Half(decimal) == v || !std::isfinite(decimal)) return decimal;
  }
}
std::string scalar_text(bfloat16_t v) { return scalar_text(shortest_decimal(v)); }
std::string scalar_text(float16_t v) { return scalar_text(shortest_decimal(v)); }
template <class T> std::string scalar_text(std::complex<T> v) {
  std::string re = scalar_text(v.real()), im = scalar_text(v.imag());
  for (auto* part : {&re, &im})
    if (part->ends_with(".0")) part->resize(part->size() - 2);
  return "(" + re + (im[0] == '-' ? "" : "+") + im + "j)";
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// Texts of all values in one style, so that they align.
std::vector<std::string> float_texts(const std::vector<double>& values, bool is_double) {
  const auto style = style_of(values, is_double);
  std::vector<std::string> texts;
  for (const double v : values) texts.push_back(float_text(v, style, is_double));
  return texts;
}

template <class Half> std::vector<std::string> half_texts(std::span<const Half> values) {
  std::vector<double> decimals;
  for (const Half v : values) decimals.push_back(shortest_decimal(v));
  return float_texts(decimals, true);
}

template <class R> std::vector<std::string> complex_texts(std::span<const std::complex<R>> values) {
  std::vector<double> re, im;
  for (const auto& v : values) re.push_back(v.real()), im.push_back(v.imag());
  const bool is_double = std::is_same_v<R, double>;
  const auto real_texts = float_texts(re, is_double), imag_texts = float_texts(im, is_double);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto part = trimmed(imag_texts[i]);  // the j follows the number directly
    texts.push_back(real_texts[i] + (part[0] == '-' ? "" : "+") + part + "j" +
                    std::string(imag_texts[i].size() - part.size(), ' '));
  }
  return texts;
}

// nullopt if the spec does not apply to elements of this type: {:x} of a float.
template <class T> std::optional<std::string> element_text(T x, const FormatSpec& spec) {
  if constexpr (std::is_same_v<T, bool>)
    return formatted(spec, std::string_view(x ? "True" : "False"));
  else if constexpr (kernels::is_complex_type<T>)
    return formatted(spec, std::complex<double>(x));
  else if constexpr (std::is_floating_point_v<T> || kernels::is_half_type<T>)
    return formatted(spec, static_cast<double>(x));
  else if constexpr (std::is_signed_v<T>)
    return formatted(spec, std::int64_t{x});
  else
    return formatted(spec, std::uint64_t{x});
}

std::vector<std::string> element_texts(const HostArray& host, const FormatSpec& spec) {
  std::vector<std::string> texts;
  kernels::visit_stored(host.dtype(), [&]<class T>(T) {
    for (std::int64_t i = 0; i < host.size(); ++i)
      if constexpr (std::is_same_v<T, bool>)
        texts.push_back(element_text(host.bytes()[i] != std::byte{0}, spec).value());
      else
        texts.push_back(element_text(host.as<T>()[i], spec).value());
  });
  return texts;
}

std::vector<std::string> element_texts(const HostArray& host) {
  return kernels::visit_stored(host.dtype(), [&]<class T>(T) -> std::vector<std::string> {
    std::vector<std::string> texts;
    if constexpr (std::is_same_v<T, bool>) {
      for (std::int64_t i = 0; i < host.size(); ++i)
        texts.push_back(host.bytes()[i] != std::byte{0} ? "True" : "False");
    } else if constexpr (std::is_integral_v<T>) {
      for (const T v : host.as<T>()) texts.push_back(std::to_string(v));
    } else {
      const auto values = host.as<T>();
      if (host.shape().empty()) return {scalar_text(values[0])};
      if constexpr (kernels::is_complex_type<T>)
        texts = complex_texts(values);
      else if constexpr (kernels::is_half_type<T>)
        texts = half_texts(values);
      else
        texts = float_texts({values.begin(), values.end()}, std::is_same_v<T, double>);
    }
    return texts;
  });
}

// The dims of a large array whose middle is omitted.
std::vector<bool> cut_dims(const Shape& shape) {
  std::vector<bool> cut;
  const bool is_large = shape.elements() > most_elements;
  for (const auto n : shape) cut.push_back(is_large && n > 2 * edge_items);
  return cut;
}
// The array with edge_items at both ends of each cut dim.
Array corners(Array x, const std::vector<bool>& cut) {
  for (int d = 0; d < x.ndim(); ++d) {
    if (!cut[d]) continue;
    const auto n = x.shape()[d];
    std::vector<IndexPart> head, tail;
    for (int k = 0; k < d; ++k) head.emplace_back(slice()), tail.emplace_back(slice());
    head.emplace_back(slice(None, edge_items));
    tail.emplace_back(slice(n - edge_items, None));
    x = concatenate({index(x, head), index(x, tail)}, d);
  }
  return x;
}
HostArray corners(const HostArray& x, const std::vector<bool>& cut) {
  const auto item = itemsize(x.dtype());
  Shape extents = x.shape();
  for (std::size_t d = 0; d < cut.size(); ++d)
    if (cut[d]) extents[d] = 2 * edge_items;
  HostArray shown{extents, x.dtype()};
  for (std::int64_t i = 0; i < shown.size(); ++i) {
    std::int64_t rest = i, from = 0, stride = 1;
    for (std::size_t d = extents.size(); d-- > 0; stride *= x.shape()[d]) {
      const auto place = rest % extents[d];
      rest /= extents[d];
      from += stride * (cut[d] && place >= edge_items ? x.shape()[d] - 2 * edge_items + place : place);
    }
    std::memcpy(shown.bytes() + i * item, x.bytes() + from * item, item);
  }
  return shown;
}

class Printer {
 public:
  Printer(Shape shape, std::vector<bool> cut, std::vector<std::string> texts)
      : shape_(std::move(shape)), cut_(std::move(cut)), texts_(std::move(texts)) {
    for (const auto& text : texts_) width_ = std::max(width_, text.size());
  }
  std::string text() {
    if (shape_.empty()) return texts_[0];
    write(0);
    return out_;
  }

 private:
  // Writes the innermost dim: words separated by spaces, wrapped to lines that begin below the first word.
  void write_row(std::size_t d) {
    std::size_t column = d + 1;  // column of the current line
    const auto put = [&](const std::string& word, bool is_first) {
      if (!is_first && column + 1 + word.size() + d + 1 > line_width) {
        out_ = trimmed(std::move(out_)) + "\n" + std::string(d + 1, ' ');
        column = d + 1;
      } else if (!is_first) {
        out_ += " ", ++column;
      }
      out_ += word;
      column += word.size();
    };
    for (std::int64_t i = 0; i < shape_[d]; ++i) {
      const auto& text = texts_[next_++];
      put(std::string(width_ - text.size(), ' ') + text, i == 0);
      if (cut_[d] && i + 1 == edge_items) put("...", false);
    }
  }
  void write(std::size_t d) {
    out_ += "[";
    const std::string between = std::string(shape_.size() - 1 - d, '\n') + std::string(d + 1, ' ');
    if (d + 1 == shape_.size())
      write_row(d);
    else
      for (std::int64_t i = 0; i < shape_[d]; ++i) {
        if (i > 0) out_ += between;
        write(d + 1);
        if (cut_[d] && i + 1 == edge_items) out_ += between + "...";
      }
    out_ += "]";
  }

  Shape shape_;
  std::vector<bool> cut_;
  std::vector<std::string> texts_;
  std::size_t width_ = 0, next_ = 0;
  std::string out_;
};

}  // namespace

namespace {

// Inside a mapped function every rank has its own value: shows all of them, stacked in mesh order.
std::string text_of_blocks(Array x, const FormatSpec* spec) {
  const Mesh mesh = x.node()->region->mesh;
  if (x.node()->region->uneven) return "Block<" + describe(x) + ">";
  std::string names;
  while (const RegionPtr region = x.node()->region) {
    x = expand_dims(x, 0);
    Shape extents = x.shape();
    const auto axes = own_axes(*region);
    extents[0] = devices_along(mesh, axes);
    std::string own;
    for (const int a : axes) own += (own.empty() ? "" : ", ") + mesh.axis_names()[a];
    names = own + (names.empty() ? "" : ", " + names);
    x = exit_region(x, region, {axes}, extents);
  }
  return "blocks of the ranks along " + names + ":\n" + array_text(x, spec);
}

std::string text_of_shown(const HostArray& shown, std::vector<bool> cut, const FormatSpec* spec) {
  return Printer(shown.shape(), std::move(cut), spec ? element_texts(shown, *spec) : element_texts(shown))
      .text();
}
std::string text_of_empty(const Shape& shape) {
  return "[]" + std::string(shape.ndim() > 1 ? " of shape " + to_string(shape) : "");
}

}  // namespace

bool takes_format(Dtype dtype, const FormatSpec& spec) {
  return kernels::visit_stored(dtype, [&]<class T>(T) { return element_text(T(), spec).has_value(); });
}

std::string host_text(const HostArray& x, const FormatSpec* spec) {
  if (x.size() == 0) return text_of_empty(x.shape());
  auto cut = cut_dims(x.shape());
  const HostArray shown = corners(x, cut);
  return text_of_shown(shown, std::move(cut), spec);
}

std::string array_text(const Array& x, const FormatSpec* spec) {
  check_usable(x);
  if (x.node()->has_placeholder) detail::check_not_leaked(x);
  if (x.node()->has_placeholder) return "Traced<" + describe(x) + ">";
  if (x.node()->region) return text_of_blocks(x, spec);
  evaluate({x});
  if (x.size() == 0) return text_of_empty(x.shape());
  auto cut = cut_dims(x.shape());
  const HostArray shown = to_host(corners(x, cut));
  return text_of_shown(shown, std::move(cut), spec);
}

std::string to_string(const Array& x, std::source_location where) {
  const Call call("to_string", where);
  return array_text(x, nullptr);
}

void print(const Array& x, std::source_location where) {
  const Call call("print", where);
  const std::string text = to_string(x);
  if (is_main_process()) std::cout << text << std::endl;
}

std::ostream& operator<<(std::ostream& out, const Array& x) {
  return out << to_string(x, std::source_location());
}

}  // namespace tessera
