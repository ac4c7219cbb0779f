#include "comm/collectives/two_level.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "base/settings.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "types/buffer.hpp"

namespace tessera::comm {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The rounds after the first get a tag of their own, because ranks post them in different orders.
int next_tag(Pending::Impl& pending) {
  int& rounds = pending.requests.comm().impl().set->second_rounds;
  return tag_second_round + rounds++ % second_round_tags;
}

template <class Do> void for_ranks_elsewhere(const HostGroups& groups, int host, Do what) {
  groups.for_others(host, [&](int other) {
    for (const int rank : groups.members[at(other)]) what(rank);
  });
}

template <class Do> void for_mates(const HostGroups& groups, int me, Do what) {
  for (const int mate : groups.mine(me))
    if (mate != me) what(mate);
}

// The rank of `host` that is responsible for the block of a rank on another host.
int agent_of(const HostGroups& groups, int host, int rank) {
  return groups.partner(host, groups.place[at(rank)]);
}

struct Blocks {
  std::vector<std::int64_t> bytes, offset;  // by rank
};

// ---- all-gather ----

struct Gather {
  const HostGroups& groups;
  int me, tag_first, tag;
  std::byte* out;
  Blocks blocks;

  std::byte* place(int rank) const { return out + blocks.offset[at(rank)]; }
  std::int64_t bytes(int rank) const { return blocks.bytes[at(rank)]; }
  int host() const { return groups.host[at(me)]; }

