"""What cannot work is said when the model is made: name, expectation, found, what to do."""

import pytest
from torch import nn

from gradwright.architecture import (
    AITM,
    CGC,
    ESMM,
    LTB,
    MTAN,
    PLE,
    CrossStitch,
    DSelectK,
    MMoE,
    SharedBottom,
)
from tests.architecture.mistakes import Case, level, mask, stage, wrong
from tests.architecture.models import batch, gate, heads, layer, logit_heads

ONE = layer()

MADE: dict[str, Case] = {
    "no-task": (lambda: SharedBottom(layer(), {}), ValueError, "at least one task"),
    "list-of-heads": (
        lambda: SharedBottom(layer(), wrong([nn.Linear(4, 1)])),
        TypeError,
        "`heads` needs to be a mapping from task to module: got list",
    ),
    "task-number": (
        lambda: SharedBottom(layer(), wrong({0: nn.Linear(4, 1)})),
        TypeError,
        r"strings as names of tasks: got 0, of type int. Write `str\(0\)`",
    ),
    "task-empty": (
        lambda: SharedBottom(layer(), {"": nn.Linear(4, 1)}),
        ValueError,
        "`heads` needs names that are not empty: got ''",
    ),
    "head-maker": (
        lambda: SharedBottom(layer(), wrong({"age": lambda: nn.Linear(4, 1)})),
        TypeError,
        r"`heads\['age'\]` needs to be an `nn.Module`: got .*function.*. Call it",
    ),
    "bottom-class": (
        lambda: SharedBottom(wrong(nn.Identity), heads()),
        TypeError,
        "`bottom` needs to be an `nn.Module`: got the class Identity. Call it",
    ),
    "esmm-bottom": (lambda: ESMM(wrong(layer), heads()), TypeError, "`bottom` needs to be"),
    "no-expert": (
        lambda: MMoE(layer, 0, gate, heads()),
        ValueError,
        "`n_experts` needs to be 1 or more: got 0",
    ),
    "experts-float": (
        lambda: MMoE(layer, wrong(2.0), gate, heads()),
        TypeError,
        "`n_experts` needs to be an integer: got 2.0, of type float",
    ),
    "expert-module": (
        lambda: MMoE(wrong(layer()), 2, gate, heads()),
        TypeError,
        "`expert` needs a callable that makes a module: got a Sequential. Several are needed, and "
        "one module would be shared by all",
    ),
    "gate-module": (
        lambda: MMoE(layer, 2, wrong(nn.Linear(3, 2)), heads()),
        TypeError,
        r"`gate` needs a callable .* got a Linear.* Write `gate=lambda n: nn.Linear\(..., n\)`",
    ),
    "gate-number": (
        lambda: MMoE(layer, 2, wrong(3), heads()),
        TypeError,
        "`gate` needs a callable that makes a module: got 3, of type int",
    ),
    "gate-input": (
        lambda: MMoE(layer, 2, gate, heads(), gate_input=wrong(batch())),
        TypeError,
        "`gate_input` needs a callable from the input to what gates read: got tensor",
    ),
    "same-expert": (
        lambda: MMoE(lambda: ONE, 2, gate, heads()),
        ValueError,
        "`expert` returned the same Sequential in two calls, .* Make the module inside",
    ),
    "same-gate": (
        lambda: MMoE(layer, 2, lambda n: ONE, heads()),
        ValueError,
        "`gate` returned the same Sequential in two calls",
    ),
    "no-module-made": (
        lambda: MMoE(wrong(dict), 2, gate, heads()),
        TypeError,
        "`expert` needs to return an `nn.Module`: got {}, of type dict",
    ),
    "cgc-shared": (
        lambda: CGC(layer, 0, 1, gate, heads()),
        ValueError,
        "`n_shared` needs to be 1 or more: got 0",
    ),
    "cgc-own": (
        lambda: CGC(layer, 1, {"age": 1, "job": 0, "type": 1}, gate, heads()),
        ValueError,
        r"`n_task\['job'\]` needs to be 1 or more: got 0",
    ),
    "cgc-missing": (
        lambda: CGC(layer, 1, {"age": 1, "job": 1}, gate, heads()),
        ValueError,
        "`n_task` needs a number for every task: 'type' has none",
    ),
    "cgc-unknown": (
        lambda: CGC(layer, 1, {"sex": 1}, gate, heads()),
        ValueError,
        "`n_task` names the task 'sex', but the tasks are 'age', 'job', 'type'",
    ),
    "ple-empty": (lambda: PLE([], heads()), ValueError, "`levels` needs at least one entry"),
    "ple-one-level": (
        lambda: PLE(wrong({"levels": level()}), heads()),
        TypeError,
        "`levels` needs to be a list",
    ),
    "ple-maker": (
        lambda: PLE(wrong([layer]), heads()),
        TypeError,
        "`levels` needs an `ExtractionLevel` per level: got function",
    ),
    "ple-same": (
        lambda: PLE([level(expert=lambda: ONE)], heads()),
        ValueError,
        "`expert` returned the same Sequential in two calls",
    ),
    "stitch-module": (
        lambda: CrossStitch(wrong([layer()]), heads()),
        TypeError,
        r"`stages\[0\]` needs a callable that makes a module: got a Sequential",
    ),
    "stitch-channels": (
        lambda: CrossStitch([layer], heads(), channels=[4, 4]),
        ValueError,
        "`channels` needs one number per stage: got 2 for 1 stages",
    ),
    "mtan-maker": (
        lambda: MTAN(wrong([layer]), heads()),
        TypeError,
        "`stages` needs an `AttentionStage` per stage: got function",
    ),
    "mtan-first": (
        lambda: MTAN([stage(first=layer)], heads()),
        TypeError,
        r"`stages\[0\].first` needs to be an `nn.Module`: got <function.* Call it",
    ),
    "mtan-attention": (
        lambda: MTAN([stage(attention=mask())], heads()),
        TypeError,
        r"`stages\[0\].attention` needs a callable",
    ),
    "dselect-k": (
        lambda: DSelectK(layer, 3, 4, heads()),
        ValueError,
        "`k` needs to be at most `n_experts`, 3: got 4",
    ),
    "dselect-one": (
        lambda: DSelectK(layer, 1, 1, heads()),
        ValueError,
        "`n_experts` needs to be 2 or more: got 1",
    ),
    "dselect-gamma": (
        lambda: DSelectK(layer, 4, 2, heads(), gamma=0.0),
        ValueError,
        "`gamma` needs to be above 0: got 0.0",
    ),
    "dselect-entropy": (
        lambda: DSelectK(layer, 4, 2, heads(), entropy_weight=-1.0),
        ValueError,
        "`entropy_weight` needs to be 0 or more: got -1.0",
    ),
    "ltb-empty": (lambda: LTB([], heads()), ValueError, "`stages` needs at least one entry"),
    "ltb-nodes": (lambda: LTB([layer], heads(), n_nodes=0), ValueError, "`n_nodes` needs to be 1"),
    "ltb-temperature": (
        lambda: LTB([layer], heads(), temperature=0.0),
        ValueError,
        "`temperature` needs to be above 0: got 0.0",
    ),
    "ltb-warm-up": (
        lambda: LTB([layer], heads(), warm_up=-1),
        ValueError,
        "`warm_up` needs to be 0 or more: got -1",
    ),
    "aitm-width": (
        lambda: AITM(layer(), layer, layer, 0, logit_heads()),
        ValueError,
        "`width` needs to be 1 or more: got 0",
    ),
    "aitm-tower": (
        lambda: AITM(layer(), wrong(layer()), layer, 4, logit_heads()),
        TypeError,
        "`tower` needs a callable",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_at_construction(name: str) -> None:
    make, kind, message = MADE[name]
    with pytest.raises(kind, match=message):
        make()
