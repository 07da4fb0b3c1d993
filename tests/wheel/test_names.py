"""Each public function of C++ has a name in Python, or docs/api/names.md says why not."""

import pathlib
import re

import pytest

import torchlcp

ROOT = pathlib.Path(__file__).parents[2]
HEADERS = ROOT / "include" / "lcp"
NAMES = ROOT / "docs" / "api" / "names.md"


def declarations(source):
    """The statements of a header, each with the classes around it; those of private parts and of bodies are left out."""
    source = re.sub(r"//.*|^#.*|= ?\{\}", "", source, flags=re.M)
    classes, kinds, statement, public = [], [], "", []
    for character in source:
        if character not in "{};:":
            statement += character
            continue
        text = " ".join(statement.split())
        if character == ":":
            if text in ("public", "protected", "private"):
                public[-1] = text == "public"
                statement = ""
            else:
                statement += character
            continue
        visible = all(public) and "body" not in kinds
        if character == "}":
            if kinds.pop() == "class":
                classes.pop()
                public.pop()
        elif character == "{":
            named = re.match(r"(?:template ?<.*?> ?)?(struct|class) (?:LCP_API )?(\w+)", text)
            if text.startswith("namespace") or text.startswith("extern"):
                kinds.append("namespace")
            elif named and "(" not in text:
                kinds.append("class")
                classes.append(named[2])
                public.append(named[1] == "struct")
            else:
                kinds.append("body")
                if visible:
                    yield classes[:], text
        elif visible:
            yield classes[:], text
        statement = ""


def functions(source):
    """The names of the functions of a header, with those of their classes; no constructors, operators or overrides."""
    names = []
    for classes, text in declarations(source):
        while (shorter := re.sub(r"<[^<>()]*(\([^<>()]*\))?[^<>()]*>", "", text)) != text:
            text = shorter
        text = text.split(" = ")[0] if "(" not in text.split(" = ")[0] else text
        found = re.match(r"[\w:&* \[\]]*?(~?\w+) ?\(", text)
        overrides = re.search(r"\) (const )?override", text)
        if found and not overrides and not text.startswith(("TORCH_", "using", "enum")):
            if found[1] not in ("operator", *classes) and not found[1].startswith("~") and "operator" not in text:
                names.append("::".join([*(name.removesuffix("Impl") for name in classes), found[1]]))
    return list(dict.fromkeys(names))


def public():
    """Each public function of C++, as the header and its name."""
    return [
        (path.relative_to(HEADERS).as_posix(), name)
        for path in sorted(HEADERS.rglob("*.h"))
        if path.parent.name != "detail"
        for name in functions(path.read_text())
    ]


def exceptions():
    """The table of docs/api/names.md: the cell for Python by the header, or its folder, and the name in C++."""
    table, headers = {}, []
    for row in re.findall(r"^\| (.*) \| (.*) \| (.*) \|$|^\| \| (.*) \| (.*) \|$", NAMES.read_text(), re.M):
        first, functions_of_cpp, python = (row[0], row[1], row[2]) if row[1] else ("", row[3], row[4])
        headers = re.findall(r"`([\w/.]+)`", first) or headers
        for header in headers:
            for name in re.findall(r"`([\w:]+)`", functions_of_cpp):
                table[header, name] = python
    return table


def modules_of(header):
    folder = header.rpartition("/")[0]
    return {"": [torchlcp], "learning": [torchlcp.losses, torchlcp.learning]}.get(folder) or [getattr(torchlcp, folder)]


def has(path, header):
    """Whether a module of the header has the name, or the class that the header is named after has it as a method."""
    stem = pathlib.PurePath(header).stem
    own = "".join(word.capitalize() for word in stem.split("_"))
    for module in modules_of(header):
        for prefix in ("", f"{own}."):
            thing = module
            for part in f"{prefix}{path}".split("."):
                thing = getattr(thing, part, None)
            if thing is not None:
                return True
    return False


def exception_of(header, name):
    table = exceptions()
    general = "Class::of" if name.endswith("::of") else name
    return table.get((header, name)) or table.get((header.partition("/")[0], general))


@pytest.mark.parametrize("header, name", public())
def test_a_function_of_cpp_has_a_name_in_python(header, name):
    python = exception_of(header, name)
    if python is None:
        assert has(name.replace("::", "."), header), f"{name} of {header} has no name in Python, and docs/api/names.md no row"
    elif python.startswith("`"):
        given = python.strip("`")
        assert has(given.partition(".")[2] if given.startswith("nn.") or given.startswith("physics.") else given, header)
    else:
        assert python.startswith("none: ") or python == "the class itself"


def test_each_row_is_of_a_function():
    functions_of_cpp = set(public())
    folders = {(header.partition("/")[0], "Class::of" if name.endswith("::of") else name) for header, name in functions_of_cpp}
    assert exceptions() and not [row for row in exceptions() if row not in functions_of_cpp | folders]


def test_the_parser_sees_what_is_public():
    source = """
namespace lcp {
struct Options { TORCH_ARG(int, size) = 1; double limit() const { return 1; } std::function<at::Tensor(int)> f = {}; };
class Holder final : public Base {
 public:
  Holder();
  void reset() override;
  virtual std::pair<int, int> part(const std::optional<int>& x = {}) const;
 private:
  int hidden();
};
LCP_API at::Tensor solve(const at::Tensor& M, const Options& options = {});  // f(x)
using Function = std::function<int(int)>;
}
"""
    assert functions(source) == ["Options::limit", "Holder::part", "solve"]
