"""Whether a change of a spec is seen, and for one that is not, whether it changes anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from specc.ir import Model, NodeVariant, Phase
from specc.ops import Formula, Sort
from specc.oracle import evaluate
from specc.oracle.arrays import Array
from specc.oracle.sizes import dim_value
from specc.verify.judge import compare_parts, in_chunks, together_limits
from specc.verify.locate import apart
from specc.verify.mutate import Mutant, changed_layers
from specc.verify.whole import Cache, Whole
from tests.verify.models import Case

STEPS = 5
"""Decoded tokens: more than the window of a convolution."""
REFUSED = (IndexError, KeyError, MemoryError, ValueError, ZeroDivisionError)
"""What a model raises that cannot be computed at all."""

REASONS = (
    (r"op .*: linear -> lmHead", "lmHead with multiplier 1 and no cap is a linear map"),
    (r"op attn\.core.*: (decodeGQA -> causalGQA|slidingDecodeGQA -> slidingGQA)", "the prefill form of the op itself"),
    (r"op gdn\.(conv|core).*Step -> (causalConvSiluFrom|gatedDeltaRule)", "the prefill form of the op itself"),
    (r"term attn\.rope.*: y: invFreq: (if i < active|i < active -> i ≤|0 -> 1)", "all pairs turn: active = rot/2"),
    (r"term attn\.rope.*: y: (\d+) -> (\d+)$", "all pairs turn, or no coordinate is left: active = rot/2, rot = D"),
    (r"term attn\.rope.*: y: i < \d+ -> i ≤ \d+$", "no coordinate is left: rot = D"),
    (r"term attn\.rope.*: y: if i < \d+ then", "no coordinate is left: rot = D"),
    (r"term attn\.core.*: o: \d+ -> \d+$", "with one key head every head map is the same"),
)
"""Changes that are none, by their text."""


@dataclass
class Outcome:
    """How many changes were seen or refused by kind, and those that were not seen with their reason (None: missed)."""

    seen: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unseen: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        return [text for text, reason in self.unseen if reason is None]


def judge_mutants(mutants: Iterable[Mutant], case: Case, phase: Phase = Phase.PREFILL) -> Outcome:
    """All `mutants` of the model of `case` against what the official class gave."""
    out = Outcome()
    model = case.whole.model
    step = _Steps(case)
    for mutant in mutants:
        whole = Whole(mutant.model, case.weights)
        try:
            seen = step.differs(whole, again=False) if phase is Phase.DECODE else _prefill_differs(whole, model, case)
            seen = seen or (phase is Phase.PREFILL and step.differs(whole, again=True))
        except REFUSED:
            out.refused[mutant.kind] += 1
            continue
        if seen:
            out.seen[mutant.kind] += 1
        else:
            out.unseen.append((str(mutant), reason_of(mutant, model, phase)))
    return out


def _prefill_differs(whole: Whole, model: Model, case: Case) -> bool:
    layers = changed_layers(model, whole.model)
    figures, _ = compare_parts(whole, case.trace, case.text, layers=layers, locate=False)
    return not all(f.ok for f in figures)


class _Steps:
    """The last tokens, one at a time after those before."""

    def __init__(self, case: Case) -> None:
        tokens = case.text.tokens
        start = len(tokens) - STEPS
        self.before, self.last, self.prefilled = tokens[:start], tokens[start:], case.trace.logits[:start]
        self.cache = Cache()
        case.whole.run(self.before, self.cache)
        self.logits = case.official.decode(tokens, start)
        self.limit = together_limits(case.whole, tokens)[-1]

    def differs(self, whole: Whole, again: bool) -> bool:
        """`again`: the tokens before are given to the changed model too, in chunks."""
        cache = Cache() if again else deepcopy(self.cache)
        if again and not apart(in_chunks(whole, self.before, cache), self.prefilled) <= self.limit:
            return True
        return any(
            not apart(whole.run(self.last[k : k + 1], cache, Phase.DECODE), self.logits[k : k + 1]) <= self.limit
            for k in range(STEPS)
        )


def reason_of(mutant: Mutant, model: Model, phase: Phase) -> str | None:
    """Why a change is none: the table has it, and its formulas give the same values, to the last bit, on random
    operands. None for a change that was missed."""
    listed = next((reason for pattern, reason in REASONS if re.match(pattern, str(mutant))), None)
    changed = [(n, old) for n, old in zip(mutant.model.nodes, model.nodes, strict=True) if n != old]
    return listed if changed and all(_same(n, old, phase) for n, old in changed) else None


def _same(node: NodeVariant, old: NodeVariant, phase: Phase) -> bool:
    pairs = zip(node.phase(phase), old.phase(phase), strict=True)
    return all(a.reads == b.reads and _equal(a.formula, b.formula) for a, b in pairs)


def _equal(one: Formula, other: Formula) -> bool:
    generator = np.random.default_rng(0)
    for count in (1, 9, 70):
        operands = {t.name: _operand(t.name, t.sort, _shape(one, t.name, count), generator) for t in one.inputs}
        found, wanted = evaluate(one, operands), evaluate(other, operands)
        if not all(np.array_equal(a, b) for a, b in zip(found.values(), wanted.values(), strict=True)):
            return False
    return True


def _shape(formula: Formula, name: str, count: int) -> tuple[int, ...]:
    sizes = {"T": count, "B": count, "L": count + 3, "S": count + 3}
    return tuple(dim_value(d, sizes) for d in formula.tensor(name).dims)


def _operand(name: str, sort: Sort, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    if sort is not Sort.INDEX:
        return generator.standard_normal(shape)
    return generator.integers(1, 1 + shape[0], shape) if name == "seq_lens" else np.arange(shape[0])
