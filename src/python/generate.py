#!/usr/bin/env python3
"""generate.py OUT HEADER...: bindings of the functions that public headers declare, one .cpp per header, and their list; and what the headers say of
classes and their members, for those that are bound by hand.

A function becomes a Python function of the same name with the header's contract as its docstring. Parameters keep
their names; an options struct is spread into keyword arguments, a struct of results becomes a named tuple, an
enumeration is given by name. Functions of the same shape of arguments (all elementwise ones) share one lambda.
What a declaration cannot say (templates, Python's own signatures) is bound by hand.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import headers  # noqa: E402

# header -> (C++ namespace, Python submodule)
places = {
    "linalg.hpp": ("linalg", "linalg"), "fft.hpp": ("fft", "fft"), "random.hpp": ("random", "random"), "io.hpp": ("io", "io"), "zarr.hpp": ("io", "io"), "netcdf.hpp": ("io", "io"),
    "multihost.hpp": ("multihost", "multihost"), "nn.hpp": ("nn", "nn"), "viz.hpp": ("viz", "viz"),
}
# Headers whose structs of facts are Python classes with the same fields, and their submodule.
headers_of_results = {"jit/explain.hpp": "", "jit/simulate.hpp": "", "jit/advise.hpp": "", "io/stream.hpp": "io"}
# The parameter of a C++ type: (what the lambda takes, how it is handed on, the stub's type).
types = {
    "Operand": ("Value", "{}", "ArrayLike"), "Array": ("Value", "{}.array", "ArrayLike"),
    "Axes": ("AxesValue", "{}.value", "Axes"), "Dtype": ("DtypeValue", "{}.value", "DtypeLike"),
    "Shape": ("ShapeValue", "{}.value", "Shape"), "Key": ("KeyValue", "{}.value", "Key"),
    "Sharding": ("ShardingValue", "*{}.value", "Sharding"), "HostArray": ("py::object", "host_array({})", "ArrayLike"),
    "DrawShape": ("std::optional<ShapeValue>", "({0} ? random::DrawShape({0}->value) : random::DrawShape())", "Shape | None"),
    "std::vector<Array>": ("std::vector<Value>", "arrays_of({})", "Sequence[ArrayLike]"),
    "std::optional<Array>": ("std::optional<Value>", "({0} ? std::optional<Array>({0}->array) : std::nullopt)", "ArrayLike | None"),
    "std::optional<Dtype>": ("std::optional<DtypeValue>", "({0} ? std::optional<Dtype>({0}->value) : std::nullopt)", "DtypeLike | None"),
    "std::optional<std::int64_t>": ("std::optional<std::int64_t>", "{}", "int | None"),
    "int": ("int", "{}", "int"), "std::int64_t": ("std::int64_t", "{}", "int"), "bool": ("bool", "{}", "bool"),
    "double": ("double", "{}", "float"), "std::string": ("std::string", "{}", "str"),
    "random::Key": ("KeyValue", "{}.value", "Key"),
    "std::vector<std::vector<Array>>": ("std::vector<std::vector<Value>>", "rows_of({})", "Sequence[Sequence[ArrayLike]]"),
    "std::map<std::string, Array>": ("std::map<std::string, Value>", "arrays_by_name({})", "Mapping[str, ArrayLike]"),
    "std::map<std::string, std::string>": ("std::map<std::string, std::string>", "{}", "Mapping[str, str]"),
    "std::optional<double>": ("std::optional<double>", "{}", "float | None"),
    "std::vector<int>": ("std::vector<int>", "{}", "Sequence[int]"),
    "std::vector<std::int64_t>": ("std::vector<std::int64_t>", "{}", "Sequence[int]"),
    "std::vector<std::pair<double, double>>": ("std::vector<std::pair<double, double>>", "{}", "Sequence[tuple[float, float]]"),
    "std::pair<int, int>": ("std::pair<int, int>", "{}", "tuple[int, int]"),
    "std::vector<std::pair<int, int>>": ("std::vector<std::pair<int, int>>", "{}", "Sequence[tuple[int, int]]"),
    "std::pair<std::vector<int>, std::vector<int>>": ("std::pair<std::vector<int>, std::vector<int>>", "{}", "tuple[Sequence[int], Sequence[int]]"),
}
option_types = {
    "bool": "bool", "int": "int", "std::int64_t": "int", "double": "float", "std::string": "str", "std::vector<int>": "Sequence[int]",
    "std::vector<std::int64_t>": "Sequence[int]", "std::vector<std::pair<int, int>>": "Sequence[tuple[int, int]]",
    "std::optional<Dtype>": "DtypeLike", "std::optional<Sharding>": "Sharding", "std::optional<int>": "int", "std::optional<double>": "float",
    "std::optional<std::int64_t>": "int", "std::optional<bool>": "bool", "std::optional<std::pair<double, double>>": "tuple[float, float]", "Array": "ArrayLike",
    "std::optional<Array>": "ArrayLike", "Dtype": "DtypeLike", "char": "str", "std::vector<std::string>": "Sequence[str]", "std::vector<Slice>": "Sequence[slice]",
}
results = {
    "Array": "Array", "std::vector<Array>": "list[Array]", "std::pair<Array, Array>": "tuple[Array, Array]", "Key": "Key", "std::vector<Key>": "list[Key]",
    "void": "None", "std::vector<std::string>": "list[str]", "HostArray": "numpy.ndarray", "int": "int", "bool": "bool", "double": "float",
    "std::string": "str", "std::pair<Array, std::vector<Array>>": "tuple[Array, list[Array]]", "std::map<std::string, std::string>": "dict[str, str]", "std::map<std::string, Array>": "dict[str, Array]",
}
# NumPy's and JAX's names of parameters and fields where C++ has another.
renamed = {"axes": "axis", "permutation": "axes", "extent": "shape"}
fields_of = {"QR": "Q R", "SVD": "U S Vh", "Eigh": "eigenvalues eigenvectors"}
# Words of Python that are names of functions here.
reserved = {"lambda": "lam", "from": "source", "in": "operand"}


class Header:
    """What one header declares that is bound: functions, structs of fields, enumerations."""

    def __init__(self, path):
        self.functions, self.structs, self.enums, self.docs_of_enums = [], {}, {}, {}
        choices = next(parent for parent in path.parents if parent.name == "tessera") / "ops" / "choices.hpp"
        if path != choices and "<tessera/ops/choices.hpp>" in path.read_text():
            self.enums, self.docs_of_enums = Header(choices).enums, Header(choices).docs_of_enums
        for d in headers.declarations(path):
            if d.is_detail or not d.is_public:
                continue
            if d.kind == "enum" and not d.owner:
                self.enums[d.name], self.docs_of_enums[d.name] = d.values(), d.doc
            elif d.kind == "struct" and not d.owner and d.has_body and d.text == f"struct {d.name}":
                self.structs[d.name] = []
            elif d.kind == "variable" and d.owner in self.structs:
                field = re.match(r"([\w:<>, ]+?) (\w+)(?: ?=.*)?$", d.text)
                self.structs[d.owner].append((field.group(1).strip(), field.group(2)))
            elif d.is_function and not d.owner and not d.has_body and not d.is_template and d.result() and "operator" not in d.name:
                doc = d.doc or (self.functions[-1].doc if self.functions and self.functions[-1].name == d.name else "")
                self.functions.append(Function(d.result(), d.name, d.parameters(), doc))


class Function:
    def __init__(self, result, name, parameters, doc):
        self.result, self.name, self.parameters, self.doc = result, name, parameters, doc


class Writer:
    """The bindings of one header."""

    def __init__(self, header, namespace, submodule):
        self.header, self.namespace, self.submodule = header, namespace, submodule
        self.lines, self.stubs, self.bound, self.left_out = [], [], [], []
        self.qualified = "tessera::" + (f"{namespace}::" if namespace else "")

    def default_text(self, kind, default):
        if default == "{}":
            return "py::none()" if kind in ("Axes", "DrawShape") or kind.startswith("std::optional") else "py::dict()" if kind.startswith("std::map") else "py::tuple()"
        if kind == "std::pair<int, int>":
            return f"std::pair<int, int>{default}"
        if kind == "Dtype":
            return f'"{default.removesuffix("_")}"'
        if kind == "Array":
            return default
        return default

    def argument(self, kind, name, default):
        """(lambda parameter, expression, [py::arg], [stub], setup lines), or None for a type that is not known."""
        name = name or kind.split("::")[-1].lower()
        python_name = reserved.get(name, name if kind == "std::pair<int, int>" else renamed.get(name, name))
        if kind in ("std::source_location", "Where", "CallSite"):
            return None, "here()", [], [], []
        if kind in self.header.enums:
            names = ", ".join(f'{{"{value}", {self.qualified}{kind}::{value}}}' for value in self.header.enums[kind])
            shown = default.split("::")[-1] if default else None
            python_name = {"resolution": "mode", "covariancefactor": "method"}.get(name, name)
            self.choices.append((python_name, kind))
            arg = f'py::arg("{python_name}")' + (f' = "{shown}"' if shown else "")
            return f"std::string {name}", f'choose<{self.qualified}{kind}>("{python_name}", {name}, {{{names}}})', [arg], [f"{python_name}: str" + (f' = "{shown}"' if shown else "")], []
        if kind in self.header.structs and kind.endswith(("Options", "Scaling")):
            return self.options(kind, name or "options")
        if kind in self.header.structs and kind not in types:
            fields = self.header.structs[kind]
            sized = f'exactly({name}, {len(fields)}, "{python_name}, a {kind}")'
            values = ", ".join([f"{sized}[0].array"] + [f"{name}[{i}].array" for i in range(1, len(fields))])
            return f"std::vector<Value> {name}", f"({self.qualified}{kind}{{{values}}})", [f'py::arg("{python_name}")'], [f"{python_name}: Sequence[ArrayLike]"], []
        if kind == "std::string" and name in ("path", "directory"):
            return f"PathValue {name}", f"{name}.value", [f'py::arg("{python_name}")'], [f"{python_name}: PathLike"], []
        if kind not in types:
            return None
        takes, passes, stub = types[kind]
        setup = []
        if kind == "HostArray":  # read while the interpreter's lock is held
            setup = [f"if (array_in({name}) != nullptr) throw py::reference_cast_error();  // for the overload that takes arrays"]
            setup, passes = [*setup, f"const HostArray {name}_here = host_array({name});"], f"{name}_here"
        arg = f'py::arg("{python_name}")'
        if default is not None:
            arg += f" = {self.default_text(kind, default)}"
            stub += " = ..."
        return f"{takes} {name}", passes.format(name), [arg], [f"{python_name}: {stub}"], setup

    def options(self, kind, name):
        takes, args, stubs, setup = [], [], [], [f"{self.qualified}{kind} {name};"]
        for field_kind, field in self.header.structs[kind]:
            if field in self.taken:  # a parameter of the same name stands for it
                continue
            if field_kind in self.header.enums:
                self.choices.append((field, field_kind))
                names = ", ".join(f'{{"{value}", {self.qualified}{field_kind}::{value}}}' for value in self.header.enums[field_kind])
                takes.append(f"std::optional<std::string> {field}")
                setup.append(f'if ({field}) {name}.{field} = choose<{self.qualified}{field_kind}>("{field}", *{field}, {{{names}}});')
                stub = "str"
            elif field_kind in option_types:
                inner = field_kind.removeprefix("std::optional<").removesuffix(">") if field_kind.startswith("std::optional<") else field_kind
                inner = {"Dtype": "DtypeValue", "Sharding": "ShardingValue", "Array": "Value", "std::vector<Slice>": "std::vector<SliceValue>"}.get(inner, inner)
                takes.append(f"std::optional<{inner}> {field}")
                setup.append(f"set_option({name}.{field}, {field});")
                stub = option_types[field_kind]
            else:  # of a type that Python has no word for: it keeps what it is without being asked for
                continue
            args.append(f'py::arg("{field}") = py::none()')
            stubs.append(f"{field}: {stub} | None = None")
        return ", ".join(takes), name, args, stubs, setup

    def returned(self, function, call):
        kind = function.result
        if kind in self.header.structs:
            if kind == "FileInfo":
                return [f"return file_info({call});"], "FileInfo"
            if kind == "Key":
                return [f"return {call};"], "Key"
            fields = [field for _, field in self.header.structs[kind]]
            names = fields_of.get(kind, " ".join(fields))
            values = ", ".join(f"result.{field}" for field in fields)
            return [f"auto result = {call};", f'return named_tuple("{kind}", "{names}", py::make_tuple({values}));'], f"tuple[{', '.join(['Array'] * len(fields))}]"
        if kind == "std::map<std::string, FileInfo>":
            return ["py::dict infos;", f"for (const auto& [key, info] : {call}) infos[py::str(key)] = file_info(info);", "return infos;"], "dict[str, FileInfo]"
        if kind == "HostArray":
            return [f"const HostArray result = {call};", "return whole(result);"], "numpy.ndarray"
        if kind not in results:
            return None
        return [f"return {call};" if kind != "void" else f"{call};"], results[kind]

    def add(self, function):
        self.taken, self.choices = {p[1] for p in function.parameters}, []
        arguments = [self.argument(*p) for p in function.parameters]
        if any(a is None for a in arguments):
            self.left_out.append(f"{function.name}({', '.join(p[0] for p in function.parameters)})")
            return
        call = f"{self.qualified}{function.name}({', '.join(a[1] for a in arguments)})"
        returned = self.returned(function, call)
        if returned is None:
            self.left_out.append(f"{function.name} -> {function.result}")
            return
        body, result = returned
        takes = ", ".join(a[0] for a in arguments if a[0])
        args = [arg for a in arguments for arg in a[2]]
        stubs = [stub for a in arguments for stub in a[3]]
        setup = [line for a in arguments for line in a[4]]
        waits = ("Collective over" in function.doc and "Not collective" not in function.doc) or any(p[0] == "SizedOptions" for p in function.parameters)
        if waits and body[0].startswith("auto result = "):  # its parts are put together with the lock held
            if "here()" in body[0]:
                setup.append("const auto where = here();")
            call = body[0].removeprefix("auto result = ").removesuffix(";").replace("here()", "where")
            body = ["auto result = [&] {", "  const py::gil_scoped_release unlocked;", f"  return {call};", "}();", *body[1:]]
            waits = False
        if waits and not any("named_tuple" in line or "py::dict" in line for line in body):
            if any("here()" in line for line in body):
                setup.append("const auto where = here();")
            body = [line.replace("here()", "where") for line in body]
            if function.result == "HostArray":
                body = ["HostArray result;", "{", "  const py::gil_scoped_release unlocked;", f"  {body[0].removeprefix('const HostArray ')}", "}", body[1]]
            else:
                setup.append("const py::gil_scoped_release unlocked;")
        extra = "".join(f", {arg}" for arg in args)
        doc = function.doc + "".join(f"\n\n{name}: one of {', '.join(self.header.enums[kind])}. {self.header.docs_of_enums[kind]}".rstrip() for name, kind in self.choices)
        self.lines.append(f'  m.def("{function.name}", []({takes}) {{')
        self.lines += [f"    {line}" for line in setup + body]
        self.lines.append(f'  }}, {c_string(doc)}{extra});')
        self.stubs.append((function.name, stubs, result, doc))
        self.bound.append(function.name)

    def write(self, out):
        tables = {"Array(Operand)": [], "Array(Operand, Operand)": []}
        for function in self.header.functions:
            signature = f"{function.result}({', '.join(p[0] for p in function.parameters)})"
            plain = all(p[2] is None for p in function.parameters)
            if signature in tables and plain:
                tables[signature].append(function)
            else:
                self.add(function)
        text = ["// Generated from the public headers."]
        text += [f"#include <tessera/{self.path}>", "#include <tessera/multihost.hpp>", "", '#include "python/convert.hpp"', '#include "python/module.hpp"', '#include "python/families.hpp"', "",
                 "namespace tessera::python {", f"void bind_{self.unit}([[maybe_unused]] py::module_& m) {{"]
        for signature, functions in tables.items():
            if not functions:
                continue
            operands = signature.count("Operand")
            struct = "UnaryRow" if operands == 1 else "BinaryRow"
            text.append(f"  static constexpr {struct} {struct.lower()}s[] = {{")
            for function in functions:
                names = [reserved.get(p[1], p[1]) for p in function.parameters]
                text.append(f'      {{"{function.name}", {", ".join(chr(34) + n + chr(34) for n in names)}, &{self.qualified}{function.name}, {c_string(function.doc)}}},')
                self.stubs.append((function.name, [f"{n}: ArrayLike" for n in names], "Array", function.doc))
                self.bound.append(function.name)
            text.append("  };")
            text.append(f"  bind_rows(m, {struct.lower()}s);")
        text += self.lines + ["}", "}  // namespace tessera::python", ""]
        write_if_changed(out / f"bind_{self.unit}.cpp", "\n".join(text))


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def stub_text(writers):
    """A .pyi per submodule."""
    files = {}
    for writer in writers:
        lines = files.setdefault(writer.submodule, [])
        counts = {}
        for name, *_ in writer.stubs:
            counts[name] = counts.get(name, 0) + 1
        for name, parameters, result, doc in writer.stubs:
            if counts[name] > 1:
                lines.append("@overload")
            lines.append(f"def {name}({', '.join(parameters)}) -> {result}:")
            quoted = doc.replace("\\", "\\\\").replace('"""', "'''")
            lines.append(f'    """{quoted}"""' if doc else "    ...")
    return files


