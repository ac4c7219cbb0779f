"""speed.py [[--other] now.json]: the tables of pages/speed.md from speed.json, into which the rows of a result of scripts/bench --json go first.

speed.json is the one place of measured figures: `rows` as the script writes them, `other`: rows of another CPU, `products` and `messages` as
cells, `claims`: numbers that other pages say, with the row whose ratio they are, and `chart`: the bars of pages/speed.svg. scripts/docs fails
where a table, a claim or the chart is not what the file says.
"""
import fnmatch
import json
import pathlib
import re
import sys

site = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(site.parent / "benchmark"))
import results  # noqa: E402

HEAD = "| what | ranks | tessera | peer | peer's time | ratio | goal |\n| --- | --- | --- | --- | --- | --- | --- |\n"


# The rows of a subject, by their names: the first pattern that fits. What fits none stands last.
SUBJECTS = [("As on a CPU without AVX-512", r"_avx2$"), ("The same bits on every number of ranks", r"^same_bits|_same_bits$"), ("Calls, plans and agreement", r"^(jit|one_op|agreement|fori)_"),
            ("Products", r"^(product|matmul|einsum)_"), ("FFT", "^fft_"), ("Linear algebra", "^(linalg|spmv)_"), ("Networks", "^(gradient|layer)_"),
            ("Messages and layouts", r"^(all_|reduce_|permute|broadcast|reshard)"), ("Files", "^(checkpoint|zarr)_"), ("Beside NumPy and SciPy", "^numpy_"), ("Elementwise, reductions, sorts, random numbers", "")]


def read():
    return json.loads((site / "speed.json").read_text())


def by_subject(machine, rows):
    """A table for each subject, in the order of the page."""
    of = {subject: [] for subject, _ in [*SUBJECTS[2:], *SUBJECTS[:2]]}  # other builds and settings stand last
    for row in rows:
        of[next(subject for subject, pattern in SUBJECTS if re.search(pattern, row["name"]))].append(row)
    return results.machine_line(machine) + "\n\n" + "\n".join(f"### {subject}\n\n{results.table(found)}" for subject, found in of.items() if found)


def key_of(row):
    """What makes rows of two runs the same: a peer's first word names it, for its quickest blocks and grid are another run's others."""
    return row["name"], row["ranks"], row["peer"].split()[0]


