"""The reference: Doxygen's XML of the public headers becomes one Markdown page per header.

Overloads that stand one below the other share the first one's comment, as in the headers. A public name without a comment is a finding.
"""
import re
import xml.etree.ElementTree as ET

INLINE = {"bold": "**", "emphasis": "*", "subscript": "", "superscript": ""}
TEXT = {"ndash": "–", "mdash": "—", "linebreak": "  \n", "hruler": "\n\n---\n\n", "nonbreakablespace": " ", "zwj": "", "copy": "©", "sp": " ", "lsquo": "‘", "rsquo": "’"}


class Reference:
    def __init__(self, xml, folder, headers, rules=None, python=None, example=None):
        self.folder = folder  # include/tessera
        self.headers = headers  # names under it, in the order of the navigation
        self.rules, self.python = rules or {}, python or {}  # of the op's table; name -> signatures
        self.example = example or (lambda function: "")  # an example of it, and a call that is refused, in Markdown
        self.findings = []
        self.entries = {header: [] for header in headers}  # header -> [Entry]
        self.about = {}  # header -> description element
        self.links = {}  # Doxygen's id -> label
        self.names = {}  # qualified and short name -> address
        self.trees = [ET.parse(file).getroot() for file in sorted(xml.glob("*.xml")) if file.name not in ("index.xml", "Doxyfile.xml")]
        for tree in self.trees:
            for compound in tree.iter("compounddef"):
                self.read(compound)
        for header, entries in self.entries.items():
            entries.sort(key=lambda entry: entry.line)
            self.share_comments(header, entries)

    # ---- reading ----
    def read(self, compound):
        kind = compound.get("kind")
        if kind == "file":
            header = self.header_of(compound.find("location"))
            if header:
                self.about[header] = (compound.find("briefdescription"), compound.find("detaileddescription"))
        elif kind == "namespace":
            for section in compound.findall("sectiondef"):
                group = section.findtext("header") or ""
                for member in section.findall("memberdef"):
                    self.add(member, group, section.find("description"))
        elif kind in ("class", "struct", "union") and "::detail" not in compound.findtext("compoundname") and compound.get("prot") == "public":
            header = self.header_of(compound.find("location"))
            if not header:
                return
            entry = Entry(compound, compound.findtext("compoundname"), "", None)
            for section in compound.findall("sectiondef"):
                if section.get("kind").startswith("private"):
                    continue
                for member in section.findall("memberdef"):
                    if member.get("prot") == "public" and not is_exempt(member, entry.short):
                        entry.members.append(Entry(member, member.findtext("name"), "", None))
            entry.members.sort(key=lambda member: member.line)
            self.share_comments(header, entry.members, entry.name)
            self.entries[header].append(entry)

    def header_of(self, location):
        name = location.get("file", "").split("include/")[-1].removeprefix("tessera/")
        return name if name in self.entries else None

    def add(self, member, group, about):
        header = self.header_of(member.find("location"))
        if header and member.get("kind") != "friend" and not is_exempt(member, ""):
            self.entries[header].append(Entry(member, qualified(member), group, about))

    def share_comments(self, header, entries, inside=""):
        last = None
        for entry in list(entries):
            one_statement = last and entry.node.get("kind") == "variable" and last.node.get("kind") == "variable" and ";" not in self.between(header, last, entry)
            if last and (one_statement or (not entry.has_text() and last.short == entry.short)):
                last.overloads.append(entry)
                entries.remove(entry)
                continue
            last = entry
        for entry in entries:
            behind = (self.folder / header).read_text().split("\n")[entry.line - 1].partition("///<")[2]  # Doxygen loses that of an enum
            if not any(one.has_text() for one in [entry, *entry.overloads]) and not behind:
                self.findings.append(f"include/tessera/{header}:{entry.line}: {inside + '::' if inside else ''}{entry.short} has no comment")

    def between(self, header, first, second):
        """The source from one declaration's name to another's."""
        lines = (self.folder / header).read_text().split("\n")[first.line - 1 : second.line]
        text = re.sub(r"//.*", "", "\n".join(lines))
        return text[text.find(first.short) : text.rfind(second.short)] if len(lines) < 5 else ";"

    # ---- addresses ----
    def address_all(self, page_of):
        for header, entries in self.entries.items():
            seen = {}
            for entry in entries:
                self.address(page_of(header), entry, seen, "")
                for member in entry.members:
                    self.address(page_of(header), member, seen, entry.short + "-")

    def address(self, page, entry, seen, prefix):
        anchor = re.sub(r"\W+", "-", prefix + entry.short).strip("-") or "operator"
        anchor = anchor.lower()
        seen[anchor] = seen.get(anchor, 0) + 1
        entry.anchor = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
        entry.label = f"{page}-{entry.anchor}"
        for one in [entry, *entry.overloads]:
            self.links[one.id] = entry.label
        if not prefix:
            for name in (entry.name, entry.name.removeprefix("tessera::"), entry.short):
                self.names.setdefault(name, entry.label)

    # ---- writing ----
    def page(self, header):
        """The page of a header, in Markdown for MyST."""
        about = "\n\n".join(self.render(part) for part in self.about.get(header, ()))
        if not about.strip():
            self.findings.append(f"include/tessera/{header}: the file has no comment (/// @file)")
        parts = [f"# `tessera/{header}`", about]
        group = None
        for entry in self.entries[header]:
            if entry.group and entry.group != group:
                group = entry.group
                parts += [f"## {group}", self.render(entry.about)]
            elif group is None:
                group = ""
                parts.append("## Declarations")
            parts.append(self.entry(entry))
        return "\n\n".join(part for part in parts if part.strip()) + "\n"

    def entry(self, entry):
        about = entry.about_text()
        parts = [f"({entry.label})=", f"### `{entry.title()}`"]
        cpp = fenced("cpp", "\n".join(one.signature() for one in [entry, *entry.overloads]))
        python = self.python.get(entry.title().replace("::", "."))
        tabs = f"````{{tab}} C++\n{cpp}\n````\n\n````{{tab}} Python\n{fenced('python', python)}\n````" if python else cpp
        parts.append(tabs)
        parts += [self.render(about.find("briefdescription")), self.render(about.find("detaileddescription"))]
        rule = self.rules.get(entry.short) if entry.node.get("kind") == "function" else None
        if rule:
            parts.append(f"*On a split dim*: {rule}.")
        if entry.node.get("kind") == "function":
            parts.append(self.example(entry.title()))
        for value in entry.node.findall("enumvalue"):
            text = self.render(value.find("briefdescription")) + self.render(value.find("detaileddescription"))
            parts.append(listed(f"`{value.findtext('name')}`", text))
        for member in entry.members:
            about = member.about_text()
            text = self.render(about.find("briefdescription")) + "\n\n" + self.render(about.find("detaileddescription"))
            parts.append(f"({member.label})=\n" + fenced("cpp", "\n".join(one.signature() for one in [member, *member.overloads])) + "\n\n" + text.strip())
        return "\n\n".join(part for part in parts if part.strip())

    def render(self, node):
        """Markdown of a description."""
        return re.sub(r"\n{3,}", "\n\n", "".join(self.element(child) for child in node)).strip() if node is not None else ""

    def element(self, node, depth=0):
        tag, tail = node.tag, escaped(node.tail)
        if tag in ("computeroutput",):
            words = "".join(node.itertext())
            only = [child for child in node if child.tag == "ref"]
            label = self.links.get(only[0].get("refid")) if len(only) == 1 and "".join(only[0].itertext()) == words else None
            return (f"[`{words}`]({label})" if label else code(words)) + tail
        if tag in ("verbatim", "preformatted", "programlisting"):
            words = "".join(line + "\n" for line in ("".join(c.itertext()) for c in node.iter("codeline"))) or "".join(node.itertext())
            return "\n\n" + fenced("text" if tag != "programlisting" else "cpp", words.strip("\n")) + "\n\n" + tail
        if tag in ("itemizedlist", "orderedlist"):
            mark = "* " if tag == "itemizedlist" else "1. "
            items = [mark + self.render(item).replace("\n", "\n" + " " * len(mark)) for item in node.findall("listitem")]
            return "\n\n" + "\n".join(items) + "\n\n" + tail
        if tag == "table":
            return "\n\n" + self.table(node) + "\n\n" + tail
        inner = escaped(node.text) + "".join(self.element(child) for child in node)
        if tag == "para":
            return "\n\n" + inner.strip() + "\n\n" + tail
        if tag == "ref":
            label = self.links.get(node.get("refid"))
            return (f"[{inner}]({label})" if label else inner) + tail
        if tag == "ulink" and not re.match(r"https?:", node.get("url")):  # branches[i](args...) is no link
            return f"\\[{inner}\\]({node.get('url')}){tail}"
        if tag == "ulink":
            return f"[{inner}]({node.get('url')}){tail}"
        if tag in INLINE:
            return f"{INLINE[tag]}{inner}{INLINE[tag]}{tail}"
        if tag in TEXT:
            return TEXT[tag] + tail
        if tag in ("highlight", "simplesect", "title", "blockquote", "listitem"):
            return inner + tail
        self.findings.append(f"Doxygen's <{tag}> is not known to scripts/site/reference.py")
        return inner + tail

    def table(self, node):
        rows = [[self.render(entry).replace("\n", " ").replace("|", "\\|") for entry in row.findall("entry")] for row in node.findall("row")]
        head, *body = rows
        line = lambda cells: "| " + " | ".join(cells) + " |"
        return "\n".join([line(head), line(["---"] * len(head)), *map(line, body)])


