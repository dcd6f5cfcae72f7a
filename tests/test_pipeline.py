from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specc import pipeline
from specc.diagnostics import SpecError
from specc.emit import State
from specc.inputs import Options, read_inputs
from specc.ir import Model
from specc.lowered import Lowered
from specc.manifest import MANIFEST, read_manifest
from specc.resources import shipped

ROOT = Path(__file__).parent.parent
SPEC = shipped("specs") / "gemma4.spec"
EXAMPLES = ROOT / "docs" / "examples"


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built")
    return pipeline.build(SPEC, out, Options()).folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    for name in ("tiny.spec", "own.ops"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    return tmp_path / "tiny.spec"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_build_has_kernels_reference_configuration_page_and_manifest(built: Path) -> None:
    names = list(tree(built))
    model = pipeline.load(SPEC)
    kernels = {k.name for x in pipeline.lower(model) for k in x.kernels}
    assert {f"triton/{k}.py" for k in kernels} <= set(names)
    assert {"config.json", "README.md", "torch/model.py", MANIFEST} <= set(names)


def test_the_configuration_has_the_published_values(built: Path) -> None:
    config = json.loads((built / "config.json").read_text())
    text = config["text_config"]
    assert config["architectures"] == ["Gemma4ForConditionalGeneration"]
    assert text["layer_types"] == (["sliding_attention"] * 5 + ["full_attention"]) * 10
    assert text["rope_parameters"]["full_attention"] == {
        "rope_type": "proportional", "rope_theta": 1000000, "partial_rotary_factor": 0.25,
    }  # fmt: skip
    assert (text["rms_norm_eps"], text["vocab_size"], text["hidden_size"]) == (1e-6, 262144, 5376)


BUILD = "from specc.cli import run; raise SystemExit(run(['build', {spec!r}, '--out', {out!r}]))"


@pytest.mark.parametrize(("seed", "umask", "locale"), [("0", 0o022, "C"), ("4242", 0o077, "C.UTF-8")])
def test_the_same_bytes_under_any_hash_seed_folder_umask_and_locale(
    built: Path, tmp_path: Path, seed: str, umask: int, locale: str
) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    spec = folder / "gemma4.spec"
    spec.write_bytes(SPEC.read_bytes())
    environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "LANG": locale, "TZ": "Asia/Tokyo"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(spec="gemma4.spec", out="out")],
        cwd=folder, env=environment, capture_output=True, timeout=120, umask=umask,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert tree(folder / "out" / "gemma4") == tree(built)


def test_nothing_generated_names_a_place_or_a_moment(built: Path) -> None:
    for name, data in tree(built).items():
        for word in (str(ROOT), str(built.parent), "/home/", "/tmp/"):
            assert word.encode() not in data, name


