"""Results of scripts/bench as files: JSON, a table in Markdown, and what of one file got slower since another."""
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import time


def machine(root):
    """What a reader must know to compare figures."""
    facts = {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count(), "cpu": platform.machine()}
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    if "model name" in fields:
        facts["cpu"] = f"{fields['model name']}, family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    flags = fields.get("flags", "").split()
    facts["vectors"] = next((name for flag, name in [("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sse4_2", "SSE4")] if flag in flags), "?")
    facts["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    facts["commit"] = commit.stdout.strip()
    return facts


def machine_line(facts):
    return f"{facts['cpu']}, {facts['vectors']}, {facts['cores']} cores, {facts['memory_gib']} GiB; {facts['date']}" + (f", commit {facts['commit']}" if facts['commit'] else "")


def write_json(path, facts, rows):
    pathlib.Path(path).write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")


def read_json(path):
    """(machine, rows). A file that is none of ours: ValueError that says so."""
    try:
        content = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    rows = content.get("rows") if isinstance(content, dict) else content  # the first version wrote the rows alone
    if not isinstance(rows, list) or any(not isinstance(row, dict) or "name" not in row or "ranks" not in row for row in rows):
        raise ValueError(f"{path}: not a result of scripts/bench --json (a list of rows with name and ranks)")
    return (content.get("machine", {}) if isinstance(content, dict) else {}), rows


# ---- the table ----


def seconds_text(seconds):
    for unit, factor in [("s", 1), ("ms", 1e3), ("µs", 1e6)]:
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"


def value_text(row, side):
    if f"{side}_s" in row:
        return seconds_text(row[f"{side}_s"])
    return f"{row[f'{side}_bytes'] / 2**20:.4g} MiB"


def markdown(facts, rows):
    return f"{machine_line(facts)}\n\n{table(rows)}"


def table(rows):
    lines = ["| row | ranks | tessera | peer | peer's | ratio | goal | share of the limit |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        goal = row.get("goal") or 0
        ratio = f"{row['ratio']:.2f}"
        if goal and round(row["ratio"], 2) < goal:
            ratio = f"**{ratio}**"
        share = f"{row['limit_s'] / row['ours_s']:.2f} of {row['limit']}" if row.get("limit_s") else ""
        lines.append(f"| {row['name']} | {row['ranks']} | {value_text(row, 'ours')} | {row['peer']} | {value_text(row, 'peer')} | {ratio} | {f'{goal:.2f}' if goal else ''} | {share} |")
    return "\n".join(lines) + "\n"


# ---- against another result ----

LEAST = 0.05  # below this a difference is nobody's business
UNKNOWN_NOISE = 0.10  # of a row without samples


def noise(samples):
    """Of the median, relative: from the median absolute deviation, twice its standard error."""
    if not samples or len(samples) < 2:
        return UNKNOWN_NOISE
    middle = statistics.median(samples)
    deviation = 1.4826 * statistics.median(abs(s - middle) for s in samples)
    return 2 * 1.2533 * deviation / math.sqrt(len(samples)) / middle


def by_row(rows):
    """(name, ranks) -> the first line of the row: its own times stand in each."""
    first = {}
    for row in rows:
        if "ours_s" in row:
            first.setdefault((row["name"], row["ranks"]), row)
    return first


def drift(before, after):
    """How much slower the peers are in `after`: the machine, not tessera. 1 where no peer was measured in both."""
    times = [{(r["name"], r["ranks"], r["peer"]): r["peer_s"] for r in rows if r.get("peer_samples")} for rows in (before, after)]
    ratios = [times[1][key] / times[0][key] for key in times[0].keys() & times[1].keys()]
    return statistics.median(ratios) if ratios else 1.0


def compare(before, after):
    """Lines for a reader, and how many rows got slower beyond their noise. The peers' common drift is taken off."""
    old, new = by_row(before), by_row(after)
    machines = drift(before, after)
    lines, slower = [], 0
    for key in old.keys() & new.keys():
        ratio = new[key]["ours_s"] / old[key]["ours_s"] / machines
        allowed = max(LEAST, math.hypot(noise(old[key].get("ours")), noise(new[key].get("ours"))))
        if 1 / (1 + allowed) <= ratio <= 1 + allowed:
            continue
        word = "SLOWER" if ratio > 1 else "faster"
        slower += ratio > 1
        times = f"{seconds_text(old[key]['ours_s'])} -> {seconds_text(new[key]['ours_s'])}"
        lines.append((-ratio, f"{word}  {key[0]:40} {key[1]:2} ranks  {times:24} {ratio:5.2f} x the time, noise {allowed * 100:.0f} %"))
    text = [line for _, line in sorted(lines)]
    missing = sorted(f"{name} at {ranks}" for name, ranks in old.keys() - new.keys())
    if missing:
        text.append(f"not measured this time: {', '.join(missing)}")
    count = len(old.keys() & new.keys())
    text.append(f"{count} rows compared, {slower} slower beyond noise; the peers took {machines:.2f} x their time of before, which is taken off")
    return text, slower, count
