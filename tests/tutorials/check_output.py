"""check_output.py EXPECTED COMMAND ...: runs a tutorial and compares what it prints with what is kept.

Numbers agree by value, other text by letter; widths of columns and lines that begin with "~" (times, hosts, places) do not count. Every
"checked:" is a fact that the program has tested; it stops at one that does not hold.
check_output.py --self-test: that a changed value, word or number of lines is found.
"""
import itertools
import pathlib
import re
import subprocess
import sys

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
RELATIVE, ABSOLUTE = 1e-4, 1e-4  # float32 values of small systems; sums depend on the BLAS at hand


def lines_of(text):
    return [line for line in text.splitlines() if not line.startswith("~") and line.strip()]


def words_of(line):
    return re.sub(r"\s+\]", "]", re.sub(r"\[\s+", "[", NUMBER.sub("#", line))).split()


def same(got, kept):
    if words_of(got) != words_of(kept):
        return False
    pairs = zip(NUMBER.findall(got), NUMBER.findall(kept))
    return all(abs(float(a) - float(b)) <= ABSOLUTE + RELATIVE * abs(float(b)) for a, b in pairs)


def differences(got, kept):
    for a, b in itertools.zip_longest(lines_of(got), lines_of(kept), fillvalue="(nothing)"):
        if not same(a, b):
            yield f"kept:    {b}\nprinted: {a}"


def self_test():
    kept = "[1] a step\nx:\n[ 1.5  -2. ]\n~ time 3 ms\n  checked: it is so\n"
    assert not list(differences(kept.replace("3 ms", "4 ms").replace("[ 1.5  -2. ]", "[1.50001 -2.]"), kept))
    assert list(differences(kept.replace("1.5", "1.6"), kept))
    assert list(differences(kept.replace("it is so", "it is not"), kept))
    assert list(differences(kept.replace("  checked: it is so\n", ""), kept))
    assert list(differences(kept + "more\n", kept))


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, text=True)
    found = list(differences(done.stdout, pathlib.Path(sys.argv[1]).read_text()))
    print("\n".join(found[:20]) or "as kept")
    if done.returncode != 0 or found or "all steps checked" not in done.stdout:
        sys.exit(f"status {done.returncode}, {len(found)} lines differ (scripts/tutorial_pages keeps a new output)")


if __name__ == "__main__":
    main()
