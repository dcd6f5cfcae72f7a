"""Generated files for one storage type, which compile in a third of the time."""

from __future__ import annotations

ELEMENTS = {"bfloat16": "__nv_bfloat16", "float16": "__half", "float32": "float"}
HEAD, TAIL = "specc::with_storage(type, [&](auto element) {", "\n    });\n}\n\n#endif"


def single(text: str, dtype: str) -> str:
    """A file whose launch wrapper takes every type for `dtype`."""
    assert text.count(HEAD) == 1 and text.count(TAIL) == 1
    text = text.replace(HEAD, "[&](auto element) {").replace(TAIL, f"\n    }}({ELEMENTS[dtype]}());\n}}\n\n#endif")
    return text.replace("(int type, ", "([[maybe_unused]] int type, ")
