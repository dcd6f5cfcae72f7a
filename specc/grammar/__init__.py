"""Grammars, and the LALR tables that are made from them beforehand: making them takes longer than reading a page.

    python -m specc.grammar

writes the tables anew after a grammar was changed, or another Lark is pinned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token
from lark.grammar import Rule
from lark.lexer import TerminalDef

FOLDER = Path(__file__).parent
PARTS = {"ops": ("ops", "expr"), "spec": ("expr", "spec")}
"""The files that each grammar consists of."""


@cache
def grammar(name: str) -> str:
    """The text of a grammar, one of PARTS."""
    return "".join((FOLDER / f"{part}.lark").read_text(encoding="utf-8") for part in PARTS[name])


def parser(name: str, on_comment: Callable[[Token], Token], postlex: Any = None) -> Lark:
    """The parser of a grammar: from the tables beside it, or made anew where they are of another grammar or Lark."""
    hooks: Mapping[str, Any] = {"lexer_callbacks": {"COMMENT": on_comment}, "postlex": postlex}
    stored = _stored(name)
    if stored is None:
        return _made(name, **hooks)
    stored["data"]["options"] |= hooks
    return Lark.load(stored)


def _made(name: str, **options: Any) -> Lark:
    return Lark(grammar(name), parser="lalr", maybe_placeholders=True, **options)


def _origin(name: str) -> str:
    """What tables are made from."""
    return sha256(f"{lark.__version__}\n{grammar(name)}".encode()).hexdigest()


def place(name: str) -> Path:
    """The file of a grammar's tables."""
    return FOLDER / f"{name}.json"


def _stored(name: str) -> dict[str, Any] | None:
    try:
        text = place(name).read_text(encoding="utf-8")
    except OSError:
        return None
    if f'"{_origin(name)}"' not in text[:128]:
        return None
    tables: dict[str, Any] = json.loads(text, object_pairs_hook=_numbered)
    return tables


def _numbered(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """An object, with numbers as the keys that are numbers: JSON knows none."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


def tables(name: str) -> str:
    """The tables of a grammar as JSON, the same under any hash seed."""
    data, memo = _made(name).memo_serialize([TerminalDef, Rule])
    data["parser"]["parser"] = _ordered(data["parser"]["parser"])
    return json.dumps({"origin": _origin(name), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


def _ordered(table: dict[str, Any]) -> dict[str, Any]:
    """A table with its states in the order in which they are met from the first one, tokens by name."""
    names: dict[int, str] = table["tokens"]
    states = {
        state: {names[token]: action for token, action in sorted(row.items(), key=lambda item: names[item[0]])}
        for state, row in table["states"].items()
    }
    met = list(table["start_states"].values())
    for state in met:
        met += [to for kind, to in states[state].values() if kind == 0 and to not in met]
    number = {state: n for n, state in enumerate(met)}
    tokens = {name: n for n, name in enumerate(sorted(names.values()))}
    rows = {
        number[state]: {
            tokens[name]: (kind, number[to] if kind == 0 else to) for name, (kind, to) in states[state].items()
        }
        for state in met
    }
    ends = {key: {name: number[state] for name, state in table[key].items()} for key in ("start_states", "end_states")}
    return {"tokens": {n: name for name, n in tokens.items()}, "states": rows, **ends}
