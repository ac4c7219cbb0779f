"""exported_symbols.py LIBRARY.a HEADERS SOURCES OUT: the linker's list of what the shared library shows.

Shown is what the public headers name: of the symbols that the archive defines those whose namespaces and last name occur there. All else, the rooms'
own functions and what other libraries' templates leave behind, stays inside.
"""
import pathlib
import re
import subprocess
import sys

archive, headers, sources, out = map(pathlib.Path, sys.argv[1:])


def text_of(folder):
    text = "\n".join(path.read_text() for path in sorted(folder.rglob("*.hpp")))
    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', " ", text, flags=re.S)


def namespaces_of(text):
    return {part for found in re.findall(r"\bnamespace\s+([\w:]+)\s*\{", text) for part in found.split("::")}


public = text_of(headers)
names = set(re.findall(r"[A-Za-z_]\w*", public))
rooms = namespaces_of(text_of(sources)) - namespaces_of(public)
kinds = re.compile(r"^(typeinfo name for|typeinfo for|vtable for|VTT for|guard variable for|(?:non-)?virtual thunk to) ")


def without_brackets(text):
    """std::vector<int> tessera::f<int>(long)  ->  std::vector tessera::f(long)"""
    text = re.sub(r"operator(<=>|<<=?|>>=?|<=?|>=?|->\*?|\(\))", "operator", text)
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def is_public(symbol):
    qualified = without_brackets(kinds.sub("", symbol)).split("(")[0].split(" ")
    qualified = [word for word in qualified if word.startswith("tessera::")][-1:]
    if not qualified:
        return False
    parts = re.sub(r"\[abi:\w+\]", "", qualified[0]).split("::")[1:]
    parts = [part.lstrip("~") for part in parts]
    return bool(parts) and not any(part in rooms for part in parts) and all(part in names or part.startswith("operator") for part in parts)


listed = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", archive], capture_output=True, text=True, check=True).stdout
mangled = sorted({line.split()[0] for line in listed.split("\n") if line.startswith("_Z")})
demangled = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.split("\n")
shown = [name for name, symbol in zip(mangled, demangled) if is_public(symbol)]
out.write_text("{\n  global:\n" + "".join(f"    {name};\n" for name in shown) + "  local: *;\n};\n")
print(f"{len(shown)} of {len(mangled)} symbols are the public headers'")
