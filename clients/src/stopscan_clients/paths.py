"""Functions that read and copy parsed JSON. They raise no errors for JSON of an unexpected shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

Path: TypeAlias = tuple[Any, ...]  # a path in parsed JSON: keys, and list indexes, which are never negative
MOST_INDEXES = 1 << 16  # larger indexes from a server are ignored: `put` makes a list as long as its index


def get(tree: Any, *path: Any) -> Any:
    """Returns the value at a path of keys and list indexes, or ``None`` if there is none."""
    for key in path:
        if isinstance(tree, dict):
            tree = tree.get(key)
        elif isinstance(tree, list) and type(key) is int and key < len(tree):
            tree = tree[key]
        else:
            return None
    return tree


def put(tree: Any, value: Any, *path: Any) -> Any:
    """Returns a copy of the tree with another value at a path. Values that are not on the path are shared with the
    original, not copied."""
    if not path:
        return value
    key, *rest = path
    if type(key) is int:
        tree = [*items(tree), *[None] * (key + 1 - len(items(tree)))]
        tree[key] = put(tree[key], value, *rest)
        return tree
    return {**members(tree), key: put(members(tree).get(key), value, *rest)}


def without(tree: Any, *path: Any) -> Any:
    """Returns a copy of the tree without the value at a path, or the tree itself if there is none."""
    *above, key = path
    body = get(tree, *above)
    if not isinstance(body, dict) or key not in body:
        return tree
    return put(tree, {name: value for name, value in body.items() if name != key}, *above)


@cache
def named(paths: tuple[str, ...]) -> dict[Any, Any]:
    """Returns the dotted ``paths`` as a tree of their keys: a dict of dicts, with empty dicts as leaves. In a path,
    ``*`` stands for each element of a list. ``a.#`` stands for all values in ``a``, at any depth, except strings.
    ``a.#.b`` stands for the same values, and also for strings in fields named ``b``."""
    tree: dict[Any, Any] = {None: {}}  # not empty even without paths: ``only`` keeps all fields for an empty dict
    for path in paths:
        inner = tree
        for key in dotted(path):
            inner = inner.setdefault(key, {})
    return tree


def only(tree: Any, names: Mapping[Any, Any], along: Path = ()) -> Any:
    """Returns the tree with only the fields in ``names``, a tree from ``named``. If no field is removed, returns the
    tree itself.

    ``along`` is a path in the tree, such as the path of the text in which a stop fired. In each list on this path, the
    elements after the one on the path are removed, and the elements before it stay unchanged.

    Some APIs have a string in place of a list. So a string or number is kept even if ``names`` has fields below it.
    """
    if not names or not isinstance(tree, dict | list):
        return tree
    if "#" in names:
        return counts(tree, names["#"])
    key, rest = (along[0], along[1:]) if along else (None, ())
    kept: Any
    if isinstance(tree, dict):
        kept = {
            name: only(value, names[name], rest if name == key else ())
            for name, value in tree.items()
            if name in names and not ("#" in names[name] and isinstance(value, str))
        }
    elif "*" not in names:
        kept = []
    else:
        begin = key if type(key) is int else 0
        kept = [
            *tree[:begin],
            *(only(element, names["*"], rest) for element in tree[begin : begin + 1 if begin == key else None]),
        ]
    return tree if kept == tree else kept


def counts(tree: Any, words: Mapping[Any, Any]) -> Any:
    """Returns the tree without its strings, except those in fields that ``words`` names."""
    if isinstance(tree, dict):
        kept = {name: value for name, value in tree.items() if name in words or not isinstance(value, str)}
        return {name: counts(value, words) for name, value in kept.items()}
    return [counts(value, words) for value in tree if not isinstance(value, str)] if isinstance(tree, list) else tree


def items(value: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def members(value: Any) -> dict[str, Any]:
    """Returns the value if it is a dict, else an empty dict."""
    return value if isinstance(value, dict) else {}


def index(value: Any, default: Any = None) -> Any:
    """Returns the value if it can be the index of a choice or part, else the default."""
    return value if type(value) is int and 0 <= value < MOST_INDEXES else default


@cache
def dotted(path: str) -> Path:
    """Returns the keys and indexes of a path such as ``"parts.0.text"``, and ``()`` for an empty path."""
    return tuple(int(key) if key.isdigit() else key for key in path.split(".")) if path else ()


def has(tree: Any, sign: str) -> bool:
    """Returns whether the tree has a value at the path ``sign``, such as ``choices.*.delta``.

    If ``sign`` ends with ``[]``, the value must be a list. If ``sign`` contains ``=``, the value must be equal to the
    text after the ``=``. If ``sign`` contains ``&``, the parts between the ``&`` are signs, and all of them must hold.
    """
    if "&" in sign:
        return all(has(tree, part) for part in sign.split("&"))
    path, equals, value = sign.partition("=")
    values = [end for _, end in leaves(tree, dotted(path.removesuffix("[]")))]
    if path.endswith("[]"):
        return any(isinstance(end, list) for end in values)
    return any(end == value if equals else end is not None for end in values)


def leaves(tree: Any, path: Path, at: Path = (), strings: bool = False) -> Iterator[tuple[Path, Any]]:
    """Yields each value to which ``path`` leads, with the path of that value. In ``path``, ``*`` stands for each
    element of a list.

    If ``strings`` is true, also yields a string where ``path`` expects a list, because some APIs send a string instead
    of a list of pieces.
    """
    if not path:
        yield at, tree
        return
    key, *rest = path
    if key == "*" and strings and isinstance(tree, str):
        yield at, tree
    elif key == "*":
        for i, child in enumerate(items(tree)):
            yield from leaves(child, tuple(rest), (*at, i), strings)
    elif isinstance(tree, dict) and key in tree:
        yield from leaves(tree[key], tuple(rest), (*at, key), strings)