def contracts(path):
    """(class, member or "", words) of the classes of a header whose comments say something, and ("", function, words)."""
    found = {}
    for d in headers.declarations(path):
        if d.kind in ("class", "struct") and not d.owner and d.has_body:
            found.setdefault((d.name, ""), d.doc)
        elif d.owner and re.fullmatch(r"(?!operator)[a-z]\w*", d.name) and not found.get((d.owner, d.name)):
            found[d.owner, d.name] = d.behind or d.doc
        elif d.is_function and not d.owner and d.doc and re.fullmatch(r"[a-z]\w*", d.name):
            found.setdefault(("", d.name), d.doc)
    return [(*names, words) for names, words in found.items() if words]


def write_contracts(out, include):
    rows = [row for path in sorted(include.rglob("*.hpp")) if "detail" not in path.parts for row in contracts(path)]
    text = ["// Generated from the public headers.", '#include "python/contracts.hpp"', "", "namespace tessera::python {", "const Contract contracts[] = {"]
    text += [f'    {{"{kind}", "{member}", {c_string(words)}}},' for kind, member, words in rows]
    text += ["};", "const std::size_t contract_count = std::size(contracts);", "}  // namespace tessera::python", ""]
    write_if_changed(out / "contracts.cpp", "\n".join(text))


