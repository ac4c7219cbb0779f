#!/usr/bin/env python3
"""hosts.py N [--slots K] [--rate 1gbit] [--slow 2:100mbit] [--delay 2ms WIRE] -- COMMAND: runs COMMAND on host h1 of N hosts that exist on this machine only.

Each host h1..hN is a network namespace with a name, an address 10.78.0.i, a /dev/shm and IPC objects of its own, behind one switch: only TCP reaches
another host. MPI_HOSTS names them all with K slots each (default 2) for mpirun -H. --rate narrows every host's cable and --slow that of one, by a
token bucket; --delay puts the program WIRE (tests/cluster/wire.cpp) in the switch's place, which holds every frame back for that long.
All of it goes when COMMAND ends, whose status is returned. 77: this machine cannot do it, and why stands on stderr.
Needs root, or user namespaces; ip and tc of iproute2, unshare and nsenter of util-linux."""
import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time

SKIPPED = 77
RUN = "/run/tessera-hosts"
AGENT = f"""#!/bin/sh
# mpirun's remote shell: AGENT HOST WORD... runs the words on that host.
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec nsenter --net=/run/netns/"$host" unshare --mount --uts --ipc sh -c '
  hostname "$0" && mount --bind {RUN}/hosts /etc/hosts && mount -t tmpfs -o size=2g tmpfs /dev/shm && exec /bin/sh -c "$*"' "$host" "$@"
"""


def skip(reason):
    print(f"hosts.py: skipped: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def unshare_words():
    words = ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    return words if os.geteuid() == 0 else words + ["--user", "--map-root-user"]


def require():
    for program, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2"), ("tc", "iproute2"), ("mpirun", "openmpi-bin")):
        if shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            skip(f"there is no program {program} (package {package}); scripts/setup --cluster installs it")
    tried = subprocess.run([*unshare_words(), "ip", "link", "add", "cable", "type", "veth"], capture_output=True, text=True)
    if tried.returncode != 0:
        skip(f"network namespaces are refused here ({tried.stderr.strip()}): run it as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN")


def run(words):
    subprocess.run(words, check=True)


def connect(i):
    """A cable from host i to the switch: eth0 there, cable<i> here."""
    host = f"h{i}"
    run(["ip", "netns", "add", host])
    run(["ip", "link", "add", f"cable{i}", "type", "veth", "peer", "name", "eth0", "netns", host])
    run(["ip", "-n", host, "addr", "add", f"10.78.0.{i}/24", "dev", "eth0"])
    run(["ip", "-n", host, "link", "set", "lo", "up"])
    run(["ip", "-n", host, "link", "set", "eth0", "up"])
    run(["ip", "link", "set", f"cable{i}", "up"])
    reno(host)


def reno(host):
    """Congestion control by lost packets alone, as in most clusters: BBR, the default of some kernels, sends on each connection at a pace of its own, so that
    several connections do not fill one cable (34 for 29 ms)."""
    run(["nsenter", f"--net=/run/netns/{host}", "sh", "-c", "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"])


def narrow(i, rate):
    run(["tc", "-n", f"h{i}", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "128kb", "latency", "50ms"])


def build(order):
    run(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    os.makedirs("/run/netns")
    os.makedirs(f"{RUN}/tmp")
    open("/run/netns/switch", "w").close()  # so that "ip -n switch link set cable2 down" pulls the cable of h2
    run(["mount", "--bind", "/proc/self/ns/net", "/run/netns/switch"])
    run(["ip", "link", "set", "lo", "up"])
    for i in range(1, order.hosts + 1):
        connect(i)
        if order.rate:
            narrow(i, order.rate)
    if order.slow:
        host, rate = order.slow.split(":")
        narrow(int(host), rate)
    if order.delay:
        time_text, wire = order.delay
        subprocess.Popen([wire, time_text, *(f"cable{i}" for i in range(1, order.hosts + 1))])
        time.sleep(0.2)
    else:
        run(["ip", "link", "add", "switch0", "type", "bridge"])
        for i in range(1, order.hosts + 1):
            run(["ip", "link", "set", f"cable{i}", "master", "switch0"])
        run(["ip", "link", "set", "switch0", "up"])
    with open(f"{RUN}/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n" + "".join(f"10.78.0.{i} h{i}\n" for i in range(1, order.hosts + 1)))
    with open(f"{RUN}/agent", "w") as file:
        file.write(AGENT)
    os.chmod(f"{RUN}/agent", 0o755)


def environment(order):
    """Ranks of several hosts share this machine's cores, which Open MPI cannot know: they must yield, and must not be bound to cores."""
    return dict(os.environ, MPI_HOSTS=",".join(f"h{i}:{order.slots}" for i in range(1, order.hosts + 1)), OMPI_MCA_plm_rsh_agent=f"{RUN}/agent",
                OMPI_MCA_btl_tcp_if_include="eth0", OMPI_MCA_oob_tcp_if_include="eth0", OMPI_MCA_mpi_yield_when_idle="1",
                OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_orte_tmpdir_base=f"{RUN}/tmp", OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_oob_tcp_keepalive_time="2", OMPI_MCA_oob_tcp_keepalive_intvl="1",
                OMPI_MCA_oob_tcp_keepalive_probes="3", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")


def parse(words):
    if "--" not in words:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    parser = argparse.ArgumentParser()
    parser.add_argument("hosts", type=int)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--rate")
    parser.add_argument("--slow")
    parser.add_argument("--delay", nargs=2)
    order = parser.parse_args(words[:words.index("--")])
    order.command = words[words.index("--") + 1:]
    return order


def main():
    inside = sys.argv[1:2] == ["--inside"]
    order = parse(sys.argv[2 if inside else 1:])
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if not inside:
        require()
        os.execvp("unshare", [*unshare_words(), sys.executable, os.path.abspath(__file__), "--inside", *sys.argv[1:]])
    build(order)
    os.execve(f"{RUN}/agent", [f"{RUN}/agent", "h1", "cd " + shlex.quote(os.getcwd()) + " && exec " + shlex.join(order.command)], environment(order))


if __name__ == "__main__":
    main()
