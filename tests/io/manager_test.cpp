// Saves of long jobs: writes beside the running program, the steps that are kept, reports of failures.
#include <tessera/checkpoint.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "io/folder.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using io::checkpoint::Manager;
using testing::ElementsAre;
using testing::HasSubstr;

class Steps : public InFolder {
 protected:
  static Array numbers(int step) { return device_put(astype(arange(2003) + step, float64), all_rows()); }
  std::optional<int> latest() const {
    comm::barrier(comm::world());
    return io::checkpoint::latest_step(folder_);
  }
  // Flips one bit of a file, on rank 0.
  static void flip(const std::string& name, std::streamoff at) {
    comm::barrier(comm::world());
    if (is_main_process()) {
      std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const char c = static_cast<char>(file.get());
      file.seekp(at);
      file.put(static_cast<char>(c ^ 1));
    }
    comm::barrier(comm::world());
  }
  void TearDown() override {
    unsetenv("TESSERA_TEST_FAULT");
    InFolder::TearDown();
  }
};

TEST_F(Steps, the_newest_few_stay) {
  Manager saves(folder_, {.keep = 2});
  for (int step = 1; step <= 5; ++step) EXPECT_TRUE(saves.save(step, numbers(step)));
  saves.wait();
  EXPECT_THAT(entries(), ElementsAre("step_00000004", "step_00000005"));
}

TEST_F(Steps, only_steps_that_are_due_are_saved) {
  Manager saves(folder_, {.every = 3});
  for (int step = 1; step <= 7; ++step) EXPECT_EQ(saves.save(step, numbers(step)), step % 3 == 0);
  saves.save_now(7, numbers(7));
  EXPECT_THAT(entries(), ElementsAre("step_00000003", "step_00000006", "step_00000007"));
}

TEST_F(Steps, a_step_that_is_there_is_not_saved_again) {
  Manager saves(folder_);
  saves.save_now(2, numbers(2));
  saves.save_now(2, numbers(3));
  EXPECT_FALSE(saves.save(2, numbers(4)));
  EXPECT_EQ(to_vector<double>(io::checkpoint::restore(folder_, numbers(0))), to_vector<double>(numbers(2)));
}

TEST_F(Steps, what_is_written_is_the_value_at_the_save) {
  const auto next = jit([](const Array& x) { return x + 1; }, {.donate_argnums = {0}});
  Manager saves(folder_);
  Array x = numbers(0) + 0;
  saves.save(1, x);
  for (int i = 0; i < 20; ++i) x = next(x);  // would overwrite x in place
  saves.wait();
  EXPECT_EQ(to_vector<double>(io::checkpoint::restore(folder_, numbers(9))), to_vector<double>(numbers(0)));
  EXPECT_EQ(to_vector<double>(x), to_vector<double>(numbers(20)));
}

TEST_F(Steps, a_save_under_way_copies_nothing) {
  Array x = device_put(ones({1 << 20}), all_rows());
  eval(x);
  const auto before = memory_use().live_bytes;
  Manager saves(folder_);
  saves.save(1, x);
  EXPECT_LT(memory_use().live_bytes, before + (1 << 16));
  saves.wait();
}

TEST_F(Steps, what_the_program_lets_go_is_given_back_when_it_is_written) {
  const auto before = memory_use().live_bytes;
  Manager saves(folder_);
  {
    const Array x = device_put(ones({1 << 20}), all_rows());
    saves.save(1, x);
  }
  EXPECT_GE(memory_use().live_bytes, before + (4 << 20) / device_count());  // counted
  saves.wait();
  EXPECT_LT(memory_use().live_bytes, before + (1 << 16));
}

TEST_F(Steps, calls_that_save_nothing_go_on_beside_a_save_that_ends) {
  Manager saves(folder_, {.every = 10});
  saves.save(10, numbers(10));
  std::int64_t is_there = 0;
  for (int step = 11; is_there == 0; ++step) {
    ASSERT_LT(step, 100000);
    if (step % 10 != 0) saves.save(step, numbers(step));
    is_there = io::checkpoint::latest_step(folder_) == 10;
    comm::broadcast(comm::world(), &is_there, sizeof is_there, 0);
  }
  saves.wait();  // the lock goes after the step is in place
  EXPECT_THAT(entries(), ElementsAre("step_00000010"));
}

TEST_F(Steps, other_calls_in_the_folder_wait_for_it) {
  Manager saves(folder_);
  saves.save(1, numbers(1));
  io::checkpoint::save(folder_, 2, numbers(2));
  saves.save(3, numbers(3));
  EXPECT_EQ(io::checkpoint::latest_whole_step(folder_), 3);
}

