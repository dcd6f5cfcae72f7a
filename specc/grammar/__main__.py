"""Writes the tables of every grammar."""

from __future__ import annotations

from specc.grammar import PARTS, place, tables

for name in PARTS:
    place(name).write_text(tables(name), encoding="utf-8")
