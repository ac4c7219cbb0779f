// State that lives from one end of a runtime to the next, and the thread that may ask for it.
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

TEST_F(Session, IsMadeAtFirstUseAndKeptUntilItEnds) {
  state<First>().value = 3;
  EXPECT_EQ(state<First>().value, 3);
  end_session();
  EXPECT_EQ(state<First>().value, 0);
}

TEST_F(Session, GoesInTheReverseOrderOfItsMaking) {
  state<Second>().needed.value = 5;
  end_session();
  EXPECT_THAT(gone, ElementsAre("second, which sees 5", "first"));
}

TEST_F(Session, WhatAsksWhileItGoesGetsANewOneThatGoesToo) {
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

TEST_F(Session, AStateThatCannotBeMadeIsMadeAtTheNextUse) {
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

TEST_F(Session, EachHasItsNumber) {
  const int before = session_number();
  end_session();
  EXPECT_NE(session_number(), before);
}

TEST_F(Session, ReadsTheEnvironmentAfresh) {
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

TEST_F(Session, ASecondThreadIsToldWhichThreadMayCallAndWhatToDo) {
  check_thread("matmul");
  const std::string text = refusal_on_another_thread("worker");
  EXPECT_THAT(text, HasSubstr("matmul at session_test.cpp:"));
  EXPECT_THAT(text, HasSubstr("('worker')"));
  EXPECT_THAT(text, HasSubstr("made the first call"));
  EXPECT_THAT(text, HasSubstr("Hand the work to that thread"));
}

TEST_F(Session, TheThreadThatStartsTheRuntimeTakesOver) {
  std::thread([] { check_thread("matmul"); }).join();
  EXPECT_THROW(check_thread("matmul"), ThreadError);
  begin_session();
  EXPECT_NO_THROW(check_thread("matmul"));
  EXPECT_THAT(refusal_on_another_thread(), HasSubstr("started the runtime"));
}

TEST_F(Session, AnotherThreadMayFollowWhenTheSessionHasEnded) {
  check_thread("matmul");
  end_session();
  EXPECT_EQ(refusal_on_another_thread(), "no error");
}

}  // namespace
}  // namespace tessera
