// A separate folder for each test, the same on every rank, removed at the end; and the text of a call's
// error.
#pragma once
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "comm/collectives/collectives.hpp"
#include "support/layouts.hpp"

namespace tessera::test {

#ifdef TEST_WITHOUT_HDF5
inline constexpr bool has_hdf5 = false;
#else
inline constexpr bool has_hdf5 = true;
#endif

class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::int64_t number = getpid();
    comm::broadcast(comm::world(), &number, sizeof number, 0);
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        (std::filesystem::temp_directory_path() / ("tessera-" + std::to_string(number) + "-" + test->name()))
            .string();
    if (is_main_process()) std::filesystem::create_directories(folder_);
    comm::barrier(comm::world());
  }
  void TearDown() override {
    comm::barrier(comm::world());
    if (is_main_process()) std::filesystem::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // Rank 0 writes the file; all ranks wait for it.
  std::string put(const std::string& name, const std::string& bytes) const {
    if (is_main_process()) std::ofstream(path(name), std::ios::binary) << bytes;
    comm::barrier(comm::world());
    return path(name);
  }
  std::vector<std::string> entries() const {
    comm::barrier(comm::world());
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    comm::barrier(comm::world());
    return names;
  }
  std::string folder_;
};

inline Sharding all_rows() { return NamedSharding(make_mesh({device_count()}, {"x"}), P("x")); }

// The text of the error E; fails the test, naming the actual outcome, if E is not thrown.
template <class E> std::string text_of_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

}  // namespace tessera::test
