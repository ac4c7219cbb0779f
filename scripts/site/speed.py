"""speed.py [now.json]: the tables of pages/speed.md from speed.json, into which the rows of a result of scripts/bench --json go first.

speed.json is the one place of measured figures: `rows` as the script writes them, `products` and `messages` as cells, and `claims`: numbers that
other pages say, with the row whose ratio they are. scripts/docs fails where a table or a claim is not what the file says.
"""
import json
import pathlib
import re
import sys

site = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(site.parent / "benchmark"))
import results  # noqa: E402

HEAD = "| what | ranks | tessera | peer | peer's time | ratio | goal |\n| --- | --- | --- | --- | --- | --- | --- |\n"


def read():
    return json.loads((site / "speed.json").read_text())


def page(figures, text):
    """The page's text with its tables."""
    tables = {"rows": results.markdown(figures["machine"], figures["rows"])}
    for name in ("products", "messages"):
        tables[name] = HEAD + "".join("| " + " | ".join(cells) + " |\n" for cells in figures[name])
    return re.sub(r"(<!-- table: (\w+) -->\n).*?(?=<!-- end -->)", lambda found: f"{found[1]}\n{tables[found[2]]}\n", text, flags=re.S)


def claimed(figures, claim):
    """tessera's time over the peer's, of the claim's row: of several the largest."""
    if "products" in claim:
        ratio = next(min(map(float, re.findall(r"[\d.]+", cells[5]))) for cells in figures["products"] if (cells[0], cells[3]) == (claim["products"], claim["peer"]))
    else:
        ratio = next(row["peer_s"] / row["ours_s"] for row in figures["rows"] if (row["name"], row["ranks"], row["peer"]) == (claim["row"], claim["ranks"], claim["peer"]))
    return f"{1 / ratio:.2f}"


def findings(root):
    """What on the pages is not what the file says."""
    figures, found = read(), []
    text = (site / "pages/speed.md").read_text()
    if page(figures, text) != text:
        found.append("scripts/site/pages/speed.md: a table is not that of speed.json: python3 scripts/site/speed.py")
    for claim in figures["claims"]:
        value = claimed(figures, claim)
        if value != claim["value"] or not re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", (root / claim["file"]).read_text()):
            found.append(f"{claim['file']}: speed.json has {value} for {claim.get('row') or claim['products']}, which the page (or the claim, {claim['value']}) does not say")
    return found


def main():
    figures = read()
    if len(sys.argv) > 1:
        figures["machine"], figures["rows"] = results.read_json(sys.argv[1])
        parts = [f'"machine": {json.dumps(figures["machine"], ensure_ascii=False)}']
        for name in ("rows", "products", "messages", "claims"):
            parts.append(f'"{name}": [\n ' + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in figures[name]) + "]")
        (site / "speed.json").write_text("{" + ",\n".join(parts) + "}\n")
    file = site / "pages/speed.md"
    file.write_text(page(figures, file.read_text()))


if __name__ == "__main__":
    main()
