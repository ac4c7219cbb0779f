#include "api/preemption.hpp"

#include <tessera/preemption.hpp>
#include <tessera/runtime.hpp>

#include <csignal>
#include <string>
#include <utility>

#include "base/call.hpp"
#include "base/hash.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/stop_request.hpp"
#include "comm/watch/agreement.hpp"

namespace tessera {
namespace {

using Save = std::shared_ptr<std::function<void()>>;

struct Registered {
  std::vector<Save> saves;  // only the last one is called
  bool was_called = false;
};

std::string signal_name(int signal) {
  switch (signal) {
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    case SIGINT: return "SIGINT";
    default: return "signal " + std::to_string(signal);
  }
}

// An agreement of all ranks, whatever TESSERA_CHECK is.
void ask_all(const std::string& call) {
  comm::agree(comm::world(), hash_bytes(call.data(), call.size()), [&] { return call; });
}

void save_and_end() {
  auto& registered = state<Registered>();
  if (agreed_stop_signal() == 0 || registered.saves.empty() || registered.was_called || !may_be_disturbed())
    return;
  registered.was_called = true;
  const Save save = registered.saves.back();
  {
    const UserCode user;
    (*save)();
  }
  throw Preempted("the job was asked to stop (" + signal_name(agreed_stop_signal()) +
                  ") and has saved; start it again to go on");
}

}  // namespace

bool preempted(std::source_location where) {
  const Call call("preempted", where);
  listen_for_stop();
  ask_all("preempted");
  save_and_end();
  return agreed_stop_signal() != 0;
}

OnPreemption::OnPreemption(Save save) : save_(std::move(save)) { state<Registered>().saves.push_back(save_); }
OnPreemption::OnPreemption(OnPreemption&&) noexcept = default;
OnPreemption::~OnPreemption() {
  if (save_) std::erase(state<Registered>().saves, save_);
}

OnPreemption on_preemption(std::function<void()> save, std::source_location where) {
  const Call call("on_preemption", where);
  if (!save)
    throw ArgumentError(call_text() +
                        ": the function is empty; give one that saves what the job needs to go on");
  comm::agree_on_call(comm::world(), "on_preemption");
  listen_for_stop();
  return OnPreemption(std::make_shared<std::function<void()>>(std::move(save)));
}

void forget_preemption() {
  state<Registered>().was_called = false;
  forget_stop();
}

bool waits_for_stop() { return !state<Registered>().saves.empty(); }

void stop_if_asked(const std::vector<int>& participants) {
  if (!waits_for_stop()) [[likely]]
    return;
  if (static_cast<int>(participants.size()) != process_count() || !may_be_disturbed()) return;
  if (settings().check == 0) ask_all("an evaluation");
  if (process_count() == 1) note_agreed_stop(stop_signal_here());
  save_and_end();
}

}  // namespace tessera