TEST_F(Steps, a_save_that_fails_is_told_by_the_next_one) {
  Manager saves(folder_);
  saves.save_now(1, numbers(1));
  const auto last = std::to_string(device_count() - 1);
  setenv("TESSERA_TEST_FAULT", ("written@" + last + ":throw").c_str(), 1);
  EXPECT_TRUE(saves.save(2, numbers(2)));
  EXPECT_THAT(text_of_error<IoError>([&] { saves.save(3, numbers(3)); }), HasSubstr("written@" + last));
  unsetenv("TESSERA_TEST_FAULT");
  EXPECT_THAT(entries(), ElementsAre("step_00000001"));
  EXPECT_TRUE(saves.save(3, numbers(3)));
  saves.wait();
  EXPECT_EQ(latest(), 3);
}

TEST_F(Steps, the_error_names_the_save_that_failed) {
  Manager saves(folder_);
  if (is_main_process()) std::filesystem::create_directory(path("save.lock"));  // a folder cannot be locked
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { saves.save(5, numbers(5)); }),
              testing::AllOf(HasSubstr("the save of step 5 (checkpoint::Manager::save at manager_test.cpp:"),
                             HasSubstr("save.lock")));
}

TEST_F(Steps, what_is_written_survives_an_exception) {
  try {
    Manager saves(folder_);
    saves.save(2, numbers(2));
    throw std::runtime_error("elsewhere");
  } catch (const std::runtime_error&) {}
  EXPECT_EQ(latest(), 2);
  EXPECT_THAT(entries(), ElementsAre("step_00000002"));
}

TEST_F(Steps, what_could_not_be_written_is_given_up_after_an_exception) {
  const auto last = std::to_string(device_count() - 1);
  try {
    Manager saves(folder_);
    saves.save_now(1, numbers(1));
    setenv("TESSERA_TEST_FAULT", ("written@" + last + ":throw").c_str(), 1);
    saves.save(2, numbers(2));
    throw std::runtime_error("elsewhere");
  } catch (const std::runtime_error&) {}
  unsetenv("TESSERA_TEST_FAULT");
  EXPECT_EQ(latest(), 1);
  io::checkpoint::save(folder_, 3, numbers(3));  // removes leftovers
  EXPECT_THAT(entries(), ElementsAre("step_00000001", "step_00000003"));
}

