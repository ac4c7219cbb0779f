"""check.py TESSERA DATA: runs the command line and compares status, output and files. Every case runs; exits 1 if one failed."""
import atexit
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

tessera, data = map(pathlib.Path, sys.argv[1:3])
folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-cli-"))
atexit.register(shutil.rmtree, folder, ignore_errors=True)
images = data / "digits/images.npy"
failures = 0


def run(words, **settings):
    done = subprocess.run([tessera] + [str(word) for word in words], capture_output=True, text=True, timeout=100, env=os.environ | settings, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def check(name, words, status, out="", err="", test=None, errors=None, **settings):
    """`err` stands in stderr; `errors` is all of it, line by line. After success stderr is empty."""
    global failures
    code, stdout, stderr = run(words, **settings)
    wrong = []
    if code != status:
        wrong.append(f"status {code}, not {status}")
    if out not in stdout:
        wrong.append(f"no {out!r} on stdout")
    if err not in stderr or (status == 0 and errors is None and stderr.strip()):
        wrong.append(f"stderr is not {err!r}")
    if errors is not None and stderr.splitlines() != errors:
        wrong.append(f"stderr is not exactly {errors}")
    try:
        if test and not wrong and not test(stdout):
            wrong.append("the output does not hold what it should")
    except (ValueError, KeyError, IndexError, TypeError) as error:
        wrong.append(f"the output cannot be read: {error!r}")
    if wrong:
        failures += 1
        print(f"{name}: {'; '.join(wrong)}\n  {' '.join(map(str, words))}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")


check("help needs no MPI", ["--help"], 0, "Examples:", PATH="/nowhere")
check("help of a command", ["explain", "--help"], 0, "Example: tessera explain")
check("nothing asked for", [], 2, err="Try: tessera --help")
check("a mistyped command", ["matmull", "a", "b"], 2, err="did you mean 'matmul'?")
check("an unknown option", ["shard", "8x8", "--meshes"], 2, err="--meshes")
check("a mesh that is none", ["shard", "8x8", "--mesh", "x=4y=2"], 2, err="'4y=2'")
check("a mesh of no devices", ["shard", "8x8", "--mesh", "x=0"], 2, err="from 1 up")
check("an axis that the mesh lacks", ["shard", "8x8", "--mesh", "x=4", "--spec", "q"], 2,
      errors=["tessera: shard 8x8 --mesh x=4 --spec q: P('q') over Mesh('x': 4): entry 0 names axis 'q', which the mesh does not have; its axes are 'x'", "Try: tessera shard --help"])
check("a mistyped operation", ["explain", "matmull", "8x8", "8x8"], 2, err="'matmull' is unknown (did you mean 'matmul'?); there are cg, fft, lu, matmul, reshard, solve, train\n")
check("a mistyped benchmark", ["simulate", "hpll", "100", "-n", "2"], 2, err="did you mean 'hpl'?")
check("a file that is not there", ["shard", "none.npy", "--mesh", "x=4"], 1, err="No such file")
check("a file of an unknown kind", ["shard", "x.txt", "--mesh", "x=4"], 2, err="x.safetensors:tensor, x.zarr, x.zarr:array, x.nc:variable, x.csv and x.mtx")
check("an unknown dtype", ["shard", "8x8", "--dtype", "foo"], 2, err="foo")
check("an axis used twice", ["explain", "matmul", "8x8", "8x8", "--mesh", "x=2", "--spec", "x,x"], 2, err="used twice")
check("two axes of one name", ["shard", "8x8", "--mesh", "x=2,x=2"], 2, err="'x'")
check("a spec longer than the shape", ["shard", "8x8", "--mesh", "x=2", "--spec", "x,None,None"], 2, err="3 entries")
check("a mesh larger than the job", ["reshard", images, "-o", "b.npy", "--mesh", "x=4"], 2, err="the job has 1")
check("more specs than operands", ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--spec", "x", "--spec", "x", "--spec", "x"], 2, err="takes 2 --specs at most, got 3")
check("a word that is neither file nor shape", ["shard", "7,5"], 2, err="'7,5' is neither a file nor a shape like 1797x64")
check("an extent beyond 64 bits", ["shard", "99999999999999999999x3"], 2, err="does not fit 64 bits")
check("a product of extents beyond 64 bits", ["shard", "9223372036854775807x6"], 2, err="more elements than 64 bits count")
check("the version", ["--version"], 0, "tessera 0.")
check("a file without the name of its array", ["reshard", images, "-o", "b.npz", "-n", 2], 2, err="names no array; write 'b.npz:array'")
check("a folder that is not there", ["reshard", images, "-o", "no/b.npy", "-n", 2], 1, err="there is no folder 'no'")
check("too many ranks", ["matmul", "a", "b", "-o", "c", "-n", "99999999999999999999"], 2, err="-n")
check("no program to run", ["run", "-n", "2"], 2, err="program")
for command in ("run", "profile"):  # in one line, where mpirun takes a dozen
    check(f"{command}: a folder", [command, "-n", "2", "/usr"], 2, err=f"{command}: '/usr' is a folder")
    check(f"{command}: a file", [command, "-n", "2", "/etc/passwd"], 2, err="is no program that can be run")
    check(f"{command}: a name", [command, "-n", "2", "no-such-program"], 2, err="is no program on the PATH")
    check(f"{command}: a script that is not there", [command, "-n", "2", "none.py"], 2, err=f"{command}: 'none.py' does not exist")
check("a picture", ["shard", "8x8", "--mesh", "x=4,y=2", "--spec", "x,y"], 0, "CPU 7")
check("a layout for machines", ["shard", images, "--mesh", "x=4,y=2", "--spec", "x+y,None", "--json"], 0,
      test=lambda s: json.loads(s)["blocks"][7] == {"box": [[1575, 1797], [0, 64]], "device": 7, "replica": 0})
check("settings", ["env"], 0, "TESSERA_TIMEOUT=300  (default)")
check("settings for machines", ["env", "--json"], 0, test=lambda s: {"name", "value", "default", "set", "meaning"} == set(json.loads(s)[0]))
check("what is here", ["info", "--json"], 0, test=lambda s: len(json.loads(s)["devices"]) == 1 and "Open MPI" in json.loads(s)["mpi"])
check("what two ranks have", ["run", "-n", 2, tessera, "info", "--json"], 0, test=lambda s: [d["id"] for d in json.loads(s)["devices"]] == [0, 1])
check("ranks as mpirun counts them", ["run", "-np", 2, "--", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK"], 0, "rank 1")
check("mpirun's own lines are hidden", ["run", "-q", "-n", 2, "sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 0 ] && echo this is wrong >&2; exit 3"], 3, errors=["this is wrong"])
check("a module of Python", ["run", "-n", 2, "--dry-run", "-m", "tessera.jax", "program.py", "two words"], 0, " python3 -m tessera.jax program.py 'two words'\n")
check("a module with the interpreter of one's own", ["run", "-n", 1, "-m", "this"], 0, "Beautiful is better than ugly", TESSERA_PYTHON=sys.executable)
check("no module", ["run", "-n", 2, "-m"], 2, err="run: which module?")
check("no interpreter", ["run", "-n", 2, "-m", "this"], 2, err="TESSERA_PYTHON names the interpreter", TESSERA_PYTHON="no-such-python")
check("the status of the program", ["run", "-n", 1, "sh", "-c", "exit 7"], 7, err="")

# Places with SLURM and without, as programs of those names that say what they are asked for.
place = folder / "slurm"
place.mkdir()
listed = 'case "$*" in --mpi=list) echo "srun: MPI types are..."; echo "srun: pmix"; echo "srun: pmi2"; echo "srun: none";; *) echo "srun $*";; esac'
for name, text in {"srun": listed, "sbatch": 'echo "Submitted batch job 42: $1"'}.items():
    (place / name).write_text("#!/bin/sh\n" + text + "\n")
    (place / name).chmod(0o755)
outside = {name: "" for name in os.environ if name.startswith(("SLURM_", "OMPI_", "TESSERA_", "OPENBLAS_", "OMP_", "PYTHONHASHSEED"))}
for name in outside:
    os.environ.pop(name)
job = {"SLURM_JOB_ID": "7", "SLURM_TASKS_PER_NODE": "4(x2)", "SLURM_CPUS_PER_TASK": "2"}
only_srun = {"PATH": f"{place}:/nowhere", **job}
check("what would be started", ["run", "-n", 2, "--dry-run", "./p", "two words"], 0,
      "OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONHASHSEED=0 mpirun -x OMP_NUM_THREADS -x OPENBLAS_NUM_THREADS -x PYTHONHASHSEED -n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 ./p 'two words'\n")
for version, words in [("mpirun (Open MPI) 4.1.4", "--quiet -x"), ("mpirun (Open MPI) 5.0.11", "-x"), ("HYDRA build details:", "-n")]:
    (folder / "mpirun").write_text(f"#!/bin/sh\necho '{version}'\n")
    (folder / "mpirun").chmod(0o755)
    check(f"quietly by {version}", ["run", "-q", "-n", 2, "--dry-run", "./p"], 0, f"{folder}/mpirun {words}", TESSERA_MPIRUN=str(folder / "mpirun"))
check("ranks of an allocation keep their cores", ["run", "--dry-run", "./p"], 0, "mpirun", test=lambda s: "yield" not in s and "oversubscribe" not in s, **job)
check("threads of an allocation", ["run", "--dry-run", "./p"], 0, "OPENBLAS_NUM_THREADS=2 OMP_NUM_THREADS=2 TESSERA_THREADS=2 PYTHONHASHSEED=0 mpirun -x", **job)
check("more tasks than cores are not bound", ["run", "--dry-run", "./p"], 0, "--bind-to none ./p", **job | {"SLURM_TASKS_PER_NODE": "100000"})
check("one's own binding", ["run", "--dry-run", "./p"], 0, test=lambda s: "--bind-to" not in s and "--map-by" not in s, **job, OMPI_MCA_hwloc_base_binding_policy="none")
check("srun where there is no mpirun", ["run", "-n", 8, "--dry-run", "./p"], 0,
      "srun --mpi=pmix --ntasks=8 --cpus-per-task=2 --cpu-bind=cores --kill-on-bad-exit=1 --export=ALL ./p\n", **only_srun)
check("srun is started", ["run", "/bin/true", "-x"], 0, "srun --mpi=pmix --cpus-per-task=2 --cpu-bind=cores --kill-on-bad-exit=1 --export=ALL /bin/true -x\n", **only_srun)
check("srun by its name", ["run", "--launcher", "srun", "--dry-run", "./p"], 0, "srun --mpi=pmix", PATH=f"{place}:{os.environ['PATH']}")
check("no srun", ["run", "--launcher", "srun", "./p"], 2, err="no srun on the PATH", PATH="/nowhere")
program = folder / "words"
program.write_text("#!/bin/sh\n")
program.chmod(0o755)
here = {"PATH": f"{place}:{os.environ['PATH']}"}
(folder / "heat.py").write_text("")
check("a batch script of a Python file", ["sbatch", "-n", 4, "--time", "1:00:00", "-o", "-", "./heat.py", "10"], 0, "#SBATCH --job-name=heat\n", test=lambda text: "python3 ./heat.py 10" in text, **here)
check("a batch script of a module", ["sbatch", "-n", 4, "--time", "1:00:00", "-o", "-", "-m", "tessera.jax", "program.py"], 0, "python3 -m tessera.jax program.py", **here)
check("a batch script", ["sbatch", "-N", 4, "-n", 128, "--time", "1:00:00", "-o", "-", "./words", "-n", "a b"], 0,
      "srun --mpi=pmix --ntasks=128 --cpu-bind=cores --kill-on-bad-exit=1 --export=ALL ./words -n 'a b' &\n", **here)
check("a batch script takes settings along", ["sbatch", "-n", 2, "-c", 3, "-o", "-", "./words"], 0,
      "export OMP_NUM_THREADS=3\nexport OPENBLAS_NUM_THREADS=3\nexport TESSERA_LOG=info\nexport TESSERA_THREADS=3\n", TESSERA_LOG="info", **here)
check("a batch script without srun", ["sbatch", "-n", 2, "-o", "-", "./words"], 0, f"{tessera} run -n 2 ./words &\n")
check("a batch script is bash", ["sbatch", "-n", 2, "-o", "-", "./words"], 0, test=lambda s: subprocess.run(["bash", "-n"], input=s, text=True).returncode == 0, **here)
check("minutes that look like hours", ["sbatch", "-n", 2, "--time", "1:00", "-o", "-", "./words"], 0, "--time=00:01:00",
      errors=["tessera: --time 1:00 is minutes:seconds, as SLURM reads it: 1 minute; hours are written 1:00:00"], **here)
check("no such time", ["sbatch", "-n", 2, "--time", "1h", "./words"], 2, err="is no time limit; SLURM reads 90 (minutes)", **here)
check("a job without ranks", ["sbatch", "-N", 2, "./words"], 2, err="how many ranks?", **here)
check("more nodes than ranks", ["sbatch", "-N", 3, "-n", 2, "./words"], 2, err="2 ranks cannot fill 3 nodes", **here)
check("a job without a program", ["sbatch", "-n", 2], 2, err="which program?", **here)
check("a program that is not there", ["sbatch", "-n", 2, "./none"], 2, err="'./none' does not exist", **here)
check("a script in a file", ["sbatch", "-N", 1, "-n", 2, "./words"], 0, "words.sbatch: 2 ranks on 1 node; submit it with: sbatch words.sbatch", **here)
check("the script is handed over", ["sbatch", "-n", 3, "--submit", "./words"], 0, "Submitted batch job 42: words.sbatch", **here)
if "--ntasks=3\n" not in (folder / "words.sbatch").read_text():
    failures += 1
    print("sbatch: what was submitted is not what was asked for")
(folder / "own.sbatch").write_text("#!/bin/bash\n")
check("another's script stays", ["sbatch", "-n", 2, "-o", "own.sbatch", "./words"], 2, err="was not written by tessera sbatch", **here)
check("unless asked", ["sbatch", "-n", 2, "-o", "own.sbatch", "--replace", "./words"], 0, "own.sbatch: 2 ranks", **here)

check("settings travel to other hosts", ["run", "-n", 2, "true"], 0, "-x TESSERA_TIMEOUT", TESSERA_MPIRUN="echo", TESSERA_TIMEOUT="9")
check("so do threads", ["run", "-n", 2, "true"], 0, "-x OPENBLAS_NUM_THREADS", TESSERA_MPIRUN="echo")

check("a product that moves nothing", ["explain", "matmul", "4096x4096", "4096x1024", "--mesh", "x=4,y=2", "--spec", "x,None", "--spec", "None,y"], 0, "nothing moves")
check("a product over 2048 ranks", ["explain", "matmul", "65536x65536", "65536x65536", "--mesh", "x=64,y=32", "--spec", "x,y", "--json"], 0,
      test=lambda s: sorted((c["kind"], c["axes"]) for c in json.loads(s)["collectives"]) == [("panels", "x,y")]
      and json.loads(s)["peak_bytes_per_rank"] < 32 * 2**20)  # three blocks of 8 MiB and a few panels
check("layouts for a product", ["advise", "matmul", "4096x4096", "4096x1024", "--mesh", "x=4,y=2"], 0, "every combination")
check("layouts for thousands of ranks", ["advise", "matmul", "65536x65536", "65536x1024", "-n", "4096", "--memory", "1G", "--json"], 0,
      test=lambda s: len(json.loads(s)["best"]) == 3 and all(b["peak_bytes_per_rank"] <= 1 << 30 for b in json.loads(s)["best"]))
check("a simulated transform", ["simulate", "fft", "64x64x64", "--mesh", "x=4,y=4", "--spec", "x,y,None", "--json"], 0,
      test=lambda s: json.loads(s)["ranks"] == 16 and json.loads(s)["hosts"] == 1 and json.loads(s)["seconds"] > 0 and json.loads(s)["notes"] != [])
check("a simulated training step", ["simulate", "train", "512x64", "64x32", "32x8", "--mesh", "x=8", "--spec", "x,None"], 0, "all-reduce for")
machine = folder / "machine.json"
machine.write_text(json.dumps({"ranks_per_host": 12, "host_latency_s": 2e-5, "host_bytes_per_s": 1e9, "message_s": 1e-6, "levels": [{"hosts": 4, "bytes_per_s": 2e9, "latency_s": 1e-6}]}))
for words in (["--spec", "x,y,None", "--spec", "x,None,y", "--spec", "None,x,y"], ["--transposed", "--spec", "x,y"], ["--real", "--spec", "x+y,None,None"], ["--inverse", "--spec", "None,y"], ["--axes", "0,2", "--spec", "None,x"]):
    check("a simulated transform through " + " ".join(words), ["simulate", "fft", "48x30x64", "--mesh", "x=3,y=5", *words, "--machine", machine, "--json"], 0,
          test=lambda s: json.loads(s)["ranks"] == 15 and json.loads(s)["hosts"] == 2 and json.loads(s)["seconds"] > 0 and json.loads(s)["notes"] == [])
check("a transform whose specs leave no dim whole", ["simulate", "fft", "48x30", "--mesh", "x=3,y=5", "--spec", "x,y", "--spec", "y,x"], 2, err="is split in every --spec")
check("a spec with an axis too many", ["simulate", "fft", "48x30", "--mesh", "x=3", "--spec", "x,z"], 2, err="z")
for ranks, shown in ((1, "over Mesh('x': 1)"), (7, "P('x') over Mesh('x': 7)"), (1000, "P('x', 'y') over Mesh('x': 40, 'y': 25)"), (1009, "over Mesh('x': 1009)")):
    for what, *operands in (["fft", "64x48"], ["matmul", "64x48", "48x30"], ["lu", "96x96"], ["solve", "96x96", "96"], ["cg", "32x32x32"], ["train", "4096x16", "16x8", "8x2"]):
        check(f"{what} on {ranks} ranks", ["simulate", what, *operands, "-n", ranks, "--machine", machine], 0, f" on {'1 rank ' if ranks == 1 else f'{ranks} ranks '}")
    check(f"the layout on {ranks} ranks", ["simulate", "fft", "64x48", "-n", ranks, "--machine", machine], 0, shown)
for ranks, grid in ((1, "1 x 1"), (7, "1 x 7"), (1000, "25 x 40")):
    check(f"hpl on {ranks} ranks", ["simulate", "hpl", "3000", "-n", ranks, "--machine", machine], 0, f"hpl of 3000 unknowns, float64, P x Q = {grid}\n")
prefix = folder / "prefix"  # as installed
(prefix / "bin").mkdir(parents=True), (prefix / "share/tessera/machines").mkdir(parents=True)
shutil.copy(tessera, prefix / "bin/tessera"), shutil.copy(machine, prefix / "share/tessera/machines/small.json")
built, tessera = tessera, prefix / "bin/tessera"
check("an installed machine by its name", ["simulate", "fft", "64x48", "-n", "15", "--machine", "small"], 0, " on 15 ranks ")
check("a machine that is not there", ["simulate", "fft", "64x48", "-n", "15", "--machine", "smal"], 2,
      err="'smal' is no file of rates (did you mean 'small'?); installed machines are small. `tessera machine -o FILE` measures this one\n")
tessera = built
check("no installed machines", ["explain", "fft", "64x48", "--machine", "smal"], 2, err="no machines are installed in ")
check("hpl on a grid", ["simulate", "hpl", "3000", "--mesh", "x=3,y=4", "--machine", machine, "--json"], 0,
      test=lambda s: json.loads(s)["ranks"] == 12 and abs(json.loads(s)["gflops_per_s"] * json.loads(s)["seconds"] / (2 / 3 * 3000**3 / 1e9) - 1) < 1e-3)
check("hpl of no square", ["simulate", "hpl", "3000x300", "-n", "4"], 2, err="takes the number of unknowns")
check("hpl in three dims", ["simulate", "hpl", "3000", "--mesh", "x=2,y=2,z=2"], 2, err="more than two axes")
check("hpl is simulated only", ["explain", "hpl", "3000"], 2, err="hpl")
check("a plan for a number of ranks", ["explain", "fft", "64x48", "-n", 15], 0, "over Mesh('x': 5, 'y': 3)")
check("a plan for ranks and a mesh", ["explain", "fft", "64x48", "-n", 15, "--mesh", "x=15"], 2, err="explain: give -n or --mesh, one of them")
check("a simulation without ranks", ["simulate", "fft", "64x64"], 2, err="give -n or --mesh")
check("a training step without weights", ["simulate", "train", "512x64", "-n", "4"], 2, err="the weights of each layer")
check("a limit that is no size", ["advise", "fft", "64x64", "--memory", "much"], 2, err="--memory")
check("a reshard", ["explain", "reshard", "8x8", "--mesh", "x=4", "--spec", "x,None", "--spec", "None,x", "--json"], 0,
      test=lambda s: [(c["kind"], c["bytes_per_rank"]) for c in json.loads(s)["collectives"]] == [("all-to-all", 48)])
check("one operand too few", ["explain", "matmul", "8x8"], 2, err="takes 2 operands, got 1")

check("another layout, the same file", ["reshard", images, "-o", "b.npy", "-n", 3, "--mesh", "x=3", "--spec", "x,None", "--spec", "None,x"], 0, "uint8(1797, 64)")
if (folder / "b.npy").read_bytes() != images.read_bytes():
    failures += 1
    print("reshard: the file differs from the one it was made of")
check("into HDF5", ["reshard", images, "-o", "c.h5:/digits/images", "-n", 2], 0, "c.h5:/digits/images")
check("out of HDF5", ["reshard", "c.h5:/digits/images", "-o", "d.npy", "-n", 2], 0)
check("a dataset that is there stays", ["reshard", images, "-o", "c.h5:/digits/images", "-n", 2], 1, errors=["tessera: 'c.h5' has a dataset '/digits/images' already; --force replaces it"])
check("unless it is given up", ["reshard", images, "-o", "c.h5:digits/images", "-n", 2, "--force"], 0, "c.h5:digits/images")
check("another one is added", ["reshard", images, "-o", "c.h5:/more", "-n", 2], 0, "c.h5:/more")
check("and both are there", ["info", "c.h5"], 0, test=lambda s: "/digits/images  uint8(1797, 64)" in s and "/more  uint8(1797, 64)" in s)
if (folder / "d.npy").read_bytes() != images.read_bytes():
    failures += 1
    print("hdf5: the array differs after a round trip")
(folder / "a.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n1\n3\n2\n4\n")
check("a product of files", ["matmul", "a.mtx", "a.mtx", "-o", "p.npy", "-n", 2, "--json"], 0, test=lambda s: json.loads(s)["shape"] == [2, 2])
if (folder / "p.npy").exists() and (folder / "p.npy").read_bytes()[-32:] != b"".join(struct.pack("<d", v) for v in (7, 10, 15, 22)):
    failures += 1
    print("matmul: [[1 2] [3 4]] squared is not [[7 10] [15 22]]")
(folder / "b.mtx").write_text("%%MatrixMarket matrix array real general\n2 1\n5\n11\n")
check("a verified solution", ["solve", "a.mtx", "b.mtx", "-o", "x.npy", "-n", 2, "--verify"], 0, "PASSED (16 is the limit)")
check("the residual as a number", ["solve", "a.mtx", "b.mtx", "-o", "x.npy", "--verify", "--json"], 0,
      test=lambda s: json.loads(s)["verified"] and 0 <= json.loads(s)["hpl_residual"] < 1)
(folder / "nan.mtx").write_text("%%MatrixMarket matrix array real general\n2 1\nnan\n11\n")
check("a solution that is none", ["solve", "a.mtx", "nan.mtx", "-o", "x.npy", "--verify"], 1, "HPL's residual nan, FAILED")
check("nothing to verify", ["matmul", "a.mtx", "a.mtx", "-o", "p.npy", "--verify"], 2, err="--verify")
check("shapes that do not fit", ["matmul", images, images, "-o", "e.npy"], 1, err="inner sizes differ")
check("one line says what is wrong with a job of several ranks", ["matmul", images, images, "-o", "e.npy", "-n", 3], 1,
      errors=["tessera: matmul: the inner sizes differ: dimension 1 of (1797, 64) is 64, dimension 0 of (1797, 64) is 1797. Transpose or reshape one of them"])
(folder / "killed").write_text("#!/bin/sh\nkill -9 $$\n")
(folder / "killed").chmod(0o755)
check("ranks that are killed", ["reshard", images, "-o", "b.npy", "-n", 2], 1, TESSERA_MPIRUN=folder / "killed",
      errors=["tessera: the 2 ranks were ended by signal 9 (Killed)"])
(folder / "long.npy").write_bytes(images.read_bytes() + b"more")
check("bytes behind an array are named once", ["reshard", "long.npy", "-o", "b.npy"], 0, errors=["tessera: load_npy: 'long.npy' has 4 bytes after its array; they are ignored"])
for number, name in enumerate(["x.npz:a", "x.safetensors:a", "x.csv", "x.mtx", "x.zarr", "y.zarr:group/a", "x.nc:a"]):
    check(f"into {name}", ["reshard", images, "-o", name, "-n", 2], 0, name)
    check(f"out of {name}", ["stats", name, "--json"], 0, test=lambda s: (json.loads(s)["shape"], json.loads(s)["max"]) == ([1797, 64], 16))
check("what is in a file", ["info", images], 0, "uint8(1797, 64)  112 KiB  npy 1.0, C order")
check("what is in an archive", ["info", "x.npz", "--json"], 0, test=lambda s: [(a["name"], a["shape"], a["dtype"]) for a in json.loads(s)["arrays"]] == [("a", [1797, 64], "uint8")])
check("what is in an HDF5 file", ["info", "c.h5"], 0, "/digits/images  uint8(1797, 64)")
check("what is in no file", ["info", "none.npz"], 1, err="No such file")
check("what is in a folder without checkpoints", ["info", "."], 1, err="without a complete checkpoint")
check("the numbers of a file on two ranks", ["stats", "p.npy", "-n", 2], 0, "mean      13.5")
(folder / "empty.csv").write_text("")
check("the numbers of an empty file", ["stats", "empty.csv"], 0, "min       nan\n  max       nan\n  mean      nan\n  std       nan\n")
(folder / "long.mtx").write_text("%%MatrixMarket matrix array integer general\n2 1\n9007199254740993\n-1\n")
check("integers to the last digit", ["stats", "long.mtx", "-n", 2], 0, "min       -1\n  max       9007199254740993\n")
check("a picture of a file, whose last line ends", ["plot", "p.npy"], 0, "p.npy: float64(2, 2)", test=lambda s: s.endswith("\n"))
check("an option that sbatch lacks", ["sbatch", "-n", 8, "--dry-run", "job.py"], 2, err="sbatch has no option '--dry-run'")
check("a file here that is no program", ["run", "-n", "2", "p.npy"], 2, err="run: 'p.npy' is no program that can be run")
check("an axis that is no number", ["fft", "p.npy", "-o", "q.npy", "--axes", "x"], 2, err="tessera: --axes: 'x' is no number")
check("a picture of an image as a file", ["plot", "p.npy", "-o", "p.svg", "-n", 2], 0, test=lambda _: "p.npy: float64(2, 2)" in pathlib.Path(folder, "p.svg").read_text())
check("a picture's name that is none", ["plot", "p.npy", "-o", "p.gif"], 2, err="plot p.npy -o p.gif: the path 'p.gif' must end in")
check("a picture without a folder", ["plot", "p.npy", "-o", "none/p.svg"], 1, err="plot p.npy -o none/p.svg: rank 0: 'none/p.svg' cannot be written")
check("an option that there is not", ["plot", "p.npy", "-x", "p.svg"], 2, err="plot has no option '-x'")
check("no picture of three dimensions", ["plot", "c.h5:/none"], 1, err="no dataset")
(folder / "s.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n2\n1\n1\n2\n")
check("eigenvalues", ["eigh", "s.mtx", "-o", "parts.npz", "-n", 2, "--json"], 0,
      test=lambda s: [round(v, 12) for v in json.loads(s)["values"]] == [1, 3] and json.loads(s)["mesh"] == {"x": 2})
(folder / "skew.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n2\n1\n3\n2\n")
for ranks in (1, 3):
    check("no eigenvalues of another matrix", ["eigh", "skew.mtx", "-n", ranks], 1,
          errors=["tessera: eigh: 'skew.mtx' is not symmetric (Hermitian): elements differ by up to 2 from those of the transpose, where the largest is 3; svd takes any matrix"])
check("eigenvectors are in the archive", ["info", "parts.npz"], 0, "v  float64(2, 2)")
check("singular values", ["svd", "s.mtx", "-o", "s.csv"], 0, "singular values of s.mtx: 2 values")
check("what is being done", ["svd", "s.mtx", "-v"], 0, errors=["tessera: reading s.mtx: float64(2, 2) (matrix market, array), P('x') over Mesh('x': 1)", "tessera: svd", "tessera: done"])

(folder / "twice.stablehlo").write_text("func.func @main(%a: tensor<2x2xf64>) -> tensor<2x2xf64> {\n  %0 = stablehlo.add %a, %a : tensor<2x2xf64>\n  return %0 : tensor<2x2xf64>\n}\n")
(folder / "two.mlir").write_text("func.func @main(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {\n  return %a, %a : tensor<3xf32>, tensor<3xf32>\n}\n")
(folder / "broken.stablehlo").write_text("func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n  %0 = stablehlo.frob %a : tensor<3xf32>\n  return %0 : tensor<3xf32>\n}\n")
check("a program that JAX exported", ["stablehlo", "twice.stablehlo", "s.mtx", "-o", "twice.npy"], 0, "result 0: float64(2, 2), P('x')")
check("the same by run, on two ranks", ["run", "-n", 2, "twice.stablehlo", "s.mtx", "--json"], 0, test=lambda out: json.loads(out)["results"][0]["mesh"] == {"x": 2})
check("several results", ["run", "-n", 2, "two.mlir", "--random", "-o", "two.npz"], 0, "two.npz: written")
check("several results and one file", ["stablehlo", "two.mlir", "--random", "-o", "two.npy"], 2, err="has 2 results (float32(3,), float32(3,)); write them with -o x.npz")
check("the plan of a program", ["stablehlo", "twice.stablehlo", "--explain"], 0, "total moved per rank")
check("a program without its arguments", ["stablehlo", "twice.stablehlo"], 2, err="takes 1 argument (float64(2, 2)), got 0 files; --random draws them")
check("an operation without a counterpart", ["stablehlo", "broken.stablehlo", "--random", "-n", 2], 1, err="broken.stablehlo:2:8: stablehlo.frob has no counterpart")
check("a program that is not there", ["stablehlo", "none.stablehlo", "--random"], 1, err="none.stablehlo")
check("a mesh for machines", ["shard", "8x8", "--mesh", "y=4,x=2", "--spec", "x", "--json"], 0, test=lambda s: list(json.loads(s)["mesh"].items()) == [("y", 4), ("x", 2)])
check("a profile of a program as it is", ["profile", "-n", 2, "-o", "prof", tessera, "stats", images], 0, "2 ranks on 1 host", errors=[])
check("its trace", ["--version"], 0, test=lambda s: {"rank 0", "rank 1"} <= {str(e["args"].get("name")).partition(" on ")[0] for e in json.load(open(f"{folder}/prof/trace.json"))["traceEvents"]})
pathlib.Path(folder, "plain.py").write_text("print('no tessera')")
check("a profile of a script of Python", ["profile", "-o", "none", "plain.py"], 1, "no tessera", err="left no profile")
check("a profile of a program that has none", ["profile", "-o", "none", "true"], 1, err="left no profile")
check("a profile of nothing", ["profile"], 2, err="which program?")
flight = "tessera flight record 1\nrank {}\nranks 2\nhost h{}\nprocess 7\nreason time-out\nclock 20000000000\ncall\t9\t64\t8000000000\t{}\tall-reduce\tdevices 0-1\tsum at a.cpp:1\n"
pathlib.Path(folder, "flight").mkdir()
for rank, stop in ((0, 0), (1, 9000000000)):
    pathlib.Path(folder, "flight", f"rank-{rank:06}.txt").write_text(flight.format(rank, rank, stop))
check("a doctor who names the rank", ["doctor", "flight"], 0, "=> rank 1 computes (or works on files), and the others wait for it")
check("a doctor without records", ["doctor", "prof"], 1, err="no flight records")
check("a doctor in a folder that is not there", ["doctor", "nowhere"], 1, err="cannot be read")
helped = run(["--help"])[1]
commands = [line.split()[0] for line in helped.split("Subcommands:")[1].split("Examples:")[0].splitlines() if line.startswith("  ") and line[2] != " "]
for file in ["tessera.bash", "tessera.1"]:
    missing = [command for command in commands if command not in (pathlib.Path(__file__).parent.parent.parent / "apps/cli" / file).read_text()]
    if missing or len(commands) < 14:
        failures += 1
        print(f"{file}: knows nothing of {missing} among {commands}")
check("a dataset without a name", ["reshard", images, "-o", "c.h5"], 2, err="names no dataset")
subprocess.run(["rm", "-r", folder], check=True)
print(f"{failures} of the command line's checks failed")
sys.exit(1 if failures else 0)
