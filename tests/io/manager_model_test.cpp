// Random histories of a checkpoint::Manager, compared with a model of the visible steps: asynchronous and
// synchronous saves, waits, restores, flipped bits, truncated files, restarted jobs (also in the middle of a
// save, with leftovers of a kill, at an older step, with another keep, on other meshes).
//
//   TESSERA_TEST_HISTORIES=10000   number of histories; TESSERA_TEST_FIRST=7: the first seed (else the date)
#include <tessera/checkpoint.hpp>

#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "io/folder.hpp"

namespace tessera::test {
namespace {

using io::checkpoint::Manager;

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}
int today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return (parts.tm_year + 1900) * 10000 + (parts.tm_mon + 1) * 100 + parts.tm_mday;
}

class ManagerModel : public InFolder {
 protected:
  // All choices below follow from rank 0's seed, so that all ranks do the same.
  void begin(std::uint32_t seed) {
    random_.seed(seed);
    manager_.reset();
    comm::barrier(comm::world());
    if (is_main_process()) std::filesystem::remove_all(steps_folder());
    comm::barrier(comm::world());
    reported_.clear();
    step_ = 0, pending_.reset();
    history_ = "seed " + std::to_string(seed) + ":";
    start_job();
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string steps_folder() const { return path("steps"); }
  std::string folder_of(int step) const {
    char name[32];
    std::snprintf(name, sizeof name, "step_%08d", step);
    return steps_folder() + "/" + name;
  }
  Array values(int tag) {
    const Array x = astype(arange(193) + tag, float64);
    const std::vector<int> sizes = {1, device_count()};
    return device_put(x,
                      NamedSharding(make_mesh({sizes[static_cast<std::size_t>(below(2))]}, {"x"}), P("x")));
  }
  void note(const std::string& words) { history_ += " " + words; }

  void start_job() {
    manager_.reset();
    settle();
    keep_ = below(4);
    const bool asynchronous = below(4) != 0;
    manager_ =
        std::make_unique<Manager>(steps_folder(), io::checkpoint::ManagerOptions{keep_, 1, asynchronous});
    note("job(keep " + std::to_string(keep_) + (asynchronous ? ", beside)" : ")"));
  }
  // Records the pending save as finished, after a call that succeeded.
  void settle() {
    if (!pending_) return;
    report(pending_->first, pending_->second);
    pending_.reset();
  }
  // The step becomes visible, and the newest `keep` complete steps up to it stay.
  void report(int step, int tag) {
    reported_[step] = {tag, {}, 0};
    std::vector<int> gone;
    int kept = 0;
    for (auto it = std::make_reverse_iterator(reported_.upper_bound(step)); it != reported_.rend(); ++it)
      if (keep_ > 0 && kept >= keep_)
        gone.push_back(it->first);
      else
        kept += it->second.looks_complete() ? 1 : 0;
    for (const int one : gone) reported_.erase(one);
  }
  bool is_whole(int step) const {
    const auto found = reported_.find(step);
    return found != reported_.end() && found->second.is_whole();
  }

  void save(bool now) {
    settle();  // each call of the Manager first finishes the pending save
    const int step = below(8) == 0 ? std::max(0, step_ - below(4)) : step_ + 1 + below(3), tag = ++tags_;
    step_ = step;
    const bool is_there = is_whole(step);
    note((now ? "now(" : "save(") + std::to_string(step) + ")");
    if (now)
      manager_->save_now(step, values(tag));
    else
      ASSERT_EQ(manager_->save(step, values(tag)), !is_there) << history_;
    if (is_there) return;
    reported_.erase(step);  // a damaged step is set aside
    pending_ = {step, tag};
    if (now) settle();
  }
  void wait() {
    note("wait");
    manager_->wait();
    settle();
  }

  std::optional<int> newest_whole() const {
    for (auto it = reported_.rbegin(); it != reported_.rend(); ++it)
      if (it->second.is_whole()) return it->first;
    return std::nullopt;
  }
  void restore() {
    settle();
    note("restore");
    Array x = values(0);
    const int none = -1, expected = newest_whole().value_or(none);
    int found = none;
    std::string error;
    try {
      found = manager_->restore(x).value_or(none);
    } catch (const IoError& e) {
      error = e.what();
    }
    ASSERT_EQ(found, expected) << history_ << "\n" << error;
    ASSERT_EQ(error.empty(), expected != none || reported_.empty()) << history_ << "\n" << error;
    if (found == none) return;
    ASSERT_EQ(to_vector<double>(x), to_vector<double>(astype(arange(193) + reported_.at(found).tag, float64)))
        << history_;
    reported_.erase(reported_.upper_bound(found), reported_.end());  // set aside
    step_ = found;
  }

  void damage() {
    if (pending_) wait();
    if (reported_.empty()) return;
    auto it = reported_.begin();
    std::advance(it, below(static_cast<int>(reported_.size())));
    const int step = it->first, at = below(60), kind = below(3), file = below(2);
    note((kind == 0 ? "cut(" : "flip(") + std::to_string(step) + (file == 0 ? " manifest" : " data") +
         (kind == 0 ? ")" : " " + std::to_string(at) + ")"));
    if (is_main_process()) {
      const auto name = folder_of(step) + (file == 0 ? "/manifest.json" : "/rank_00000.bin");
      if (kind == 0) {
        std::filesystem::resize_file(name, std::filesystem::file_size(name) / 2);
      } else {
        std::fstream bytes(name, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekg(at);
        const char c = static_cast<char>(bytes.get());
        bytes.seekp(at);
        bytes.put(static_cast<char>(c ^ (1 << (at % 7))));
      }
    }
    comm::barrier(comm::world());
    if (kind == 0)
      ++it->second.cuts;
    else if (const std::pair<int, int> bit{file, at}; it->second.flips.erase(bit) == 0)
      it->second.flips.insert(bit);
  }
  // A killed job leaves its temporary folder, its lock, and maybe marks; the pending step may be there.
  void kill_and_start_again() {
    if (pending_) wait();
    note("kill");
    if (is_main_process() && std::filesystem::exists(steps_folder())) {
      std::filesystem::create_directories(folder_of(step_ + 1) + ".tmp-0123456789abcdef");
      std::ofstream(folder_of(step_ + 1) + ".tmp-0123456789abcdef/rank_00000.done") << "7 0123456789abcdef\n";
      std::ofstream(steps_folder() + "/save.lock") << "host of a job that died\n";
    }
    comm::barrier(comm::world());
    start_job();
  }
  void end_by_exception() {
    note("exception");
    settle();
    try {
      const auto passing = std::move(manager_);
      throw std::runtime_error("elsewhere");
    } catch (const std::runtime_error&) {}
    comm::barrier(comm::world());
    start_job();
  }

  // The folder must match the model, and no newest complete step may be missing.
  void check_folder() {
    if (pending_) return;
    comm::barrier(comm::world());
    std::set<std::string> there, expected;
    if (std::filesystem::exists(steps_folder()))
      for (const auto& entry : std::filesystem::directory_iterator(steps_folder())) {
        const auto name = entry.path().filename().string();
        if (name.size() == 13 && name.starts_with("step_")) there.insert(name);
      }
    for (const auto& [step, facts] : reported_)
      expected.insert(folder_of(step).substr(steps_folder().size() + 1));
    comm::barrier(comm::world());
    ASSERT_EQ(there, expected) << history_;
  }

  void one_history(std::uint32_t seed) {
    begin(seed);
    for (int n = 4 + below(12); n > 0 && !HasFatalFailure(); --n) {
      switch (below(12)) {
        case 0: wait(); break;
        case 1:
        case 2: restore(); break;
        case 3:
        case 4: damage(); break;
        case 5: kill_and_start_again(); break;
        case 6: start_job(); break;
        case 7: end_by_exception(); break;
        case 8: save(true); break;
        default: save(false); break;
      }
      if (!HasFatalFailure()) check_folder();
    }
    if (!HasFatalFailure()) restore();
    manager_.reset();
    pending_.reset();
  }

  std::mt19937 random_;
  std::unique_ptr<Manager> manager_;
  struct Step {
    int tag = 0;                               // of its values
    std::set<std::pair<int, int>> flips = {};  // file (0: the manifest), byte
    int cuts = 0;
    bool is_whole() const { return cuts == 0 && flips.empty(); }
    // Removal of steps checks lengths and the manifest; the other bytes are checked by a restore.
    bool looks_complete() const {
      return cuts == 0 &&
             std::none_of(flips.begin(), flips.end(), [](const auto& one) { return one.first == 0; });
    }
  };
  std::map<int, Step> reported_;  // the steps that must be there
  std::optional<std::pair<int, int>> pending_;
  int keep_ = 0, step_ = 0, tags_ = 0;
  std::string history_;
};

TEST_F(ManagerModel, random_histories_show_what_the_model_allows) {
  std::int64_t first = setting("TESSERA_TEST_FIRST", today());
  comm::broadcast(comm::world(), &first, sizeof first, 0);
  const SettingScope quiet("TESSERA_LOG", "error");  // there are many warnings
  const int count = setting("TESSERA_TEST_HISTORIES", device_count() == 1 ? 40 : 8);
  if (is_main_process())
    std::printf("%d histories from TESSERA_TEST_FIRST=%lld on\n", count, static_cast<long long>(first));
  for (int n = 0; n < count && !HasFatalFailure(); ++n)
    one_history(static_cast<std::uint32_t>(first * 100000 + n));
}

}  // namespace
}  // namespace tessera::test
