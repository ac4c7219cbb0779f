/// @file
/// Inspecting a program: layouts of arrays, communication, time per step, origin of a NaN.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <source_location>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/detail/tree.hpp>
#include <tessera/visualize.hpp>

namespace tessera::debug {

/// visualize_sharding of the array's shape and sharding; the value is not computed. Not collective.
std::string visualize_array_sharding(const Array&, VisualizeOptions = {},
                                     std::source_location where = std::source_location::current());

/// Passes the array's sharding, as known at recording time, to a function; also inside a traced function. Not
/// collective.
void inspect_array_sharding(const Array&, const std::function<void(const Sharding&)>&,
                            std::source_location where = std::source_location::current());

/// A format of print with its source location: no defaulted parameter can follow a parameter pack.
struct Format {
  /// From a text with a {} per argument.
  Format(std::string format, std::source_location written = std::source_location::current())
      : text(std::move(format)), where(written) {}
  /// From a text with a {} per argument.
  Format(const char* format, std::source_location written = std::source_location::current())
      : text(format), where(written) {}
  std::string text;            ///< the format
  std::source_location where;  ///< line of the call
};
/// Values that print accepts: arrays, numbers, texts, and objects with an operator<< (shapes, dtypes,
/// shardings).
template <class T>
concept Streamable = requires(std::ostream& out, const T& x) {
  out << x;
};
/// An argument of print.
class Printed {
 public:
  /// From an array, a number, a text, or through operator<<.
  Printed(const Array& x) : value(x) {}
  Printed(bool x) : value(x) {}
  Printed(std::string x) : value(std::move(x)) {}
  Printed(const char* x) : value(std::string(x)) {}
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, char>) Printed(T x) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<double>(x);
    else if constexpr (std::is_signed_v<T>)
      value = static_cast<std::int64_t>(x);
    else
      value = static_cast<std::uint64_t>(x);
  }
  template <class R> Printed(std::complex<R> x) : value(std::complex<double>(x)) {}
  template <class T>
  requires(Streamable<T> && (!std::is_arithmetic_v<T> || std::is_same_v<T, char>)) Printed(const T& x) {
    std::ostringstream text;
    text << x;
    value = text.str();
  }
  /// The value that it was made from.
  std::variant<Array, bool, std::int64_t, std::uint64_t, double, std::complex<double>, std::string> value;
};
/// print with its arguments in a vector.
void print_values(const Format& format, std::vector<Printed> arguments);
/// print("loss {:.4f} after {:>5} steps on {}", loss, n, x.sharding()): each {} takes the next argument; {{
/// and }} are braces. A colon starts a format spec as in Python: [[fill]align][sign][#][0][width]
/// [.precision][type]; for an array it applies to each element. Computes arrays first. Written once per job,
/// by rank 0. Collective over all ranks.
///
/// Inside jit, vmap, shard_map and compiled loops and branches it writes **when the program runs**, each
/// time, whether or not a result depends on it, as jax.debug.print. The order on each rank is that of the
/// program. Inside shard_map and pmap each rank writes its own block after "[rank 3] ", and lines of
/// different ranks may come in any order; elsewhere the first device of the mesh writes, and the value is
/// gathered there: explain shows the traffic. Inside vmap it writes once per example, in order. Values that a
/// gradient recomputes are written again. ArgumentError if the numbers of placeholders and arguments differ,
/// or for a format that a value cannot have.
template <class... T> void print(const Format& format, const T&... x) {
  print_values(format, {Printed(x)...});
}

/// callback on a function that takes a vector.
void callback_values(std::function<void(const std::vector<HostArray>&)> f, std::vector<Array> values,
                     std::source_location where = std::source_location::current());
/// Calls f(values...) with HostArrays: at once, on rank 0; inside jit and similar functions each time the
/// program runs, in order with print: on the first device of the mesh, inside shard_map on every rank with
/// its own block. f must not call tessera (the program is running). Computes and gathers known values.
/// Collective over all ranks if the values are known.
template <class F, class... A> void callback(F f, const A&... values) {
  callback_values(
      [f = std::move(f)](const std::vector<HostArray>& host) mutable {
        [&]<std::size_t... i>(std::index_sequence<i...>) { f(host[i]...); }
        (std::index_sequence_for<A...>{});
      },
      {Array(values)...});
}

