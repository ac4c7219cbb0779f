#!/usr/bin/env python3
"""scripts/headers.py [header...]: what the public headers declare, a line each: place, kind, qualified name.

The one parser of include/tessera. The bindings (src/python/generate.py), their test, check_headers, lint and the
catalogue of functions (tests/catalogue) ask it; none reads the headers with expressions of its own.
"""
import functools
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
include = root / "include/tessera"


class Declaration:
    """A function, class, struct, enum, alias, variable, or the member of a class."""

    def __init__(self, kind, name, scopes, text, path, line, doc, behind, has_comment):
        self.kind, self.name, self.text, self.path, self.line, self.doc, self.behind = kind, name, text, path, line, doc, behind
        self.has_comment = has_comment  # of its own, or shared with the overload above it
        self.namespace = "::".join(s.name for s in scopes if s.kind == "namespace" and s.name and s.name != "tessera")
        classes = [s for s in scopes if s.kind == "class"]
        self.owner = classes[-1].name if classes else ""
        self.is_public = all(s.is_public for s in scopes)
        self.is_detail = any(s.is_detail for s in scopes)
        self.is_template = text.startswith("template")
        self.has_body = False  # a definition, or a class with its members
        self.owner_is_template = any(s.is_template for s in classes)

    @property
    def qualified(self):
        return "::".join(part for part in (self.namespace, self.owner, self.name) if part)

    @property
    def is_function(self):
        return self.kind == "function"

    def parameters(self):
        """[(type, name, default or None)] of a function."""
        found = re.search(r"\b" + re.escape(self.name) + r" ?\((.*)\)[^)]*$", self.text)
        return [parameter(text) for text in split_commas(found.group(1))] if found else []

    def result(self):
        """The type in front of a function's name, or None where it is no plain one."""
        found = re.match(r"((?:const )?[\w:]+(?:<.*?>+)?) " + re.escape(self.name) + r" ?\(.*\)$", self.text.replace("[[nodiscard]] ", ""))
        return found.group(1) if found else None

    def values(self):
        """The names of an enumeration."""
        return [word.strip().split(" ")[0] for word in self.body.split(",") if word.strip()]


class Scope:
    def __init__(self, kind, name="", is_public=True, is_detail=False, is_template=False):
        self.kind, self.name, self.is_public, self.is_detail, self.is_template = kind, name, is_public, is_detail, is_template
        self.members_are_public = True
        self.last = None  # the name declared last, and whether it had a comment


def split_commas(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c in "<({") - (c in ">)}")
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return parts + [current.strip()] if current.strip() else parts


def parameter(text):
    """(type, name, default or None)."""
    declaration, _, default = text.partition(" = ")
    found = re.match(r"(?:const )?([\w:]+(?:<.*>)?)(?: ?&)?(?: (\w+))?$", declaration.strip())
    if not found:
        return declaration, "", default or None
    return found.group(1), found.group(2) or "", default or None


def without_comments(text, keep_literals=False):
    """The code with comments and literals blanked out, line by line as it was."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    if not keep_literals:
        text = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda found: '"' + " " * (len(found.group(0)) - 2) + '"', text)
        text = re.sub(r"'(?:\\.|[^'\\\n])'", blank, text)
    return re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.S | re.M)


def name_of(statement):
    """The name that a declaration introduces."""
    flat = re.sub(r"\s+", " ", statement).strip()
    flat = re.sub(r"^(template ?<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*> ?)+", "", flat)
    flat = re.sub(r"^requires ?\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\) ?", "", flat)
    found = re.match(r"(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?([\w:]+)", flat)
    if found:
        return found.group(1)
    found = re.match(r"(?:using|concept) (\w+)", flat)
    if found:
        return found.group(1)
    found = re.match(r"[\w: ]+[ *&]?\(\*(\w+)\)\(", flat)  # a pointer to a function
    if found:
        return found.group(1)
    flat = re.split(r" = |(?<=\w)\{", flat)[0] if not re.match(r"operator|[^(]*\(", re.split(r" = |(?<=\w)\{", flat)[0]) else flat
    found = re.search(r"(operator ?(?:\(\)|\[\]|[^\s\w(]+|\w+)|~?[\w:]+) ?\(", re.sub(r"\bexplicit ?\([^)]*\)|\bnoexcept\b", "", flat))
    if found:
        return found.group(1).replace(" ", "")
    while re.search(r"<[^<>]*>", flat):
        flat = re.sub(r"<[^<>]*>", "", flat)
    found = re.search(r"(\w+)(?:\[\w*\])? ?(?:\{|=|,|;|$)", flat)
    return found.group(1) if found else flat[:40]


def kind_of(flat, name):
    head = re.sub(r"^(template ?<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*> ?)+", "", flat)
    head = re.sub(r"^requires ?\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\) ?", "", head)
    for word in ("enum", "struct", "class", "union", "using", "concept", "friend", "static_assert", "extern"):
        if re.match(rf"{word}\b", head):
            return word
    if re.search(r"(?<!\*)\b" + re.escape(name) + r" ?\(", head.replace("operator ", "operator")):
        return "function"
    return "variable"


def is_initialized(head):
    """Whether a variable's value begins: there is a = outside of all brackets."""
    depth, plain = 0, ""
    for c in head:
        depth += (c in "(<[") - (c in ")>]")
        plain += c if depth == 0 else ""
    return bool(re.search(r"(?<!operator) = ", plain))


