#include "comm/watch/failure.hpp"

#include <tessera/preemption.hpp>

#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "base/session.hpp"
#include "comm/mpi/communicator.hpp"
#include "types/other_memory.hpp"

namespace tessera::comm {
namespace {

struct Record {
  Failure failure, unreported;
  std::vector<std::function<void()>> goes_on;
  bool leaving = false;
  const char* alone_in = nullptr;
};
Record& record() { return state<Record>(); }

// Errors that every rank raises alike: no rank is left inside a collective.
bool is_replicated_error() {
  try {
    throw;
  } catch (const UserError&) {
    return true;
  } catch (const LinAlgError&) {
    return true;
  } catch (const NanError&) {
    return true;
  } catch (const Preempted&) {
    return true;
  } catch (...) {
    return false;
  }
}

Failure describe(const std::string& where) {
  const std::string during = where.empty() ? "" : " (" + where + ")";
  try {
    throw;
  } catch (const Error& error) {
    return {true, error.exit_status(), std::string(error.kind()) + ": " + error.what() + during};
  } catch (const std::bad_alloc&) {
    return {true, status_memory, "MemoryError: this rank is out of memory" + during};
  } catch (const std::exception& error) {
    return {true, status_failed, error.what() + during};
  } catch (...) {
    return {true, status_failed, "an exception that is not a std::exception" + during};
  }
}

}  // namespace

const Failure& failure() { return record().failure; }

void mark_cut_off() noexcept {
  record().failure.happened = true;
  stop_reusing_memory();
}

void mark_failed_by_exception(const std::string& where) noexcept {
  auto& failure = record().failure;
  if (!failure.happened && is_replicated_error()) return;
  mark_cut_off();
  if (!failure.words.empty()) return;
  try {
    failure = describe(where);
  } catch (...) {  // no memory even for a message
    failure.status = status_memory;
  }
}

void check_not_failed() {
  const auto& [failure, unreported, goes_on, leaving, alone_in] = record();
  if (alone_in != nullptr && world().size() > 1)
    throw ArgumentError(call_text() + ": called inside of " + alone_in +
                        ", in the middle of what the ranks do together: nothing of tessera that ranks "
                        "do together can be called there. Keep what it was given, and call tessera after it");
  if (!failure.happened || leaving) [[likely]]
    return;
  throw FailedJobError(
      "this rank failed before, while the other ranks went on, so that it can talk to nobody any more: " +
          (failure.words.empty() ? "an exception left a call that was under way" : failure.words) +
          ". Let the exception end the program, and start again from the last checkpoint",
      failure.status);
}

RunsAlone::RunsAlone(const char* where) : before_(std::exchange(record().alone_in, where)) {}
RunsAlone::~RunsAlone() { record().alone_in = before_; }

void before_leaving(std::function<void()> end) { record().goes_on.push_back(std::move(end)); }

void end_what_goes_on() noexcept {
  for (const auto& end : std::exchange(record().goes_on, {})) try {
      end();
    } catch (...) {
      owe_failure_by_exception();
    }
}

void owe_failure_by_exception() noexcept {
  auto& unreported = record().unreported;
  if (unreported.happened) return;
  unreported.happened = true;
  try {
    unreported = describe("");
  } catch (...) {  // no memory even for a message
    unreported.status = status_memory;
  }
}

const Failure& unreported_failure() { return record().unreported; }

void speak_in_spite_of_failure() { record().leaving = true; }

}  // namespace tessera::comm
