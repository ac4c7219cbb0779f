"""The reference: Doxygen's XML of the public headers becomes one page per header.

Overloads that stand one below the other share the first one's comment, as in the headers. A public name without a comment is a finding.
"""
import html
import re
import xml.etree.ElementTree as ET

INLINE = {"bold": "strong", "emphasis": "em", "computeroutput": "code", "subscript": "sub", "superscript": "sup"}
BLOCK = {"itemizedlist": "ul", "orderedlist": "ol", "listitem": "li", "para": "p", "blockquote": "blockquote", "table": "table", "row": "tr"}
TEXT = {"ndash": "–", "mdash": "—", "linebreak": "<br>", "hruler": "<hr>", "nonbreakablespace": " ", "zwj": "", "copy": "©", "sp": " ", "lsquo": "‘", "rsquo": "’"}


class Reference:
    def __init__(self, xml, folder, headers):
        self.folder = folder  # include/tessera
        self.headers = headers  # names under it, in the order of the navigation
        self.findings = []
        self.entries = {header: [] for header in headers}  # header -> [Entry]
        self.about = {}  # header -> description element
        self.links = {}  # Doxygen's id -> address
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
        anchor = re.sub(r"\W+", "-", prefix + (entry.short if re.match(r"\w", entry.short) else entry.short)).strip("-") or "operator"
        seen[anchor] = seen.get(anchor, 0) + 1
        entry.anchor = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
        for one in [entry, *entry.overloads]:
            self.links[one.id] = f"{page}#{entry.anchor}"
        if not prefix:
            for name in (entry.name, entry.name.removeprefix("tessera::"), entry.short):
                self.names.setdefault(name, f"{page}#{entry.anchor}")

    # ---- writing ----
    def page(self, header):
        about = "".join(self.render(part) for part in self.about.get(header, ()))
        if not about:
            self.findings.append(f"include/tessera/{header}: the file has no comment (/// @file)")
        parts = [f"<h1><code>tessera/{html.escape(header)}</code></h1>", about]
        group = None
        for entry in self.entries[header]:
            if entry.group and entry.group != group:
                group = entry.group
                parts.append(f'<h2 id="group-{slug(group)}">{html.escape(group)}</h2>' + self.render(entry.about))
            parts.append(self.entry(entry))
        return "\n".join(parts)

    def entry(self, entry, level="h3"):
        text = self.render(entry.about_text().find("briefdescription")) + self.render(entry.about_text().find("detaileddescription"))
        signatures = "\n".join(html.escape(one.signature()) for one in [entry, *entry.overloads])
        body = f'<section class="entry" id="{entry.anchor}"><pre class="signature"><a class="anchor" href="#{entry.anchor}">{signatures}</a></pre>{text}'
        values = entry.node.findall("enumvalue")
        if values:
            rows = [f"<dt><code>{v.findtext('name')}</code></dt><dd>{self.render(v.find('briefdescription')) + self.render(v.find('detaileddescription'))}</dd>" for v in values]
            body += "<dl>" + "".join(rows) + "</dl>"
        if entry.members:
            rows = []
            for member in entry.members:
                about = self.render(member.about_text().find("briefdescription")) + self.render(member.about_text().find("detaileddescription"))
                signature = "\n".join(html.escape(one.signature()) for one in [member, *member.overloads])
                rows.append(f'<dt id="{member.anchor}"><code>{signature}</code></dt><dd>{about}</dd>')
            body += "<dl>" + "".join(rows) + "</dl>"
        return body + "</section>"

    def render(self, node):
        if node is None:
            return ""
        return "".join(self.element(child) for child in node).strip()

    def element(self, node):
        inner = html.escape(node.text or "", quote=False) + "".join(self.element(child) for child in node)
        tail = html.escape(node.tail or "", quote=False)
        tag = node.tag
        if tag == "para" and re.search(r"<(pre|ul|ol|table|dl)\b", inner):  # blocks do not stand in <p>
            return self.paragraphs(inner) + tail
        if tag in INLINE:
            return f"<{INLINE[tag]}>{inner}</{INLINE[tag]}>{tail}"
        if tag in BLOCK:
            return f"<{BLOCK[tag]}>{inner}</{BLOCK[tag]}>{tail}" if inner.strip() else tail
        if tag in TEXT:
            return TEXT[tag] + tail
        if tag == "ref":
            address = self.links.get(node.get("refid"))
            return (f'<a href="{address}">{inner}</a>' if address else inner) + tail
        if tag == "ulink" and not re.match(r"https?:", node.get("url")):  # branches[i](args...) is no link
            return f"[{inner}]({html.escape(node.get('url'))}){tail}"
        if tag == "ulink":
            return f'<a href="{html.escape(node.get("url"))}">{inner}</a>{tail}'
        if tag in ("verbatim", "preformatted", "programlisting"):
            return f"<pre>{inner.strip(chr(10))}</pre>{tail}"
        if tag == "codeline":
            return inner + "\n"
        if tag in ("highlight", "simplesect", "title"):
            return inner + tail
        if tag == "entry":
            cell = "th" if node.get("thead") == "yes" else "td"
            return f"<{cell}>{inner}</{cell}>{tail}"
        self.findings.append(f"Doxygen's <{tag}> is not known to scripts/site/reference.py")
        return inner + tail

    def paragraphs(self, inner):
        pieces = re.split(r"(<(pre|ul|ol|table|dl)\b.*?</\2>)", inner, flags=re.S)
        out = []
        for i, piece in enumerate(pieces):
            if i % 3 == 0 and piece.strip():
                out.append(f"<p>{piece.strip()}</p>")
            elif i % 3 == 1:
                out.append(piece)
        return "".join(out)


class Entry:
    def __init__(self, node, name, group, about):
        self.node, self.name, self.group, self.about = node, name, group, about
        self.short = name.split("::")[-1] if "operator" not in name else "operator" + name.split("operator")[-1]
        self.line = int(node.find("location").get("line", 0))
        self.id = node.get("id")
        self.members, self.overloads = [], []
        self.anchor = ""

    def has_text(self):
        nodes = [self.node, *self.node.findall("enumvalue")]
        return any("".join(node.find(part).itertext()).strip() for node in nodes for part in ("briefdescription", "detaileddescription"))

    def about_text(self):
        return next((one for one in [self, *self.overloads] if one.has_text()), self).node

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
