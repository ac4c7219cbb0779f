#include "base/own_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;

class OwnFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tessera-own-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    file_ = folder_ + "/deep/cache";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_, file_;
};

TEST_F(OwnFile, holds_what_was_written_last_and_leaves_no_draft) {
  EXPECT_EQ(read_own_file(file_), std::nullopt);
  EXPECT_TRUE(replace_own_file(file_, "one"));
  EXPECT_TRUE(replace_own_file(file_, std::string(10000, '2')));
  EXPECT_EQ(read_own_file(file_), std::string(10000, '2'));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/deep"), {}), 1);
}

TEST_F(OwnFile, written_by_many_at_once_is_one_of_the_texts) {
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; ++c)
    threads.emplace_back([this, c] {
      for (int n = 0; n < 50; ++n) replace_own_file(file_, std::string(5000, c));
    });
  for (int n = 0; n < 50; ++n) {
    const auto text = read_own_file(file_);
    EXPECT_TRUE(!text || (text->size() == 5000 && std::set<char>(text->begin(), text->end()).size() == 1));
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/deep"), {}), 1);
}

TEST_F(OwnFile, that_others_may_write_or_own_is_not_read) {
  replace_own_file(file_, "mine");
  ::chmod(file_.c_str(), 0622);
  EXPECT_EQ(read_own_file(file_), std::nullopt);
  ::chmod(file_.c_str(), 0644);
  EXPECT_EQ(read_own_file(file_), "mine");
  if (::chown(file_.c_str(), 12345, static_cast<gid_t>(-1)) != 0) return;  // only root can try
  EXPECT_EQ(read_own_file(file_), std::nullopt);
}

TEST_F(OwnFile, a_pipe_or_a_folder_is_none_and_does_not_block) {
  ::mkfifo((folder_ + "/pipe").c_str(), 0600);
  EXPECT_EQ(read_own_file(folder_ + "/pipe"), std::nullopt);
  EXPECT_EQ(read_own_file(folder_), std::nullopt);
  EXPECT_FALSE(replace_own_file("/proc/none/cache", "x"));
}

}  // namespace
}  // namespace tessera