class Parser:
    """The declarations of one header, in their order."""

    def __init__(self, path):
        self.path, text = path, path.read_text()
        self.lines, self.code, self.spelled = text.split("\n"), without_comments(text), without_comments(text, True)
        self.code_lines = self.code.split("\n")
        self.scopes, self.found, self.start = [Scope("namespace")], [], 0
        self.read()

    def line_of(self, position):
        return self.code.count("\n", 0, position)

    def take(self, begin, end, closing, has_body, body):
        statement = self.code[begin:end]
        flat = re.sub(r"\s+", " ", self.spelled[begin:end]).strip()
        scope = self.scopes[-1]
        while True:  # access labels stand before the declaration that follows them
            label = re.match(r"(public|private|protected) ?: ?", flat)
            if not label:
                break
            flat = flat[label.end() :]
        if not flat:
            return
        first = self.line_of(begin + len(statement) - len(statement.lstrip()))
        while re.match(r"\s*(public|private|protected)\s*:", self.lines[first]) or not self.code_lines[first].strip():
            first += 1
        name = name_of(flat)
        above = self.lines[first - 1].strip() if first else ""
        behind = [line.partition("///<")[2].strip() for line in self.lines[first : closing + 1] if "///<" in line]
        has_comment = above.startswith("///") or bool(behind)
        if not has_comment and scope.last and scope.last[0] == name and not (above == "" or above.startswith("//")):
            has_comment = scope.last[1]
        made = Declaration(kind_of(flat, name), name, self.scopes, flat, self.path, first + 1, self.doc_above(first), behind[0] if behind else "", has_comment)
        made.is_public = made.is_public and (scope.kind != "class" or scope.members_are_public)
        made.body = re.sub(r"\s+", " ", body).strip()
        made.has_body = has_body
        self.found.append(made)

    def doc_above(self, first):
        doc = []
        for line in reversed(self.lines[:first]):
            stripped = line.strip()
            if stripped.startswith("///") and not stripped.startswith("///<"):
                if stripped[3:].strip().startswith("@"):
                    break
                doc.insert(0, stripped[3:].removeprefix(" "))
            elif not stripped.startswith("//"):
                break
        return "\n".join(doc)

    def judge(self, begin, end, closing, has_body=False, body=""):
        """Keeps the declaration; overloads that stand one below the other share a comment."""
        before = len(self.found)
        self.take(begin, end, closing, has_body, body)
        if len(self.found) > before and not is_exempt(self.found[-1]) and self.found[-1].is_public and not self.found[-1].is_detail:
            self.scopes[-1].last = (self.found[-1].name, self.found[-1].has_comment)

    def open_scope(self, i, head):
        """A namespace or a class begins at this brace."""
        inner = self.scopes[-1]
        if re.match(r"(inline )?namespace\b", head):
            for name in head.split()[-1].split("::"):
                self.scopes.append(Scope("namespace", name, is_detail=inner.is_detail or "detail" in name))
            self.scopes[-1].opened = len(head.split()[-1].split("::"))
            return True
        is_class = re.search(r"\b(struct|class|union) [\w:]+( final)?( :[^:].*)?$", head) or re.match(
            r"(template ?<.*> ?)?(struct|class) [\w:<>, ]+( :[^:].*)?$", head
        )
        if not is_class or "=" in head or "(" in head or re.match("enum", head):
            return False
        closing = self.line_of(i)
        self.judge(self.start, i, closing, True)
        is_public = inner.kind != "class" or inner.members_are_public
        scope = Scope("class", name_of(head).split("::")[-1], is_public and inner.is_public, inner.is_detail, bool(re.match("template", head)))
        scope.members_are_public = not re.search(r"\bclass\b", re.sub(r"template ?<.*?>", "", head))
        if re.match(r"template ?<> ?struct", head):
            scope.is_detail = True
        self.scopes.append(scope)
        return True

    def skip_body(self, i):
        """Behind the closing brace of the body, list or initializer that begins here; a declaration ends there or goes on."""
        depth, j = 1, i + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.code[j], 0)
            j += 1
        return j

    def read(self):
        code, depth_parens, i = self.code, 0, 0
        while i < len(code):
            c = code[i]
            if c == "(":
                depth_parens += 1
            elif c == ")":
                depth_parens -= 1
            elif depth_parens == 0 and c == "{":
                head = re.sub(r"^((public|private|protected) ?: ?)+", "", re.sub(r"\s+", " ", code[self.start : i]).strip())
                if self.open_scope(i, head):
                    self.start = i + 1
                else:
                    j = self.skip_body(i)
                    rest = code[j:].lstrip()
                    if rest[:1] in {";", ",", ")", "{"} or head.endswith((",", ":", "=")) or is_initialized(head):
                        if re.search(r"\benum\b", head):
                            self.judge(self.start, i, self.line_of(i), True, code[i + 1 : j - 1])
                            self.start = j + len(code[j:]) - len(rest) + 1
                        i = max(j, self.start)
                        continue
                    self.judge(self.start, i, self.line_of(i), True)
                    self.start = i = j
                    continue
            elif depth_parens == 0 and c == "}":
                for _ in range(getattr(self.scopes[-1], "opened", 1)):
                    self.scopes.pop()
                self.start = i + 1
            elif depth_parens == 0 and c == ";":
                self.judge(self.start, i, self.line_of(i))
                self.start = i + 1
            elif depth_parens == 0 and c == ":" and self.scopes[-1].kind == "class":
                label = re.search(r"\b(public|private|protected)\s*$", code[self.start : i])
                if label:
                    self.scopes[-1].members_are_public = label.group(1) == "public"
                    self.start = i + 1
            i += 1


