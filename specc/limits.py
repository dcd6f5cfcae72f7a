"""How large an input may be. Each limit keeps the answer to a bad input within two seconds and 300 MB, and lies far
above what a model needs: the founding one has 7 kB, 1,200 tokens, 24 rows, and at most 150 nodes in a formula."""

from __future__ import annotations

MAX_BYTES = 1 << 18
"""Bytes of one text (a spec, an op library, a tile table), looked at before it is read."""

MAX_TOKENS = 20_000
"""Tokens of one text: the parser takes some 30 µs for each."""

MAX_NAME = 100
"""Characters of a name, Greek letters spelt out. Names become names of files, which have at most 255 bytes."""

MAX_TEXT = 4_000
"""Characters of a quoted text."""

MAX_DIGITS = 300
"""Longest literal that is converted to an exact fraction; with it any literal without an exponent is a float64."""

MAX_EXPONENT = 300
"""Largest decimal exponent of a literal."""

MAX_DEPTH = 150
"""Deepest nesting: of brackets, of rules of the grammar, and of a formula with its lets and functions put in. Stages
walk trees by recursion, with up to five calls a level; Python allows 1,000."""

MAX_BITS = 4096
"""Longest numerator or denominator that arithmetic on constants may give."""

MAX_MAGNITUDE = 1_000
"""Largest binary exponent, of either sign, of a number in a formula: float64 has it."""

MAX_SIZE = 1 << 40
"""Largest size, dimension or end of a domain: the bytes of a tensor still fit 64 bits."""

MAX_EXTENT = 1 << 30
"""Longest axis of a kernel: index variables have 32 bits."""

MAX_LAUNCHED = 0x7FFF0000
"""Most rows of a kernel: 32 bits hold their number, and one tile more."""

MAX_ACROSS = 0xFFFF
"""Most heads and columns of attention, and values of a recurrent state: blocks along axes of a grid but its first."""

MAX_LAYERS = 10_000
MAX_GROUPS = 64
"""Most ways in which layers may differ."""

MAX_CLASS_WORK = 200_000
"""Layers times operations of the predicates of all layer classes: they are evaluated for each layer."""

MAX_ROWS = 400
"""Rows of a node table."""

MAX_BINDINGS = 2_000
"""Rows times the groups of layers in which they stand: each is bound on its own."""

MAX_AXES = 16
"""Axes of a tensor, and of a view of a checkpoint tensor."""

MAX_OPERANDS = 64
"""Operands, results or constants of one op or function."""

MAX_RUNS = 1 << 16
"""Separate runs of rows that all interleaved pieces of weights may take."""

MAX_USES = 16
"""Op libraries that one spec may use."""

MAX_USED_BYTES = 1 << 16
"""Bytes of all of them: they are parsed and typed together, before anything else."""

MAX_FORMULA = 1_000
"""Nodes of a formula with lets and functions put in, powers as products and short sums written out."""

MAX_MODEL = 20_000
"""Nodes of the formulas of all bindings together: lowering takes some 0.1 ms for each."""

MAX_LIBRARY = 20_000
"""Nodes of all formulas and functions of the op libraries together, with lets put in; those of functions with a second
form twice, for both are evaluated to see that they agree."""

MAX_CONFIG = 100_000
"""Values of the published configuration, one for each layer where it says `each`."""

MAX_TILES = 1_000
"""Rows of a tile table, and architectures that it names."""

MAX_TILE_LINE = 1_000
"""Characters of a line of a tile table: the reader of TOML takes quadratic time for some lines."""

MAX_TILE = 1 << 20
"""Largest number in a row of a tile table."""

MAX_ERRORS = 100
"""Mistakes after which a stage gives up: a text with more of them is no spec, and each costs a search for what may
have been meant."""

MAX_NEAR = 20_000
"""Pairs of letters that are compared to find what a misspelt name means: 10 letters with 200 names of 10."""

MAX_SHOWN = 20
"""Mistakes that are printed; the rest is counted."""

MAX_COLUMNS = 120
"""Cells of a terminal that an echoed line may take."""

MAX_MESSAGE = 600
"""Characters of a printed message."""
