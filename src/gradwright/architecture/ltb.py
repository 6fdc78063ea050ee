"""Learning to branch."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.branching import Branching, Cooling
from gradwright.architecture.making import MakeModule, check_list, check_number, make_modules
from gradwright.architecture.mixture import check_same_shape
from gradwright.architecture.tasks import TaskModules


class LTB(Architecture):
    """A network whose tree is learned: every node chooses one node of the stage below to read.

    Node j of a stage computes f_j(Σ_i d_ji x_i), with d_j a draw from the Gumbel-softmax over the
    nodes i below; heads choose among the nodes of the last stage in the same way. In training all
    nodes are computed. **In evaluation** each takes its likeliest parent, nothing is drawn, and
    only nodes that a task needs are computed.

    **Call `advance()` after each epoch**: the temperature is `temperature` / √(epoch + 1).
    In the first `warm_up` epochs the choices are drawn, but not learned.

    Guo, Lee and Ulbricht, Learning to Branch for Multi-Task Learning, ICML 2020,
    https://arxiv.org/abs/2006.01895. The cooling is LibMTL's, which begins at a 20th of the number
    of epochs and warms up for a 100th of it; its nodes read the sum of all parents while it warms
    up, its heads do not choose, and it draws in evaluation too.

    Called with one input for all tasks, returns {task: output}. The nodes of a stage give
    [batch, *feature], all of one shape. `each` draws anew for each input.

    Args:
        stages: makes one node, a callable for each stage, the lowest first.
        heads: the module of each task.
        n_nodes: the number of nodes in each stage; as many as there are tasks if left out.
        temperature: where the temperature starts.
        warm_up: in how many epochs the choices are not learned.
        hard: draws have one 1 each, and the gradients of the softmax (straight-through); else draws
            are the softmax itself.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task or stage, or a number is out of range; when called: shapes that
            do not fit.

    Example:
        >>> heads = {"age": nn.Linear(8, 1), "job": nn.Linear(8, 5)}
        >>> first = lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        >>> second = lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        >>> model = LTB([first, second], heads)
        >>> model(torch.randn(4, 3))["job"].shape
        torch.Size([4, 5])
        >>> model.advance()
        >>> model.branches()  # the node of each stage, the lowest first
        {'age': [0, 0], 'job': [0, 0]}
    """

    def __init__(
        self,
        stages: Sequence[MakeModule],
        heads: Mapping[str, nn.Module],
        n_nodes: int | None = None,
        temperature: float = 10.0,
        warm_up: int = 0,
        hard: bool = True,
    ) -> None:
        _check_arguments(stages, n_nodes, temperature, warm_up)
        super().__init__(heads)
        width = len(self.tasks) if n_nodes is None else n_nodes
        self.stages = nn.ModuleList(
            nn.ModuleList(make_modules(f"stages[{position}]", maker, width))
            for position, maker in enumerate(stages)
        )
        self.branchings = nn.ModuleList(Branching(width, width) for _ in stages[1:])
        self.head_branchings = TaskModules({task: Branching(1, width) for task in self.tasks})
        self.cooling = Cooling(temperature, warm_up)
        self.hard = hard

    def advance(self) -> None:
        """To be called after each epoch: lowers the temperature, ends the warm-up."""
        self.cooling.advance()

    def branches(self) -> dict[str, list[int]]:
        """For each task the nodes that its likeliest choices lead through, the lowest first."""
        return {task: self._branch(task) for task in self.tasks}

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        features = self._drawn if self.training else self._decided
        return {task: self.heads[task](x) for task, x in features(inputs, tasks).items()}

    def path(self, task: str) -> Iterable[nn.Module]:
        """All nodes and their choices, the choice of the task's head, and the head."""
        return [self.stages, self.branchings, self.head_branchings[task], self.heads[task]]

    def _drawn(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """What heads read in training."""
        given = self._given(0, [inputs] * len(list(self.stages[0].children())))
        for position, branching in enumerate(self.branchings, 1):
            given = self._given(position, list(self._read(branching, given)))
        return {task: self._read(self.head_branchings[task], given)[0] for task in tasks}

    def _given(self, position: int, read: Sequence[object]) -> Tensor:
        """What the nodes of a stage make of what they read: [node, batch, *feature]."""
        nodes = self.stages[position].children()
        given = [node(x) for node, x in zip(nodes, read, strict=True)]
        check_same_shape(f"stages[{position}]", given)
        return torch.stack(given)

    def _read(self, branching: nn.Module, given: Tensor) -> Tensor:
        """Σ_i d_ji x_i: [node, batch, *feature]."""
        cooling = self.cooling
        draw = branching(cooling.temperature, self.hard, learned=not cooling.warming_up)
        return torch.einsum("ji,ib...->jb...", draw.to(given), given)

    def _decided(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """What heads read in evaluation; what branches have in common is computed once."""
        given: dict[tuple[int, ...], Tensor] = {}
        branches = {task: self._branch(task) for task in tasks}
        for branch in branches.values():
            for position in range(len(branch)):
                node = tuple(branch[: position + 1])
                if node not in given:
                    module = list(self.stages[position].children())[node[-1]]
                    given[node] = module(given[node[:-1]] if position else inputs)
        return {task: given[tuple(branch)] for task, branch in branches.items()}

    def _branch(self, task: str) -> list[int]:
        """From the head down, then turned round."""
        head = self.head_branchings[task]
        assert isinstance(head, Branching)
        branch = head.chosen()
        for branching in reversed(self.branchings):
            assert isinstance(branching, Branching)
            branch.append(branching.chosen()[branch[-1]])
        return branch[::-1]


def _check_arguments(
    stages: Sequence[MakeModule], n_nodes: int | None, temperature: float, warm_up: int
) -> None:
    check_list("stages", stages)
    if n_nodes is not None:
        check_number("n_nodes", n_nodes)
    check_number("warm_up", warm_up, least=0)
    if not temperature > 0:
        raise ValueError(f"`temperature` needs to be above 0: got {temperature}.")
