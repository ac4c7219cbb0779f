#include "comm/watch/put_off.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/hash.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/group_cache.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/agreement.hpp"

namespace tessera::comm {
namespace {

struct OpenChannels {
  std::vector<const Communicator*> list;  // channels with deferred calls
};
std::vector<const Communicator*>& open_channels() { return state<OpenChannels>().list; }

PutOff& put_off_of(const Communicator& channel) { return channel.impl().set->put_off; }
PutOff::Known& known_as(PutOff& put_off, std::uint64_t fingerprint) {
  return put_off.known[fingerprint % put_off.known.size()];
}
void settle(const Communicator& channel) {
  put_off_of(channel).calls = 0;
  put_off_of(channel).data_read = 0;
  put_off_of(channel).fingerprint = 0;
  std::erase(open_channels(), &channel);
}

std::uint64_t hash_of(const Communicator& channel) {
  const auto& ids = channel.device_ids();
  return hash_bytes(ids.data(), ids.size() * sizeof(int));
}

// The number of members that two channels have in common.
int shared_members(const Communicator& channel, const Communicator& other) {
  const auto& ids = channel.device_ids();
  return static_cast<int>(
      std::count_if(ids.begin(), ids.end(), [&](int id) { return other.rank_of(id) >= 0; }));
}

// This rank's factor in the sum; the factors of all shared members add up to 0.
std::uint64_t weight_of_this_rank(const Communicator& channel, const Communicator& other) {
  const std::uint64_t seed = mix(hash_of(channel), hash_of(other));
  const auto weight = [&](int rank) { return mix(seed, static_cast<std::uint64_t>(rank)) | 1; };
  std::uint64_t sum = 0;
  int last = -1;
  for (int rank = 0; rank < channel.size(); ++rank) {
    if (other.rank_of(channel.device_ids()[rank]) < 0) continue;
    if (last >= 0) sum += weight(last);
    last = rank;
  }
  return channel.rank() == last ? ~sum + 1 : weight(channel.rank());
}

}  // namespace

const Communicator& channel_of(const Communicator& comm) {
  return comm.size() == world().size() ? control() : ascending(comm);
}

bool put_off(const Communicator& comm, std::uint64_t fingerprint, std::uint64_t data,
             const UserCall& entered) {
  constexpr int most_calls = 127;
  if (settings().check != 1 || comm.size() == 1) return false;
  const Communicator& channel = channel_of(comm);
  auto& waiting = put_off_of(channel);
  const auto& known = known_as(waiting, fingerprint);
  if (known.fingerprint != fingerprint || known.what.empty() || waiting.calls == most_calls) return false;
  waiting.fingerprint = mix(waiting.fingerprint, fingerprint);
  waiting.last = &known;
  if (data != 0) {
    waiting.fingerprint = mix(waiting.fingerprint, data);
    waiting.data[waiting.data_read++ % waiting.data.size()] = {data, entered};
  }
  if (++waiting.calls == 1) open_channels().push_back(&channel);
  return true;
}

void may_put_off(const Communicator& comm, std::uint64_t fingerprint, std::string what, Apart united) {
  if (comm.size() > 1)
    known_as(put_off_of(channel_of(comm)), fingerprint) = {fingerprint, std::move(what), united.hash,
                                                           std::move(united.numbers)};
}

Apart united_for(const Communicator& comm, std::uint64_t fingerprint) {
  const auto& known = known_as(put_off_of(channel_of(comm)), fingerprint);
  return {known.apart, known.apart_numbers};
}

std::string content_text(std::uint64_t content, const UserCall& entered) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(content));
  return "data from " + call_text(entered) + ", checksum " + digits;
}

DeferredCalls::DeferredCalls(const Communicator& channel) : channel_(channel) {
  if (open_channels().empty()) [[likely]]
    return;
  if (const auto& own = put_off_of(channel); own.calls > 0) {
    own_ = {&channel, own.calls, &own.last->what, own.data_read};
    by_all_ = own.fingerprint;
    settle(channel);
  }
  for (const auto* other : open_channels()) {
    const int shared = shared_members(*other, channel);
    if (shared < 2) continue;
    const auto& theirs = put_off_of(*other);
    others_.push_back({other, theirs.calls, &theirs.last->what, theirs.data_read});
    if (shared == channel.size())
      by_all_ += mix(hash_of(*other), theirs.fingerprint);  // commutative: the order of channels is arbitrary
    else
      parts_.push_back(other);
  }
}

std::uint64_t DeferredCalls::settle_parts() {
  std::uint64_t share = 0;
  for (const auto* part : parts_) {
    share += put_off_of(*part).fingerprint * weight_of_this_rank(*part, channel_);
    if (shared_members(*part, channel_) == part->size()) settle(*part);
  }
  return share;
}

std::string DeferredCalls::text() const {
  std::string text;
  const auto add = [&](const Entry& entry, const std::string& where) {
    text += "\n    after " + format_count(entry.calls, "evaluation") + where + " that " +
            (entry.calls == 1 ? "sends" : "send") + " nothing, the last: " + *entry.last;
    const auto& data = put_off_of(*entry.channel).data;
    for (std::size_t n = entry.data_read - std::min(entry.data_read, data.size()); n < entry.data_read; ++n)
      text += "\n      on " + content_text(data[n % data.size()].content, data[n % data.size()].entered);
  };
  if (own_.calls > 0) add(own_, "");
  for (const auto& other : others_) add(other, " on " + other.channel->name());
  return text;
}

}  // namespace tessera::comm