  // Sends the own block to one rank of each other host and to the ranks of this host.
  void spread(Requests& requests) const {
    for_ranks_elsewhere(groups, host(), [&](int rank) {
      if (agent_of(groups, host(), rank) == me) requests.receive(place(rank), bytes(rank), rank, tag_first);
    });
    for_mates(groups, me, [&](int mate) { requests.receive(place(mate), bytes(mate), mate, tag_first); });
    groups.for_others(host(), [&](int other) {
      requests.send(place(me), bytes(me), groups.partner(other, groups.place[at(me)]), tag_first);
    });
    for_mates(groups, me, [&](int mate) { requests.send(place(me), bytes(me), mate, tag_first); });
  }
  // Forwards the blocks received from other hosts to the ranks of this host.
  void forward(Requests& requests) const {
    for_ranks_elsewhere(groups, host(), [&](int rank) {
      const int agent = agent_of(groups, host(), rank);
      if (agent != me) requests.receive(place(rank), bytes(rank), agent, tag);
    });
    for_ranks_elsewhere(groups, host(), [&](int rank) {
      if (agent_of(groups, host(), rank) == me)
        for_mates(groups, me, [&](int mate) { requests.send(place(rank), bytes(rank), mate, tag); });
    });
  }
};

// ---- reductions ----

// The blocks for which a rank adds its host's terms, consecutive in memory: its own block, then those of
// ranks on other hosts.
struct Duties {
  std::vector<int> block;            // the rank that each block belongs to
  std::vector<std::int64_t> offset;  // in elements: the start of each block
  std::int64_t elements = 0;
};
Duties duties_of(const HostGroups& groups, int rank, std::span<const std::int64_t> counts) {
  Duties duties;
  const auto add = [&](int block) {
    duties.block.push_back(block);
    duties.offset.push_back(duties.elements);
    duties.elements += counts[at(block)];
  };
  add(rank);
  const int host = groups.host[at(rank)];
  for_ranks_elsewhere(groups, host, [&](int block) {
    if (agent_of(groups, host, block) == rank) add(block);
  });
  return duties;
}

struct Reduction {
  Reduction(Pending::Impl& pending, ReduceKind kind_, Dtype dtype_, const std::byte* in_, std::byte* out_,
            std::vector<std::int64_t> counts_)
      : comm(pending.requests.comm()),
        groups(host_groups(comm)),
        me(comm.rank()),
        tag(next_tag(pending)),
        kind(kind_),
        dtype(dtype_),
        item(static_cast<std::int64_t>(itemsize(dtype_))),
        in(in_),
        out(out_),
        counts(std::move(counts_)),
        starts(counts.size()),
        duties(duties_of(groups, me, counts)) {
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), std::int64_t{0});
  }

  const std::byte* mine(int block) const { return in + starts[at(block)] * item; }
  int host() const { return groups.host[at(me)]; }

  // Exchanges, within the host, the terms of the blocks that each rank adds.
  void inside(Requests& requests) {
    const auto& mates = groups.mine(me);
    const auto others = static_cast<std::int64_t>(mates.size()) - 1;
    arriving = Buffer::allocate(static_cast<std::size_t>(others * duties.elements * item));
    std::byte* cursor = arriving.data();
    for_mates(groups, me, [&](int mate) {
      for (const int block : duties.block) {
        requests.receive(cursor, counts[at(block)] * item, mate, tag_collective);
        cursor += counts[at(block)] * item;
      }
    });
    for_mates(groups, me, [&](int mate) {
      for (const int block : duties_of(groups, mate, counts).block)
        requests.send(mine(block), counts[at(block)] * item, mate, tag_collective);
    });
  }

  // sums = the host's terms, in the order of its ranks.
  void add_inside() {
    sums = Buffer::allocate(static_cast<std::size_t>(duties.elements * item));
    for (std::size_t d = 0; d < duties.block.size(); ++d) {
      const int block = duties.block[d];
      std::byte* sum = sums.data() + duties.offset[d] * item;
      const std::byte* theirs = arriving.data() + duties.offset[d] * item;
      const std::byte* term = nullptr;
      for (const int rank : groups.mine(me)) {
        const std::byte* next = rank == me ? mine(block) : theirs;
        if (rank != me) theirs += duties.elements * item;
        if (term == nullptr)
          term = next;
        else
          combine(kind, dtype, term, next, sum, counts[at(block)]), term = sum;
      }
      if (term != sum && counts[at(block)] > 0) std::memcpy(sum, term, counts[at(block)] * item);
    }
    arriving.reset();
  }

  // Sends each host's sum to the rank that owns the block.
  void across(Requests& requests) {
    const std::int64_t own = counts[at(me)] * item;
    partial = Buffer::allocate(static_cast<std::size_t>((groups.hosts() - 1) * own));
    std::byte* cursor = partial.data();
    for (int other = 0; other < groups.hosts(); ++other) {
      if (other == host()) continue;
      requests.receive(cursor, own, agent_of(groups, other, me), tag);
      cursor += own;
    }
    for (std::size_t d = 1; d < duties.block.size(); ++d)
      requests.send(sums.data() + duties.offset[d] * item, counts[at(duties.block[d])] * item,
                    duties.block[d], tag);
  }

  // result = the hosts' sums, in the order of hosts.
  void add_across(std::byte* result) {
    const std::int64_t n = counts[at(me)];
    const std::byte *theirs = partial.data(), *term = nullptr;
    for (int other = 0; other < groups.hosts(); ++other) {
      const std::byte* next = other == host() ? sums.data() : theirs;
      if (other != host()) theirs += n * item;
      if (term == nullptr)
        term = next;
      else
        combine(kind, dtype, term, next, result, n), term = result;
    }
    if (term != result && n > 0) std::memcpy(result, term, n * item);
    partial.reset();
    sums.reset();
  }

  const Communicator& comm;
  const HostGroups& groups;
  int me, tag;
  ReduceKind kind;
  Dtype dtype;
  std::int64_t item;
  const std::byte* in;
  std::byte* out;
  std::vector<std::int64_t> counts, starts;
  Duties duties;
  Buffer arriving, sums, partial;
};

// ---- all-reduce through one rank of each host ----

