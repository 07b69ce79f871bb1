"""Every message has a Chinese twin with the same fields, and none is left over."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import lookback
from lookback.cli.zh import CHINESE

SOURCE = Path(lookback.__file__).parent
SPEAKERS = {"InputError", "say", "_once"}


def templates() -> dict[str, str]:
    """Every literal template that the package can say, with where it stands."""
    found: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in SPEAKERS and node.args:
                for text in _literals(node.args[0]):
                    found[text] = f"{path.relative_to(SOURCE)}:{node.lineno}"
            if isinstance(node, ast.Assign) and path.parent.name == "cli":
                name = _name(node.targets[0])
                if name in ("HELP", "template"):
                    for text in _literals(node.value):
                        found[text] = f"{path.relative_to(SOURCE)}:{node.lineno}"
    return found


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _literals(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return _literals(node.body) + _literals(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_message_is_translated() -> None:
    missing = {text: where for text, where in templates().items() if text not in CHINESE}
    assert not missing


def test_no_translation_is_left_over() -> None:
    assert set(CHINESE) - set(templates()) == set()


def test_fields_are_the_same() -> None:
    differing = [text for text, chinese in CHINESE.items() if fields(text) != fields(chinese)]
    assert not differing


def test_input_errors_are_raised_with_literals() -> None:
    """A template built at run time could not be looked up."""
    loose = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) == "InputError" and not _literals(node.args[0]):
                loose.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert [where for where in loose if not where.startswith("errors.py")] == []
