#include "simulate/timeline.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <utility>

#include "simulate/due.hpp"

namespace tessera {
namespace {

// A collective under way: where each rank is in it.
struct UnderWay {
  struct Rank {
    int round = -1, awaited = 0;  // -1: not begun
    bool is_posted = false, is_done = false;
    double ready_s = 0;  // when all that has come so far was there
    double busy_s = 0;   // until when this round's messages take the processor and the link
    double receiving_s = 0, combined_s = 0;  // after the last arrival
  };
  // Messages for rounds that their receiver has not reached.
  struct Early {
    int rank, round, count;
    double ready_s;
  };
  std::vector<Rank> ranks;
  std::vector<std::vector<Early>> early;  // by rank
  int left = 0;                           // ranks that have not taken what they wait for
};

class Timeline {
 public:
  Timeline(const TimelinePlan& plan, const Rates& rates, int pictured, std::int64_t most_messages)
      : plan_(plan),
        rates_(rates),
        network_(rates, plan.ranks),
        pictured_(pictured),
        most_messages_(most_messages),
        under_way_(plan.steps.size()),
        walkers_(static_cast<std::size_t>(plan.ranks)),
        marks_(plan.steps.size()),
        lines_(network_.links()) {
    result_.computing.resize(plan.names.size());
    result_.waiting.resize(plan.names.size());
    spent_.resize(plan.names.size() * 2);
  }

  TimelineResult run() {
    for (int rank = 0; rank < plan_.ranks; ++rank) push(0, {Event::walk, rank, 0});
    while (true) {
      const bool has_events = !due_events_.empty();
      if (!due_lines_.empty() && (!has_events || due_lines_.first().is_before(due_events_.first()))) {
        pass_first(due_lines_.take().whose());
      } else if (has_events) {
        const Due due = due_events_.take();
        const Event event = events_[due.whose()];
        unused_.push_back(due.whose());
        handle(event, due.at_s());
      } else {
        return finished();
      }
    }
  }

 private:
  // Something that a rank does at a time.
  struct Event {
    enum Kind : std::int8_t { walk, post, round_ends } kind;
    int rank, step;
    std::uint32_t posting = 0;  // its place
  };
  // A message behind a link.
  struct alignas(64) OnItsWay {  // a line of the cache
    NetworkQueues::Passage passage;
    int rank = 0, step = 0, round = 0;  // the receiver's
    std::uint64_t number = 0;           // of its push
  };
  struct Walker {
    std::size_t step = 0;
    int waits_for = -1;
    double since_s = 0, end_s = 0;
  };

  void push(double at_s, const Event& event) {
    if (unused_.empty()) {
      unused_.push_back(events_.size());
      events_.emplace_back();
    }
    const auto place = unused_.back();
    unused_.pop_back();
    events_[place] = event;
    due_events_.push({at_s, pushed_++, place});
  }

  void push(const OnItsWay& message) {
    const auto link = message.passage.link;
    if (lines_[link].empty()) due_lines_.push({message.passage.head_s, pushed_, link});
    lines_[link].push(message).number = pushed_++;
  }

  void pass_first(std::size_t link) {
    auto& line = lines_[link];
    OnItsWay message = line.front();
    line.pop();
    if (!line.empty()) due_lines_.push({line.front().passage.head_s, line.front().number, link});
    if (network_.pass(message.passage))
      arrive(message.rank, message.step, message.round, message.passage.tail_s);
    else
      push(message);
  }

  void handle(const Event& event, double now_s) {
    switch (event.kind) {
      case Event::walk: return walk(event.rank, now_s);
      case Event::post: return post(event, now_s);
      case Event::round_ends: return end_round(event.rank, event.step, now_s);
    }
  }

  // ---- a rank walks through the steps ----

  void walk(int rank, double now_s) {
    auto& walker = walkers_[static_cast<std::size_t>(rank)];
    while (walker.step < plan_.steps.size()) {
      const auto& step = plan_.steps[walker.step];
      const double passes_s = seconds_of(step, rank, now_s);
      if (step.kind == TimelineStep::begin) {
        if (rates_.topology.overlaps) begin(rank, static_cast<int>(walker.step), now_s);
      } else if (step.kind == TimelineStep::finish) {
        if (!has_begun(rank, step.of)) begin(rank, step.of, now_s);
        if (!take(rank, step.of, now_s)) {
          walker.waits_for = step.of, walker.since_s = now_s;
          return;
        }
      } else if (step.kind == TimelineStep::mark) {
        auto& marks = marks_[walker.step];
        marks.resize(static_cast<std::size_t>(plan_.ranks));
        marks[static_cast<std::size_t>(rank)] = now_s;
      }
      ++walker.step;
      if (passes_s <= 0) continue;
      spend(rank, step.name, false, now_s, passes_s);
      return push(now_s + passes_s, {Event::walk, rank, 0});
    }
    walker.end_s = std::max(walker.end_s, now_s);
  }

