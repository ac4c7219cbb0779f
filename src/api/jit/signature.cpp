// Signatures of calls: which of a function's compiled programs a call takes.
#include <tessera/jit.hpp>

#include "base/log.hpp"
#include "base/recent.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "graph/op.hpp"

namespace tessera::detail {
namespace {

// The properties of an argument that select its program.
struct ArgumentKind {
  Type type;
  bool is_committed;
  std::optional<Sharding> layout;
  friend bool operator==(const ArgumentKind&, const ArgumentKind&) = default;
};
struct ArgumentKindHash {
  std::size_t operator()(const ArgumentKind& kind) const {
    const auto& type = kind.type;
    const auto code =
        static_cast<std::uint64_t>(type.dtype.code) * 4 + (type.weak ? 2 : 0) + kind.is_committed;
    return mix(mix(field_hash(type.shape), code), kind.layout ? kind.layout->hash() : 0);
  }
};
ArgumentKind kind_of(const Output& output) {
  if (output.stored) return {output.type, output.sharding.has_value(), output.stored->layout};
  return {output.type, output.sharding.has_value(), output.sharding};
}

struct KindNumbers {
  RecentMap<ArgumentKind, std::int64_t, ArgumentKindHash> known{4096};
};

// Numbers kinds uniquely: signatures hold these numbers instead of hashes, so that different ones never
// compare equal. A kind that was evicted gets a new number.
std::int64_t number_of(const ArgumentKind& kind) {
  static std::int64_t last_number = 0;
  auto& known = state<KindNumbers>().known;
  if (const auto* number = known.find(kind)) return *number;
  return known.insert(kind, ++last_number);
}

}  // namespace

void signature_of(const TraceRequest& request, std::string& key) {
  const Call call("jit", request.where);
  if (is_reproducible()) key += "same bits;";
  for (const auto& x : request.leaves) {
    check_usable(x);
    const auto number = number_of(kind_of(output_of(x)));
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
}

void report_miss(const std::string& key, const std::string& last_key) {
  if (!settings().log_compile && !logs(LogLevel::info)) return;
  const char* why = last_key.empty() ? "first call"
                    : key.size() != last_key.size()
                        ? "the arguments have another structure than at the last compilation"
                        : "shapes, dtypes, shardings or static values differ from the last compilation";
  log_once(settings().log_compile ? LogLevel::warn : LogLevel::info,
           std::string("jit: traces and compiles: ") + why);
}

}  // namespace tessera::detail
