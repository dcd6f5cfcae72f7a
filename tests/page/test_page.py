from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from specc import pipeline
from specc.ir import Model
from specc.lowered import Lowered, lower_each
from specc.ops import Library
from specc.page import model_page, node_page, page_markdown, page_values, print_node, print_page
from specc.page.markdown import code, escape, plain, prose
from specc.page.tables import few
from specc.parse import parse_ops
from specc.resources import shipped
from specc.source import Source
from specc.typecheck.model import check_model
from specc.typecheck.ops import check_library
from tests.page.founding import FACTS, NODES, PARAMETERS, TENSORS

SPEC = shipped("specs") / "gemma4.spec"


@pytest.fixture(scope="module")
def model() -> Model:
    return pipeline.load(SPEC)


@pytest.fixture(scope="module")
def lowered(model: Model) -> tuple[Lowered, ...]:
    return pipeline.lower(model)


@pytest.fixture(scope="module")
def markdown(model: Model, lowered: tuple[Lowered, ...]) -> str:
    return page_markdown(model, lowered)


def rows(markdown: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, as a Markdown reader parts them."""
    section = markdown.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [re.split(r" (?<!\\)\| ", line[2:-2]) for line in lines[2:]]


def test_parameters_are_counted_from_the_shapes_of_weights(model: Model) -> None:
    assert model.parameter_count == PARAMETERS
    assert "30,697,345,340" not in SPEC.read_text() and "30697345340" not in SPEC.read_text()


def test_facts_equal_the_founding_page(markdown: str) -> None:
    assert rows(markdown, "At a glance") == [list(f) for f in FACTS]


def test_the_node_table_equals_the_founding_page_in_all_rows(markdown: str) -> None:
    found = [(plain(r[0]), plain(r[1]), r[2], r[-1]) for r in rows(markdown, "Compute-graph nodes")]
    assert found == list(NODES)


def test_the_node_table_has_a_formula_in_every_row(markdown: str) -> None:
    formulas = [plain(r[3]) for r in rows(markdown, "Compute-graph nodes")]
    assert formulas[0] == "y[t, i] = √5376 · w[tokens[t], i]"
    assert all("=" in f for f in formulas)


def test_the_tensor_table_equals_the_founding_page(markdown: str) -> None:
    found: dict[str, str] = {}
    for node, _, tensors in rows(markdown, "Tensors"):
        found.setdefault(plain(node), tensors)
    founding = {node: cell.replace("`gate_up`", "`gu`") for node, cell in TENSORS}
    assert found == founding


def test_every_table_row_has_the_cells_of_its_header(markdown: str) -> None:
    for block in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


def test_the_page_says_which_schedule_computes_a_node_and_why(markdown: str, lowered: tuple[Lowered, ...]) -> None:
    found = {plain(name): (schedule, why) for name, schedule, why in rows(markdown, "Kernels")}
    assert found.keys() == {k.name for x in lowered for k in x.kernels}
    assert all(why for _, why in found.values())


def test_the_page_names_no_folder(markdown: str) -> None:
    assert str(Path.cwd()) not in markdown and "specs/" not in markdown


def test_text_and_json_say_the_same(model: Model, lowered: tuple[Lowered, ...]) -> None:
    page = model_page(model, lowered)
    values = json.loads(json.dumps(page_values(page)))
    text = print_page(page, "text")
    assert [n["Constants"] for n in values["nodes"]] == [plain(n[3]) for n in NODES]
    assert all(fact in text for fact in values["facts"].values())
    assert "\\" not in text


def edited(old: str, new: str) -> Library:
    """The shipped library with one place of it changed."""
    texts = {p.name: p.read_text() for p in sorted((shipped("specs") / "ops").glob("*.ops"))}
    assert sum(t.count(old) for t in texts.values()) == 1
    return check_library(parse_ops(Source(n, t.replace(old, new))) for n, t in texts.items())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 1/2 · x · (1 + tanh(", "= 1/2 · x · (1 - tanh("),
        ("  y[.., i] = n[i] · w[i]\n", "  y[.., i] = -n[i] · w[i]\n"),
        ("x[t, h, i] · cos(a[i]) - x", "x[t, h, i] · cos(a[i]) + x"),
        ("| seq_lens[b] - 1 - window < l", "| seq_lens[b] - window < l"),
    ],
)
def test_an_edited_formula_changes_the_page(old: str, new: str, markdown: str) -> None:
    model = check_model(pipeline.parse(SPEC), edited(old, new))
    assert page_markdown(model, lower_each(model)) != markdown


def test_the_norm_is_read_off_its_formula() -> None:
    library = edited("  y[.., i] = n[i] · w[i]\n", "  y[.., i] = n[i] · (1 + w[i])\n")
    model = check_model(pipeline.parse(SPEC), library)
    assert "| Norm | `(1 + w)·x̂`, ε = 1e-06 |" in page_markdown(model, lower_each(model))


def test_a_node_page_of_one_layer_names_its_tensors(model: Model) -> None:
    node = model.variants("attn.qk_norm")[1]
    text = print_node(node_page(model, node, lower_each(model, [node]), 5), "text")
    assert "google/gemma-4-31B@1.0:layers[5].attn.qk_norm" in text
    assert "model.language_model.layers.5.self_attn.q_norm.weight" in text


def test_a_node_page_shows_both_phases(model: Model) -> None:
    node = model.variants("attn.core")[0]
    text = print_node(node_page(model, node, lower_each(model, [node])), "markdown")
    assert "pos[t] - 1024 < l ≤ pos[t]" in text
    assert "seq_lens[b] - 1 - 1024 < l < seq_lens[b]" in text


def test_hostile_text_is_shown_as_it_stands() -> None:
    text = "a|b_*`<script>&amp;[x](y)\\"
    assert plain(escape(text)) == text
    assert "|" not in escape(text).replace("\\|", "")
    assert plain(prose("over `i_j` *")) == "over i_j *"
    assert code("a|b") == "`a\\|b`"


def test_layers_are_listed_short() -> None:
    assert few((1, 2, 3, 4)) == "1, 2, 3, 4"
    assert few((5, 11, 17, 23, 29)) == "5, 11, …, 29"
