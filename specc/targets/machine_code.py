"""Facts about a kernel out of its machine code, by the tools of the CUDA toolkit."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)", re.MULTILINE)
_TENSOR_CORE = re.compile(r"(UTC)?[A-Z]{1,2}MMA(\.|$)|HGMMA|IGMMA|QGMMA|BGMMA")
_GLOBAL = ("LDG", "STG", "LDGSTS", "UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "ATOMG", "REDG", "RED")
_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


@dataclass(frozen=True)
class Usage:
    """What a thread takes: registers, bytes of stack, bytes of local memory; of a block: its static shared memory."""

    registers: int
    stack: int
    local: int
    shared: int


@dataclass(frozen=True)
class Code:
    """A kernel's instructions, by full name and in order, without padding."""

    names: tuple[str, ...]

    @property
    def tensor_core(self) -> tuple[str, ...]:
        """The distinct matrix instructions, such as HMMA.16816.F32.BF16 or UTCHMMA."""
        return tuple(sorted({name for name in self.names if _TENSOR_CORE.match(name)}))

    @property
    def accesses(self) -> tuple[tuple[str, int], ...]:
        """How many instructions touch global memory, by kind and bits a thread (`LDG.128`).

        Tile copies have no width.
        """
        counts = Counter(_access(name) for name in self.names if name.split(".")[0] in _GLOBAL)
        return tuple(sorted(counts.items()))

    def local_bytes(self, kind: str) -> int:
        """Bytes a thread moves to (`STL`) or from (`LDL`) local memory, each instruction counted once."""
        return sum(_bits(name) // 8 for name in self.names if name.split(".")[0] == kind)


def _bits(name: str) -> int:
    return next((_BITS[part] for part in name.split(".")[1:] if part in _BITS), 32)


def _access(name: str) -> str:
    kind = name.split(".")[0]
    return kind if kind.startswith("U") else f"{kind}.{_bits(name)}"


@cache
def tool(name: str) -> Path:
    """A program of the CUDA toolkit: from the wheels of `specc[cuda]`, or from Triton's. Raises FileNotFoundError."""
    places = [root / "cu13" / "bin" for root in _roots("nvidia")]
    places += [root / "backends" / "nvidia" / "bin" for root in _roots("triton")]
    for place in places:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(f"{name} is in no installed package: install specc[cuda]")


def _roots(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(p) for p in spec.submodule_search_locations or ()] if spec else []


def _output(name: str, *arguments: str) -> str:
    done = subprocess.run([str(tool(name)), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def resource_usage(cubin: Path, kernel: str) -> Usage:
    """Registers and stack of a kernel, from `cuobjdump -res-usage`."""
    text = _output("cuobjdump", "-res-usage", str(cubin))
    found = re.search(rf"Function {re.escape(kernel)}:\s*\n\s*(.*)", text)
    if found is None:
        raise RuntimeError(f"cuobjdump reports no kernel {kernel}")
    figures = {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", found[1])}
    return Usage(figures["REG"], figures["STACK"], figures["LOCAL"], figures["SHARED"])


def machine_code(cubin: Path, kernel: str) -> Code:
    """A kernel's instructions, from `nvdisasm -c`."""
    return parse_machine_code(_output("nvdisasm", "-c", str(cubin)), kernel)


def parse_machine_code(text: str, kernel: str) -> Code:
    """The instructions of one kernel in a disassembly."""
    parts = _SECTION.split(text)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    if kernel not in bodies:
        raise RuntimeError(f"the disassembly has no kernel {kernel}")
    return Code(tuple(name for name in _INSTRUCTION.findall(bodies[kernel]) if name != "NOP"))