def test_an_unchanged_input_is_seen_before_anything_is_parsed(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    monkeypatch.setattr(pipeline, "parse", lambda path: pytest.fail("parsed"))
    assert pipeline.build(own, out, Options()).written is None


@pytest.mark.parametrize("name", ["tiny.spec", "own.ops"])
def test_a_changed_input_is_seen(own: Path, name: str) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    path = own.with_name(name)
    path.write_text(path.read_text() + "\n# more\n")
    done = pipeline.build(own, out, Options())
    assert done.written is not None and done.written.wrote == ()
    assert pipeline.build(own, out, Options()).written is None


def test_mistakes_of_all_libraries_and_of_the_spec_come_together(own: Path) -> None:
    edit(own, 'use "own.ops"', 'use "none.ops"\nuse "own.ops"\nuse "more.ops"')
    edit(own, "heads = 4", "heads = 4 / 3\n  other = nothing")
    own.with_name("more.ops").write_text("def f(x) = = x\ndef g(x) = x\n")
    own.with_name("own.ops").write_text("def h(x) = (x\n")
    with pytest.raises(SpecError) as caught:
        pipeline.build(own, own.parent / "out", Options())
    places = [(Path(d.span.source.name).name, d.code) for d in caught.value.diagnostics if d.span is not None]
    assert len(places) == len(caught.value.diagnostics)
    assert {("tiny.spec", "E501"), ("tiny.spec", "E201"), ("own.ops", "E102"), ("more.ops", "E101")} <= set(places)
    assert not {c for _, c in places} & {"E230", "E270", "E253", "E256"}


def test_a_library_that_has_gone_and_is_no_longer_used_is_not_missed(own: Path) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    own.with_name("own.ops").rename(own.with_name("mine.ops"))
    edit(own, 'use "own.ops"', 'use "mine.ops"')
    assert pipeline.build(own, out, Options()).written is not None


@pytest.mark.parametrize("name", ["tiny.spec", "own.ops"])
def test_a_text_that_changes_during_a_build_is_built_as_it_is_then(
    own: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the hash of the new text would stand for files of the old one."""
    path, real = own.with_name(name), pipeline.lower
    again = {"tiny.spec": ("heads = 4", "heads = 8"), "own.ops": ("relu(gu[.., i])²", "relu(gu[.., i])³")}
    edits = [again[name]]

    def lower(model: Model) -> tuple[Lowered, ...]:
        if edits:
            edit(path, *edits.pop())
        return real(model)

    monkeypatch.setattr(pipeline, "lower", lower)
    pipeline.build(own, own.parent / "out", Options())
    pipeline.build(own, own.parent / "clean", Options())
    assert tree(own.parent / "out") == tree(own.parent / "clean")


def test_a_text_that_never_stays_the_same_is_an_error(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pipeline.lower

    def lower(model: Model) -> tuple[Lowered, ...]:
        own.write_text(own.read_text() + "# more\n")
        return real(model)

    monkeypatch.setattr(pipeline, "lower", lower)
    with pytest.raises(SpecError, match="E501.*changes while it is read"):
        pipeline.build(own, own.parent / "out", Options())
    assert not (own.parent / "out").exists()


@pytest.mark.parametrize("name", ["gone.ops", "../../gone.ops", "a\\u0000b", "x" * 300])
def test_a_manifest_that_names_a_library_that_is_not_there_is_mended(own: Path, name: str) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    manifest = out / "tiny" / MANIFEST
    clean = manifest.read_text()
    manifest.write_text(clean.replace('"inputs": {', f'"inputs": {{"use/{name}": "00", '))
    assert pipeline.build(own, out, Options()).written is not None
    assert manifest.read_text() == clean


def test_of_two_specs_of_one_name_in_one_folder_the_last_decides(own: Path, built: Path) -> None:
    out = own.parent / "out"
    own.rename(own.with_name("gemma4.spec"))
    pipeline.build(own.with_name("gemma4.spec"), out, Options())
    assert pipeline.build(SPEC, out, Options()).written is not None
    assert tree(out / "gemma4") == tree(built)


@pytest.mark.parametrize("taken", ["out", "out/tiny", "out/tiny/triton", "out/tiny/README.md/x", "out/tiny/README.md"])
def test_a_folder_that_is_in_use_otherwise_is_an_error(own: Path, taken: str) -> None:
    path = own.parent / taken
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = tree(own.parent)
    with pytest.raises(SpecError, match="E502.*\n  help: move it away"):
        pipeline.build(own, own.parent / "out", Options())
    assert tree(own.parent) == before


def test_an_edited_formula_rewrites_what_names_its_op_and_nothing_else(own: Path) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    edit(own.with_name("own.ops"), "relu(gu[.., i])² ·", "relu(gu[.., i])³ ·")
    done = pipeline.build(own, out, Options())
    assert done.written is not None
    assert set(done.written.wrote) == {"README.md", "cuda/mlp_act.cu", "torch/nodes/mlp.py", "triton/mlp_act.py"}


def test_a_removed_node_takes_its_files_along(own: Path) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    text = own.read_text()
    rows = [line for line in text.splitlines() if not line.startswith("  | norm2 ")]
    own.write_text("\n".join(rows).replace("m -> gu ", "h1 -> gu") + "\n")
    done = pipeline.build(own, out, Options())
    assert done.written is not None and done.written.removed == ("cuda/norm2.cu", "triton/norm2.py")


@pytest.mark.parametrize("linked", ["tiny", "tiny/triton"])
def test_build_and_check_both_refuse_a_linked_folder(own: Path, linked: str) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    (out / linked).rename(own.parent / "elsewhere")
    (out / linked).symlink_to(own.parent / "elsewhere")
    found = pipeline.drift(own, out, Options())
    assert {d.state for d in found} == {State.BLOCKED}
    with pytest.raises(SpecError, match=r"E502.*it is a link, and may lead elsewhere"):
        pipeline.build(own, out, Options())


def test_drift_of_a_clean_build_is_none_and_of_another_spec_is_told(own: Path) -> None:
    out = own.parent / "out"
    pipeline.build(own, out, Options())
    assert pipeline.drift(own, out, Options()) == ()
    edit(own.with_name("own.ops"), "relu(gu[.., i])² ·", "relu(gu[.., i])³ ·")
    found = {d.name: str(d.state) for d in pipeline.drift(own, out, Options())}
    assert found["triton/mlp_act.py"] == "stale" and found[MANIFEST] == "stale"


def test_the_manifest_names_every_input(own: Path) -> None:
    pipeline.build(own, own.parent / "out", Options(targets=("torch",)))
    manifest = read_manifest(own.parent / "out" / "tiny")
    assert manifest is not None
    names = [n for n, _ in manifest.inputs]
    assert {"spec", "use/own.ops", "ops/norms.ops", "templates/torch/model.py.j2"} <= set(names)
    assert manifest.inputs == read_inputs(own, ["own.ops"])
    assert manifest.uses == ("own.ops",)


@pytest.mark.parametrize("stem", ["..", ".hidden", "a b", "x;y", "", "g\u0435mma4", "e\u0301", "\udcff", "a\u3164"])
def test_a_stem_that_makes_no_good_folder_is_refused(stem: str) -> None:
    with pytest.raises(SpecError, match="E503"):
        pipeline.folder_of(Path(f"{stem}.spec") if stem else Path("."), Path("out"))


def test_an_op_that_no_schedule_takes_is_an_error_at_its_row(own: Path) -> None:
    library = own.with_name("own.ops")
    library.write_text(library.read_text() + RECURRENT)
    edit(own, "| mlp.act    | relu2Mul  |", "| mlp.act    | decay     |")
    edit(own, "m -> gu                                                   |", "m -> gu |")
    edit(own, "N=2·inter ", "N=inter ")
    edit(own, "| I=inter                              |", "| C=inter |")
    with pytest.raises(SpecError, match=r"tiny.spec:\d+:\d+: error\[E401\]: no schedule takes `decay`"):
        pipeline.build(own, own.parent / "out", Options())
    with pytest.raises(SpecError, match=r"error\[E401\]: no schedule takes `decay`"):
        pipeline.build(own, own.parent / "out", Options(targets=("cuda",)))
    assert pipeline.build(own, own.parent / "out", Options(targets=("torch",))).written is not None


RECURRENT = """
# A running mean: each row keeps half of the one before.
op decay(x[T, C]; C: nat) -> y[T, C]
  rec R[t < T, c < C] from 0 = 1/2 · R[t-1, c] + x[t, c]
  y[t, c] = R[t, c]
"""