//   inside: terms -> the first rank      across: sums -> every other first rank      inside: result -> all
struct LeaderReduction {
  const Communicator& comm;
  const HostGroups& groups;
  int me, tag;
  ReduceKind kind;
  Dtype dtype;
  const std::byte* in;
  std::byte* out;
  std::int64_t count, bytes;
  Buffer terms = {}, sums = {};  // terms of the ranks of this host; sums of the hosts

  int leader(int host) const { return groups.members[at(host)][0]; }
  int host() const { return groups.host[at(me)]; }
  bool leads() const { return leader(host()) == me; }

  void inside(Requests& requests) {
    if (!leads()) return void(requests.send(in, bytes, leader(host()), tag_collective));
    terms = Buffer::allocate(bytes * (groups.mine(me).size() - 1));
    std::byte* cursor = terms.data();
    for_mates(groups, me,
              [&](int mate) { requests.receive(cursor, bytes, mate, tag_collective), cursor += bytes; });
  }
  void across(Requests& requests) {
    if (!leads()) return void(requests.receive(out, bytes, leader(host()), tag));
    sums = Buffer::allocate(bytes * at(groups.hosts()));
    std::byte* mine = sums.data() + bytes * host();
    std::memcpy(mine, in, bytes);
    for (std::size_t m = 0; m + 1 < groups.mine(me).size(); ++m)
      combine(kind, dtype, mine, terms.data() + bytes * m, mine, count);
    for (int other = 0; other < groups.hosts(); ++other)
      if (other != host()) requests.receive(sums.data() + bytes * other, bytes, leader(other), tag);
    groups.for_others(host(), [&](int other) { requests.send(mine, bytes, leader(other), tag); });
  }
  void back(Requests& requests) {
    if (!leads()) return;
    std::memcpy(out, sums.data(), bytes);
    for (int other = 1; other < groups.hosts(); ++other)
      combine(kind, dtype, out, sums.data() + bytes * other, out, count);
    for_mates(groups, me, [&](int mate) { requests.send(out, bytes, mate, tag); });
  }
};

std::vector<std::int64_t> even_counts(std::int64_t n, int ranks) {
  std::vector<std::int64_t> counts(at(ranks), n / ranks);
  for (std::int64_t r = 0; r < n % ranks; ++r) ++counts[r];
  return counts;
}

void start_through_leaders(Pending::Impl& pending, ReduceKind kind, Dtype dtype, const std::byte* in,
                           std::byte* out, std::int64_t count) {
  const auto& comm = pending.requests.comm();
  const auto work = std::make_shared<LeaderReduction>(
      LeaderReduction{comm, host_groups(comm), comm.rank(), next_tag(pending), kind, dtype, in, out, count,
                      count * static_cast<std::int64_t>(itemsize(dtype))});
  work->inside(pending.requests);
  pending.next_round = [work, &pending] {
    work->across(pending.requests);
    pending.next_round = [work, &pending] { work->back(pending.requests); };
  };
}

}  // namespace

bool goes_by_hosts(const Communicator& comm) { return settings().collectives != "mpi" && spans_hosts(comm); }

void start_gather_by_hosts(Pending::Impl& pending, std::byte* out, std::span<const std::int64_t> bytes_of,
                           std::span<const std::int64_t> offset_of) {
  const auto& comm = pending.requests.comm();
  const Gather gather{host_groups(comm),
                      comm.rank(),
                      tag_collective,
                      next_tag(pending),
                      out,
                      {{bytes_of.begin(), bytes_of.end()}, {offset_of.begin(), offset_of.end()}}};
  gather.spread(pending.requests);
  pending.next_round = [gather, &pending] { gather.forward(pending.requests); };
}

void start_reduce_scatter_by_hosts(Pending::Impl& pending, ReduceKind kind, Dtype dtype, const std::byte* in,
                                   std::byte* out, std::span<const std::int64_t> counts) {
  const auto work = std::make_shared<Reduction>(pending, kind, dtype, in, out,
                                                std::vector<std::int64_t>(counts.begin(), counts.end()));
  work->inside(pending.requests);
  pending.next_round = [work, &pending] {
    work->add_inside();
    work->across(pending.requests);
    pending.next_round = [work] { work->add_across(work->out); };
  };
}

