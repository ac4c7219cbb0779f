// tessera: the command line. Exit status 0 done, 1 failed, 2 wrong usage.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "commands.hpp"
#include "usage.hpp"

namespace tessera {
extern const char* const build_id;
}

namespace {

using cli::Order;

constexpr const char* examples = R"(Examples:
  tessera run -n 8 ./program                        8 ranks on this machine, or the SLURM job's allocation
  tessera shard 1797x64 --mesh x=4,y=2 --spec x,y   the picture of a layout
  tessera explain matmul 4096x4096 4096x1024 --mesh x=4,y=2 --spec x,None --spec None,y
  tessera run -n 4 tessera matmul a.npy b.h5:/group/b -o c.npy
  tessera reshard a.npy -o b.npy --mesh x=2 --spec x,None --spec None,x
  tessera info model.safetensors                    what is in a file

Files are x.npy, x.npz:array, x.h5:/dataset, x.safetensors:tensor, x.zarr, x.zarr:array, x.nc:variable, x.csv and x.mtx. A spec names, per dimension, the mesh axes that split it: x,None  x+y,None.
Exit status: 0 done, 1 failed, 2 wrong usage.)";

int refuse(const CLI::App& app, const std::string& text) {
  const auto chosen = app.get_subcommands();
  return apps::refuse_words("tessera", chosen.empty() ? "tessera" : "tessera " + chosen.front()->get_name(),
                            text);
}

int fail(const std::exception& error) {
  if (apps::is_first_rank()) std::fprintf(stderr, "tessera: %s\n", cli::without_places(error.what()).c_str());
  return 1;
}

// Runs a command that needs the ranks. Errors in its arguments and shapes are the same on every rank, and are
// reported before the ranks exit, since mpirun ends all of them when the first one exits.
int in_runtime(const CLI::App& app, int argc, char** argv, const std::function<int()>& work) {
  int status = 0;
  const int ended = tessera::run(argc, argv, [&] {
    try {
      status = work();
    } catch (const cli::UsageError& error) {
      status = refuse(app, error.what());
    } catch (const tessera::UserError& error) {
      status = fail(error);
    } catch (const tessera::LinAlgError& error) {
      status = fail(error);
    }
  });
  return ended != 0 ? (ended == 2 ? 2 : 1) : status;
}

// One of these words, and the nearest for a mistyped one.
CLI::Validator one_of(const std::set<std::string>& known) {
  const std::vector<std::string> words(known.begin(), known.end());
  return {[words](std::string& word) {
            if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
            return tessera::in_quotes(word) + " is unknown" + tessera::did_you_mean(word, words) +
                   "; there are " + tessera::join(words, ", ");
          },
          ""};
}

void add_output(CLI::App* command, Order& order) {
  command->add_flag("--force", order.force, "replace a dataset that the HDF5 file has already");
}

void add_layout(CLI::App* command, Order& order) {
  command->add_option("--mesh", order.mesh, "axes and sizes: x=4,y=2 (default: one axis x over all devices)");
  command
      ->add_option("--spec", order.specs,
                   "per operand, the axes that split its dimensions: x,None; fft: each further one is a "
                   "layout on the way")
      ->allow_extra_args(false);
}
void add_square_mesh(CLI::App* command, Order& order) {
  command
      ->add_option("-n,--np", order.ranks,
                   "ranks, on a mesh x, y as square as can be; operands without --spec are split along both")
      ->check(CLI::Range(1, 1000000));
}

// The operands of an operation that is only planned, for explain and advise.
void add_planned_operands(CLI::App* command, Order& order) {
  command->add_option("arrays", order.operands, "files, or shapes like 4096x4096")->required();
  command->add_option("--dtype", order.dtype, "of shapes")->capture_default_str();
  command->add_flag("--inverse", order.inverse, "fft: the inverse");
  command->add_flag("--real", order.real, "fft: of real input");
  command->add_flag("--transposed", order.transposed, "fft: the result stays in the last stage's layout");
  command->add_option("--axes", order.axes, "fft: the dimensions to transform")->delimiter(',');
  command
      ->add_option("--machine", order.machine,
                   "the machine that is planned for: a file of rates, or the name of an installed one "
                   "(default: this machine)")
      ->transform(CLI::Validator(cli::find_machine, ""));
}
void add_json(CLI::App* command, Order& order) {
  command->add_flag("--json", order.json, "one JSON document on stdout");
}

