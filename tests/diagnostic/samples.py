"""Two diagnostics with their programs: the two pictures of the message's grammar."""

from pathlib import Path

from gradwright.diagnostic import Diagnostic, Edit, Fix, Label, Span


def write_lines(path: Path, lines: dict[int, str]) -> str:
    """A file with these lines, the others blank; returns its name."""
    text = "".join(lines.get(number, "") + "\n" for number in range(1, max(lines) + 1))
    path.write_text(text, encoding="utf-8")
    return str(path)


def span_of(file: str, line: int, piece: str) -> Span:
    """Where ``piece`` stands on a line of a file."""
    text = Path(file).read_text(encoding="utf-8").splitlines()[line - 1]
    start = text.index(piece)
    return Span(file, line, start, line, start + len(piece))


def graph_used_twice(folder: Path) -> Diagnostic:
    """A multi-task program that computes its features once, before the loop."""
    file = write_lines(
        folder / "train_mmoe.py",
        {
            25: "optimizer = torch.optim.Adam([*embed.parameters(), *model.parameters()])",
            27: "features = embed(ids)  # precomputed once, to save time",
            31: "        out = model(features[batch])",
            35: "        loss.backward()",
        },
    )
    optimizer = "optimizer = torch.optim.Adam(model.parameters())\n"
    return Diagnostic(
        code="GW101",
        name="graph-used-twice",
        category="second-backward",
        severity="error",
        summary="`features` was built once, and a second backward needs it",
        why="`backward()` frees every graph it walks. Line 31 rebuilds the MMoE part for each "
        "batch;\nline 27 runs once, so the embedding part is gone after the first call.",
        labels=(
            Label(
                span_of(file, 27, "embed(ids)"),
                "built here, once; its Tanh and Embedding nodes save tensors for backward",
                1,
            ),
            Label(
                span_of(file, 31, "features[batch]"),
                "each batch hangs a new graph on those same two nodes",
                2,
            ),
            Label(span_of(file, 35, "loss.backward()"), "backward call 1 freed them", 3),
            Label(
                span_of(file, 35, "loss.backward()"),
                "backward call 2 needed them again",
                4,
                primary=True,
            ),
        ),
        fixes=(
            Fix(
                "compute the features with the batch; `embed` trains",
                (
                    Edit(file, 27, 27, ""),
                    Edit(file, 31, 31, "        out = model(embed(ids[batch]))\n"),
                ),
            ),
            Fix(
                "keep `embed` fixed, if that was the point of precomputing "
                "(its 1 tensor then leaves the optimizer)",
                (
                    Edit(file, 25, 25, optimizer),
                    Edit(file, 27, 27, "features = embed(ids).detach()\n"),
                ),
            ),
        ),
        avoid="`retain_graph=True`: the error goes away, but line 27 still runs once, so `embed` "
        "would be trained forever against the features it had before step 1.",
        affected=("embed.weight",),
        measured={"backward_calls": 2, "nodes": 2},
    )


GRAPH_USED_TWICE = """\
error[GW101] graph used twice: `features` was built once, and a second backward needs it

   train_mmoe.py
27 │ features = embed(ids)  # precomputed once, to save time
   │            ──────────  1 built here, once; its Tanh and Embedding nodes save tensors for backward
   ⋮
31 │         out = model(features[batch])
   │                     ───────────────  2 each batch hangs a new graph on those same two nodes
   ⋮
35 │         loss.backward()
   │         ───────────────  3 backward call 1 freed them
   │         ^^^^^^^^^^^^^^^  4 backward call 2 needed them again

why  `backward()` frees every graph it walks. Line 31 rebuilds the MMoE part for each batch;
     line 27 runs once, so the embedding part is gone after the first call.

fix  compute the features with the batch; `embed` trains:
       27 - features = embed(ids)  # precomputed once, to save time
       31 -         out = model(features[batch])
       31 +         out = model(embed(ids[batch]))

or   keep `embed` fixed, if that was the point of precomputing (its 1 tensor then leaves the optimizer):
       25 - optimizer = torch.optim.Adam([*embed.parameters(), *model.parameters()])
       25 + optimizer = torch.optim.Adam(model.parameters())
       27 - features = embed(ids)  # precomputed once, to save time
       27 + features = embed(ids).detach()

not  `retain_graph=True`: the error goes away, but line 27 still runs once, so `embed` would be
     trained forever against the features it had before step 1.

more gradwright explain GW101"""  # noqa: E501


def severed_graph(folder: Path) -> Diagnostic:
    """A Lightning program whose encoder runs with recording off."""
    file = write_lines(
        folder / "train_t5.py",
        {
            12: "        self.t5.encoder.block.requires_grad_(True)  # fine-tune the encoder only",
            15: "        with torch.no_grad():  # left over from the evaluation script",
            16: '            return self.t5.encoder(batch["input_ids"])',
            20: '        out = self.t5(encoder_outputs=hidden, labels=batch["labels"])',
        },
    )
    call = 'self.t5.encoder(batch["input_ids"])'
    return Diagnostic(
        code="GW201",
        name="severed-graph",
        category="severed-graph",
        severity="error",
        summary="no trainable parameter reaches the loss",
        why="The loss sees the encoder only through `hidden`, and `hidden` left line 16 without a "
        "graph.\nThe decoder is frozen (line 11), so nothing else ties the loss to a parameter.\n"
        "Lightning calls backward for you; that is where PyTorch noticed.",
        labels=(
            Label(
                span_of(file, 12, "self.t5.encoder.block.requires_grad_(True)"),
                "the trainable part: 9 tensors",
                1,
            ),
            Label(span_of(file, 15, "torch.no_grad()"), "recording is off inside this block", 2),
            Label(
                span_of(file, 16, call),
                "cut here: 9 operations read those tensors, none was recorded",
                3,
                primary=True,
            ),
            Label(
                span_of(file, 20, 'self.t5(encoder_outputs=hidden, labels=batch["labels"])'),
                "the loss: built with recording on, but from frozen parts only",
                4,
            ),
        ),
        fixes=(Fix("let line 16 record", (Edit(file, 15, 16, f"        return {call}\n"),)),),
        avoid="`loss.requires_grad_(True)`: backward then runs and changes nothing.",
        context="in Summarizer.training_step, batch 0",
    )


SEVERED_GRAPH = """\
error[GW201] severed graph: no trainable parameter reaches the loss

   train_t5.py                                                in Summarizer.training_step, batch 0
12 │         self.t5.encoder.block.requires_grad_(True)  # fine-tune the encoder only
   │         ──────────────────────────────────────────  1 the trainable part: 9 tensors
   ⋮
15 │         with torch.no_grad():  # left over from the evaluation script
   │              ───────────────  2 recording is off inside this block
16 │             return self.t5.encoder(batch["input_ids"])
   │                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^  3 cut here: 9 operations read those tensors, none was recorded
   ⋮
20 │         out = self.t5(encoder_outputs=hidden, labels=batch["labels"])
   │               ───────────────────────────────────────────────────────  4 the loss: built with recording on, but from frozen parts only

why  The loss sees the encoder only through `hidden`, and `hidden` left line 16 without a graph.
     The decoder is frozen (line 11), so nothing else ties the loss to a parameter.
     Lightning calls backward for you; that is where PyTorch noticed.

fix  let line 16 record:
       15 -         with torch.no_grad():  # left over from the evaluation script
       16 -             return self.t5.encoder(batch["input_ids"])
       15 +         return self.t5.encoder(batch["input_ids"])

not  `loss.requires_grad_(True)`: backward then runs and changes nothing.

more gradwright explain GW201"""  # noqa: E501
