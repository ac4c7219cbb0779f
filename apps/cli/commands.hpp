// The commands of the command line. main.cpp parses the words into an Order; each command is a function on
// it.
#pragma once
#include <tessera/tessera.hpp>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/call.hpp"

namespace cli {

// Invalid command line: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The options of `tessera sbatch`.
struct BatchOrder {
  int nodes = 0, ranks = 0, cpus_per_task = 1;
  std::string time, partition, account, memory, array, name, script, mpi, launcher;
  int warn_s = -1;  // seconds before the time limit; below 0: chosen
  bool submit = false, replace = false, no_requeue = false;
  std::vector<std::string> words;  // the program and its arguments
};

struct Order {
  std::vector<std::string> operands;
  std::string output;              // -o
  std::string mesh;                // x=4,y=2
  std::vector<std::string> specs;  // one per operand: x,None  x+y,None
  std::string what;                // explain: matmul, fft, solve, reshard; stablehlo: the program
  std::string machine;             // explain: file with rates
  std::string memory;              // advise: the most that a rank may need
  std::string dtype = "float32";   // dtype of operands given as shapes
  std::vector<int> axes;           // fft
  bool inverse = false, real = false, json = false, as_text = false, thorough = false, verbose = false,
       verify = false, force = false, transposed = false;
  int ranks = 0;
  std::vector<std::string> words;       // run: mpirun options, program, its arguments; bench: its arguments
  std::string launcher;                 // run, sbatch: mpirun, srun, or the available one
  bool dry_run = false, quiet = false;  // run
  int rank = -1;                        // replay
  std::string debugger;                 // replay
  bool is_random = false, is_explained = false, ignore_shardings = false;  // stablehlo
  BatchOrder batch;
};

int run_program(const Order&);
int run_notebook(const Order&, const char* self);  // self: path of this executable
int write_batch_script(const BatchOrder&);
int run_again_as_ranks(const Order&, int argc, char** argv);
int show_info(const Order&);
int show_file(const Order&);
int show_stats(const Order&);
int show_plot(const Order&);
int decompose(const std::string& command, const Order&);  // svd, eigh
int show_settings(const Order&);
int show_shard(const Order&);
int compute(const std::string& command, const Order&);
int explain(const Order&);
int run_stablehlo(const Order&);
int advise(const Order&);
int simulate(const Order&);
int measure_machine(const Order&);
int doctor(const Order&);
int profile_program(const Order&);
int replay_rank(const Order&);                             // does not return on success
int run_benchmark(const std::vector<std::string>& words);  // does not return on success

// ---- parsing and text ----
tessera::Shape parse_shape(const std::string& text);                      // 4096x4096, 10, "" for none
std::vector<std::pair<std::string, int>> parse_mesh(const std::string&);  // UsageError
tessera::PartitionSpec parse_spec(const std::string&);
// The requested mesh over this job's devices; by default one axis "x" over all of them.
tessera::Mesh job_mesh(const Order&);
tessera::Mesh planning_mesh(const Order&);  // abstract
// The order with a mesh of two axes that is as square as can be, for -n without --mesh; an operand without
// --spec is split along both, as far as it has dims.
Order on_square_mesh(const Order&);
tessera::PartitionSpec spec_of(const Order&, std::size_t operand);

// ---- files: x.npy, x.npz:array, x.h5:/dataset, x.safetensors:tensor, x.zarr:array, x.nc:variable, x.csv,
// x.mtx ----
tessera::io::FileInfo file_info(const std::string& name);
std::string shown(const std::string& word);  // quoted, and cut if it is long
bool is_shape(const std::string& word);
tessera::io::FileInfo operand_info(const std::string& word,
                                   const std::string& dtype);  // a file's header, or a shape
tessera::Array load(const std::string& name, const tessera::Sharding&);
void check_output(const Order&);  // before any work: UsageError, IoError
void save(const Order&, const tessera::Array&);
// The contents of a file, or of a folder of checkpoints, without the data.
using NamedInfo = std::pair<std::string, tessera::io::FileInfo>;
struct FileContents {
  std::string kind;
  std::vector<NamedInfo> arrays;                           // "" if the file is one array
  std::vector<std::string> others;                         // objects that cannot be read
  std::vector<std::pair<std::string, std::string>> facts;  // "latest step": "40"
};
FileContents contents_of(const std::string& name);
std::vector<NamedInfo> checkpoint_leaves(const std::string& folder, int step);

bool under_launcher();
// Applies the command's operation to operands; UsageError if the command is not an operation.
tessera::Array apply(const std::string& command, const Order&, const std::vector<tessera::Array>&,
                     const tessera::Mesh&);
void check_operands(const std::string& command, const Order&);  // UsageError: too few, too many
// The layout of operand n with this shape. Without --spec its first dim is split, if it has one.
tessera::Sharding layout_of(const Order&, std::size_t n, const tessera::Shape&, const tessera::Mesh&);
// The same of an operand that errors call otherwise.
tessera::Sharding layout_of(const Order&, std::size_t n, const tessera::Shape&, const tessera::Mesh&,
                            const std::string& name);
// The program of explain and simulate: the operation as a function, and operands without data.
struct PlannedProgram {
  std::function<std::vector<tessera::Array>(const std::vector<tessera::Array>&)> function;
  std::vector<tessera::Array> arguments;
};
PlannedProgram planned_program(const Order&, const tessera::Mesh&);

// A value as operator<< writes it.
std::string text_of(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// -v: reports the current activity on stderr, once per job.
void announce(const Order&, const std::string& what);
// {"x": 4, "y": 2}, in the order of the axes.
nlohmann::ordered_json mesh_json(const tessera::Mesh&);
// The operand's file in the layout given by the options.
tessera::Array load_operand(const Order&, std::size_t operand, const tessera::Mesh&);
// The user's command, for the texts of errors.
void note_words(int argc, char** argv);
const char* noted_words();
// Turns errors of `work` about --mesh, --spec or --dtype into usage errors, which cite the command.
template <class Work> auto of_words(Work&& work) {
  const tessera::OnBehalfOf command({noted_words(), {}});
  try {
    return work();
  } catch (const tessera::UserError& error) {
    throw UsageError(error.what());
  }
}
// Replaces the name of an installed machine (share/tessera/machines) by its file. Returns an error's text, or "".
std::string find_machine(std::string& word);
// The text without the library's own source locations such as " at compute.cpp:27", which do not help its
// user.
std::string without_places(const std::string& text);

}  // namespace cli