void add_ranks(CLI::App* command, Order& order) {
  command->add_option("-n,--np", order.ranks, "start that many ranks")->check(CLI::Range(1, 1000000));
  command->add_flag("-v,--verbose", order.verbose, "say on stderr what is being done");
}

void add_launcher(CLI::App* command, std::string& launcher) {
  command->add_option("--launcher", launcher, "mpirun or srun (default: what suits the place)")
      ->check(CLI::IsMember({"mpirun", "srun"}));
}

// Options with the same names as sbatch's.
void add_sbatch(CLI::App& app, cli::BatchOrder& batch) {
  auto* command = app.add_subcommand("sbatch",
                                     "write a SLURM job that runs a program, and submit it: sbatch -N 4 "
                                     "-n 128 --time 1:00:00 PROGRAM [its words]");
  const auto count = CLI::Range(1, 1000000);
  command->add_option("-N,--nodes", batch.nodes, "nodes (default: as SLURM likes)")->check(count);
  command->add_option("-n,--ntasks,--np", batch.ranks, "ranks, of all nodes together")->check(count);
  command->add_option("-c,--cpus-per-task", batch.cpus_per_task, "cores of one rank")->check(count);
  command->add_option("-t,--time", batch.time,
                      "time limit: 90 (minutes), 1:00:00 (an hour), 1-12 (days-hours)");
  command->add_option("-p,--partition", batch.partition, "partition");
  command->add_option("-A,--account", batch.account, "account");
  command->add_option("--mem", batch.memory, "memory per node: 64G");
  command->add_option("--array", batch.array, "many jobs of one script: 0-9");
  command->add_option("-J,--job-name", batch.name, "name of the job (default: the program's)");
  command
      ->add_option(
          "--warn", batch.warn_s,
          "seconds before the time limit at which the ranks are told to save (default: 120, a quarter of "
          "a short job; 0: not at all)")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--no-requeue", batch.no_requeue, "a job that saved and ended is not started again");
  add_launcher(command, batch.launcher);
  command->add_option("--mpi", batch.mpi, "what srun --mpi says (default: what suits the MPI at hand)");
  command->add_option("-o,--output", batch.script, "the script (default: PROGRAM.sbatch; - for stdout)");
  command->add_flag("--replace", batch.replace, "write over a script that is not tessera's");
  command->add_flag("--submit", batch.submit, "hand it to sbatch");
  command->prefix_command();
  command->footer("Example: tessera sbatch -N 4 -n 128 --time 1:00:00 --submit ./heat --steps 100000");
}

// A program in StableHLO text.
void add_stablehlo(CLI::App& app, Order& order, const std::string& files) {
  auto* command =
      app.add_subcommand("stablehlo",
                         "run a program that JAX exported: stablehlo PROGRAM [ARGUMENTS]; run -n 8 "
                         "x.stablehlo is the same on 8 ranks");
  command->add_option("program", order.what, "StableHLO text: jax.jit(f).lower(...).as_text()")->required();
  command->add_option("arguments,--input", order.operands, "a file for each argument: " + files);
  command->add_flag("--random", order.is_random,
                    "random arguments: normal numbers, integers that are 0 or 1");
  command->add_flag("--explain", order.is_explained, "what it would move and need, without running it");
  command->add_flag("--ignore-shardings", order.ignore_shardings,
                    "leave out the layouts of the text: for another number of ranks than it was written for");
  command->add_option(
      "-o,--output", order.output,
      "a file for the result; x.npz for several: arr_0, arr_1 ... (default: they are printed)");
  add_output(command, order);
  add_ranks(command, order), add_layout(command, order), add_json(command, order);
  command->footer("Example: tessera run -n 8 step.stablehlo x.npy w.npy -o y.npy");
}

