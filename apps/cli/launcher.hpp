// The command and settings that start ranks on this machine. Starts nothing: launch.cpp does, and sbatch.cpp
// writes it into a script.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cli {

// A node's CPUs, as needed for binding.
struct Cpus {
  int cores = 1, threads = 1;  // threads: the CPUs that SLURM counts
};
Cpus cpus_of_this_node();

// The most tasks on a node, from SLURM_TASKS_PER_NODE such as "32(x3),16"; 0 if it is invalid.
int most_tasks_per_node(const std::string& text);
// How mpirun maps the tasks of an allocation to a node: a rank per `cpus_per_task` cores if there are
// enough, else per hardware thread, and no binding if ranks must share.
std::vector<std::string> mapping(int tasks, int cpus_per_task, const Cpus& node);

// The type for `srun --mpi`, from the output of `srun --mpi=list` and the name of the MPI library; "" if
// nothing in the list fits.
std::string mpi_type(const std::string& listed, const std::string& mpi_library);
// The same for this machine: "" without srun.
std::string mpi_type_here();

// Whether this mpirun is MPICH's or a derivative's, whose options differ from Open MPI's.
bool is_hydra(const std::string& mpirun);
// The option with which this mpirun prints nothing of its own behind a rank's error: Open MPI's had one up to
// version 4.
std::vector<std::string> quiet_words(const std::string& mpirun);

std::string path_of(const std::string& program);  // a path itself, or found on the PATH; "" if neither
bool is_on_path(const std::string& program);
bool is_program(const std::string& path);  // an executable file
bool is_script(const std::string& path);   // a Python file that only python3 can start
// Throws if the first word of a command can start neither by itself nor by python3; mpirun would print a
// dozen lines.
void require_program(const char* command, const std::string& program, const char* when);
// The word in single quotes if the shell needs them.
std::string shell_word(const std::string& word);

struct Launcher {
  std::vector<std::pair<std::string, std::string>> settings;  // environment variables, set if unset
  std::vector<std::string> words;                             // the launcher and its options
};
// `chosen` is mpirun, srun, or "" for mpirun if available. UsageError if it is not available.
Launcher launcher_here(int ranks, const std::string& chosen);
// Whether the program is a Python module: "-m MODULE", then its arguments.
bool is_module(const std::vector<std::string>& program);
// The interpreter that TESSERA_PYTHON names, or python3.
std::string python_of_jobs();
// Appends the program of a rank and its arguments. That interpreter runs Python files and modules.
void add_program(Launcher&, const std::vector<std::string>& program);
std::vector<std::string> srun_words(const std::string& type, int ranks, int cpus_per_task);
// The launcher as a shell command line: A=1 mpirun -n 4
std::string shell_line(const Launcher&);

bool in_slurm();

}  // namespace cli
