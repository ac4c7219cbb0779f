// starved PROGRAM RANK N: the N-th allocation of rank RANK fails, counted over the whole program. The job
// must end with right values and status 0, or with one reported failure.
#include <tessera/error.hpp>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "comm/mpi/environment.hpp"
#include "graph/node.hpp"
#include "types/other_memory.hpp"

using namespace tessera;

namespace {

long allocations = 0, fails_at = -1;  // allocations of this rank while armed
bool armed = false;

bool fails_now() { return armed && ++allocations == fails_at; }
struct Armed {
  Armed() { armed = true; }
  ~Armed() { armed = false; }
};

void require(bool fact, const char* what) {
  if (fact) return;
  std::fprintf(stderr, "[rank %d] wrong: %s\n", process_index(), what);
  comm::abort_job(99);
}

// All kinds of joint work: evaluations, reshards, reductions, jit, a part of the ranks.
void work(const Mesh& all, const Mesh& two) {
  const int ranks = device_count(), n = 12 * ranks;
  const double sum_of_all = n * (n - 1) / 2.0;
  const Array x = device_put(astype(arange(n), float64), all, P("x"));
  require(item<double>(sum(x)) == sum_of_all, "a sum over all ranks");
  const Array square = reshape(device_put(astype(arange(n * n), float64), all, P("x")), {n, n});
  const Array turned = device_put(transpose(square), all, P(None, "x"));
  require(item<double>(sum(turned * turned - square * square)) == 0, "a reshard");
  const auto twice = jit([](Array v) { return v * 2 + sum(v) - sum(v); });
  for (int again = 0; again < 2; ++again)
    require(item<double>(sum(twice(x))) == 2 * sum_of_all, "a jitted sum");
  require(item<double>(sum(sort(x))) == sum_of_all, "a sort");
  if (process_index() < 2) {
    for (int again = 0; again < 3; ++again) {
      const Array part = device_put(astype(arange(64), float64), two, P("x"));
      const Array total = sum(part * (again + 1));
      eval(total);
      const auto* value = reinterpret_cast<const double*>(output_of(total).stored->buffer.data());
      require(*value == 2016.0 * (again + 1), "a sum over two ranks");
    }
  }
  require(item<double>(sum(x)) == sum_of_all, "the first array at the end");
}

// A program that catches every exception and continues.
void stubborn_work(const Mesh& all, const Mesh& two) {
  for (int again = 0; again < 4; ++again) try {
      work(all, two);
    } catch (const std::exception&) {}
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // of the two below, once they are inlined
void* operator new(std::size_t bytes) {
  if (fails_now()) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails_now() ? nullptr : std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  if (argc < 4) return 98;
  const std::string program = argv[1];
  const int rank = std::atoi(argv[2]);
  return run(argc, argv, [&] {
    const Mesh all = make_mesh({device_count()}, {"x"});
    const Mesh two(NdDevices{0, 1}, {"x"});
    if (process_index() == rank) fails_at = std::atol(argv[3]);
#ifdef TESSERA_VERIFY
    refuse_memory_when([](std::size_t) { return fails_now(); });
#endif
    const Armed counts;
    program == "stubborn" ? stubborn_work(all, two) : work(all, two);
    if (process_index() == rank && fails_at < 0) std::printf("%ld\n", allocations);
  });
}
