#!/usr/bin/env python3
"""nodes.py N -- COMMAND: runs COMMAND on the head of a SLURM cluster of N nodes that exist on this machine only, with SLURM_CONF set.

Each node n1..nN is a host name with a network, a /dev/shm and IPC objects of its own, where a slurmd runs that claims two CPUs; munged and
slurmctld run on the head. All lives in one PID namespace and goes when COMMAND ends, whose status is returned. `kill -9` of the process in
/run/cluster/NODE.pid takes the node with all that runs there. 77: this machine cannot do it, and why stands on stderr.
Needs root; slurm-wlm and munge; ip of iproute2, unshare and nsenter of util-linux."""
import os
import shutil
import signal
import subprocess
import sys
import time

SKIPPED = 77
HOME = "/run/cluster"
PACKAGE_OF = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "srun": "slurm-wlm", "munged": "munge", "ip": "iproute2", "unshare": "util-linux"}
CONFIGURATION = """ClusterName=test
SlurmctldHost=head(10.79.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
TmpFS={home}/tmp/%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.%n.pid
SlurmctldLogFile={home}/log/slurmctld
SlurmdLogFile={home}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2
JobRequeue=1
KillWait=5
SlurmdTimeout=10
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n[1-{nodes}] NodeAddr=10.79.0.[1-{nodes}] CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=2000 State=UNKNOWN
PartitionName=test Nodes=n[1-{nodes}] Default=YES MaxTime=01:00:00 State=UP
"""


def skip(reason):
    print(f"nodes.py: skipped: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def require():
    for program, package in PACKAGE_OF.items():
        if shutil.which(program) is None:
            skip(f"there is no program {program} (package {package}); scripts/setup --cluster installs it")
    if os.geteuid() != 0:
        skip("slurmctld gives up its groups, which only root may: run it as root")
    tried = subprocess.run([*namespaces(), "ip", "link", "add", "cable", "type", "veth"], capture_output=True, text=True)
    if tried.returncode != 0:
        skip(f"namespaces are refused here ({tried.stderr.strip()}): run it with CAP_SYS_ADMIN and CAP_NET_ADMIN")


def namespaces():
    return ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


def lay_network(nodes):
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "switch0", "type", "bridge")
    run("ip", "addr", "add", "10.79.0.254/24", "dev", "switch0")
    run("ip", "link", "set", "switch0", "up")
    for i in range(1, nodes + 1):
        run("ip", "netns", "add", f"n{i}")
        run("ip", "link", "add", f"cable{i}", "type", "veth", "peer", "name", "eth0", "netns", f"n{i}")
        run("ip", "link", "set", f"cable{i}", "master", "switch0", "up")
        run("ip", "-n", f"n{i}", "addr", "add", f"10.79.0.{i}/24", "dev", "eth0")
        run("ip", "-n", f"n{i}", "link", "set", "lo", "up")
        run("ip", "-n", f"n{i}", "link", "set", "eth0", "up")


def lay_folders(nodes):
    for name in ["log", "state", "munge", "tmp", *(f"{kind}/n{i}" for kind in ("spool", "tmp") for i in range(1, nodes + 1))]:
        os.makedirs(f"{HOME}/{name}", exist_ok=True)
        os.chmod(f"{HOME}/{name}", 0o1777 if name.startswith("tmp") else 0o755)
    with open(f"{HOME}/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n10.79.0.254 head\n" + "".join(f"10.79.0.{i} n{i}\n" for i in range(1, nodes + 1)))
    run("mount", "--bind", f"{HOME}/hosts", "/etc/hosts")
    with open(f"{HOME}/slurm.conf", "w") as file:
        file.write(CONFIGURATION.format(home=HOME, nodes=nodes))
    with open(f"{HOME}/cgroup.conf", "w") as file:
        file.write("CgroupPlugin=cgroup/v1\n")
    with open(os.open(f"{HOME}/munge/key", os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
        file.write(os.urandom(1024))


def start_node(name):
    """All of a node ends with the process whose id stands in NODE.pid: it is the first one of a PID namespace."""
    inside = f"hostname {name} && mount -t tmpfs -o size=1g tmpfs /dev/shm && exec slurmd -D -N {name}"
    words = ["nsenter", f"--net=/run/netns/{name}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside]
    with open(f"{HOME}/log/{name}.out", "w") as out:
        node = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)
    with open(f"{HOME}/{name}.pid", "w") as file:
        file.write(str(node.pid))


def idle_nodes():
    try:
        listed = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:
        return 0
    return listed.stdout.split().count("idle")


def start_cluster(nodes):
    lay_network(nodes)
    lay_folders(nodes)
    key = f"{HOME}/munge"
    run("munged", f"--key-file={key}/key", f"--socket={key}/socket", f"--pid-file={key}/pid", f"--log-file={key}/log", f"--seed-file={key}/seed", "--num-threads=2")
    os.environ["SLURM_CONF"] = f"{HOME}/slurm.conf"
    run("slurmctld", "-i")
    for i in range(1, nodes + 1):
        start_node(f"n{i}")
    deadline = time.monotonic() + 60
    while idle_nodes() < nodes:
        if time.monotonic() > deadline:
            subprocess.run(f"sinfo -N -l >&2; tail -n 5 {HOME}/log/* >&2", shell=True)
            sys.exit("nodes.py: the nodes did not come up within a minute")
        time.sleep(0.2)


def environment():
    """Ranks share this machine's cores, more than it has: they yield, and are not bound."""
    return dict(os.environ, OMPI_MCA_btl_tcp_if_include="10.79.0.0/24", OMPI_MCA_oob_tcp_if_include="10.79.0.0/24", OMPI_MCA_mpi_yield_when_idle="1",
                OMPI_MCA_hwloc_base_binding_policy="none", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OPENBLAS_NUM_THREADS="1",
                OMP_NUM_THREADS="1")


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    inside = sys.argv[1:2] == ["--inside"]
    words = sys.argv[2 if inside else 1:]
    if len(words) < 3 or words[1] != "--":
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    if not inside:
        require()
        os.execvp("unshare", [*namespaces(), sys.executable, os.path.abspath(__file__), "--inside", *words])
    run("hostname", "head")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    os.makedirs("/run/netns")
    start_cluster(int(words[0]))
    sys.exit(subprocess.run(words[2:], env=environment()).returncode)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
