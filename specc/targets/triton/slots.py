"""What a schedule hands to its template and to the launcher: printed slots, tiles, grids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass

from specc.kernels import Kernel
from specc.ops import Expr
from specc.targets.text import LIMIT, call
from specc.targets.triton.tiles import Config, Configs


@dataclass(frozen=True)
class Parameter:
    """A parameter of a device function and the launcher's argument for it. `size`: a run-time size; `constant`: its
    value is compiled in."""

    name: str
    argument: str
    size: bool = False
    constant: bool = False


@dataclass(frozen=True)
class Launch:
    """One launch: its tiles are those that `constants` names. `options`: text of what it is launched with."""

    function: str
    parameters: tuple[Parameter, ...]
    constants: tuple[str, ...]
    grid: tuple[str, ...]
    options: str = "**config.options()"

    @property
    def decorator(self) -> str:
        """Sizes are not specialised: a kernel is compiled once for all of them."""
        sizes = [p.name for p in self.parameters if p.size]
        names = ", ".join(f'"{n}"' for n in sizes)
        return f"@triton.jit(do_not_specialize=[{names}])" if sizes else "@triton.jit"

    @property
    def header(self) -> list[str]:
        """The parameters as they are declared."""
        names = [f"{p.name}: tl.constexpr" if p.constant else p.name for p in self.parameters]
        return [*names, *(f"{c}: tl.constexpr" for c in self.constants)]

    def lines(self) -> list[str]:
        """The launch itself."""
        return call(f"{self.function}[grid]", [*(p.argument for p in self.parameters), self.options], 8)

    def grid_lines(self) -> list[str]:
        """The number of programs, as `grid`."""
        if len(self.grid) == 1 and len(self.grid[0]) < LIMIT - 20:
            return [f"grid = ({self.grid[0]},)"]
        return call("grid = ", self.grid, 4)


@dataclass(frozen=True)
class Slots:
    """A schedule filled for one kernel. `values` go to the template; `exprs` are all expressions that were printed."""

    template: str
    values: Mapping[str, object]
    configs: Configs
    launches: tuple[Launch, ...]
    rows: str
    """The number of rows that choose the tiles, as the launcher writes it."""
    like: str
    """The operand whose storage type chooses the tiles."""
    exprs: tuple[Expr, ...]
    plan: tuple[str, ...] = ()
    """Statements before the launch."""
    caps: tuple[tuple[str, str], ...] = ()
    """(tile, extent): no larger than the extent needs, known only at the launch."""
    workspace: str | None = None
    """Elements of float32 scratch memory, if any is needed."""
    helpers: tuple[str, ...] = ()
    """Sources of device functions of the schedule's own."""


def parameters(
    kernel: Kernel,
    printed: object,
    operands: Iterable[str],
    constant: Callable[[str], bool] = lambda axis: False,
) -> tuple[Parameter, ...]:
    """Parameters that `printed` (strings, in any nesting) mentions: pointers, tables, sizes, strides. `constant` says
    along which axes strides are compiled in."""
    used = {w for text in strings(printed) for w in re.findall(r"\w+", text)}
    found = [Parameter(f"{n}_ptr", n) for n in operands]
    like = next(o.name for o in kernel.operands)
    found += [Parameter(f"{t.name}_ptr", f"_{t.name}({like}.device)") for t in kernel.tables if f"{t.name}_ptr" in used]
    found += [Parameter(s, s, size=True) for s in kernel.sizes if s in used]
    for o in kernel.operands:
        for n, axis in enumerate(o.axes[:-1]):
            name = f"{o.name}_stride_{axis}"
            if name in used:
                found.append(Parameter(name, f"{o.name}.stride({n})", constant=constant(axis)))
    return tuple(found)


def strings(x: object) -> list[str]:
    """All texts inside a value of a template."""
    if isinstance(x, str):
        return [x]
    if isinstance(x, Mapping):
        return [s for v in x.values() for s in strings(v)]
    if isinstance(x, list | tuple):
        return [s for v in x for s in strings(v)]
    return [s for v in vars(x).values() for s in strings(v)] if is_dataclass(x) else []


def map_configs(configs: Configs, tiles: object) -> Configs:
    """The same configurations with other tiles: `tiles(config)` gives them by name."""
    assert callable(tiles)
    return tuple(
        (a, tuple((w, tuple(Config(c.rows, c.warps, c.stages, tiles(c)) for c in found)) for w, found in widths))
        for a, widths in configs
    )


def every_config(configs: Configs) -> list[Config]:
    """All configurations, whatever they are for."""
    return [c for _, widths in configs for _, found in widths for c in found]