// CLI11 says of a word that is no number only "Could not convert: --axes = x".
std::string text_of(const CLI::ParseError& error) {
  const std::string text = error.what(), before = "Could not convert: ";
  const auto is = text.find(" = ");
  if (!text.starts_with(before) || is == std::string::npos) return text;
  return text.substr(before.size(), is - before.size()) + ": " + tessera::in_quotes(text.substr(is + 3)) +
         " is no number";
}

int dispatch(const CLI::App& app, Order& order, int argc, char** argv) {
  const std::string command = app.get_subcommands().front()->get_name();
  // Words from the first unknown one on: mpirun's options, the program, its arguments.
  if (command == "run" || command == "sbatch") order.words = app.get_subcommands().front()->remaining();
  if (command == "run") return cli::run_program(order);
  if (command == "notebook") {
    order.words = app.get_subcommands().front()->remaining();
    return cli::run_notebook(order, std::filesystem::read_symlink("/proc/self/exe").c_str());
  }
  if (command == "sbatch") {
    order.batch.words = order.words;
    return apps::is_first_rank() ? cli::write_batch_script(order.batch) : 0;
  }
  if (command == "profile") {
    order.words = app.get_subcommands().front()->remaining();
    return cli::profile_program(order);
  }
  if (command == "replay") return cli::replay_rank(order);
  if (command == "doctor") return apps::is_first_rank() ? cli::doctor(order) : 0;
  if (command == "env") return apps::is_first_rank() ? cli::show_settings(order) : 0;
  if (command == "shard") return apps::is_first_rank() ? cli::show_shard(order) : 0;
  if (command == "explain") {
    if (!order.machine.empty()) setenv("TESSERA_MACHINE", order.machine.c_str(), 1);
    return apps::is_first_rank() ? cli::explain(order) : 0;
  }
  if (command == "advise") {
    if (!order.machine.empty()) setenv("TESSERA_MACHINE", order.machine.c_str(), 1);
    return apps::is_first_rank() ? cli::advise(order) : 0;
  }
  if (command == "simulate") {
    if (!order.machine.empty()) setenv("TESSERA_MACHINE", order.machine.c_str(), 1);
    return apps::is_first_rank() ? cli::simulate(order) : 0;
  }
  if (command == "info" && !order.operands.empty()) return apps::is_first_rank() ? cli::show_file(order) : 0;
  if (command == "info") return in_runtime(app, argc, argv, [&] { return cli::show_info(order); });
  if (command == "bench" && !order.thorough)
    return cli::run_benchmark(app.get_subcommands().front()->remaining());
  if (command == "bench" || command == "machine")
    return in_runtime(app, argc, argv, [&] { return cli::measure_machine(order); });
  const bool is_archive =
      (command == "svd" || command == "eigh" || command == "stablehlo") && order.output.ends_with(".npz");
  if (!order.output.empty() && !is_archive && command != "plot") cli::check_output(order);
  if (order.ranks > 0 && !cli::under_launcher()) return cli::run_again_as_ranks(order, argc, argv);
  return in_runtime(app, argc, argv, [&] {
    if (command == "stats") return cli::show_stats(order);
    if (command == "stablehlo") return cli::run_stablehlo(order);
    if (command == "plot") return cli::show_plot(order);
    if (command == "svd" || command == "eigh") return cli::decompose(command, order);
    return cli::compute(command, order);
  });
}

}  // namespace

// Rewrites words that CLI11 parses differently from mpirun: "-np 4", and "--" before the program.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  static const std::set<std::string> commands{"run", "profile", "sbatch", "notebook"};
  if (words.empty() || !commands.contains(words[0])) return words;
  static const std::set<std::string> flags{"--dry-run", "--submit", "--replace", "--no-requeue"};
  static const std::set<std::string> with_value{"-n",          "-np",        "--np",
                                                "--ntasks",    "--launcher", "-N",
                                                "--nodes",     "-c",         "--cpus-per-task",
                                                "-t",          "--time",     "-p",
                                                "--partition", "-A",         "--account",
                                                "--mem",       "--array",    "-J",
                                                "--job-name",  "--warn",     "-o",
                                                "--output",    "--mpi"};
  std::size_t at = 1;
  while (at < words.size()) {
    const bool takes_value = with_value.contains(words[at]);
    if (!takes_value && !flags.contains(words[at].substr(0, words[at].find('='))) &&
        !(words[at].starts_with("--") && with_value.contains(words[at].substr(0, words[at].find('=')))))
      break;
    if (words[at] == "-np") words[at] = "--np";
    at += takes_value ? 2 : 1;
  }
  if (at < words.size() && words[at] == "--") words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  return words;
}

