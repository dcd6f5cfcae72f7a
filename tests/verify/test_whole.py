"""The oracle run over a whole model: prefill, decode, states, weights out of checkpoint tensors."""

from __future__ import annotations

import numpy as np
import pytest

from specc.diagnostics import SpecError
from specc.ir import Phase, Piece
from specc.verify.draw import draw_tokens, draw_weights
from specc.verify.whole import Cache, Whole, piece_rows
from tests.verify.models import NAMES, SEED, reduced


@pytest.mark.parametrize("name", NAMES)
def test_tokens_one_at_a_time_give_what_all_at_once_give(name: str) -> None:
    model = reduced(name).spec.model
    whole = Whole(model, draw_weights(model, (SEED, 0)))
    tokens = draw_tokens(model, 7, (SEED, 1))
    once = whole.run(tokens, Cache())
    parts, cache = [whole.run(tokens[:3], cache := Cache())], cache
    parts.append(whole.run(tokens[3:5], cache))
    parts += [whole.run(tokens[t : t + 1], cache, Phase.DECODE) for t in (5, 6)]
    assert cache.length == 7
    assert np.abs(np.concatenate(parts) - once).max() <= 1e-12 * np.abs(once).max()


def test_a_piece_takes_its_rows_of_each_head() -> None:
    tensor = np.arange(24.0).reshape(12, 2)
    second = Piece("w", ((0, 2, 2), (1, 2, 2), (0, 3, 3)), (12, 2))
    assert piece_rows(second, tensor)[:, 0].tolist() == [6, 8, 10, 18, 20, 22]
    with pytest.raises(ValueError, match="expected"):
        piece_rows(second, tensor[:6])


def test_a_model_that_reads_more_than_a_text_is_refused() -> None:
    from dataclasses import replace

    model = reduced("gemma4").spec.model
    other = replace(model, inputs=(*model.inputs, replace(model.inputs[0], name="images")))
    with pytest.raises(SpecError, match="images"):
        Whole(other, {})
