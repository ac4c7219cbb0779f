// Arrays and counters, shown.
#include <tessera/debug.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstdio>

#include "base/text.hpp"
#include "comm/watch/traffic.hpp"
#include "graph/node.hpp"

namespace tessera::debug {

std::string visualize_array_sharding(const Array& x, VisualizeOptions options, std::source_location where) {
  const Call call("visualize_array_sharding", where);
  return visualize_sharding(x.shape(), x.sharding(), options);
}

void inspect_array_sharding(const Array& x, const std::function<void(const Sharding&)>& callback,
                            std::source_location where) {
  const Call call("inspect_array_sharding", where);
  const Sharding sharding = x.sharding();
  const UserCode users;
  callback(sharding);
}

std::string text_for_print(const Array& x, std::source_location where) {
  const Call call("debug::print", where);
  return x.node() && x.node()->has_placeholder ? describe(x) : to_string(x);
}
std::string text_for_print(double value, std::source_location) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

void print_texts(const Format& given, const std::vector<std::string>& arguments) {
  const Call call("debug::print", given.where);
  const std::string& format = given.text;
  std::string text;
  std::size_t used = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool doubled = i + 1 < format.size() && format[i] == format[i + 1];
    if ((format[i] == '{' || format[i] == '}') && doubled) {
      text += format[i++];
    } else if (format[i] == '{' && i + 1 < format.size() && format[i + 1] == '}') {
      if (used < arguments.size()) text += arguments[used];
      ++used, ++i;
    } else if (format[i] == '{' || format[i] == '}') {
      throw ArgumentError(call_text() + ": a single " + quoted(std::string(1, format[i])) + " at byte " +
                          std::to_string(i) + " of " + quoted(format) +
                          "; write {} for an argument and {{ or }} for a brace");
    } else {
      text += format[i];
    }
  }
  if (used != arguments.size())
    throw ArgumentError(call_text() + ": " + quoted(format) + " has " +
                        format_count(static_cast<std::int64_t>(used), "placeholder") + ", but " +
                        format_count(static_cast<std::int64_t>(arguments.size()), "argument") + " follow" +
                        (arguments.size() == 1 ? "s" : ""));
  if (!is_main_process()) return;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

CommStats::CommStats() { restart(); }
void CommStats::restart() {
  before_.clear();
  for (const auto& kind : comm::traffic_kinds()) {
    const auto now = comm::traffic(kind);
    before_.push_back({kind, now.calls, now.bytes});
  }
  const auto total = comm::traffic();
  before_.push_back({"", total.calls, total.bytes});
}
std::int64_t CommStats::calls(const std::string& kind) const {
  const auto found =
      std::find_if(before_.begin(), before_.end(), [&](const Count& c) { return c.kind == kind; });
  return comm::traffic(kind).calls - (found == before_.end() ? 0 : found->calls);
}
std::int64_t CommStats::bytes(const std::string& kind) const {
  const auto found =
      std::find_if(before_.begin(), before_.end(), [&](const Count& c) { return c.kind == kind; });
  return comm::traffic(kind).bytes - (found == before_.end() ? 0 : found->bytes);
}
std::vector<std::string> CommStats::kinds() const {
  std::vector<std::string> called;
  for (const auto& kind : comm::traffic_kinds())
    if (calls(kind) > 0) called.push_back(kind);
  return called;
}

}  // namespace tessera::debug
