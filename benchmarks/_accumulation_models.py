"""Five tiny language models of Transformers, and examples with any number of predicted tokens.

Dropout is 0, so that a gradient in train mode can be computed twice. An example is a mapping of
tensors [token]; `collate` pads some of them on the right into one batch of tensors [row, token].
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Example = Mapping[str, Tensor]
Batch = dict[str, Tensor]

VOCABULARY = 64
IGNORED = -100
_PADDING = {"input_ids": 0, "attention_mask": 0, "labels": IGNORED}
_MASK = 3  # the token that hides another one from a masked model


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A model's maker, the maker of its examples, and what its labels belong to."""

    make: Callable[[], nn.Module]
    example: Callable[[int, torch.Generator], Example]
    is_causal: bool = False  # token t is predicted at t - 1, so the first one never is

    def examples(self, counts: Sequence[int]) -> list[Example]:
        """Examples with this many predicted tokens each; the same ones at every call."""
        generator = torch.Generator().manual_seed(0)
        return [self.example(count, generator) for count in counts]

    def loss_sum(self, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        """The cross-entropy summed over the predicted tokens, and how many those are."""
        logits, labels = model(**batch).logits, self.targets(batch)
        if self.is_causal:
            logits = logits[:, :-1]
        loss = F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=IGNORED
        )
        return loss, self.count(batch)

    def count(self, batch: Batch) -> int:
        """How many tokens of the batch are predicted."""
        return int((self.targets(batch) != IGNORED).sum())

    def targets(self, batch: Batch) -> Tensor:
        """The labels of the positions that predict one, [row, token]."""
        return batch["labels"][:, 1:] if self.is_causal else batch["labels"]


def collate(examples: Sequence[Example]) -> Batch:
    """One batch of all the examples, padded on the right."""
    return {
        name: nn.utils.rnn.pad_sequence(
            [example[name] for example in examples], batch_first=True, padding_value=padding
        )
        for name, padding in _PADDING.items()
    }


def _tokens(length: int, generator: torch.Generator) -> Tensor:
    return torch.randint(_MASK + 1, VOCABULARY, (length,), generator=generator)


def _example(input_ids: Tensor, labels: Tensor) -> Example:
    return {
        "input_ids": input_ids,
        "attention_mask": torch.ones_like(input_ids),
        "labels": labels,
    }


def _causal(count: int, generator: torch.Generator) -> Example:
    tokens = _tokens(count + 1, generator)
    return _example(tokens, tokens)


def _masked(count: int, generator: torch.Generator) -> Example:
    """A masked model's: `count` of the tokens are hidden, and those are the labels."""
    tokens = _tokens(count + 3, generator)
    hidden = torch.zeros_like(tokens, dtype=torch.bool)
    hidden[torch.randperm(len(tokens), generator=generator)[:count]] = True
    return _example(tokens.masked_fill(hidden, _MASK), tokens.masked_fill(~hidden, IGNORED))


def _translated(count: int, generator: torch.Generator) -> Example:
    """An encoder-decoder's: a source, and a target of `count` tokens."""
    return _example(_tokens(count + 2, generator), _tokens(count, generator))


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        dropout_rate=0.0,
        decoder_start_token_id=0,  # type: ignore[call-arg]
    )
    return T5ForConditionalGeneration(config)


def _bart() -> nn.Module:
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=VOCABULARY,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        dropout=0.0,
        init_std=0.2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=2,
    )
    return BartForConditionalGeneration(config)


def _bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
    )
    return BertForMaskedLM(config)


def gpt2(width: int = 16, layers: int = 2, heads: int = 2) -> nn.Module:
    """GPT-2 with a language modelling head, of any size."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=256,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return GPT2LMHeadModel(config)


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)


MODELS = {
    "T5": LanguageModel(_t5, _translated),
    "BART": LanguageModel(_bart, _translated),
    "BERT": LanguageModel(_bert, _masked),
    "GPT-2": LanguageModel(gpt2, _causal, is_causal=True),
    "Llama": LanguageModel(_llama, _causal, is_causal=True),
}