namespace {
int answer(int argc, char** argv) {
  cli::note_words(argc, argv);
  Order order;
  CLI::App app("tessera: distributed arrays over MPI", "tessera");
  app.footer(examples);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("tessera ") + tessera::build_id, "the version and the build");

  auto* run = app.add_subcommand("run",
                                 "start a program under mpirun, with settings for the machine at hand: run "
                                 "[-n N] [mpirun options] PROGRAM [its words], or run [-n N] -m MODULE [its "
                                 "words]");
  run->add_option("-n,--np", order.ranks, "ranks (default: what mpirun or the SLURM job says)")
      ->check(CLI::Range(1, 1000000));
  add_launcher(run, order.launcher);
  run->add_flag("--dry-run", order.dry_run, "print the command instead of running it");
  run->add_flag("-q,--quiet", order.quiet,
                "hide mpirun's own dozen lines behind a rank's error, where it can (Open MPI 4)");
  run->prefix_command();
  run->footer(
      "Example: tessera run -n 8 ./heat --steps 100\n-m MODULE runs a module of Python as python3 -m does, "
      "with the interpreter that TESSERA_PYTHON names: tessera run -n 8 -m tessera.jax program.py\nInside a "
      "SLURM job the job's own allocation is used: salloc -n 16 tessera run ./heat");
  add_sbatch(app, order.batch);

  auto* notebook =
      app.add_subcommand("notebook",
                         "Jupyter with a kernel that runs each cell on all ranks: notebook [-n N] "
                         "[--install] [words of jupyter]");
  notebook->add_option("-n,--np", order.ranks, "ranks of the kernel (default: 2)")
      ->check(CLI::Range(1, 1000000));
  notebook->prefix_command();
  notebook->footer(
      "Example: tessera notebook -n 8 --no-browser\n--install installs the kernel for a Jupyter "
      "that is started otherwise.");

  auto* profile = app.add_subcommand("profile",
                                     "where the time of a program goes, over all ranks, without changing it: "
                                     "profile [-n N] [-o FOLDER] PROGRAM [its words]");
  profile->add_option("-n,--np", order.ranks, "ranks (default: what mpirun or the SLURM job says)")
      ->check(CLI::Range(1, 1000000));
  profile->add_option("-o,--output", order.output, "folder for report.txt and trace.json (default: profile)");
  profile->prefix_command();
  profile->footer("Example: tessera profile -n 8 ./heat --steps 100");

  auto* doctor = app.add_subcommand(
      "doctor", "which rank of a job differs, waits, computes or is gone, from the ranks' flight records");
  doctor
      ->add_option("folder", order.operands,
                   "where the ranks wrote them: TESSERA_FLIGHT_RECORD, or tessera-flight")
      ->required()
      ->expected(1);
  doctor->footer("Example: kill -USR2 PROCESS_OF_MPIRUN; tessera doctor tessera-flight");

  auto* replay = app.add_subcommand(
      "replay",
      "one rank of a recorded job again, alone and with the same bits: replay FOLDER --rank R [-- PROGRAM "
      "its words]");
  replay->add_option("folder", order.operands, "where the job kept its recording: TESSERA_RECORD")
      ->required()
      ->expected(1);
  replay->add_option("--rank", order.rank, "the rank")->required()->check(CLI::Range(0, 999999));
  replay->add_option("--debugger", order.debugger, "starts the rank under gdb, lldb or another program");
  replay->footer(
      "Example: TESSERA_RECORD=tape tessera run -n 64 ./program; tessera replay tape --rank 37 --debugger "
      "gdb\nWithout a program the recorded one is started, in its folder, with its words.");