def is_exempt(declaration):
    """Declarations that say nothing that wants a comment."""
    flat, owner = declaration.text, declaration.owner
    return bool(
        re.fullmatch(r"(template ?<[^{}]*> ?)?(struct|class|enum class) [\w:]+", flat) and not declaration.has_body
        or re.search(r"= ?(default|delete)$|\boverride$", flat)
        or owner in ("numeric_limits", "hash")  # members that the standard describes
        or flat.startswith(("using ", "static_assert", "friend ", "~"))
        or re.match(r"template ?<> ?struct", flat)
        or re.search(r"\boperator ?(==|<=>|<<) ?\(", flat)
        or (owner and re.match(r"(explicit )?%s ?\( ?\)" % re.escape(owner), flat))
        or re.match(r"template .*\b(\w+)(<[^>]*>)?::(operator ?[^\s\w]+|[\w~]+) ?\(", flat)
    )


@functools.lru_cache(maxsize=None)
def parsed(path):
    return Parser(path).found


def declarations(path):
    """All of a header."""
    return parsed(pathlib.Path(path).resolve())


def public_headers(folder=include):
    return [path for path in sorted(folder.rglob("*.hpp")) if "detail" not in path.relative_to(folder).parts]


def functions(path):
    """Public functions that stand in a namespace: no members, no operators, nothing of detail."""
    return [d for d in declarations(path) if d.is_function and not d.owner and not d.is_detail and re.fullmatch(r"[A-Za-z]\w*", d.name) and "operator" not in d.name]


def classes(path):
    """{name: declarations of its public members}; the classes of classes are left out."""
    found = {}
    for d in declarations(path):
        if d.is_detail or not d.is_public:
            continue
        if d.kind in ("class", "struct") and not d.owner and d.has_body and "::" not in d.name:
            found.setdefault(d.name, [])
        elif d.owner in found:
            found[d.owner].append(d)
    return found


def main():
    for path in [pathlib.Path(name) for name in sys.argv[1:]] or public_headers():
        for d in declarations(path):
            if d.is_public and not d.is_detail:
                print(f"{d.path.relative_to(root)}:{d.line}: {d.kind} {d.qualified}")


if __name__ == "__main__":
    main()
