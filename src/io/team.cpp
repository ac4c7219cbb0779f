#include "io/team.hpp"

#include <tessera/error.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <new>

#include "base/hash.hpp"
#include "base/stop_request.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

// The exception of this rank's work as text for other ranks: one letter for the kind, then the message.
std::string travelling(char kind, const char* text) {
  return kind + std::string(*text != '\0' ? text : "unknown error");
}
std::string caught() {
  try {
    throw;
  } catch (const comm::DisagreementError& error) {
    return travelling('g', error.what());
  } catch (const MemoryError& error) {
    return travelling('m', error.what());
  } catch (const std::bad_alloc&) {
    return travelling('m', "out of memory (std::bad_alloc)");
  } catch (const LinAlgError& error) {
    return travelling('l', error.what());
  } catch (const NanError& error) {
    return travelling('n', error.what());
  } catch (const ShapeError& error) {
    return travelling('s', error.what());
  } catch (const DtypeError& error) {
    return travelling('d', error.what());
  } catch (const ShardingError& error) {
    return travelling('h', error.what());
  } catch (const ArgumentError& error) {
    return travelling('a', error.what());
  } catch (const UserError& error) {
    return travelling('u', error.what());
  } catch (const InternalError& error) {
    return travelling('b', error.what());
  } catch (const AccessError& error) {
    return travelling('t', error.what());
  } catch (const std::exception& error) {
    return travelling('i', error.what());
  }
}
[[noreturn]] void raise(char kind, const std::string& text) {
  switch (kind) {
    case 'g': throw comm::DisagreementError(text);
    case 'm': throw MemoryError(text);
    case 'l': throw LinAlgError(text);
    case 'n': throw NanError(text);
    case 's': throw ShapeError(text);
    case 'd': throw DtypeError(text);
    case 'h': throw ShardingError(text);
    case 'a': throw ArgumentError(text);
    case 'u': throw UserError(text);
    case 'b': throw InternalError(text);
    case 't': throw AccessError(text);
    default: throw IoError(text);
  }
}

}  // namespace

Team::Team(const std::string& call) {
  comm::agree(comm::world(), hash_bytes(call.data(), call.size()), [&] { return call; });
}
void Team::set_members(const std::vector<int>& device_ids) {
  first_ = device_ids.empty() ? 0 : device_ids.front();
  is_member_ = std::find(device_ids.begin(), device_ids.end(), process_index()) != device_ids.end();
}
bool Team::is_first() const { return process_index() == first_; }

void Team::together(const std::function<void()>& work) const {
  std::string wrong;
  const UndisturbedByStop undisturbed;  // a job that was asked to stop saves only after this
  try {
    work();
  } catch (const comm::DisagreementError&) {
    wrong = caught();
  } catch (const CommError&) {  // no further agreement is possible
    throw;
  } catch (...) {
    wrong = caught();
  }
  const auto first = comm::first_error(comm::world(), wrong);
  if (first.empty()) return;
  // first_error gives "rank 2: text"; the rank is dropped if all ranks have the same text.
  const auto colon = first.find(": ");
  const std::string lowest = first.substr(colon + 2);
  const bool alike = comm::all_ok(comm::world(), wrong == lowest);
  raise(lowest[0], (alike ? "" : first.substr(0, colon + 2)) + lowest.substr(1));
}
void Team::members(const std::function<void()>& work) const {
  together([&] {
    if (is_member_) work();
  });
}
void Team::once(const std::function<void()>& work) const {
  together([&] {
    if (is_first()) work();
  });
}

std::int64_t Team::from_first(std::int64_t value) const {
  comm::broadcast(comm::world(), &value, sizeof value, first_);
  return value;
}
std::string Team::from_first(const std::string& text) const {
  std::string result(from_first(static_cast<std::int64_t>(text.size())), '\0');
  if (is_first()) result = text;
  comm::broadcast(comm::world(), result.data(), static_cast<std::int64_t>(result.size()), first_);
  return result;
}

void Team::same(const std::string& call, const std::string& path, const std::string& facts) const {
  try {
    comm::agree(comm::world(), hash_bytes(facts.data(), facts.size()), [&] { return "finds " + facts; });
  } catch (const comm::DisagreementError& error) {
    throw IoError(call + ": the ranks see different files under " + in_quotes(path) +
                  ". Put it on a file system that all hosts share. " + error.what());
  }
}

}  // namespace tessera::io