  double seconds_of(const TimelineStep& step, int rank, double now_s) const {
    if (step.kind == TimelineStep::compute)
      return step.seconds * (step.share ? (*step.share)[static_cast<std::size_t>(rank)] : 1);
    if (step.kind == TimelineStep::repeat)
      return step.times * (now_s - marks_[static_cast<std::size_t>(step.of)][static_cast<std::size_t>(rank)]);
    return 0;
  }

  // ---- collectives ----

  UnderWay& under_way(int step) {
    auto& found = under_way_[static_cast<std::size_t>(step)];
    if (!found) {
      found = std::make_unique<UnderWay>();
      found->ranks.resize(static_cast<std::size_t>(plan_.ranks));
      found->early.resize(static_cast<std::size_t>(plan_.ranks));
      found->left = plan_.ranks;
    }
    return *found;
  }

  bool has_begun(int rank, int step) {
    return rates_.topology.overlaps || under_way(step).ranks[static_cast<std::size_t>(rank)].round >= 0;
  }
  void begin(int rank, int step, double now_s) { begin_round(rank, step, 0, now_s); }

  void begin_round(int rank, int step, int number, double now_s) {
    auto& all = under_way(step);
    auto& mine = all.ranks[static_cast<std::size_t>(rank)];
    const auto& rounds = *plan_.steps[static_cast<std::size_t>(step)].rounds;
    const int count = rounds.rounds(rank);
    for (; number < count; ++number) {
      const auto place = new_posting(now_s);
      auto& round = postings_[place].round;
      rounds.round(rank, number, round);
      postings_[place].next = round.sends.data();
      mine.round = number, mine.awaited = round.receives, mine.ready_s = now_s, mine.is_posted = false;
      take_early(all, rank, mine);
      if (round.sends.empty() && round.receives == 0) {
        unused_postings_.push_back(place);
        continue;
      }
      return post({Event::post, rank, step, place}, now_s);
    }
    mine.round = number, mine.is_done = true;
    auto& walker = walkers_[static_cast<std::size_t>(rank)];
    if (walker.waits_for != step) return;
    walker.waits_for = -1;
    spend(rank, plan_.steps[static_cast<std::size_t>(step)].name, true, walker.since_s,
          now_s - walker.since_s);
    walk(rank, now_s);
  }

  void take_early(UnderWay& all, int rank, UnderWay::Rank& mine) {
    auto& early = all.early[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < early.size(); ++i) {
      if (early[i].round != mine.round) continue;
      mine.awaited -= early[i].count;
      mine.ready_s = std::max(mine.ready_s, early[i].ready_s);
      early[i] = early.back();
      early.pop_back();
      return;
    }
  }

  // A round's messages that wait for the processor to send them.
  struct alignas(64) Posting {
    const SimulatedMessage* next = nullptr;  // of the round's
    double left_s = 0;
    Rounds::Round round;
  };
  // A place for one, whose memory was another's.
  std::uint32_t new_posting(double now_s) {
    if (unused_postings_.empty()) {
      unused_postings_.push_back(static_cast<std::uint32_t>(postings_.size()));
      postings_.emplace_back();
    }
    const auto place = unused_postings_.back();
    unused_postings_.pop_back();
    auto& posting = postings_[place];
    posting.left_s = now_s;
    posting.round.sends.clear();
    posting.round.receives = 0, posting.round.parts = 1, posting.round.bytes_combined = 0;
    return place;
  }

  // Sends the next messages; each takes the processor for a while.
  void post(const Event& event, double now_s) {
    const auto [kind, rank, step, place] = event;
    Posting& posting = postings_[place];
    const auto* const end = posting.round.sends.data() + posting.round.sends.size();
    while (posting.next < end) {
      const auto& message = *posting.next++;
      now_s += rates_.topology.message_s * message.messages;
      send(rank, step, message, now_s, posting);
      if (rates_.topology.message_s > 0 && message.messages > 0 && posting.next < end)
        return push(now_s, event);
    }
    auto& mine = under_way(step).ranks[static_cast<std::size_t>(rank)];
    mine.receiving_s = rates_.topology.message_s * (posting.round.receives > 0 ? 1 : 0);
    mine.busy_s = std::max(now_s + rates_.topology.message_s * posting.round.receives / posting.round.parts,
                           posting.left_s);
    mine.combined_s = 3 * posting.round.bytes_combined / rates_.memory_bytes_per_s;
    unused_postings_.push_back(place);
    mine.is_posted = true;
    if (mine.awaited == 0) schedule_end(rank, step, mine);
  }

