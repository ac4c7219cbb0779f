// Starts MPI at import and ends it with the process, since a Python program has no C++ main.
#include <tessera/preemption.hpp>
#include <tessera/runtime.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "api/job_profile.hpp"
#include "api/preemption.hpp"
#include "base/child_process.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/in_use.hpp"
#include "comm/watch/waiting.hpp"
#include "python/convert.hpp"
#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera {

namespace python {
namespace {
// The address of an MPI_Comm that another module created, under any MPI.
struct CommAddress {
  const void* address;
};
}  // namespace
}  // namespace python

template <>
inline Runtime Runtime::attach<python::CommAddress>(python::CommAddress comm, RuntimeOptions options) {
  return Runtime(Attach{}, comm.address, options);
}

}  // namespace tessera

namespace tessera::python {
namespace {

// How the program ended, if an exception left it.
struct Ending {
  std::string words;
  int status = 0;
  bool has_ended = false;
};
Ending& ending() {
  static auto* const one = new Ending();
  return *one;
}

// Called on every rank with its exit status: at the interpreter's end, or from exit.
int end_runtime(int status, void (*finish)() = comm::finish) {
  if (!comm::is_started() || is_child_process()) return status;
  auto& [words, failed_with, has_ended] = ending();
  if (failed_with != 0) status = failed_with;
  if (status != 0 && words.empty()) words = "the program ended with status " + std::to_string(status);
  int common = status_failed;
  try {
    common = comm::leave(status, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tessera: %s\n", error.what());
  }
  finish();
  return common;
}

void at_exit(int status, void*) {
  const int common = end_runtime(status);
  if (common == status && !is_child_process()) return;
  std::fflush(nullptr);
  _exit(common);
}

void start() {
  static int argc = 0;
  static char* no_words[] = {nullptr};
  static char** argv = no_words;
  new Runtime(argc, argv);                                  // destroyed by at_exit
  static const int registered = on_exit(at_exit, nullptr);  // runs before the runtime's own
  static_cast<void>(registered);
}

// Starts on a communicator of mpi4py's, given by the address of its MPI_Comm.
void start_on(std::uintptr_t address) {
  new auto(Runtime::attach(CommAddress{reinterpret_cast<const void*>(address)}));
}

// A function to be called when the job is asked to stop, during the lifetime of the object or its `with`
// block.
struct Preemption {
  std::optional<OnPreemption> registered;
};
Preemption preemption_of(py::function save) {
  const auto where = here();
  auto call = [held = kept(save)] {
    const py::gil_scoped_acquire locked;
    (*held)();
  };
  const py::gil_scoped_release unlocked;
  return {on_preemption(std::move(call), where)};
}
void bind_preemption(py::module_& m) {
  m.def(
      "preempted",
      [] {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return preempted(where);
      },
      "Whether some process was asked to stop (SIGTERM, SIGUSR1): the same answer on all. Collective over "
      "all ranks.");
  py::class_<Preemption>(m, "OnPreemption")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Preemption& self, py::args) { self.registered.reset(); });
  m.def("forget_preemption", &forget_preemption,
        "A request to stop that was answered is over. On every process between the same two agreements.");
  m.def(
      "on_preemption", &preemption_of, py::arg("save"),
      "save() is called once on all processes when the job is asked to stop, which then ends with Preempted "
      "(status 85). Collective over all ranks.");
}

}  // namespace

void bind_runtime(py::module_& m) {
  bind_preemption(m);
  m.def("start", &start, "Starts MPI, unless mpi4py has. Collective over all processes.");
  m.def("attach", &start_on);
  m.def("is_started", &comm::is_started);
  m.def("long_wait", &comm::long_wait, py::arg("least_s"),
        "The call in which this process has waited for so long for others; '' if it has not. On any thread.");
  m.def("is_forked_child", &is_child_process);
  m.def("launched_rank", &comm::launched_rank,
        "This process's rank as its launcher says it; -1 without one.");
  m.def(
      "mpi_in_use",
      [] {
        const auto [kind, path] = comm::mpi_in_use();
        return std::make_pair(kind, path);
      },
      "Which MPI was loaded (openmpi, mpich, mpiabi, none, or linked), and the path of its library.");
  m.def("set_package_folder", &set_package_folder);
  m.def(
      "fail",
      [](const std::string& words, int status) {
        ending().words = words;
        ending().status = status;
      },
      "An exception has left the program: its text, and the status that the job ends with.");
  m.def("finish_job_profile", &finish_job_profile, py::call_guard<py::gil_scoped_release>());
  m.def(
      "end", [] { return end_runtime(0); }, py::call_guard<py::gil_scoped_release>());
  m.def(
      "detach", [] { return end_runtime(0, comm::finish_but_keep_mpi); },
      py::call_guard<py::gil_scoped_release>());
  m.def("process_index", &process_index, "This process's rank. Not collective.");
  m.def("process_count", &process_count, "How many processes the job has. Not collective.");
  m.def("is_main_process", &is_main_process, "Whether this is rank 0. Not collective.");
  m.def(
      "here", [] { return line_text(here()); }, "The line of the caller, as errors cite it.");
}

}  // namespace tessera::python
