"""The launcher of a kernel: a typed function that checks, allocates, chooses tiles and launches."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specc.formula_text import dims_text, formula_text
from specc.kernels import Kernel, Operand
from specc.ops import Sort
from specc.targets.divisors import divisors
from specc.targets.text import call, paragraph
from specc.targets.triton.host import nonzero_text
from specc.targets.triton.names import launcher_name
from specc.targets.triton.slots import Slots, strings

STORAGE = "Storage is bfloat16, float16 or float32. Raises TypeError and ValueError for arguments it does not take."
TENSOR = "torch.Tensor"


@dataclass(frozen=True)
class LauncherText:
    """The launcher as the skeleton prints it."""

    signature: list[str]
    summary: str
    doc: list[str]
    bind: list[str]
    sizes: list[str]
    result: str
    results: str
    plan: list[str]
    like: str
    launch: list[str]


def launcher(kernel: Kernel, ready: Kernel, slots: Slots) -> LauncherText:
    """Values for the launcher part of the skeleton. `kernel` has the formula's own names."""
    inputs = [o.name for o in ready.operands if not o.output]
    outputs = [o.name for o in ready.operands if o.output]
    plan = _plan(ready, slots)
    one = len(slots.launches) == 1
    plan += slots.launches[0].grid_lines() if one else []
    launch = [line for s in slots.launches for line in (*([] if one else s.grid_lines()), *s.lines())]
    divided = divisors(ready.operands)
    checks = [nonzero_text(d) for d in divisors(ready.schedule) if d not in divided]
    used = {w for text in strings([plan, launch, checks]) for w in re.findall(r"\w+", text)}
    return LauncherText(
        signature=_signature(launcher_name(kernel), inputs, outputs, slots.workspace is not None),
        summary=f"Launches `{kernel.op}` on the current stream of `{slots.like}`'s device.",
        doc=_doc(kernel, ready, slots),
        bind=_bind(inputs, outputs, any(s in used for s in ready.sizes)),
        sizes=[f'{s} = sizes["{s}"]' for s in ready.sizes if s in used] + checks,
        result=outputs[0],
        results=", ".join(outputs),
        plan=plan,
        like=slots.like,
        launch=launch,
    )


def _signature(name: str, inputs: list[str], outputs: list[str], workspace: bool) -> list[str]:
    kind = TENSOR if len(outputs) == 1 else f"tuple[{', '.join([TENSOR] * len(outputs))}]"
    items = [*(f"{i}: {TENSOR}" for i in inputs), "*", f"out: {kind} | None = None"]
    items += [f"workspace: {TENSOR} | None = None"] if workspace else []
    return call(f"def {name}", items, 0, f" -> {kind}:")


def _bind(inputs: list[str], outputs: list[str], sizes: bool) -> list[str]:
    given = f"({', '.join(inputs)},)" if len(inputs) == 1 else f"({', '.join(inputs)})"
    results = "(out,)" if len(outputs) == 1 else f"({', '.join(['None'] * len(outputs))}) if out is None else out"
    made = f"({outputs[0]},)" if len(outputs) == 1 else f"({', '.join(outputs)})"
    return call(f"{'sizes' if sizes else '_'}, {made} = bind", ["OPERANDS", given, results], 4)


def _plan(ready: Kernel, slots: Slots) -> list[str]:
    caps = [f"{name}={extent}" for name, extent in slots.caps]
    lines = call("config = pick", ["CONFIGS", slots.like, slots.rows, *caps], 4)
    return [*lines, *slots.plan]


def _doc(kernel: Kernel, ready: Kernel, slots: Slots) -> list[str]:
    formula = [f"    {line}" for text in formula_text(kernel.formula) for line in paragraph(text, 8)]
    lines = [_argument(o) for o in ready.operands if not o.output]
    results = ", ".join(f"{o.name} {dims_text(o.dims)}" for o in ready.operands if o.output)
    lines.append(f"Returns {results}: `out` if it is given, else new.")
    if slots.workspace:
        lines.append(f"`workspace`: float32 scratch memory of {slots.workspace} elements, or more.")
    lines += ["", STORAGE]
    return [*formula, "", *(line for text in lines for line in (paragraph(text, 4) or [""]))]


def _argument(o: Operand) -> str:
    kind = "int32 or int64" if o.sort is Sort.INDEX else str(o.role)
    return f"{o.name}: {dims_text(o.dims)}, {kind}."
