"""A glimpse of what the model writes, or fills in, while it learns."""

from __future__ import annotations

from lookback.data import TokenFile
from lookback.generation import Sampling, fill, generate
from lookback.models import LanguageModel
from lookback.tokenizers import Tokenizer

_NEW_TOKENS = 48


def sample_text(model: LanguageModel, tokenizer: Tokenizer, tokens: TokenFile, length: int) -> str:
    """The first tokens of ``tokens`` gone on with; from a masked model, a passage with what it fills in for 【 】."""
    start = [int(t) for t in tokens.ids[: max(1, min(8, length // 2))]]
    if model.config.causal:
        sampling = Sampling(temperature=0.8, top_k=50)
        wanted = min(_NEW_TOKENS, length - len(start))
        made = generate(model, tokenizer, [start], max_new_tokens=wanted, sampling=sampling, end=tokenizer.divider)
        return tokenizer.decode([*start, *made.samples[0].token_ids])
    passage = [int(t) for t in tokens.ids[: min(24, length)]]
    specials = sorted({tokenizer.divider, *tokenizer.specials})
    places = [i for i, t in enumerate(passage) if t not in specials][2::5]
    if not places:
        return tokenizer.decode(passage)
    masked = [tokenizer.mask if i in places else t for i, t in enumerate(passage)]
    fills = fill(model, masked, places, best=1, specials=specials)
    filled = {place: tokenizer.token_text(best[0].token) for place, best in zip(places, fills, strict=True)}
    return "".join(f"【{filled[i]}】" if i in filled else tokenizer.decode([t]) for i, t in enumerate(passage))