void start_all_reduce_by_hosts(Pending::Impl& pending, ReduceKind kind, Dtype dtype, const std::byte* in,
                               std::byte* out, std::int64_t count) {
  const auto& comm = pending.requests.comm();
  const auto& groups = host_groups(comm);
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  if (reduces_through_leaders(groups, count * item, rates()))
    return start_through_leaders(pending, kind, dtype, in, out, count);
  const auto work =
      std::make_shared<Reduction>(pending, kind, dtype, in, out, even_counts(count, comm.size()));
  work->inside(pending.requests);
  const int gather_tag = next_tag(pending);
  pending.next_round = [work, gather_tag, &pending] {
    work->add_inside();
    work->across(pending.requests);
    pending.next_round = [work, gather_tag, &pending] {
      work->add_across(work->out + work->starts[at(work->me)] * work->item);
      Blocks blocks;
      for (std::size_t r = 0; r < work->counts.size(); ++r) {
        blocks.bytes.push_back(work->counts[r] * work->item);
        blocks.offset.push_back(work->starts[r] * work->item);
      }
      const Gather gather{work->groups, work->me, gather_tag, gather_tag, work->out, std::move(blocks)};
      gather.spread(pending.requests);
      pending.next_round = [gather, &pending] { gather.forward(pending.requests); };
    };
  };
}

// The costs compared, for the busiest rank:
//   leaders   inside: receive the other ranks' terms, return the result; across: one sum from each other host
//   blocks    inside: a block from each rank, and back; across: a block to each host, and back
bool reduces_through_leaders(const HostGroups& groups, std::int64_t bytes, const Rates& links) {
  std::size_t most = 0;
  for (const auto& members : groups.members) most = std::max(most, members.size());
  const auto mates = static_cast<double>(most - 1), others = static_cast<double>(groups.hosts() - 1);
  const auto all = static_cast<double>(bytes);
  const double through_leaders = 2 * links.inside.seconds(mates * all) + links.between.seconds(others * all);
  const double by_blocks = 2 * links.inside.seconds(mates * all / static_cast<double>(most)) +
                           2 * links.between.seconds(others * all / static_cast<double>(groups.hosts()));
  return through_leaders < by_blocks;
}

std::int64_t gather_crossing_bytes(const HostGroups& groups, std::span<const std::int64_t> bytes_of) {
  std::vector<std::int64_t> received(groups.host.size());
  for (int host = 0; host < groups.hosts(); ++host)
    for_ranks_elsewhere(groups, host,
                        [&](int rank) { received[at(agent_of(groups, host, rank))] += bytes_of[at(rank)]; });
  return *std::max_element(received.begin(), received.end());
}

std::int64_t reduce_scatter_crossing_bytes(const HostGroups& groups, std::span<const std::int64_t> bytes_of) {
  return (groups.hosts() - 1) * *std::max_element(bytes_of.begin(), bytes_of.end());
}

std::int64_t all_reduce_crossing_bytes(const HostGroups& groups, std::int64_t count, std::int64_t item,
                                       const Rates& links) {
  if (groups.hosts() == 1) return 0;
  if (reduces_through_leaders(groups, count * item, links)) return (groups.hosts() - 1) * count * item;
  std::vector<std::int64_t> received(groups.host.size());
  const auto counts = even_counts(count, static_cast<int>(received.size()));
  for (int host = 0; host < groups.hosts(); ++host)
    for_ranks_elsewhere(groups, host, [&](int rank) {
      received[at(agent_of(groups, host, rank))] += counts[at(rank)] * item;
    });
  for (std::size_t r = 0; r < received.size(); ++r) received[r] += (groups.hosts() - 1) * counts[r] * item;
  return *std::max_element(received.begin(), received.end());
}

}  // namespace tessera::comm
