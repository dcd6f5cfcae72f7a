"""Templates to text. The one place that knows the template engine.

Rendering is strict: the keys supplied must be the keys used, no more and no less, and a template can neither change
what it is given nor reach past it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specc.resources import shipped


class TemplateError(Exception):
    """A template and the values given to it do not fit each other: a fault of specc, not of a user."""


def render(template: str, **values: object) -> str:
    """The text of `template` (a path below `templates/`, such as `torch/nodes.py.j2`) filled with `values`.

    Raises TemplateError when the template is missing or malformed, when `values` has a key that it does not use or
    lacks one that it does, and when filling it fails.
    """
    try:
        used = _used_names(template)
    except jinja2.TemplateError as error:
        raise TemplateError(f"template `{template}`: {type(error).__name__}: {error}") from error
    missing, unused = sorted(used - values.keys()), sorted(values.keys() - used)
    if missing or unused:
        parts = [f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("unused", unused)) if names]
        raise TemplateError(f"template `{template}` and its values differ; {'; '.join(parts)}")
    try:
        return _environment().get_template(template).render(values)
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise TemplateError(f"template `{template}`: {type(error).__name__}: {error}") from error


class _Environment(ImmutableSandboxedEnvironment):
    """Parses each template once, for its names and for its code."""

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        trees: dict[str, nodes.Template] = self.__dict__.setdefault("trees", {})
        if source not in trees:
            trees[source] = super()._parse(source, name, filename)
        return trees[source]


@cache
def _environment() -> jinja2.Environment:
    return _Environment(
        loader=jinja2.FileSystemLoader(shipped("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _used_names(template: str) -> frozenset[str]:
    """Top-level names of a template and of those it extends, imports or includes."""
    found: set[str] = set()
    defined: set[str] = set()
    seen: list[str] = []
    queue = [template]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.append(name)
        used, own, others = _names(name)
        found |= used
        defined |= own
        queue += others
    return frozenset(found - defined)


@cache
def _names(name: str) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """Of one template: names that it uses, names that it defines, templates that it refers to."""
    env = _environment()
    assert env.loader is not None
    tree = env.parse(env.loader.get_source(env, name)[0])
    return frozenset(_undeclared(tree)), frozenset(_definitions(tree)), tuple(_references(name, tree))


def _undeclared(tree: nodes.Template) -> set[str]:
    """Names that a template reads and sets nowhere. Jinja's own way of finding them compiles the template once more."""
    names = list(tree.find_all(nodes.Name))
    own = {n.name for n in names if n.ctx != "load"}
    inside = {id(n) for block in tree.find_all(nodes.For) for n in block.find_all(nodes.Name) if n.name == "loop"}
    return {n.name for n in names if n.ctx == "load" and id(n) not in inside} - own


def _definitions(tree: nodes.Template) -> Iterator[str]:
    """Macros and names that a template imports or sets for its blocks."""
    for node in tree.body:
        match node:
            case nodes.FromImport():
                yield from (n if isinstance(n, str) else n[1] for n in node.names)
            case nodes.Import():
                yield node.target
            case nodes.Macro():
                yield node.name
            case nodes.Assign(target=nodes.Name(name=name)):
                yield name


def _references(name: str, tree: nodes.Template) -> Iterator[str]:
    for reference in meta.find_referenced_templates(tree):
        if reference is None:
            raise TemplateError(f"template `{name}` names another one by an expression; write its name out")
        yield reference
