// Errors have a name and an exit status.
#include <gtest/gtest.h>
#include <tessera/error.hpp>

namespace tessera {
namespace {

template <class E> std::string kind_when_caught_as_error(auto... more) {
  try {
    throw E("text", more...);
  } catch (const Error& error) {
    return error.kind();
  }
}

TEST(Errors, name_their_type_however_they_are_caught) {
  EXPECT_EQ(kind_when_caught_as_error<ShapeError>(), "ShapeError");
  EXPECT_EQ(kind_when_caught_as_error<DtypeError>(), "DtypeError");
  EXPECT_EQ(kind_when_caught_as_error<ShardingError>(), "ShardingError");
  EXPECT_EQ(kind_when_caught_as_error<AxisNameError>(), "AxisNameError");
  EXPECT_EQ(kind_when_caught_as_error<IndexError>(), "IndexError");
  EXPECT_EQ(kind_when_caught_as_error<ArgumentError>(), "ArgumentError");
  EXPECT_EQ(kind_when_caught_as_error<ThreadError>(), "ThreadError");
  EXPECT_EQ(kind_when_caught_as_error<CommError>(), "CommError");
  EXPECT_EQ(kind_when_caught_as_error<IoError>(), "IoError");
  EXPECT_EQ(kind_when_caught_as_error<MemoryError>(), "MemoryError");
  EXPECT_EQ(kind_when_caught_as_error<LinAlgError>(), "LinAlgError");
  EXPECT_EQ(kind_when_caught_as_error<NanError>(), "NanError");
  EXPECT_EQ(kind_when_caught_as_error<DisagreementError>(), "DisagreementError");
  EXPECT_EQ(kind_when_caught_as_error<FailedJobError>(70), "FailedJobError");
}

TEST(Errors, know_the_status_that_a_job_ends_with) {
  EXPECT_EQ(ShapeError("").exit_status(), 70);
  EXPECT_EQ(LinAlgError("").exit_status(), 70);
  EXPECT_EQ(InternalError("").exit_status(), 70);
  EXPECT_EQ(MemoryError("").exit_status(), 71);
  EXPECT_EQ(IoError("").exit_status(), 74);
  EXPECT_EQ(CommError("").exit_status(), 70);
  EXPECT_EQ(DisagreementError("").exit_status(), 76);
  EXPECT_EQ(FailedJobError("", 71).exit_status(), 71);
}

TEST(Errors, a_bug_in_tessera_says_that_it_is_one) {
  EXPECT_EQ(kind_when_caught_as_error<InternalError>(), "InternalError (a bug in tessera)");
}

}  // namespace
}  // namespace tessera
