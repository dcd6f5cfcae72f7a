"""What the documents show is what is there, and what they tell a reader to type works."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from specc.cli import run
from specc.library import load_library
from specc.parse import parse_ops
from specc.source import Source

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    document: Path
    note: str
    language: str
    text: str

    @property
    def status(self) -> int:
        """With which its commands end: `<!-- status 1 -->`."""
        return int(self.note.removeprefix("status ")) if self.note.startswith("status ") else 0

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}: {self.text.splitlines()[0][:40]}"


def blocks() -> list[Block]:
    return [
        Block(path, m["note"] or "", m["language"], m["text"])
        for path in DOCUMENTS
        for m in BLOCK.finditer(path.read_text(encoding="utf-8"))
    ]


EXCERPTS = [b for b in blocks() if b.note.startswith("excerpt ")]
PROGRAMS = [b for b in blocks() if b.language == "python" and not b.note]
CONSOLES = [b for b in blocks() if b.language == "console"]
COMMANDS = [
    (str(b.document.relative_to(ROOT)), line.removeprefix("$ "), b.status)
    for b in CONSOLES
    for line in b.text.splitlines()
    if line.startswith("$ specc ")
]
SESSIONS = [b for b in CONSOLES if b.text.startswith("$ specc ") and "\n$ " not in b.text and b.text.count("\n") > 1]
"""One command and all that it prints."""


@pytest.mark.parametrize("block", EXCERPTS, ids=str)
def test_excerpts_stand_in_the_file_they_name(block: Block) -> None:
    assert block.text in (ROOT / block.note.removeprefix("excerpt ")).read_text(encoding="utf-8")


def test_the_readme_shows_a_spec_and_a_kernel() -> None:
    shown = {b.note for b in EXCERPTS if b.document.name == "README.md"}
    assert "excerpt specs/gemma4.spec" in shown
    assert any("generated/gemma4/triton/" in note for note in shown)


@pytest.mark.parametrize("block", [b for b in blocks() if b.note == "ops"], ids=str)
def test_ops_in_the_documents_are_those_of_the_library(block: Block) -> None:
    library = load_library()
    items = parse_ops(Source("document", block.text)).items
    assert items
    for item in items:
        assert item.name in {x.name for x in (*library.defs, *library.ops)}


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_programs_in_the_documents_run(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("document", "command", "status"), COMMANDS)
def test_commands_in_the_documents_work(
    document: str, command: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(shlex.split(command.replace("/tmp/generated", str(tmp_path)))[1:]) == status


@pytest.mark.parametrize("block", SESSIONS, ids=str)
def test_a_command_prints_what_the_document_shows(
    block: Block, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    command, _, printed = block.text.partition("\n")
    capsys.readouterr()
    run(shlex.split(command)[2:])
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [t for t in targets if not t.startswith("http") and not (path.parent / t).exists()] == []


def test_the_makefile_has_every_target_that_documents_name() -> None:
    makefile = (ROOT / "Makefile").read_text()
    texts = [p.read_text(encoding="utf-8") for p in DOCUMENTS]
    named = {t for text in texts for t in re.findall(r"^(?:.*`|\$ )?make ([a-z-]+)", text, re.MULTILINE)}
    assert {"build", "test"} <= named
    assert [t for t in sorted(named) if f"\n{t}:" not in makefile] == []