// The step gets its name without another call of the program on any rank.
TEST_F(Steps, a_step_that_is_written_gets_its_name_by_itself) {
  Manager saves(folder_, {.keep = 2});
  for (int step = 1; step <= 4; ++step) {
    saves.save(step, numbers(step));
    for (int waited = 0; waited < 3000 && io::checkpoint::latest_step(folder_) != step; ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(io::checkpoint::latest_step(folder_), step);
  }
  saves.wait();
  EXPECT_THAT(entries(), ElementsAre("step_00000003", "step_00000004"));
  EXPECT_EQ(to_vector<double>(io::checkpoint::restore(folder_, numbers(0))), to_vector<double>(numbers(4)));
  EXPECT_FALSE(std::filesystem::exists(path("step_00000004/rank_00001.done")));
}

TEST_F(Steps, the_end_of_the_manager_finishes_it) {
  { Manager(folder_).save(4, numbers(4)); }
  EXPECT_EQ(latest(), 4);
}

TEST_F(Steps, a_tree_is_restored_with_its_step) {
  struct Model {
    Array w, b;
    int rate = 3;
  };
  Manager saves(folder_);
  Model model{numbers(0), device_put(zeros({3, 5}), all_rows())};
  EXPECT_EQ(saves.restore(model), std::nullopt);
  saves.save(6, Model{numbers(6), model.b + 2, 9});
  EXPECT_EQ(saves.restore(model), 6);
  EXPECT_EQ(to_vector<double>(model.w), to_vector<double>(numbers(6)));
  EXPECT_EQ(to_vector<float>(model.b), std::vector<float>(15, 2.f));
}

TEST_F(Steps, numbers_of_a_tree_change_from_step_to_step) {
  struct State {
    int step;
    Array x;
  };
  Manager saves(folder_);
  for (int step = 1; step < 4; ++step) saves.save(step, State{step, numbers(step)});
  State state{7, numbers(0)};
  EXPECT_EQ(saves.restore(state), 3);
  EXPECT_EQ(state.step, 7);  // not saved: the step is that of restore
  EXPECT_EQ(to_vector<double>(state.x), to_vector<double>(numbers(3)));
}

TEST_F(Steps, a_damaged_step_is_passed_over_at_the_restart) {
  Manager saves(folder_);
  for (int step = 1; step <= 3; ++step) saves.save_now(step, numbers(step));
  if (is_main_process()) std::filesystem::resize_file(path("step_00000003/rank_00000.bin"), 10);
  comm::barrier(comm::world());
  Array x = numbers(0);
  EXPECT_EQ(saves.restore(x), 2);
  EXPECT_EQ(to_vector<double>(x), to_vector<double>(numbers(2)));
}

// ---- the steps that are kept ----

TEST_F(Steps, the_step_just_saved_stays_in_a_folder_with_later_ones) {
  io::checkpoint::save(folder_, 20, numbers(20));
  Manager saves(folder_, {.keep = 1});
  for (int step = 5; step <= 7; ++step) {
    EXPECT_TRUE(saves.save(step, numbers(step)));
    saves.wait();
  }
  EXPECT_THAT(entries(), ElementsAre("step_00000007", "step_00000020"));
  saves.save_now(21, numbers(21));
  EXPECT_THAT(entries(), ElementsAre("step_00000021"));
}

TEST_F(Steps, a_damaged_step_is_set_aside_and_takes_no_place) {
  for (const int step : {10, 20}) io::checkpoint::save(folder_, step, numbers(step));
  flip(path("step_00000020/rank_00000.bin"), 10);
  Manager saves(folder_, {.keep = 2});
  Array x = numbers(0);
  EXPECT_EQ(saves.restore(x), 10);
  EXPECT_THAT(entries(), ElementsAre("step_00000010", "step_00000020.damaged"));
  saves.save_now(15, numbers(15));
  EXPECT_THAT(entries(), ElementsAre("step_00000010", "step_00000015", "step_00000020.damaged"));
  EXPECT_TRUE(saves.save(20, numbers(21)));
  saves.wait();
  EXPECT_EQ(saves.restore(x), 20);
  EXPECT_EQ(to_vector<double>(x), to_vector<double>(numbers(21)));
  EXPECT_THAT(entries(), ElementsAre("step_00000015", "step_00000020", "step_00000020.damaged"));
}

TEST_F(Steps, a_damaged_step_is_replaced_by_the_one_that_is_saved_under_its_number) {
  Manager saves(folder_, {.keep = 1});
  saves.save_now(3, numbers(3));
  flip(path("step_00000003/rank_00000.bin"), 10);
  EXPECT_TRUE(saves.save(3, numbers(4)));
  saves.wait();
  if (is_main_process()) std::filesystem::remove(path("step_00000003/manifest.json"));
  comm::barrier(comm::world());
  EXPECT_TRUE(saves.save(3, numbers(5)));
  EXPECT_FALSE(saves.save(3, numbers(6)));
  EXPECT_EQ(to_vector<double>(io::checkpoint::restore(folder_, numbers(0))), to_vector<double>(numbers(5)));
  EXPECT_THAT(entries(), ElementsAre("step_00000003", "step_00000003.damaged"));
}

TEST_F(Steps, a_step_that_is_cut_short_does_not_count) {
  Manager saves(folder_, {.keep = 2});
  for (const int step : {1, 2}) saves.save_now(step, numbers(step));
  if (is_main_process()) std::filesystem::resize_file(path("step_00000002/rank_00000.bin"), 10);
  comm::barrier(comm::world());
  saves.save_now(3, numbers(3));
  EXPECT_THAT(entries(), ElementsAre("step_00000001", "step_00000002", "step_00000003"));
  saves.save_now(4, numbers(4));
  EXPECT_THAT(entries(), ElementsAre("step_00000003", "step_00000004"));
}

TEST_F(Steps, restore_by_a_reader_leaves_a_damaged_step_where_it_is) {
  for (const int step : {1, 2}) io::checkpoint::save(folder_, step, numbers(step));
  flip(path("step_00000002/rank_00000.bin"), 10);
  io::checkpoint::restore(folder_, numbers(0));
  EXPECT_THAT(entries(), ElementsAre("step_00000001", "step_00000002"));
  const Manager saves(folder_);
  io::checkpoint::restore(folder_, numbers(0));
  EXPECT_THAT(entries(), ElementsAre("step_00000001", "step_00000002.damaged"));
}

TEST_F(Steps, what_cannot_be_kept_is_refused) {
  EXPECT_THAT(text_of_error<ArgumentError>([&] { Manager(folder_, {.keep = -1}); }), HasSubstr("keep is -1"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { Manager(folder_, {.every = 0}); }), HasSubstr("every 0"));
}

}  // namespace
}  // namespace tessera::test