def fenced(language, words):
    return f"```{language}\n{words}\n```"


def listed(name, text):
    return f"* {name}: " + text.replace("\n", "\n  ") if text else f"* {name}"


def code(words):
    return f"`` {words} ``" if "`" in words else f"`{words}`"


def escaped(text):
    """Plain text: nothing in it is Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", re.sub(r"\s+", " ", text)) if text else ""


class Entry:
    def __init__(self, node, name, group, about):
        self.node, self.name, self.group, self.about = node, name, group, about
        self.short = name.split("::")[-1] if "operator" not in name else "operator" + name.split("operator")[-1]
        self.line = int(node.find("location").get("line", 0))
        self.id = node.get("id")
        self.members, self.overloads = [], []
        self.anchor = self.label = ""

    def has_text(self):
        nodes = [self.node, *self.node.findall("enumvalue")]
        return any("".join(node.find(part).itertext()).strip() for node in nodes for part in ("briefdescription", "detaileddescription"))

    def about_text(self):
        return next((one for one in [self, *self.overloads] if one.has_text()), self).node

    def title(self):
        return self.name.removeprefix("tessera::")

    def signature(self):
        node, kind = self.node, self.node.get("kind")
        template = ""
        if node.find("templateparamlist") is not None:
            given = [" ".join(filter(None, [text(p.find("type")), p.findtext("declname")])) for p in node.find("templateparamlist")]
            template = f"template <{', '.join(given)}>\n"
        if kind in ("class", "struct", "union"):
            return f"{template}{kind} {self.name.removeprefix('tessera::')}"
        if kind == "enum":
            return f"enum class {self.name.removeprefix('tessera::')}"
        if kind == "typedef":
            return f"{template}using {node.findtext('name')} = {text(node.find('type'))}"
        if kind == "variable":
            value = text(node.find("initializer")).strip()
            return f"{text(node.find('type'))} {node.findtext('name')}{' ' + value if value.startswith('=') else ' = ' + value if value else ''}"
        given = []
        for p in node.findall("param"):
            default = text(p.find("defval"))
            if "current()" in default and "Place" not in text(p.find("type")):
                continue  # the line of the call: nobody passes it
            given.append(" ".join(filter(None, [text(p.find("type")), p.findtext("declname")])) + (f" = {default}" if default else ""))
        result = text(node.find("type")).replace("friend ", "")
        const = " const" if node.get("const") == "yes" else ""
        return f"{template}{result + ' ' if result else ''}{node.findtext('name')}({', '.join(given)}){const}"


def qualified(member):
    definition = member.findtext("qualifiedname")
    return definition or member.findtext("name")


def text(node):
    return re.sub(r" ([&*])", r"\1", re.sub(r"\s+", " ", "".join(node.itertext())).strip()) if node is not None else ""


def slug(title):
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def is_exempt(member, owner):
    """What check_headers does not ask a comment for, and what is nobody's business."""
    name, args = member.findtext("name"), member.findtext("argsstring") or ""
    return (
        re.search(r"=\s*(default|delete)$", args)
        or name.startswith("~")
        or "detail::" in (member.findtext("qualifiedname") or "")
        or re.match(r"operator(==|<=>|<<)", name)
        and not has_own_text(member)
        or (owner and name == owner and args.startswith("()"))
        or member.get("kind") == "friend"
        or (owner and member.get("kind") == "typedef")
    )


def has_own_text(member):
    return any("".join(member.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription"))