def beside(figures):
    """The ratios of the other CPU's rows beside those of `rows`."""
    known = {key_of(row): row["peer_s"] / row["ours_s"] for row in figures["rows"] if "peer_s" in row}
    cells = [(row, row["peer_s"] / row["ours_s"], known[key_of(row)]) for row in figures["other"]["rows"] if key_of(row) in known]
    bold = lambda ratio, goal: f"**{ratio:.2f}**" if round(ratio, 2) < goal else f"{ratio:.2f}"  # noqa: E731
    lines = [f"| {row['name']} | {row['ranks']} | {row['peer']} | {results.seconds_text(row['ours_s'])} | {bold(ratio, row['goal'])} | {bold(other, row['goal'])} | {row['goal']:.2f} |"
             for row, ratio, other in cells]
    heads = ["row", "ranks", "peer", "tessera here", "ratio here", f"ratio on {figures['machine']['vectors']}", "goal"]
    return "\n".join([results.machine_line(figures["other"]["machine"]) + "\n", f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|", *lines]) + "\n"


def page(figures, text):
    """The page's text with its tables."""
    tables = {"rows": by_subject(figures["machine"], figures["rows"]), "other": beside(figures)}
    for name in ("products", "messages"):
        tables[name] = HEAD + "".join("| " + " | ".join(cells) + " |\n" for cells in figures[name])
    return re.sub(r"(<!-- table: (\w+) -->\n).*?(?=<!-- end -->)", lambda found: f"{found[1]}\n{tables[found[2]]}\n", text, flags=re.S)


def ratio_of(figures, claim):
    """The peer's time over tessera's, of the claim's row: of several (product_*) the smallest."""
    if "row" in claim:
        wanted = claim["ranks"], claim["peer"].split()[0]
        return min(row["peer_s"] / row["ours_s"] for row in figures["rows"] if fnmatch.fnmatchcase(row["name"], claim["row"]) and key_of(row)[1:] == wanted)
    cells = next(cells for name in ("products", "messages") for cells in figures[name] if name in claim and (cells[0], cells[3]) == (claim[name], claim["peer"]))
    ratios = [float(x) for x in re.findall(r"[\d.]+", cells[5])]
    return ratios[claim["of"]] if "of" in claim else min(ratios)


def claimed(figures, claim):
    """tessera's time over the peer's."""
    return f"{1 / ratio_of(figures, claim):.2f}"


def chart(figures):
    """A bar for each entry of `chart`: how many times quicker than the peer; a line marks equal time."""
    bars = [(bar, ratio_of(figures, bar)) for bar in figures["chart"]]
    left, scale, step = 250, 120, 30
    height = 70 + step * len(bars)
    width = left + int(scale * max(ratio for _, ratio in bars)) + 190
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222222">',
             "<title>How many times quicker tessera is than other libraries</title>", '<rect width="100%" height="100%" fill="#ffffff"/>',
             '<text x="20" y="26" font-size="15" font-weight="bold">Times quicker than ...</text>',
             f'<text x="{left + scale}" y="26" fill="#555555" text-anchor="middle">equal</text>']
    for number, (bar, ratio) in enumerate(bars):
        y = 40 + step * number
        lines += [f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{bar["label"]}</text>',
                  f'<rect x="{left}" y="{y}" width="{ratio * scale:.0f}" height="20" rx="2" fill="{"#393b79" if ratio >= 1 else "#d6616b"}"/>',
                  f'<text x="{left + ratio * scale + 8:.0f}" y="{y + 15}"><tspan font-weight="bold">{ratio:.2f}</tspan> <tspan fill="#555555">{bar["than"]}</tspan></text>']
    machine = figures["machine"]
    lines += [f'<line x1="{left + scale}" y1="32" x2="{left + scale}" y2="{height - 26}" stroke="#888888" stroke-dasharray="3 3"/>',
              f'<text x="20" y="{height - 10}" font-size="11" fill="#555555">{machine["cpu"]}, {machine["vectors"]}, {machine["cores"]} ranks; {machine["date"]}</text>', "</svg>"]
    return "\n".join(lines) + "\n"


def findings(root):
    """What on the pages is not what the file says."""
    figures, found = read(), []
    text = (site / "pages/speed.md").read_text()
    if page(figures, text) != text:
        found.append("scripts/site/pages/speed.md: a table is not that of speed.json: python3 scripts/site/speed.py")
    if (site / "pages/speed.svg").read_text() != chart(figures):
        found.append("scripts/site/pages/speed.svg: the chart is not that of speed.json: python3 scripts/site/speed.py")
    for claim in figures["claims"]:
        value = claimed(figures, claim)
        if value != claim["value"] or not re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", (root / claim["file"]).read_text()):
            found.append(f"{claim['file']}: speed.json has {value} for {claim.get('row') or claim['products']}, which the page (or the claim, {claim['value']}) does not say")
    return found


def main():
    figures = read()
    if len(sys.argv) > 1:
        machine, rows = results.read_json(sys.argv[-1])
        if sys.argv[1] == "--other":
            kept = ("name", "ranks", "ours_s", "peer", "peer_s", "goal")
            figures["other"] = {"machine": machine, "rows": [{name: row[name] for name in kept} for row in rows if "peer_s" in row and row.get("goal")]}
        else:
            figures["machine"], figures["rows"] = machine, rows
        parts = [f'"{name}": {json.dumps(figures[name], ensure_ascii=False)}' for name in ("machine", "other")]
        for name in ("rows", "products", "messages", "claims", "chart"):
            parts.append(f'"{name}": [\n ' + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in figures[name]) + "]")
        (site / "speed.json").write_text("{" + ",\n".join(parts) + "}\n")
    file = site / "pages/speed.md"
    file.write_text(page(figures, file.read_text()))
    (site / "pages/speed.svg").write_text(chart(figures))


if __name__ == "__main__":
    main()
