// The folder of the files that tests read beside their sources.
#pragma once
#include <filesystem>

namespace tessera::test {

std::filesystem::path tests_folder();  // the tests' folder in the source tree

}  // namespace tessera::test
