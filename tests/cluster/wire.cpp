// A switch with long cables: every frame is forwarded after a delay.
//
//   wire 2ms cable1 cable2 ...        us, ms or s; the ends of the hosts' cables in this network namespace
//
// The kernel's netem does the same, where it is available. Frames carry their offload header, so that TCP
// still passes 64 KiB at a time.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace {

using Address = std::array<unsigned char, 6>;
constexpr std::size_t offload_bytes = 10;  // virtio_net_hdr, whose header is not valid C++
constexpr std::size_t most_bytes = offload_bytes + 70'000;

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void give_up(const std::string& what) {
  std::perror(("wire: " + what).c_str());
  std::exit(1);
}

int open_cable(const char* name) {
  const int cable = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
  if (cable < 0) give_up("a packet socket");
  const int on = 1, room = 8 << 20;
  sockaddr_ll place{};
  place.sll_family = AF_PACKET;
  place.sll_protocol = htons(ETH_P_ALL);
  place.sll_ifindex = static_cast<int>(if_nametoindex(name));
  packet_mreq all{};
  all.mr_ifindex = place.sll_ifindex;
  all.mr_type = PACKET_MR_PROMISC;
  if (setsockopt(cable, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
      setsockopt(cable, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      setsockopt(cable, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0 ||
      bind(cable, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0)
    give_up(name);
  setsockopt(cable, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  setsockopt(cable, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
  return cable;
}

std::int64_t parse_ns(const std::string& text) {
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  const std::string name = unit;
  const double ns = name == "us" ? 1e3 : name == "ms" ? 1e6 : name == "s" ? 1e9 : 0;
  if (ns == 0 || number < 0) {
    std::fprintf(stderr, "wire: %s is no time: 500us, 2ms\n", text.c_str());
    std::exit(2);
  }
  return static_cast<std::int64_t>(number * ns);
}

struct Frame {
  std::int64_t due_ns;
  std::size_t from;
  std::vector<char> bytes;
};

class Switch {
 public:
  Switch(std::int64_t delay_ns, std::vector<int> cables) : delay_ns_(delay_ns), cables_(std::move(cables)) {
    for (const int cable : cables_) polled_.push_back({cable, POLLIN, 0});
  }

  [[noreturn]] void run() {
    for (;;) {
      wait();
      for (std::size_t c = 0; c < cables_.size(); ++c)
        if ((polled_[c].revents & POLLIN) != 0) take(c);
      for (; !held_.empty() && held_.front().due_ns <= now_ns(); held_.pop_front()) pass_on(held_.front());
    }
  }

 private:
  void wait() {
    timespec pause{}, *until = nullptr;
    if (!held_.empty()) {
      const std::int64_t left = std::max<std::int64_t>(0, held_.front().due_ns - now_ns());
      pause = {left / 1'000'000'000, left % 1'000'000'000};
      until = &pause;
    }
    ppoll(polled_.data(), polled_.size(), until, nullptr);
  }

  void take(std::size_t cable) {
    for (int frames = 0; frames < 64; ++frames) {
      std::vector<char> bytes(most_bytes);
      const auto length = recv(cables_[cable], bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (length <= static_cast<ssize_t>(offload_bytes + sizeof(ether_header))) return;
      bytes.resize(static_cast<std::size_t>(length));
      cable_of_[address(bytes, 6)] = cable;
      held_.push_back({now_ns() + delay_ns_, cable, std::move(bytes)});
    }
  }

  // Forwards to the cable on which the destination was last seen, or to all others.
  void pass_on(const Frame& frame) {
    const auto known = cable_of_.find(address(frame.bytes, 0));
    for (std::size_t c = 0; c < cables_.size(); ++c)
      if (c != frame.from && (known == cable_of_.end() || known->second == c)) {
        const auto sent = send(cables_[c], frame.bytes.data(), frame.bytes.size(), 0);
        static_cast<void>(sent);  // TCP resends a lost frame
      }
  }

  static Address address(const std::vector<char>& bytes, std::size_t at) {
    Address found{};
    std::memcpy(found.data(), bytes.data() + offload_bytes + at, found.size());
    return found;
  }

  std::int64_t delay_ns_;
  std::vector<int> cables_;
  std::vector<pollfd> polled_;
  std::deque<Frame> held_;
  std::map<Address, std::size_t> cable_of_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "wire DELAY CABLE...\n");
    return 2;
  }
  std::vector<int> cables;
  for (int i = 2; i < argc; ++i) cables.push_back(open_cable(argv[i]));
  Switch(parse_ns(argv[1]), std::move(cables)).run();
}