  void send(int rank, int step, const SimulatedMessage& message, double now_s, Posting& posting) {
    count(step, message);
    if (network_.host_of(rank) == network_.host_of(message.to))
      return arrive(message.to, step, message.arrives_in,
                    network_.arrive_inside(message.to, message.bytes, now_s));
    double left_s = 0;
    const double whole_bytes = message.bytes * posting.round.parts / std::max(1, message.messages);
    const auto passage = network_.leave(rank, message.to, message.bytes, whole_bytes, now_s, left_s);
    posting.left_s = std::max(posting.left_s, left_s);
    push({passage, message.to, step, message.arrives_in});
  }

  void count(int step, const SimulatedMessage& message) {
    auto& sum = result_.waiting[static_cast<std::size_t>(plan_.steps[static_cast<std::size_t>(step)].name)];
    sum.bytes += message.bytes;
    sum.messages += message.messages;
    result_.messages += message.messages;
    if (result_.messages > most_messages_)
      throw ArgumentError("simulate: the program sends more than " + std::to_string(most_messages_) +
                          " messages; simulate fewer ranks, or a part of the program");
  }

  void arrive(int rank, int step, int round, double at_s) {
    auto& all = under_way(step);
    auto& mine = all.ranks[static_cast<std::size_t>(rank)];
    if (mine.round != round) {
      auto& early = all.early[static_cast<std::size_t>(rank)];
      for (auto& e : early)
        if (e.round == round) {
          ++e.count, e.ready_s = std::max(e.ready_s, at_s);
          return;
        }
      early.push_back({rank, round, 1, at_s});
      return;
    }
    mine.ready_s = std::max(mine.ready_s, at_s);
    if (--mine.awaited == 0 && mine.is_posted) schedule_end(rank, step, mine);
  }

  void schedule_end(int rank, int step, const UnderWay::Rank& mine) {
    const double end_s = std::max(mine.busy_s, mine.ready_s + mine.receiving_s) + mine.combined_s;
    push(end_s, {Event::round_ends, rank, step});
  }

  void end_round(int rank, int step, double now_s) {
    begin_round(rank, step, under_way(step).ranks[static_cast<std::size_t>(rank)].round + 1, now_s);
  }

  // Whether the rank has what it waits for. What all ranks have taken is forgotten.
  bool take(int rank, int step, double) {
    auto& all = under_way(step);
    if (!all.ranks[static_cast<std::size_t>(rank)].is_done) return false;
    if (--all.left == 0) under_way_[static_cast<std::size_t>(step)].reset();
    return true;
  }

  // ---- accounts ----

  void spend(int rank, int name, bool waits, double start_s, double seconds) {
    if (seconds <= 0) return;
    auto& sum = (waits ? result_.waiting : result_.computing)[static_cast<std::size_t>(name)];
    sum.seconds += seconds;
    auto& of_ranks = spent_[static_cast<std::size_t>(name) * 2 + (waits ? 1 : 0)];
    of_ranks.resize(static_cast<std::size_t>(plan_.ranks));
    sum.most_s = std::max(sum.most_s, of_ranks[static_cast<std::size_t>(rank)] += seconds);
    if (rank < pictured_) result_.spans.push_back({rank, name, waits, start_s, seconds});
  }

  TimelineResult finished() {
    for (const auto& walker : walkers_) {
      if (walker.step < plan_.steps.size()) throw InternalError("simulate: a rank waits for ever");
      result_.end_s.push_back(walker.end_s);
      result_.seconds = std::max(result_.seconds, walker.end_s);
    }
    for (auto* sums : {&result_.computing, &result_.waiting})
      for (auto& sum : *sums) sum.seconds /= std::max(1, plan_.ranks);
    result_.loads = network_.loads();
    result_.hosts = network_.hosts();
    return std::move(result_);
  }

  const TimelinePlan& plan_;
  const Rates& rates_;
  NetworkQueues network_;
  int pictured_;
  std::int64_t most_messages_;
  std::vector<std::unique_ptr<UnderWay>> under_way_;  // by step
  std::vector<Walker> walkers_;
  std::vector<std::vector<double>> marks_;  // by step and rank
  std::vector<Posting> postings_;
  std::vector<std::uint32_t> unused_postings_;  // places
  DueHeap due_lines_, due_events_;              // by number of the link, by place
  std::vector<Line<OnItsWay>> lines_;           // by link: what has left it and gets to its next one
  std::vector<Event> events_;                   // by place
  std::vector<std::size_t> unused_;             // places
  std::uint64_t pushed_ = 0;
  std::vector<std::vector<double>> spent_;  // by name, computing and waiting, and rank
  TimelineResult result_;
};

}  // namespace

TimelineResult run_timeline(const TimelinePlan& plan, const Rates& rates, int pictured,
                            std::int64_t most_messages) {
  return Timeline(plan, rates, pictured, most_messages).run();
}

}  // namespace tessera
