"""Rendering is strict in both directions and leaves its values alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc import render as module
from specc.render import TemplateError, render


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "shipped", lambda _: tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    for cached in (module._environment, module._used_names, module._names):
        cached.cache_clear()


def test_values_fill_the_template_and_the_last_newline_stays(folder: Path) -> None:
    (folder / "a.j2").write_text("{% for x in xs %}\n  {{ x }}\n{% endfor %}\nend\n")
    assert render("a.j2", xs=[1, 2]) == "  1\n  2\nend\n"


def test_a_missing_key_is_named(folder: Path) -> None:
    (folder / "a.j2").write_text("{{ here }} {{ gone }}")
    with pytest.raises(TemplateError, match="missing: gone"):
        render("a.j2", here=1)


def test_an_unused_key_is_named(folder: Path) -> None:
    (folder / "a.j2").write_text("{{ here }}")
    with pytest.raises(TemplateError, match="unused: extra"):
        render("a.j2", here=1, extra=2)


def test_keys_of_extended_included_and_imported_templates_count(folder: Path) -> None:
    (folder / "base.j2").write_text("{{ title }}{% block body %}{% endblock %}")
    (folder / "part.j2").write_text("{{ detail }}")
    (folder / "macros.j2").write_text("{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}")
    text = '{% extends "base.j2" %}{% from "macros.j2" import twice %}'
    (folder / "a.j2").write_text(text + '{% block body %}{{ twice(n) }}{% include "part.j2" %}{% endblock %}')
    assert render("a.j2", title="t", n=3, detail="d") == "t33d"
    with pytest.raises(TemplateError, match="missing: detail, title"):
        render("a.j2", n=3)


def test_a_key_used_only_in_an_untaken_branch_is_still_asked_for(folder: Path) -> None:
    (folder / "a.j2").write_text("{% if flag %}{{ rare }}{% endif %}")
    with pytest.raises(TemplateError, match="missing: rare"):
        render("a.j2", flag=False)


def test_an_undefined_attribute_is_an_error(folder: Path) -> None:
    (folder / "a.j2").write_text("{{ x.nothing }}")
    with pytest.raises(TemplateError, match="nothing"):
        render("a.j2", x="text")


def test_a_template_cannot_change_its_values_or_reach_past_them(folder: Path) -> None:
    values = [1]
    (folder / "a.j2").write_text("{{ xs.append(2) }}")
    with pytest.raises(TemplateError):
        render("a.j2", xs=values)
    assert values == [1]
    (folder / "b.j2").write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(TemplateError):
        render("b.j2")


def test_a_missing_or_malformed_template_is_a_template_error(folder: Path) -> None:
    (folder / "a.j2").write_text("{% for %}")
    for name in ("a.j2", "none.j2"):
        with pytest.raises(TemplateError, match=name):
            render(name)
