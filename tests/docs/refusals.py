"""What scripts/docs refuses: each fault is put into a copy of the tree, and the build of the site must name it and fail.

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
    "a place that is not on the page": ("scripts/site/pages/faq.md", "\n[there](limits.md#nowhere)\n", "limits.html#nowhere: there is no such place"),
    "a command that is not there": ("scripts/site/pages/faq.md", "\n`tessera fly`\n", "there is no command 'tessera fly'"),
    "a setting that is not there": ("scripts/site/pages/faq.md", "\n`TESSERA_" + "WINGS=2`\n", "there is no setting TESSERA_" + "WINGS"),
    "a script that is not there": ("scripts/site/pages/faq.md", "\n`scripts/fly`\n", "there is no scripts/fly"),
    "a row of the cheat sheets with a cell too many": ("scripts/site/cheatsheet.tsv", "a\tb\tc\td\te\n", "has 5 cells"),
    "a comment that Doxygen cannot read": ("include/tessera/device.hpp", "namespace tessera {\n/// \\nosuchcommand\nint strange();\n}\n", "nosuchcommand"),
}


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
    wrong = []
    status, said = build()
    if status != 0:
        sys.exit(f"the tree as it is does not build:\n{said}")
    for fault, (file, added, expected) in FAULTS.items():
        path = copy / file
        before = path.read_text()
        path.write_text(before + added)
        status, said = build()
        path.write_text(before)
        if status == 0 or expected not in said:
            wrong.append(f"{fault}: status {status}, wanted '{expected}' in:\n{said}")
    shutil.rmtree(copy)
    print("\n".join(wrong) or f"{len(FAULTS)} faults, each refused")
    sys.exit(bool(wrong))


main()
