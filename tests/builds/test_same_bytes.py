"""A build gives the same bytes on every machine, in every folder, in every language."""

from __future__ import annotations

from pathlib import Path

from tests.builds.runs import gemma, specc, tiny, tree

WORLDS = [
    ("0", "C", "UTC", "0", 0o022),
    ("1", "POSIX", "Asia/Tokyo", "1", 0o077),
    ("4242", "C.UTF-8", "America/St_Johns", "0", 0o002),
]


def test_the_bytes_depend_on_nothing_around_a_build(tmp_path: Path) -> None:
    found = []
    for n, (seed, locale, zone, utf8, umask) in enumerate(WORLDS):
        folder = tmp_path / f"{'deep/' * n}a b{n}"
        folder.mkdir(parents=True)
        spec = gemma(folder)
        surroundings = {"PYTHONHASHSEED": seed, "LC_ALL": locale, "LANG": locale, "TZ": zone, "PYTHONUTF8": utf8}
        out = "out" if n % 2 else folder / "ö"
        done = specc("build", spec.name, "--out", out, cwd=folder, umask=umask, **surroundings)
        assert done.returncode == 0, done.stderr.decode()
        found.append(tree(folder / out / spec.stem))
        modes = {p.stat().st_mode & 0o777 for p in (folder / out).rglob("*") if p.is_file()}
        assert modes == {0o666 & ~umask}
    assert found[0] == found[1] == found[2]


def test_messages_come_through_in_a_terminal_of_ascii(tmp_path: Path) -> None:
    spec = tiny(tmp_path, edited=True)
    specc("build", spec, "--out", tmp_path)
    tiny(tmp_path)
    surroundings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for arguments in (("build", spec, "--check", "--out", tmp_path), ("show", spec, "--json"), ("build", "√.spec")):
        done = specc(*arguments, **surroundings)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        done.stdout.decode("ascii")