/// Traffic of this rank since the scope began. `kind`: all-gather, all-reduce, reduce-scatter, all-to-all,
/// collective-permute. bytes: received by this rank, the measure of explain(). Counts the calls that this
/// rank takes part in. Not collective.
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
  /// Bytes of all kinds received from ranks on other hosts: the network traffic to this rank. All other bytes
  /// stayed inside the host.
  std::int64_t host_crossing_bytes() const;
  std::vector<std::string> kinds() const;  ///< the kinds that were called
  void restart();                          ///< restarts the counts

 private:
  struct Count {
    std::string kind;
    std::int64_t calls = 0, bytes = 0;
  };
  std::vector<Count> before_;
  std::int64_t crossing_before_ = 0;
};

/// Times every step that this rank runs during the scope: kernels, fused chains, collectives.
///   { debug::profile scope("trace.json");  train(); }   one trace of all ranks, a track for each; prints
///     nothing
///   scope.table()                                        this rank, per op: calls, time, share, bytes
///   scope.report()                                       all ranks: least, mean, most, imbalance; memory
/// Opens in chrome://tracing or Perfetto. Scopes nest; the inner one sees the steps. Costs two clock
/// readings per step. TESSERA_PROFILE=folder, or `tessera profile program`, does it for a whole program.
class profile {
 public:
  /// Begins. With a path the end of the scope is collective over all ranks and writes the trace; while an
  /// exception is passing it writes only this rank's.
  explicit profile(std::string trace_path = "");
  ~profile();
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;
  std::string table() const;                  ///< this rank, per op: calls, time, share, bytes
  double seconds() const;                     ///< the sum over all steps
  std::int64_t steps() const;                 ///< number of timed steps
  void write(const std::string& path) const;  ///< this rank's trace (trace.3.json on rank 3); IoError
  /// The report, on all ranks: per op and collective calls, least, mean and most seconds of a rank, the
  /// imbalance (most / mean), bytes inside and between hosts, GF/s and GB/s beside the measured limits
  /// (tessera machine); the peak of memory and its main holder. Collective over all ranks.
  std::string report() const;
  /// Writes one trace, with a process per host and a track per rank, on rank 0's clock. Rank 0 writes.
  /// IoError on all ranks. Collective over all ranks.
  void write_all(const std::string& path) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
  std::string trace_path_;
};

/// Searches every computed value for NaN from now on. The evaluation that produces one raises NanError on
/// every rank, which names the op, the line that recorded it, and the ranks' number of NaNs. Must be set
/// alike on all ranks. TESSERA_NAN_CHECK=1 does the same.
void set_nan_check(bool on);

}  // namespace tessera::debug

namespace tessera {

namespace detail {
template <class T> constexpr bool can_print();
template <class T, std::size_t... i> constexpr bool can_print_parts(std::index_sequence<i...>) {
  return (can_print<std::remove_cvref_t<std::tuple_element_t<i, T>>>() && ...);
}
// Whether T is an argument of debug::print, or a pair, tuple or range of them.
template <class T> constexpr bool can_print() {
  if constexpr (std::is_same_v<T, Array> || debug::Streamable<T>) return true;
  if constexpr (TupleLike<T>) return can_print_parts<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  if constexpr (std::ranges::range<const T>) return can_print<std::ranges::range_value_t<const T>>();
  return false;
}
// Appends {} and the value of x; of a pair, a tuple or a range those of its parts.
template <class T> void append_printed(std::string& format, std::vector<debug::Printed>& values, const T& x) {
  if constexpr (std::is_same_v<T, Array> || debug::Streamable<T>) {
    format += "{}";
    values.emplace_back(x);
  } else {
    const char* between = "";
    const auto append = [&](const auto& part) {
      format += between, between = ", ";
      append_printed(format, values, part);
    };
    format += TupleLike<T> ? "(" : "[";
    if constexpr (TupleLike<T>)
      std::apply([&](const auto&... parts) { (append(parts), ...); }, x);
    else
      for (const auto& part : x) append(part);
    format += TupleLike<T> ? ")" : "]";
  }
}
}  // namespace detail

/// print("a is", a, "of", x.shape()): the parts, separated by spaces, once per job by rank 0; pairs and
/// tuples in parentheses, vectors and maps in brackets. Computes arrays first. Collective over all ranks.
/// debug::print takes a format.
template <class... T>
requires(detail::can_print<T>() && ...) void print(const T&... parts) {
  std::string format;
  std::vector<debug::Printed> values;
  ((format += format.empty() ? "" : " ", detail::append_printed(format, values, parts)), ...);
  debug::print_values(format, std::move(values));
}

}  // namespace tessera