  auto* info =
      app.add_subcommand("info", "devices, hosts, libraries; or what is in a file, without its data");
  info->add_option(
          "file", order.operands,
          "x.npy, x.npz, x.h5, x.safetensors, x.zarr, x.nc, x.csv, x.mtx, or a folder of checkpoints")
      ->expected(0, 1);
  add_json(info, order);
  info->footer("Example: tessera info model.safetensors");
  auto* env = app.add_subcommand("env", "the settings TESSERA_*, their values and meanings");
  add_json(env, order);

  auto* shard = app.add_subcommand("shard", "the picture of a layout");
  shard->add_option("array", order.operands, "a file, or a shape like 1797x64")->required()->expected(1);
  shard->add_option("--dtype", order.dtype, "of a shape")->capture_default_str();
  shard->add_option("-o,--output", order.output, "the picture as a file: x.svg or x.html");
  add_layout(shard, order), add_json(shard, order);
  shard->footer("Example: tessera shard 10x6 --mesh x=4,y=2 --spec x,y");

  const std::string files =
      "x.npy, x.npz:array, x.h5:/dataset, x.safetensors:tensor, x.zarr:array, x.nc:variable, x.csv, x.mtx";
  for (const auto& [name, what, output] :
       {std::tuple{"stats", "least, largest, mean, deviation, zeros and NaNs of an array", ""},
        {"plot", "a picture of a curve or an image, in the terminal or as a file",
         "the picture as a file: x.svg, or x.png of an image"},
        {"svd", "singular values; with -o x.npz also the vectors (u, s, vh)",
         "x.npz, or a file for the values"},
        {"eigh", "eigenvalues of a symmetric matrix; with -o x.npz also the vectors (w, v)",
         "x.npz, or a file for the values"}}) {
    auto* command = app.add_subcommand(name, what);
    command->add_option("file", order.operands, files)->required()->expected(1);
    const bool is_picture = std::string(name) == "plot";
    if (*output != '\0') command->add_option("-o,--output", order.output, output);
    if (*output != '\0' && !is_picture) add_output(command, order);
    add_ranks(command, order), add_layout(command, order), add_json(command, order);
    command->footer(std::string("Example: tessera ") + name + " a.npy -n 4" +
                    (is_picture        ? " -o a.svg"
                     : *output != '\0' ? " -o parts.npz"
                                       : ""));
  }

  for (const auto& [name, what, operands] :
       {std::tuple{"matmul", "C = A B", 2},
        {"fft", "n-dimensional Fourier transform", 1},
        {"solve", "x with A x = b", 2},
        {"reshard", "the same array in another layout or file; the second --spec is the new one", 1}}) {
    auto* command = app.add_subcommand(name, what);
    command->add_option("files", order.operands, files)->required()->expected(operands);
    command->add_option("-o,--output", order.output, files)->required();
    add_output(command, order);
    add_ranks(command, order);
    if (std::string(name) == "fft") {
      command->add_flag("--inverse", order.inverse, "the inverse transform");
      command->add_flag("--real", order.real, "real input (with --inverse: real output)");
      command->add_option("--axes", order.axes, "the dimensions to transform (default: all)")->delimiter(',');
    }
    if (std::string(name) == "solve")
      command->add_flag("--verify", order.verify,
                        "print HPL's residual |Ax - b| / (eps (|A| |x| + |b|) n), in the largest norms; exit "
                        "status 1 unless it is below 16");
    add_layout(command, order), add_json(command, order);
    command->footer(std::string("Example: tessera ") + name +
                    (operands == 2 ? " a.npy b.npy -o out.npy -n 4" : " a.npy -o out.npy -n 4"));
  }

  add_stablehlo(app, order, files);

  auto* explain = app.add_subcommand(
      "explain", "what an operation would move and need, without running it; for any number of ranks");
  const std::string planned =
      "matmul, fft, solve, lu, reshard, train (a batch and weights) or cg (the right-hand side on a grid)";
  std::set<std::string> operations{"matmul", "fft", "solve", "lu", "reshard", "train", "cg"};
  explain->add_option("operation", order.what, planned)->required()->check(one_of(operations));
  add_planned_operands(explain, order), add_square_mesh(explain, order);
  explain->add_flag("--text", order.as_text, "also the program, one line per instruction");
  add_layout(explain, order), add_json(explain, order);
  explain->footer(
      "Example: tessera explain matmul 65536x65536 65536x65536 --mesh x=64,y=32 --spec x,y --spec x,y");

