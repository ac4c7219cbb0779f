// docs_test [PAGE]: runs every ```cpp block of the documentation; blocks for another number of ranks are
// skipped. Each block starts and ends the runtime again; MPI stays initialised.
#include <tessera/tessera.hpp>

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "docs/blocks.hpp"

namespace docs {
namespace {

struct Block {
  const char* page;
  int line, ranks;
  Program program;
};

std::vector<Block>& blocks() {
  static std::vector<Block> all;
  return all;
}

}  // namespace

void add(const char* page, int line, int ranks, Program program) {
  blocks().push_back({page, line, ranks, std::move(program)});
}

int run_expecting(int argc, char** argv, const std::function<bool()>& body) {
  bool was_raised = false;
  const int status = tessera::run(argc, argv, [&] { was_raised = body(); });
  if (!was_raised) std::printf("the error that the block is to show was not raised\n");
  return status != 0 ? status : was_raised ? 0 : 1;
}

}  // namespace docs

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1, failed = 0, run = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const auto& [page, line, wanted, program] : docs::blocks()) {
    if (wanted != 0 ? wanted != ranks : ranks > 2) continue;
    if (argc > 1 && std::strstr(page, argv[1]) == nullptr) continue;
    if (rank == 0) std::printf("---- %s:%d\n", page, line), std::fflush(stdout);
    const int status = program(1, argv);
    if (status != 0 && rank == 0) std::printf("%s:%d ended with %d\n", page, line, status);
    failed += status != 0;
    ++run;
  }
  if (rank == 0) std::printf("%d blocks, %d failed\n", run, failed);
  MPI_Finalize();
  return failed != 0 || run == 0;
}
