"""The files of the reference model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from specc.ir import Model, Phase
from specc.ops import Formula, Load, Num
from specc.render import render
from specc.targets.torch.layers import (
    TOKENS,
    LayerKind,
    after_function,
    appended,
    before_function,
    layer_function,
    layer_kinds,
    result_type,
)
from specc.targets.torch.layout import Group, in_docstring, lines, quoted, tuple_of
from specc.targets.torch.nodes import Printed, print_nodes
from specc.targets.torch.scalars import Function
from specc.targets.torch.weights import tied_lines, weight_lines
from specc.trees import walk

STANDARD = (
    (r"\bmath\.", "import math"),
    (r"^@cache$", "from functools import cache"),
)
THIRD = (
    (r"\btorch\.", "import torch"),
    (r"\bTensor\b", "from torch import Tensor"),
)
RUNTIME = ("Precision", "append", "append_each", "masked_softmax", "rounded", "views", "weighted_sum")


def model_files(model: Model) -> dict[str, str]:
    """Every file of the reference model, by its name under the target's folder. Raises SpecError (E410)."""
    printed = print_nodes(model)
    kinds = layer_kinds(model, tuple(printed.names.values()))
    key = f"{model.key}@{model.version}"
    found = {
        "__init__.py": render("torch/init.py.j2", key=key),
        "config.py": _config_text(model, kinds, key),
        "functions.py": module_text(f"Scalar functions that the nodes of {key} share.", printed.scalars),
        "layers.py": _layers_text(model, printed, kinds, key),
        "model.py": _model_text(model, kinds, key),
        "nodes/__init__.py": _nodes_init(printed, key),
        "runtime.py": render("torch/runtime.py.j2"),
        "weights.py": _weights_text(model, kinds, key),
    }
    for module, nodes in printed.modules().items():
        functions = [f for n in nodes for f in (*n.tables, n.function)]
        helpers = [f.name for f in printed.scalars]
        found[f"nodes/{module}.py"] = module_text(f"Nodes of {key}: {module}.", functions, helpers, "..")
    return dict(sorted(found.items()))


def module_text(title: str, functions: Sequence[Function], helpers: Sequence[str] = (), package: str = "") -> str:
    """A module of printed functions. `package`: where its imports of helpers and of the runtime lie, "" for nowhere."""
    text = source_text(functions)
    local: list[str] = []
    if package:
        local += _import(f"{package}functions", [h for h in helpers if _names(h, text)])
        local += _import(f"{package}runtime", [n for n in RUNTIME if _names(n, text)])
    return render("torch/functions.py.j2", title=title, imports=_imports(text, local), functions=functions)


def source_text(functions: Sequence[Function]) -> str:
    """The code of functions without their docstrings."""
    return "\n".join(line for f in functions for line in (*(["@cache"] if f.cached else []), *f.head, *f.body))


def _names(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _imports(text: str, local: Sequence[str]) -> list[str]:
    found: list[str] = []
    for group in (STANDARD, THIRD):
        wanted = [line for pattern, line in group if re.search(pattern, text, re.MULTILINE)]
        found += [""] * bool(found and wanted) + wanted
    return found + [""] * bool(found and local) + list(local)


def _import(module: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    listed = sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    flat = f"from {module} import {', '.join(listed)}"
    return lines(f"from {module} import ", Group("(", tuple(listed), ")")) if len(flat) > 110 else [flat]


def _nodes_init(printed: Printed, key: str) -> str:
    imports: list[str] = []
    for module, nodes in sorted(printed.modules().items()):
        imports += _import(f".{module}", [n.function.name for n in nodes])
    names = sorted(n.function.name for n in printed.functions)
    return render("torch/nodes_init.py.j2", key=key, imports=imports, names=names)


def _layers_text(model: Model, printed: Printed, kinds: Sequence[LayerKind], key: str) -> str:
    made = [before_function(model, printed)]
    made += [layer_function(model, printed, kind, phase) for kind in kinds for phase in Phase]
    made.append(after_function(model, printed))
    functions = [m.function for m in made]
    used = list(dict.fromkeys(name for m in made for name in m.uses))
    imports: list[str] = []
    for module, nodes in sorted(printed.modules().items()):
        imports += _import(f".nodes.{module}", [n.function.name for n in nodes if n.function.name in used])
    imports += _import(".runtime", ["Precision", *(n for n in RUNTIME if n in used)])
    return render("torch/layers.py.j2", key=key, imports=imports, functions=functions)


def _weights_text(model: Model, kinds: Sequence[LayerKind], key: str) -> str:
    return render("torch/weights.py.j2", key=key, weights=weight_lines(model, kinds), tied=tied_lines(model))


def _config_text(model: Model, kinds: Sequence[LayerKind], key: str) -> str:
    return render(
        "torch/config.py.j2",
        key=key,
        layer_count=model.layer_count,
        vocabulary=_vocabulary(model),
        pattern=tuple_of([quoted(k) for k in _pattern(model, kinds)]).flat,
        states=[line for kind in kinds for line in _states(model, kind)],
        replaced=_replaced(model),
        kept=tuple_of([quoted(s.name) for s in model.states if s.name in model.profile.kept]).flat,
        profile=[f"{role}=torch.{name}" for role, name in model.profile.types],
    )


def _model_text(model: Model, kinds: Sequence[LayerKind], key: str) -> str:
    result = result_type(len(model.outputs))
    names = [k.name for k in kinds]
    bounded = _vocabulary(model) is not None
    values = {"kinds": names, "result": result, "bounded": bounded, "replaced": _replaced(model) != ""}
    return render("torch/model.py.j2", key=key, about=in_docstring(model.about), **values)


def _vocabulary(model: Model) -> int | None:
    """How many rows the tokens choose from, where they index something; of several tables the smallest."""
    bound = [b for node in model.outside(-1) for b in node.phase(Phase.PREFILL)]
    sizes = [n for b in bound for r in b.reads if r.wire == TOKENS for n in _rows_chosen(b.formula, r.operand)]
    return min(sizes, default=None)


def _rows_chosen(formula: Formula, ids: str) -> Iterator[int]:
    """Extents of the axes that `ids` indexes."""
    inputs = {t.name: t for t in formula.inputs}
    for load in (e for equation in formula.equations for e in walk(equation.expr) if isinstance(e, Load)):
        for index, dim in zip(load.indices, inputs[load.tensor].dims if load.tensor in inputs else (), strict=False):
            if isinstance(dim, Num) and any(isinstance(e, Load) and e.tensor == ids for e in walk(index)):
                yield int(dim.value)


def _pattern(model: Model, kinds: Sequence[LayerKind]) -> list[str]:
    """The shortest run of kinds that repeats through all layers."""
    by_layer = {i: k.name for k in kinds for i in k.layers}
    listed = [by_layer[i] for i in range(model.layer_count)]
    for n in range(1, len(listed)):
        if all(name == listed[i % n] for i, name in enumerate(listed)):
            return listed[:n]
    return listed


def _replaced(model: Model) -> str:
    names = [quoted(s.name) for s in model.states if s.name not in appended(model)]
    return tuple_of(names).flat if names else ""


def _states(model: Model, kind: LayerKind) -> list[str]:
    classes = list(dict.fromkeys(n.layer_class for n in kind.nodes))
    items: list[str | Group] = []
    for state in model.states:
        for name, dims in state.dims:
            if name in classes:
                shape = tuple_of([str(int(d.value)) for d in dims if isinstance(d, Num)])
                items.append(f"{quoted(state.name)}: {shape.flat}")
    return lines(f"{quoted(kind.name)}: ", Group("{", tuple(items), "}"), ",", "    ")
