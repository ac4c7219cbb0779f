"""What scripts/docs refuses: faults are put into a copy of the tree, and the build of the site must name each of them and fail.

refusals.py FOLDER: an empty folder for the copy.
"""
import pathlib
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
copy = pathlib.Path(sys.argv[1]).resolve()

# fault: file, what is put at its end (or replaced: old, new), what the build says
FAULTS = {
    "a public name without a comment": ("include/tessera/device.hpp", "namespace tessera {\nint nobody_explained_this();\n}\n", "nobody_explained_this has no comment"),
    "a link that leads nowhere": ("scripts/site/pages/faq.md", "\n[there](nowhere.md)\n", "scripts/site/pages/faq.md: nowhere.md does not exist"),
    "a place that is not on the page": ("scripts/site/pages/faq.md", "\n[there](limits.md#nowhere)\n", "limits.md#nowhere"),
    "a command that is not there": ("scripts/site/pages/faq.md", "\n`tessera fly`\n", "there is no command 'tessera fly'"),
    "a setting that is not there": ("scripts/site/pages/faq.md", "\n`TESSERA_" + "WINGS=2`\n", "there is no setting TESSERA_" + "WINGS"),
    "a script that is not there": ("scripts/site/pages/faq.md", "\n`scripts/fly`\n", "there is no scripts/fly"),
    "a row of the cheat sheets with a cell too many": ("scripts/site/cheatsheet.tsv", "a\tb\tc\td\te\n", "has 5 cells"),
    "a table that was not measured": ("scripts/site/pages/speed.md", "\n<!-- table: rows -->\n<!-- end -->\n", "a table is not that of speed.json"),
    "a comment that Doxygen cannot read": ("include/tessera/device.hpp", "namespace tessera {\n/// \\nosuchcommand\nint strange();\n}\n", "nosuchcommand"),
}
ALONE = ["a row of the cheat sheets with a cell too many"]  # nothing else is looked at behind it


def copy_tree():
    kept = shutil.ignore_patterns("data", "__pycache__")
    for name in ("include", "scripts", "src", "apps", "tests"):
        shutil.copytree(root / name, copy / name, ignore=kept)
    for name in ("README.md", "CHANGELOG.md", "CMakeLists.txt"):
        shutil.copy(root / name, copy)


def build():
    done = subprocess.run([copy / "scripts/docs", "--no-install", "--out", copy / "site"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    shutil.rmtree(copy, ignore_errors=True)
    copy_tree()
    before = {file: (copy / file).read_text() for file, _, _ in FAULTS.values()}
    wrong = []
    for group in ({f for f in FAULTS if f not in ALONE}, *({f} for f in ALONE)):  # a build each
        for fault in sorted(group):
            file, added, _ = FAULTS[fault]
            (copy / file).write_text((copy / file).read_text() + added)
        status, said = build()
        wrong += [f"{fault}: status {status}, wanted '{FAULTS[fault][2]}' in:\n{said}" for fault in sorted(group) if status == 0 or FAULTS[fault][2] not in said]
        for file, text in before.items():
            (copy / file).write_text(text)
    shutil.rmtree(copy)
    print("\n".join(wrong) or f"{len(FAULTS)} faults, each refused")
    sys.exit(bool(wrong))


main()
