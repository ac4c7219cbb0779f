// The one file that holds the path of the source tree: all others compile to the same bytes in every folder, so that ccache finds them again.
#include "support/data.hpp"

namespace tessera::test {

std::filesystem::path tests_folder() { return TESSERA_TESTS_FOLDER; }

}  // namespace tessera::test