def write_results(out, include):
    text = ["// Generated from the public headers.", *(f"#include <tessera/{path}>" for path in headers_of_results), "", '#include "python/families.hpp"', '#include "python/module.hpp"', "",
            "namespace tessera::python {", "void bind_results(py::module_& m) {"]
    for path, submodule in headers_of_results.items():
        text.append("  {" + (f' py::module_ part = m.def_submodule("{submodule}");' if submodule else " py::module_ part = m;"))
        last = ""
        for d in headers.declarations(include / path):
            if d.kind != "variable" or not d.owner or not d.is_public or d.is_detail or d.owner.endswith(("Options", "StoredResult")):
                continue
            kind = "tessera::" + d.qualified.rpartition("::")[0]
            if kind != last:
                text[-1] += ";" if last else ""
                text.append(f'    result_class<{kind}>(part, "{d.owner}")')
            text.append(f'        .def_readonly("{d.name}", &{d.qualified})')
            last = kind
        text[-1] += "; }"
    write_if_changed(out / "bind_results.cpp", "\n".join(text + ["}", "}  // namespace tessera::python", ""]))


def main():
    out, headers = pathlib.Path(sys.argv[1]), [pathlib.Path(h) for h in sys.argv[2:]]
    include = next(parent for parent in headers[0].parents if parent.name == "tessera" and parent.parent.name == "include")
    out.mkdir(parents=True, exist_ok=True)
    writers = []
    for path in headers:
        namespace, submodule = places.get(path.name, ("", ""))
        writer = Writer(Header(path), namespace, submodule)
        writer.path = "/".join(path.parts[path.parts.index("tessera", path.parts.index("include")) + 1:])
        writer.unit = path.stem
        writer.write(out)
        writers.append(writer)
    families = ["// Generated from the public headers.", '#include "python/module.hpp"', "", "namespace tessera::python {"]
    families += [f"void bind_{w.unit}(py::module_&);" for w in writers]
    families += ["void bind_families(py::module_& m) {"]
    for w in writers:
        target = "m" if not w.submodule else f'm.def_submodule("{w.submodule}")'
        families.append(f"  {{ auto part = {target}; bind_{w.unit}(part); }}")
    families += ["}", "}  // namespace tessera::python", ""]
    write_if_changed(out / "bind_families.cpp", "\n".join(families))
    write_contracts(out, include)
    write_results(out, include)
    write_if_changed(out / "left_out.txt", "\n".join(f"{w.path}: {line}" for w in writers for line in w.left_out) + "\n")
    for submodule, lines in stub_text(writers).items():
        write_if_changed(out / f"stubs_{submodule or 'ops'}.txt", "\n".join(lines) + "\n")


main()
