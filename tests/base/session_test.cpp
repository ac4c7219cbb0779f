// State whose lifetime is one runtime, and the thread that may access it.
#include "base/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/error.hpp>

#include <string>
#include <thread>
#include <vector>

#include "base/settings.hpp"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> gone;
struct First {
  int value = 0;
  ~First() { gone.push_back("first"); }
};
struct Second {
  First& needed = state<First>();
  ~Second() { gone.push_back("second, which sees " + std::to_string(needed.value)); }
};

struct Session : testing::Test {
  Session() {
    end_session();
    gone.clear();
  }
  ~Session() { end_session(); }
};

TEST_F(Session, is_made_at_first_use_and_kept_until_it_ends) {
  state<First>().value = 3;
  EXPECT_EQ(state<First>().value, 3);
  end_session();
  EXPECT_EQ(state<First>().value, 0);
}

TEST_F(Session, goes_in_the_reverse_order_of_its_making) {
  state<Second>().needed.value = 5;
  end_session();
  EXPECT_THAT(gone, ElementsAre("second, which sees 5", "first"));
}

TEST_F(Session, what_asks_while_it_goes_gets_a_new_one_that_goes_too) {
  struct Asks {
    ~Asks() { state<First>().value = 7; }
  };
  state<First>();
  state<Asks>();
  gone.clear();
  end_session();
  EXPECT_THAT(gone, ElementsAre("first"));
  end_session();
  EXPECT_EQ(state<First>().value, 0);
}

TEST_F(Session, a_state_that_cannot_be_made_is_made_at_the_next_use) {
  static bool fails = true;
  struct Fragile {
    Fragile() {
      if (fails) throw ArgumentError("not yet");
    }
  };
  EXPECT_THROW(state<Fragile>(), ArgumentError);
  fails = false;
  EXPECT_NO_THROW(state<Fragile>());
}

TEST_F(Session, each_has_its_number) {
  const int before = session_number();
  end_session();
  EXPECT_NE(session_number(), before);
}

TEST_F(Session, reads_the_environment_afresh) {
  EXPECT_EQ(settings().message_limit, std::int64_t{1} << 30);
  setenv("TESSERA_MESSAGE_LIMIT", "1000", 1);
  EXPECT_EQ(settings().message_limit, std::int64_t{1} << 30);
  end_session();
  EXPECT_EQ(settings().message_limit, 1000);
  unsetenv("TESSERA_MESSAGE_LIMIT");
}

std::string refusal_on_another_thread(const std::string& name = "") {
  std::string text = "no error";
  std::thread([&] {
    if (!name.empty()) pthread_setname_np(pthread_self(), name.c_str());
    try {
      check_thread("matmul", std::source_location::current());
    } catch (const ThreadError& error) {
      text = error.what();
    }
  }).join();
  return text;
}

TEST_F(Session, a_second_thread_is_told_which_thread_may_call_and_what_to_do) {
  check_thread("matmul");
  const std::string text = refusal_on_another_thread("worker");
  EXPECT_THAT(text, HasSubstr("matmul at session_test.cpp:"));
  EXPECT_THAT(text, HasSubstr("('worker')"));
  EXPECT_THAT(text, HasSubstr("made the first call"));
  EXPECT_THAT(text, HasSubstr("Hand the work to that thread"));
}

TEST_F(Session, the_thread_that_starts_the_runtime_takes_over) {
  std::thread([] { check_thread("matmul"); }).join();
  EXPECT_THROW(check_thread("matmul"), ThreadError);
  begin_session();
  EXPECT_NO_THROW(check_thread("matmul"));
  EXPECT_THAT(refusal_on_another_thread(), HasSubstr("started the runtime"));
}

TEST_F(Session, another_thread_may_follow_when_the_session_has_ended) {
  check_thread("matmul");
  end_session();
  EXPECT_EQ(refusal_on_another_thread(), "no error");
}

}  // namespace
}  // namespace tessera
