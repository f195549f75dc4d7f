"""The stub of the core, which `make stubs` writes and `make lint` compares with the core that is built."""

import ast
import pathlib

import sash
from sash import _core

STUB = ast.parse((pathlib.Path(sash.__file__).parent / "_core.pyi").read_text())


def test_every_class_of_the_core_is_in_the_stub_and_says_what_it_is():
    told = {node.name: ast.get_docstring(node) for node in STUB.body if isinstance(node, ast.ClassDef)}
    classes = {name for name, value in vars(_core).items() if isinstance(value, type)}
    assert classes <= set(told)
    assert not [name for name in classes if not told[name]]


def test_every_public_method_of_a_window_says_what_it_does():
    window = next(node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == "Window")
    methods = [node for node in window.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    assert len(methods) > 15
    assert not [method.name for method in methods if not ast.get_docstring(method)]
