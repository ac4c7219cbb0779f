#include <gmock/gmock.h>
#include <tessera/error.hpp>
#include <tessera/progress.hpp>

#include "debug/progress_text.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST(Progress, a_line_of_a_log_says_how_far_how_fast_and_how_long_still) {
  EXPECT_EQ(progress_line({"train", "loss 0.031", 470, 1000, 37.6}),
            "train: 47 %  470 of 1000  12.5/s  0:42 left  loss 0.031");
}

TEST(Progress, at_its_end_says_how_long_it_took) {
  EXPECT_EQ(progress_line({"train", "", 1000, 1000, 80}), "train: 100 %  1000 of 1000  12.5/s  in 1:20");
}

TEST(Progress, of_an_unknown_number_of_steps_counts) {
  EXPECT_EQ(progress_line({"read", "", 30, 0, 7200}), "read: 30  0.004/s  in 2:00:00");
}

TEST(Progress, a_bar_fits_the_terminal) {
  const ProgressState state{"train", "", 470, 1000, 37.6};
  EXPECT_EQ(progress_bar(state, 80),
            "train  [==============>               ]   47 %  470 of 1000  12.5/s  0:42 left");
  for (const int columns : {12, 30, 50, 200})
    EXPECT_LT(static_cast<int>(progress_bar(state, columns).size()), columns);
}

TEST(Progress, more_steps_than_were_announced_are_all_of_it) {
  EXPECT_THAT(progress_bar({"x", "", 12, 10, 1}, 80), HasSubstr("100 %"));
}

TEST(Progress, counts_its_steps_and_is_silent_when_it_is_short) {
  testing::internal::CaptureStderr();
  {
    Progress progress("short", 3);
    progress.advance();
    progress.advance(2);
    EXPECT_EQ(progress.done(), 3);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THROW(Progress("x", -1), ArgumentError);
}

}  // namespace
}  // namespace tessera
