#!/usr/bin/env python3
"""wheel_slurm.py ENVIRONMENT [MPI ...]: `tessera run` of an installed wheel in a job of SLURM, by srun and by the mpirun that is on the PATH.

On the head of a cluster: tests/cluster/slurm/nodes.py 2 -- python3 tests/packaging/wheel_slurm.py build-wheel/trial/one [build-wheel/trial/mpi-mpich4 ...]
ENVIRONMENT has the wheel and no MPI; each MPI is an environment that has one. Without one: the MPI of the system."""
import pathlib
import re
import sys

from trial import Trial, check, end

environment = pathlib.Path(sys.argv[1]).resolve()
mpis = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
trial = Trial(environment.parent / "slurm")
command = environment / "bin/tessera"
program = trial.program("job", """
import os
import tessera as ts
mesh = ts.make_mesh((ts.device_count(),), ("x",))
total = float(ts.sum(ts.device_put(ts.arange(100), ts.NamedSharding(mesh, ts.P("x")))))
os.write(1, f"{ts._core.mpi_in_use()[0]} {ts.process_count()} {total} {os.environ.get('SLURMD_NODENAME')}\\n".encode())
""")


def job(*words, **variables):
    return trial.run("salloc", "-Q", "-N", "2", "-n", "4", *words, **variables)


def passes(what, result, kind):
    status, out, errors = result
    lines = re.findall(rf"^{kind} 4 4950\.0 (\S+)$", out, re.M)
    check(what, status == 0 and len(lines) == 4, f"status {status}\n{out}{errors}")


passes("srun, the system's MPI", job(command, "run", "--launcher", "srun", "-n", "4", program), "openmpi")
passes("mpirun in a job, the system's MPI", job(command, "run", "-n", "4", program), "openmpi")
for prefix in mpis:
    kind = "openmpi" if (prefix / "lib/libmpi.so.40").exists() else "mpich"
    library = prefix / ("lib/libmpi.so.40" if kind == "openmpi" else "lib/libmpi.so.12")
    by_name = job(command, "run", "--launcher", "srun", "-n", "4", program, TESSERA_MPI=str(library))
    passes(f"srun, {prefix.name}", by_name, kind)
for library in ["auto", *(prefix / "lib/libmpi.so.12" for prefix in mpis if (prefix / "lib/libmpi.so.12").exists())]:
    status, out, errors = job("srun", "--mpi=none", "-n", "4", environment / "bin/python", program, TESSERA_MPI=str(library))
    told = "tessera: cannot start" in errors or "direct launched" in errors  # Open MPI ends such a start itself
    check(f"srun that tells MPI nothing is an error and no four jobs, TESSERA_MPI={library}", status != 0 and "4950" not in out and told, f"status {status}\n{out}{errors}")
end()
