/// @file
/// Looking inside a program: how arrays lie, what was communicated, where the time went, where a NaN came
/// from.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/visualize.hpp>

namespace tessera::debug {

/// visualize_sharding of the array's shape and sharding; the value is not computed. Not collective.
std::string visualize_array_sharding(const Array&, VisualizeOptions = {},
                                     std::source_location where = std::source_location::current());

/// Hands over the array's sharding. Not collective. It is the one which is known when the array is
/// recorded, inside a traced function too.
void inspect_array_sharding(const Array&, const std::function<void(const Sharding&)>&,
                            std::source_location where = std::source_location::current());

/// A format of print that remembers where it was written: behind a parameter pack there is no room for that.
struct Format {
  /// From a text with a {} per argument.
  Format(std::string format, std::source_location written = std::source_location::current())
      : text(std::move(format)), where(written) {}
  /// From a text with a {} per argument.
  Format(const char* format, std::source_location written = std::source_location::current())
      : text(format), where(written) {}
  std::string text;            ///< the format
  std::source_location where;  ///< of the call
};
/// print of texts that are there already. Collective over all ranks. ArgumentError when placeholders and
/// arguments are not equally many.
void print_texts(const Format& format, const std::vector<std::string>& arguments);
/// An argument of print as text. Of an Array: collective over all ranks, computes it.
std::string text_for_print(const Array& x, std::source_location where);
inline std::string text_for_print(const std::string& text, std::source_location) { return text; }
inline std::string text_for_print(const char* text, std::source_location) { return text; }
std::string text_for_print(double value, std::source_location where);
template <class T>
requires(std::is_arithmetic_v<T>) std::string
    text_for_print(T value, [[maybe_unused]] std::source_location where) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "True" : "False";
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else
    return text_for_print(static_cast<double>(value), where);
}
/// print("loss {} after {} steps", loss, n): each {} takes the next argument; {{ and }} are braces. Written
/// once per job, by rank 0. Collective over all ranks: arrays are computed first. Inside a traced function
/// a value is not known yet: its type is printed instead. ArgumentError when placeholders and arguments are
/// not equally many.
template <class... T> void print(const Format& format, const T&... x) {
  print_texts(format, {text_for_print(x, format.where)...});
}

/// What this rank has communicated since the scope began. `kind`: all-gather, all-reduce, reduce-scatter,
/// all-to-all, collective-permute. bytes: those that arrive at this rank, the measure of explain(). Calls
/// of which this rank is part count. Not collective.
class CommStats {
 public:
  CommStats();
  ~CommStats() = default;
  /// Calls, of all kinds or of one.
  std::int64_t calls() const { return calls(""); }
  std::int64_t calls(const std::string& kind) const;
  /// Bytes, of all kinds or of one.
  std::int64_t bytes() const { return bytes(""); }
  std::int64_t bytes(const std::string& kind) const;
  std::vector<std::string> kinds() const;  ///< that were called
  void restart();                          ///< counts from here on

 private:
  struct Count {
    std::string kind;
    std::int64_t calls = 0, bytes = 0;
  };
  std::vector<Count> before_;
};

/// Times every step that this rank runs while the scope lives (not collective): kernels, fused chains,
/// collectives.
///   { debug::profile scope("trace.json");  train(); }   writes a Chrome trace per rank (trace.0.json ...)
///     and prints nothing
///   scope.table()                                        per op: calls, time, share, bytes
/// Opens in chrome://tracing or Perfetto. Scopes nest; the inner one sees the steps. Costs two clock
/// readings per step.
class profile {
 public:
  /// Begins; with a path the end of the scope writes a trace there, one file per rank.
  explicit profile(std::string trace_path = "");
  ~profile();
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;
  std::string table() const;                  ///< per op: calls, time, share, bytes
  double seconds() const;                     ///< of all steps
  std::int64_t steps() const;                 ///< how many were timed
  void write(const std::string& path) const;  ///< this rank's trace; IoError

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
  std::string trace_path_;
};

/// From now on every computed value is searched for NaN. The evaluation that makes one raises NanError on
/// every rank, which names the op, the line that recorded it, and the ranks' number of NaNs. Set it alike
/// on all ranks. TESSERA_NAN_CHECK=1 does the same.
void set_nan_check(bool on);

}  // namespace tessera::debug
