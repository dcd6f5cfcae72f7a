"""Recurrences by algebra: what is recognised, and why other steps are not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from specc.formula_text import expr_text
from specc.kernels import Recurrent
from specc.lower.lower import NoSchedule, Setting, lower_formula
from tests.lower.cases import assert_lowered, formula_of, kernel_of, operands

HEAD = "op f(q[T, H, K], k[T, H, K], p[T, H, K], v[T, H, V], c[T, H], b[T, H]) -> o[T, H, V]\n"
OUT = "  o[t, h, a] = Σ_i R[t, h, a, i] · q[t, h, i]\n"
SIZES = {"H": 2, "K": 3, "V": 4}
BEFORE = "R[t - 1, h, a, i]"
DOT = "(Σ_j R[t - 1, h, a, j] · {0}[t, h, j])"
ADD = "v[t, h, a] · k[t, h, i]"


def op(step: str, out: str = OUT, init: str = "0") -> str:
    return f"{HEAD}  rec R[t < T, h < H, a < V, i < K] from {init} = {step}\n{out}"


@dataclass(frozen=True)
class Shape:
    decay: str
    rate: str | None
    probe: str
    erase: str
    added: str
    write: str


C, B, K, P, V = "c[t, h]", "b[t, h]", "k[t, h, i]", "p[t, h, i]", "v[t, h, a]"
KNOWN = {
    "linear attention": (f"{BEFORE} + {ADD}", Shape("1", None, "0", "0", V, K)),
    "a decay for each head": (f"c[t, h] · {BEFORE} + {ADD}", Shape(C, None, "0", "0", V, K)),
    "a decay that is computed": (
        f"exp(-c[t, h]) · {BEFORE} + b[t, h] · {ADD}",
        Shape(f"exp(-{C})", None, "0", "0", f"{B} · {V}", K),
    ),
    "the delta rule": (
        f"{BEFORE} + b[t, h] · (v[t, h, a] - {DOT.format('k')}) · k[t, h, i]",
        Shape("1", B, K, K, f"{B} · {V}", K),
    ),
    "factors in another order": (
        f"k[t, h, i] · v[t, h, a] + ({BEFORE} - k[t, h, i] · {DOT.format('k')} · b[t, h]) · c[t, h]",
        Shape(C, B, K, K, V, K),
    ),
    "decay after the update": (
        f"c[t, h] · ({BEFORE} - b[t, h] · {DOT.format('k')} · k[t, h, i] + b[t, h] · {ADD})",
        Shape(C, B, K, K, f"{C} · {B} · {V}", K),
    ),
    "another vector is looked for": (
        f"c[t, h] · ({BEFORE} + {DOT.format('p')} · k[t, h, i] / 2) - {ADD}",
        Shape(C, "-(1 / 2)", P, K, f"-{V}", K),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_linear_step_is_taken_apart(name: str) -> None:
    text, shape = KNOWN[name]
    kernel = kernel_of(op(text), **SIZES)
    r = kernel.schedule
    assert isinstance(r, Recurrent)
    names = {a.name: f"{a.operand}[{', '.join(map(expr_text, a.indices))}]" for a in r.loads}

    def shown(part: object) -> str | None:
        found = None if part is None else expr_text(part)  # type: ignore[arg-type]
        for short, whole in names.items():
            found = found if found is None else _put(found, short, whole)
        return found

    found = Shape(*(shown(x) for x in (r.decay, r.rate, r.probe, r.erase, r.added, r.write)))  # type: ignore[arg-type]
    assert (found.decay, found.probe, found.erase, found.write) == (shape.decay, shape.probe, shape.erase, shape.write)
    assert (found.rate is None) == (shape.rate is None)
    for tokens in (0, 1, 5):
        sizes = {"T": tokens}
        assert_lowered(kernel, operands(kernel.formula, sizes, tokens), sizes)


def _put(text: str, short: str, whole: str) -> str:
    return re.sub(rf"\b{short}\b(?!\[)", whole, text)


UNKNOWN = {
    "decay missing where something is taken": (
        f"c[t, h] · {BEFORE} - b[t, h] · {DOT.format('k')} · k[t, h, i] + {ADD}",
        "`c[t, h]` decays the state, but not what is taken from it",
    ),
    "two things are taken": (
        f"{BEFORE} - {DOT.format('k')} · k[t, h, i] - {DOT.format('p')} · p[t, h, i] + {ADD}",
        "the transition has more than rank one",
    ),
    "a decay for each key": (f"k[t, h, i] · {BEFORE} + {ADD}", "the decay differs along `i`, over which sums run"),
    "a step that is not linear": (f"tanh({BEFORE}) + {ADD}", "is not linear in the state"),
    "a square": (f"{BEFORE} · {BEFORE} + {ADD}", "is not linear in the state"),
    "another place of the state": (f"R[t - 1, h, (a + 1) % V, i] + {ADD}", "it reads the state at"),
    "the state is transposed": (
        "R[t - 1, h, a, i] - Σ_j R[t - 1, h, j, i] · v[t, h, j] · v[t, h, a] + " + ADD,
        "sums run over different axes of the state",
    ),
    "nothing is added": (f"c[t, h] · {BEFORE}", "nothing is added to the state"),
    "more than one product is added": (
        f"{BEFORE} + {ADD} + v[t, h, a] · p[t, h, i]",
        "what is added is not one product",
    ),
    "the sign of the state changes": (f"{ADD} - {BEFORE}", "does not stand once in the step, with a factor"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_no_such_step_is_refused_with_a_reason(name: str) -> None:
    text, reason = UNKNOWN[name]
    with pytest.raises(NoSchedule) as caught:
        lower_formula(formula_of(op(text), **SIZES), Setting("f"))
    assert reason in dict(caught.value.reasons)["recurrence"]


def test_a_result_may_be_scaled_and_gated() -> None:
    out = "  o[t, h, a] = silu(v[t, h, a]) · Σ_i b[t, h] · R[t, h, a, i] · q[t, h, i]\n"
    kernel = kernel_of(op(f"c[t, h] · {BEFORE} + {ADD}", out), **SIZES)
    assert_lowered(kernel, operands(kernel.formula, {"T": 4}, 1), {"T": 4})


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("  o[t, h, a] = Σ_i R[t - 1, h, a, i] · q[t, h, i]\n", "`o` has an axis that the state does not have"),
        ("  o[t, h, a] = R[t, h, a, 0]\n", "nor the last state"),
        ("  o[t, h, a] = Σ_i R[t, h, a, i] · R[t, h, a, i]\n", "does not read the state once"),
    ],
)
def test_other_readings_are_refused(out: str, reason: str) -> None:
    with pytest.raises(NoSchedule) as caught:
        lower_formula(formula_of(op(f"{BEFORE} + {ADD}", out), **SIZES), Setting("f"))
    assert reason in dict(caught.value.reasons)["recurrence"]
