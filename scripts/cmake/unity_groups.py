#!/usr/bin/env python3
"""unity_groups.py files...: which files may be compiled as one: prints a line per file, its group's number, or - for a file that stays alone.

Two files share a group where neither defines at namespace scope a name that the other one mentions, both open the same namespaces by
`using namespace`, and neither includes a header beside it with a namespace that the other one mentions without including it. Files are expected in the project's format, where what stands at namespace scope begins in the first column.
"""
import re
import sys
from pathlib import Path

MOST_FILES, MOST_LINES = 8, 2000
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
KEYWORDS = {"if", "for", "while", "switch", "return", "namespace", "template", "extern", "static_assert", "INSTANTIATE_TEST_SUITE_P"}


class Source:
    def __init__(self, path):
        text = NOT_CODE.sub(" ", RAW_STRING.sub(" ", open(path, encoding="utf-8").read()))
        self.lines = text.count("\n")
        includes = re.findall(r'^#include "([^"]+)"', open(path, encoding="utf-8").read(), re.M)
        headers = [h for i in includes for h in (Path(path).parent / i, Path(path).parent.parent / i) if h.exists()]
        namespaces = [n for h in headers for n in re.findall(r"^namespace ([\w:]+)", h.read_text(encoding="utf-8"), re.M)]
        self.namespaces = {name for n in namespaces for name in n.split("::")} - {"tessera"}
        self.opened = frozenset(re.findall(r"^using namespace ([\w:]+)", text, re.M))
        self.words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"^ *#include.*", "", text, flags=re.M)))
        self.defined = set(re.findall(r"^#define (\w+)", text, re.M))
        self.defined |= set(re.findall(r"^(?:template <[^\n]*>\s*)?(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)", text, re.M))
        self.defined |= set(re.findall(r"^(?:using|namespace) (\w+) =", text, re.M))
        for line in re.findall(r"^[A-Za-z_][^\n]*", text, re.M):
            if re.match(r"(TEST|TYPED_TEST|using|namespace|struct|class|enum|union)\w*\b", line):
                continue
            name = re.search(r"(\w+)\s*(?:\(|=|\{|;|\[)", re.sub(r"^template <.*?> ", "", line))
            if name and name[1] not in KEYWORDS:
                self.defined.add(name[1])

    def fits(self, other):
        names = self.defined | (self.namespaces - other.namespaces)
        others = other.defined | (other.namespaces - self.namespaces)
        return self.opened == other.opened and not names & other.words and not others & self.words


def main():
    groups, numbers = [], []
    for path in sys.argv[1:]:
        source = Source(path)
        for number, group in enumerate(groups):
            room = len(group) < MOST_FILES and sum(one.lines for one in group) + source.lines <= MOST_LINES
            if room and all(source.fits(one) for one in group):
                break
        else:
            number = len(groups)
            groups.append([])
        groups[number].append(source)
        numbers.append(number)
    print("\n".join(str(number) if len(groups[number]) > 1 else "-" for number in numbers))


main()