  auto* advise = app.add_subcommand(
      "advise", "the layouts of the operands for which an operation costs least, without running it");
  advise->add_option("operation", order.what, "matmul, fft or solve")
      ->required()
      ->check(one_of({"matmul", "fft", "solve"}));
  add_planned_operands(advise, order);
  advise->add_option("-n,--np", order.ranks, "ranks, on the best mesh of one or two axes (default: 8)")
      ->check(CLI::Range(1, 1000000));
  advise->add_option("--mesh", order.mesh, "x=4,y=2: this mesh");
  advise->add_option("--memory", order.memory, "the most that a rank may need at its peak, as in 512M or 2G");
  add_json(advise, order);
  advise->footer("Example: tessera advise matmul 65536x65536 65536x1024 -n 4096 --memory 1G");

  auto* simulate = app.add_subcommand(
      "simulate", "the seconds that an operation would take on a machine, each rank and message followed");
  operations.insert("hpl");
  simulate->add_option("operation", order.what, planned + ", or hpl (the number of unknowns), the benchmark")
      ->required()
      ->check(one_of(operations));
  add_planned_operands(simulate, order), add_square_mesh(simulate, order);
  simulate->add_option("-o,--output", order.output, "a timeline of the first 64 ranks for Perfetto");
  add_layout(simulate, order), add_json(simulate, order);
  simulate->footer(
      "Example: tessera simulate fft 2048x2048x2048 --real --mesh x=64,y=64 --spec x,y,None --machine "
      "fat_tree_100g");

  auto* bench = app.add_subcommand("bench",
                                   "measure this machine, or run the benchmark of a build tree: bench "
                                   "[--filter NAME] [--json FILE] [--list]");
  bench->prefix_command();
  bench->add_flag("--calibrate", order.thorough, "the same as tessera machine --thorough");
  add_json(bench, order);
  bench->footer("Example: tessera bench --list");

  auto* machine = app.add_subcommand("machine",
                                     "measure the rates of this machine between the ranks of the job, and "
                                     "keep them for every plan and prediction");
  machine->add_flag("--thorough", order.thorough, "seconds instead of a tenth of one");
  machine->add_option("-o,--output", order.output, "the file (default: the user's cache)");
  add_json(machine, order);
  machine->footer("Example: tessera run -n 2 tessera machine -o here.json");

  try {
    auto words = words_of(argc, argv);
    if (const auto end = std::find(words.begin(), words.end(), "--");
        end != words.end() && words.front() == "replay") {  // the program and its words
      order.words.assign(end + 1, words.end());
      words.erase(end, words.end());
    }
    std::reverse(words.begin(), words.end());  // CLI11 expects them reversed
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return apps::is_first_rank() ? app.exit(error) : 0;  // --help
    if (argc > 1 && app.get_subcommands().empty() && argv[1][0] != '-') {
      std::vector<std::string> names;
      for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
      return refuse(
          app, "there is no command " + tessera::in_quotes(argv[1]) + tessera::did_you_mean(argv[1], names));
    }
    for (const auto* command : app.get_subcommands())  // CLI11 names the word behind an unknown option first
      for (const auto& word : command->remaining())
        if (word.starts_with('-'))
          return refuse(app, command->get_name() + " has no option " + tessera::in_quotes(word));
    return refuse(app, text_of(error));
  }
  try {
    return dispatch(app, order, argc, argv);
  } catch (const cli::UsageError& error) {
    return refuse(app, error.what());
  } catch (const std::exception& error) {
    return fail(error);
  }
}

// Fails a command whose output could not be written.
int with_output(int status) {
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || status != 0) return status;
  std::fprintf(stderr,
               "tessera: the answer could not be written to the standard output; check where it goes\n");
  return 1;
}
}  // namespace

int main(int argc, char** argv) { return with_output(answer(argc, argv)); }
