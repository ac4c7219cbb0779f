// debug::print and debug::callback: run at once, or as an effect of a traced function.
#include <tessera/debug.hpp>
#include <tessera/runtime.hpp>

#include <cstdio>
#include <cstring>

#include "api/print.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "comm/watch/failure.hpp"
#include "ops/effect/effect.hpp"

namespace tessera::debug {
namespace {

// A placeholder with its format spec, or the text between two placeholders.
struct FormatPart {
  std::string text;
  bool is_placeholder = false;
  std::optional<FormatSpec> spec = {};
};
using FormatParts = std::vector<FormatPart>;
using Value = decltype(Printed::value);

[[noreturn]] void refuse(const std::string& format, const std::string& why) {
  throw ArgumentError(call_text() + ": " + in_quotes(format) + " " + why);
}

// Parses a placeholder from after its opening brace to after the closing one.
FormatPart placeholder_at(const std::string& format, std::size_t& i) {
  const auto end = format.find('}', i);
  const bool is_short = end == i;
  if (end == std::string::npos || (!is_short && format[i] != ':'))
    throw ArgumentError(call_text() + ": a single '{' at byte " + std::to_string(i - 1) + " of " +
                        in_quotes(format) + "; write {} or {:.3f} for an argument and {{ or }} for a brace");
  FormatPart piece{{}, true};
  if (!is_short && end > i + 1) {
    const auto text = format.substr(i + 1, end - i - 1);
    piece.spec = parse_format_spec(text);
    if (!piece.spec)
      refuse(format,
             "has the format " + in_quotes(text) +
                 ", which is none: write [[fill]align][sign][#][0][width][.precision][type], as {:>8.3f}");
  }
  i = end;
  return piece;
}

FormatParts pieces_of(const std::string& format) {
  FormatParts pieces{{}};
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool doubled = i + 1 < format.size() && format[i] == format[i + 1];
    if ((format[i] == '{' || format[i] == '}') && doubled) {
      pieces.back().text += format[i++];
    } else if (format[i] == '{') {
      pieces.push_back(placeholder_at(format, ++i));
      pieces.emplace_back();
    } else if (format[i] == '}') {
      throw ArgumentError(call_text() + ": a single '}' at byte " + std::to_string(i) + " of " +
                          in_quotes(format) +
                          "; write {} or {:.3f} for an argument and {{ or }} for a brace");
    } else {
      pieces.back().text += format[i];
    }
  }
  return pieces;
}

void check_count(const std::string& format, const FormatParts& pieces, std::size_t arguments) {
  const auto used = pieces.size() / 2;
  if (used != arguments)
    refuse(format, "has " + format_count(static_cast<std::int64_t>(used), "placeholder") + ", but " +
                       format_count(static_cast<std::int64_t>(arguments), "argument") + " follow" +
                       (arguments == 1 ? "s" : ""));
}

std::string plain_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}
std::string plain_text(const std::complex<double>& value) {
  const auto imag = plain_text(value.imag());
  return "(" + plain_text(value.real()) + (imag[0] == '-' ? "" : "+") + imag + "j)";
}
std::string plain_text(const std::string& value) { return value; }
template <std::integral I> std::string plain_text(I value) { return std::to_string(value); }

// An argument other than an array, as text.
std::string argument_text(const FormatPart& piece, const Value& value, const std::string& format) {
  return std::visit(
      [&]<class T>(const T& x) -> std::string {
        if constexpr (std::is_same_v<T, Array>) {
          return "";
        } else if constexpr (std::is_same_v<T, bool>) {
          return argument_text(piece, std::string(x ? "True" : "False"), format);
        } else {
          if (!piece.spec) return plain_text(x);
          const auto text = formatted(*piece.spec, x);
          if (!text) refuse(format, "has a format that its argument " + plain_text(x) + " cannot have");
          return *text;
        }
      },
      value);
}

void write_line(const std::string& text) {
  std::fwrite((text + "\n").data(), 1, text.size() + 1, stdout);
  std::fflush(stdout);
}

// The complete line; array_text(n, spec) supplies the arrays' texts.
template <class F> std::string line_of(const FormatParts& pieces, F array_text) {
  std::string line;
  std::size_t array = 0;
  for (const auto& piece : pieces)
    line += piece.is_placeholder ? array_text(array++, piece.spec ? &*piece.spec : nullptr) : piece.text;
  return line;
}

HostArray host_of(const EffectValue& value) {
  HostArray host(value.shape, value.dtype);
  if (host.nbytes() > 0) std::memcpy(host.bytes(), value.data, host.nbytes());
  return host;
}

}  // namespace

void print_values(const Format& given, std::vector<Printed> arguments) {
  const Call call("debug::print", given.where);
  const FormatParts all = pieces_of(given.text);
  check_count(given.text, all, arguments.size());
  // Formats arguments whose values are known now, so that only arrays remain.
  FormatParts pieces;
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* array = all[i].is_placeholder ? std::get_if<Array>(&arguments[i / 2].value) : nullptr;
    if (array != nullptr) {
      if (all[i].spec && !takes_format(array->dtype(), *all[i].spec))
        refuse(given.text, "has a format that elements of " + name(array->dtype()) + " cannot have");
      pieces.push_back(all[i]), arrays.push_back(*array);
    } else {
      pieces.push_back(
          {all[i].is_placeholder ? argument_text(all[i], arguments[i / 2].value, given.text) : all[i].text});
    }
  }
  if (effects_wait()) {
    const auto happen = [pieces](const std::vector<EffectValue>& values, int rank) {
      const auto text = line_of(
          pieces, [&](std::size_t n, const FormatSpec* spec) { return host_text(host_of(values[n]), spec); });
      write_line((rank < 0 ? "" : "[rank " + std::to_string(rank) + "] ") + text);
    };
    return record_effect(std::make_shared<const Effect>(Effect{in_quotes(given.text), happen}), arrays);
  }
  const auto text =
      line_of(pieces, [&](std::size_t n, const FormatSpec* spec) { return array_text(arrays[n], spec); });
  if (is_main_process()) write_line(text);
}

void callback_values(std::function<void(const std::vector<HostArray>&)> f, std::vector<Array> values,
                     std::source_location where) {
  const Call call("debug::callback", where);
  if (effects_wait()) {
    const auto happen = [f = std::move(f)](const std::vector<EffectValue>& given, int) {
      std::vector<HostArray> host;
      for (const auto& value : given) host.push_back(host_of(value));
      const UserCode users;
      const comm::RunsAlone alone("a function given to debug::callback");
      f(host);
    };
    return record_effect(std::make_shared<const Effect>(Effect{"callback", happen}), values);
  }
  std::vector<HostArray> host;
  for (const auto& value : values) host.push_back(to_host(value));
  if (!is_main_process()) return;
  const UserCode users;
  const comm::RunsAlone alone("a function given to debug::callback");
  f(host);
}

}  // namespace tessera::debug
