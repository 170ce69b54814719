"""Reading and copying parsed JSON whose form nobody has promised."""

from __future__ import annotations

from typing import Any


def get(value: Any, *path: str) -> Any:
    """Returns what is at the end of a path of keys; ``None`` where the path breaks off."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text_at(value: Any, *path: str) -> str:
    """Returns the string at the end of a path, ``""`` for anything else."""
    text = get(value, *path)
    return text if isinstance(text, str) else ""


def items(value: Any) -> list[Any]:
    """Returns the list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def number(value: Any) -> int:
    """Returns the index that ``value`` is, 0 for anything else."""
    return value if type(value) is int else 0


def put(tree: Any, value: Any, *path: str) -> Any:
    """Returns the tree with another value at the end of a path; what is beside the path is shared, not copied."""
    if not path:
        return value
    tree = tree if isinstance(tree, dict) else {}
    return {**tree, path[0]: put(tree.get(path[0]), value, *path[1:])}


def without(tree: Any, *keys: str) -> Any:
    """Returns the dict without these keys, the very dict if it has none of them."""
    if not isinstance(tree, dict) or not any(key in tree for key in keys):
        return tree
    return {key: value for key, value in tree.items() if key not in keys}


def only(tree: Any, *keys: str) -> dict[str, Any]:
    """Returns a dict with those of these keys alone that the tree has."""
    return {key: tree[key] for key in keys if key in tree} if isinstance(tree, dict) else {}
