import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

logging.set_verbosity_error()
torch.manual_seed(19)

VOCAB, BOS, PAD = 18, 0, 1
shape = GPT2Config(vocab_size=VOCAB, n_positions=24, n_embd=24, n_layer=1, n_head=2, bos_token_id=BOS,
                   eos_token_id=None, pad_token_id=PAD, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
model = GPT2LMHeadModel(shape)
optim = torch.optim.AdamW(model.parameters(), lr=3e-3)


def captions(n=32, length=8):
    first = torch.randint(2, VOCAB, (n, 1))
    body = 2 + (first - 2 + torch.arange(length)) % (VOCAB - 2)
    return torch.cat([torch.full((n, 1), BOS), body], dim=1)


def fluency(words):
    return ((words[:, 1:] - words[:, :-1]) % (VOCAB - 2) == 1).float().mean(dim=1)


def cross_entropy_step():
    ids = captions()
    return model(input_ids=ids, labels=ids).loss


def self_critical_step(length=8):
    start = captions()[:, :2]
    sampled = model.generate(start, do_sample=True, max_new_tokens=length)
    greedy = model.generate(start, do_sample=False, max_new_tokens=length)
    words = sampled[:, 2:]
    logits = model(input_ids=sampled).logits[:, 1:-1]
    logp = nn.functional.log_softmax(logits, dim=-1).gather(2, words.unsqueeze(2)).squeeze(2)
    advantage = fluency(words) - fluency(greedy[:, 2:])
    return -(advantage.unsqueeze(1) * logp).mean()


for step in range(40):
    loss = cross_entropy_step() if step < 25 else self_critical_step()
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.4f}")
