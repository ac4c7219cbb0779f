// Effects of a save on the previous file, on other jobs, and on leftovers of other jobs.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <csignal>

#include <tessera/io/zarr.hpp>

#include "base/settings.hpp"
#include "io/folder.hpp"
#include "io/save_target.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Save : public InFolder {
 protected:
  static Array rows(int first) { return device_put(astype(arange(4000) + first, float32), all_rows()); }
  static float first_of(const std::string& file) {
    return to_vector<float>(io::load_npy(file, all_rows()))[0];
  }
  // Runs on the first rank only; the others wait.
  static void once(const std::function<void()>& work) {
    if (is_main_process()) work();
    comm::barrier(comm::world());
  }
  mode_t mode_of(const std::string& name) const {
    struct stat facts {};
    ::stat(path(name).c_str(), &facts);
    return facts.st_mode & 07777;
  }
};

TEST_F(Save, through_a_symbolic_link_keeps_the_link_and_writes_where_it_leads) {
  once([&] {
    fs::create_directories(path("far"));
    fs::create_symlink("far/x.npy", path("x.npy"));    // dangling: the target does not exist yet
    fs::create_symlink(path("x.npy"), path("y.npy"));  // and a link to the link
  });
  io::save_npy(path("x.npy"), rows(1));
  EXPECT_EQ(first_of(path("far/x.npy")), 1);
  io::save_npy(path("y.npy"), rows(2));
  EXPECT_EQ(first_of(path("far/x.npy")), 2);
  EXPECT_TRUE(fs::is_symlink(path("x.npy")));
  EXPECT_TRUE(fs::is_symlink(path("y.npy")));
  EXPECT_THAT(entries(), ElementsAre("far", "x.npy", "y.npy"));
}

TEST_F(Save, links_in_a_circle_are_named) {
  once([&] {
    fs::create_symlink("b", path("a"));
    fs::create_symlink("a", path("b"));
  });
  EXPECT_THAT(text_of_error<IoError>([&] { io::save_npy(path("a"), rows(1)); }), HasSubstr("in a circle"));
}

TEST_F(Save, where_no_file_can_be_made_is_told_and_not_waited_for) {
  EXPECT_THAT(text_of_error<IoError>([&] { io::save_npy("/proc/x.npy", rows(1)); }),
              HasSubstr("the lock '/proc/x.npy.lock' cannot be opened"));
}

TEST_F(Save, a_name_without_room_for_that_of_its_temporary_is_told) {
  const std::string longest(234 - 4, 'x'), longer(255 - 5, 'x');
  io::save_npy(path(longest + ".npy"), rows(1));
  EXPECT_EQ(first_of(path(longest + ".npy")), 1);
  for (const std::string& name : {longest + "x.npy", longer + ".zarr"})
    EXPECT_THAT(text_of_error<IoError>([&] {
                  if (name.ends_with("npy"))
                    io::save_npy(path(name), rows(1));
                  else
                    io::save_zarr(path(name), rows(1));
                }),
                AllOf(HasSubstr(" has " + std::to_string(name.size()) + " bytes; a save needs 21 more"),
                      HasSubstr("use a name of at most 234 bytes")));
  EXPECT_THAT(entries(), ElementsAre(longest + ".npy"));
}

TEST_F(Save, over_a_file_keeps_its_mode) {
  if (!has_hdf5) GTEST_SKIP() << "HDF5 is not in this build";
  io::save_npy(path("x.npy"), rows(1));
  io::save_hdf5(path("x.h5"), "a", rows(1));
  once([&] {
    ::chmod(path("x.npy").c_str(), 0640);
    ::chmod(path("x.h5").c_str(), 0604);
  });
  io::save_npy(path("x.npy"), rows(2));
  io::save_hdf5(path("x.h5"), "b", rows(2));
  EXPECT_EQ(mode_of("x.npy"), 0640u);
  EXPECT_EQ(mode_of("x.h5"), 0604u);
  EXPECT_EQ(first_of(path("x.npy")), 2);
}

TEST_F(Save, over_a_file_keeps_its_acl_and_attributes) {
  io::save_npy(path("x.npy"), rows(1));
  // Version 2; user::rw-, user:1234:r--, group::r--, mask::r--, other::---
  const std::uint32_t acl[] = {2,   0x00060001, ~0u, 0x00040002, 1234, 0x00040004,
                               ~0u, 0x00040010, ~0u, 0x00000020, ~0u};
  std::int64_t can = 0;
  if (is_main_process())
    can = ::setxattr(path("x.npy").c_str(), "system.posix_acl_access", acl, sizeof acl, 0) == 0;
  comm::broadcast(comm::world(), &can, sizeof can, 0);
  if (!can) GTEST_SKIP() << "this file system has no access control lists";
  const bool has_user =
      ::setxattr(path("x.npy").c_str(), "user.origin", "lab", 3, 0) == 0;  // same on all ranks
  comm::barrier(comm::world());
  io::save_npy(path("x.npy"), rows(2));
  std::uint32_t after[11] = {};
  EXPECT_EQ(::getxattr(path("x.npy").c_str(), "system.posix_acl_access", after, sizeof after),
            static_cast<ssize_t>(sizeof acl));
  EXPECT_TRUE(std::equal(acl, acl + 11, after));
  char origin[3] = {};
  const auto kept = ::getxattr(path("x.npy").c_str(), "user.origin", origin, sizeof origin);
  EXPECT_EQ(kept, has_user ? 3 : -1);
  EXPECT_EQ(first_of(path("x.npy")), 2);
}

