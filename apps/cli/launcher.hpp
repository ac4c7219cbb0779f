// Which command starts ranks here, with which settings. Nothing is started: launch.cpp does that, and
// sbatch.cpp writes it into a script.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cli {

// A node, as far as binding asks.
struct Cpus {
  int cores = 1, threads = 1;  // threads: the CPUs that SLURM counts
};
Cpus cpus_of_this_node();

// The most tasks on a node of "32(x3),16", as SLURM_TASKS_PER_NODE says it; 0 where it says nothing.
int most_tasks_per_node(const std::string& text);
// How mpirun spreads the tasks of an allocation over a node: a rank per so many cores where they suffice, per
// hardware thread where those do, and no binding where ranks share what there is.
std::vector<std::string> mapping(int tasks, int cpus_per_task, const Cpus& node);

// The type for `srun --mpi`, from what `srun --mpi=list` printed and the name of the MPI library; "" where
// nothing in the list suits it.
std::string mpi_type(const std::string& listed, const std::string& mpi_library);
// The same of this machine: "" without srun.
std::string mpi_type_here();

// Whether this mpirun is MPICH's or a descendant's, whose options are not Open MPI's.
bool is_hydra(const std::string& mpirun);

bool is_on_path(const std::string& program);
bool is_program(const std::string& path);  // a file that can be run
// Throws where the first word of a command is nothing that can be run; mpirun would say so in a dozen lines.
void require_program(const char* command, const std::string& program, const char* when);
// In single quotes where the shell would read it otherwise.
std::string shell_word(const std::string& word);

struct Launcher {
  std::vector<std::pair<std::string, std::string>> settings;  // of the environment, where it has none
  std::vector<std::string> words;                             // the launcher and its options
};
// `chosen` is mpirun, srun, or "" for mpirun where there is one. UsageError where it is not to be had.
Launcher launcher_here(int ranks, const std::string& chosen);
// The program of a rank and its words. A Python file is started by the interpreter that TESSERA_PYTHON names.
void add_program(Launcher&, const std::vector<std::string>& program);
std::vector<std::string> srun_words(const std::string& type, int ranks, int cpus_per_task);
// As a line for a shell: A=1 mpirun -n 4
std::string shell_line(const Launcher&);

bool in_slurm();

}  // namespace cli
