"""The reference pages of the docs site, made from the docstrings: a hook of mkdocs.

A page per public module. Every public name has its signature with types, its docstring and its example; a class also its methods.
What the native core defines has its types in `_core.pyi`.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("sash", "sash.agg", "sash.swag", "sash.wheel", "sash.spark", "sash.serve", "sash.errors")


def public(module: str) -> dict[str, Any]:
    """The public names of a module, but for modules."""
    home = importlib.import_module(module)
    return {name: found for name in home.__all__ if not inspect.ismodule(found := getattr(home, name))}


def members(cls: Any) -> dict[str, Any]:
    """The public methods and properties that a class defines, or takes over from a class of ours."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("sash")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    fields = set(getattr(cls, "_fields", ())) | set(getattr(cls, "__dataclass_fields__", ()))
    return {name: inspect.getattr_static(cls, name) for name in sorted(names - fields)}


class Stubs:
    """The signatures of `_core.pyi`."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        for node in ast.parse((ROOT / "src" / "sash" / "_core.pyi").read_text()).body:
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef):
                        self.found.setdefault(f"{node.name}.{inner.name}", _written(inner))
            elif isinstance(node, ast.FunctionDef):
                self.found[node.name] = _written(node)

    def of(self, name: str) -> str | None:
        return self.found.get(name)


def _written(node: ast.FunctionDef) -> str:
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, /)?(, )?", "", arguments)
    return f"({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns is not None else "")


def signature(name: str, found: Any, stubs: Stubs, owner: str = "") -> str:
    """How a name is called, with types."""
    for known in (f"{owner}.{name}" if owner else name, f"Window.{name}" if owner else f"{name}.__init__"):
        if (text := stubs.of(known)) is not None and _is_native(found):
            return text.replace(" -> None", "") if known.endswith("__init__") else text
    function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    try:
        said = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    given = [_argument(p) for p in said.parameters.values() if p.name not in ("self", "cls") and not p.name.startswith("_")]
    keyword_only = [i for i, p in enumerate(said.parameters.values()) if p.kind is p.KEYWORD_ONLY]
    if keyword_only and not any(p.kind is p.VAR_POSITIONAL for p in said.parameters.values()):
        first = list(said.parameters.values())[keyword_only[0]]
        given.insert(given.index(_argument(first)), "*")
    result = "" if inspect.isclass(found) or said.return_annotation is said.empty else f" -> {_type(said.return_annotation)}"
    return f"({', '.join(given)}){result}"


def _argument(parameter: inspect.Parameter) -> str:
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    typed = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{stars}{parameter.name}{typed}{default}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _is_native(found: Any) -> bool:
    return type(found).__module__ == "nanobind" or getattr(found, "__module__", "") == "sash._core" or "nb_" in type(found).__name__


def _doc(found: Any) -> str:
    """A docstring as Markdown: its examples become code."""
    text = inspect.getdoc(found) or ""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        if line.startswith(">>> ") and not code:
            lines += ["", "```pycon"]
            code = True
        elif code and not line.strip():
            lines += ["```"]
            code = False
        lines.append(re.sub(r"\s*# doctest: \S+", "", line))
    return "\n".join([*lines, *(["```"] if code else [])]).replace("``` `", "```")


def _entry(name: str, found: Any, level: int, stubs: Stubs, owner: str = "") -> list[str]:
    heading = "#" * level + f" {name}"
    if isinstance(found, property) or type(found).__name__ in ("getset_descriptor", "nb_property", "member_descriptor", "cached_property"):
        return [heading, "", f"*Property.* {_doc(found)}", ""]
    full = f"{owner}.{name}" if owner else name
    kind = "class " if inspect.isclass(found) else "classmethod " if isinstance(found, classmethod) else ""
    said = signature(name, found, stubs, owner)
    if inspect.isclass(found) and issubclass(found, BaseException):
        said = f"({found.__mro__[1].__name__})"
    lines = [heading, "", "```python", f"{kind}{full}{_folded(said)}", "```", "", _doc(found), ""]
    if inspect.isclass(found) and not issubclass(found, BaseException | enum.Enum):
        inherited = _is_native(found) and name not in ("Window", "Wheel", "Reader")
        if inherited:
            return [*lines, "Its methods are those of [Window](#window).", ""]
        for member, what in members(found).items():
            lines += _entry(member, what, level + 1, stubs, name)
    return lines


def _folded(said: str) -> str:
    """A long signature, a line for each argument."""
    if len(said) < 100:
        return said
    depth, parts, last = 0, [], 1
    end = said.rindex(")", 0, said.rfind(" -> ") if " -> " in said else len(said))
    for i, letter in enumerate(said):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 1:
            parts.append(said[last : i + 1].strip())
            last = i + 1
    parts.append(said[last:end].strip() + ",")
    return "(\n    " + "\n    ".join(parts) + "\n" + said[end:]


def page(module: str) -> str:
    """The reference of a module, as Markdown."""
    stubs = Stubs()
    home = importlib.import_module(module)
    about = _doc(home)
    lines = [f"# {module}", "", about, ""]
    for name, found in public(module).items():
        lines += _entry(name, found, 2, stubs)
    return "\n".join(lines)


# Where a page goes that is not listed in mkdocs.yml; any other goes to the end.
PLACES = {"features.md": "How to", "reliability.md": "Operations"}


def on_config(config: Any) -> Any:
    """List every page of docs/ in the navigation, so that a new one can't be forgotten."""
    listed = re.findall(r"[\w-]+\.md", str(config.nav))
    for page in sorted((ROOT / "docs").glob("*.md")):
        if page.name not in listed:
            place = PLACES.get(page.name, "More")
            section = next((entry[place] for entry in config.nav if place in entry), None)
            if section is None:
                section = []
                config.nav.append({place: section})
            section.append(page.name)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Give mkdocs a page per module."""
    from mkdocs.structure.files import File

    for module in MODULES:
        name = module.partition(".")[2] or module
        files.append(File.generated(config, f"reference/{name}.md", content=page(module)))
    return files