TEST_F(Save, while_another_job_saves_there_waits_and_then_says_who_it_is) {
  int lock = -1;
  const auto hold = [&](const std::string& name) {
    once([&] {
      lock = ::open(path(name).c_str(), O_RDWR | O_CREAT, 0666);
      ::flock(lock, LOCK_EX);
      EXPECT_EQ(::write(lock, "host far, process 7, job 42\x1b[2J", 31), 31);
    });
  };
  const SettingScope soon("TESSERA_TIMEOUT", "0.4");
  hold("x.npy.lock");
  EXPECT_THAT(text_of_error<IoError>([&] { io::save_npy(path("x.npy"), rows(1)); }),
              AllOf(HasSubstr("'" + path("x.npy") +
                              "' is being saved by another job ('host far, process 7, job "
                              "42\\x1b[2J'); wait for it, or save under another name")));
  EXPECT_THAT(entries(), ElementsAre("x.npy.lock"));
  once([&] { ::close(lock); });
  hold("save.lock");
  EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::save(folder_, 1, rows(1)); }),
              HasSubstr("is being saved by another job"));
  once([&] { ::close(lock); });
}

TEST_F(Save, after_a_job_that_died_takes_its_lock_and_clears_what_it_left) {
  once([&] {
    for (const char* name : {"x.npy.lock", "x.npy.tmp-0123456789abcdef", "x.npy.tmp-backup", "x.npy.tmp-1234",
                             "other.npy.tmp-0123456789abcdef", "save.lock"})
      std::ofstream(path(name)) << "left";
    fs::create_directories(path("step_00000003.tmp-fedcba9876543210/rest"));
  });
  io::save_npy(path("x.npy"), rows(1));
  EXPECT_THAT(entries(),
              ElementsAre("other.npy.tmp-0123456789abcdef", "save.lock", "step_00000003.tmp-fedcba9876543210",
                          "x.npy", "x.npy.tmp-1234", "x.npy.tmp-backup"));
  io::checkpoint::save(folder_, 4, rows(1));
  EXPECT_THAT(entries(), ElementsAre("other.npy.tmp-0123456789abcdef", "step_00000004", "x.npy",
                                     "x.npy.tmp-1234", "x.npy.tmp-backup"));
}

TEST_F(Save, temporaries_are_named_by_chance) {
  std::set<std::string> names;
  for (int n = 0; n < 1000; ++n) names.insert(io::random_name());
  EXPECT_EQ(names.size(), 1000u);
  EXPECT_TRUE(io::is_temporary("x.tmp-" + *names.begin(), "x"));
  EXPECT_FALSE(io::is_temporary("x.tmp-" + *names.begin() + "0", "x"));
  EXPECT_FALSE(io::is_temporary("y.tmp-" + *names.begin(), "x"));
}

TEST_F(Save, beyond_the_limit_of_a_files_size_is_an_error_and_no_end_of_the_process) {
  if (!has_hdf5) GTEST_SKIP() << "HDF5 is not in this build";
  io::save_npy(path("x.npy"), rows(1));
  io::save_hdf5(path("x.h5"), "a", rows(1));
  const rlimit few{1000, RLIM_INFINITY};
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_DFL);
  for (const int rank : {0, device_count() - 1}) {
    if (process_index() == rank) setrlimit(RLIMIT_FSIZE, &few);
    EXPECT_THAT(text_of_error<IoError>([&] { io::save_npy(path("x.npy"), rows(2)); }),
                HasSubstr("File too large"));
    EXPECT_THAT(text_of_error<IoError>([&] { io::save_hdf5(path("x.h5"), "b", rows(2)); }),
                HasSubstr("save_hdf5"));
    EXPECT_THAT(text_of_error<IoError>([&] { io::checkpoint::save(path("steps"), 1, rows(2)); }),
                HasSubstr("checkpoint::save"));
    setrlimit(RLIMIT_FSIZE, &before);
  }
  EXPECT_EQ(std::signal(SIGXFSZ, handler), SIG_DFL);  // as the program set it
  EXPECT_THAT(entries(), ElementsAre("steps", "x.h5", "x.npy"));
  EXPECT_TRUE(fs::is_empty(path("steps")));
  EXPECT_EQ(first_of(path("x.npy")), 1);
  EXPECT_THAT(io::hdf5_datasets(path("x.h5")), ElementsAre("/a"));
}

}  // namespace
}  // namespace tessera::test
