"""What is offered for a second backward: its title, its lines, and that it runs."""

import pytest

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.diagnose import diagnose
from tests.doctor.conftest import Programs

CASES: dict[str, tuple[str, str, str, str]] = {
    "rows of a table": (
        "GW101",
        """
        ids, embed = torch.arange(4), nn.Embedding(4, 2)
        table = embed(ids)
        for step in range(3):
            table[step].exp().sum().backward()
        """,
        "compute `table` with the batch",
        "    embed(ids[step]).exp().sum().backward()\n",
    ),
    "several lines above the loop": (
        "GW101",
        """
        weight = torch.ones(2, requires_grad=True)
        half = weight.exp()
        scale = half.square()
        for step in range(3):
            (scale * step).sum().backward()
        """,
        "compute `scale` for each backward",
        "for step in range(3):\n    half = weight.exp()\n    scale = half.square()\n",
    ),
    "closure": (
        "GW101",
        """
        model = nn.Linear(2, 1)
        optimizer = torch.optim.LBFGS(model.parameters())
        loss = model(torch.ones(1, 2)).square().sum()

        def closure():
            optimizer.zero_grad()
            loss.backward()
            return loss

        optimizer.step(closure)
        """,
        "compute `loss` for each backward",
        "def closure():\n    loss = model(torch.ones(1, 2)).square().sum()\n",
    ),
    "one loss twice": (
        "GW101",
        """
        loss = nn.Linear(2, 1)(torch.ones(1, 2)).square().sum()
        loss.backward()
        loss.backward()
        """,
        "keep the graph for the second call",
        "loss.backward(retain_graph=True)\nloss.backward()\n",
    ),
    "lru_cache": (
        "GW101",
        """
        import functools
        decay = torch.ones(1, requires_grad=True)

        @functools.lru_cache(maxsize=4)
        def kernel(length):
            return torch.exp(-decay * torch.arange(length))

        for step in range(3):
            kernel(4).square().sum().backward()
        """,
        "call the function each time",
        "\ndef kernel(length):\n",
    ),
    "cached_property": (
        "GW101",
        """
        import functools

        class Prior(nn.Module):
            def __init__(self):
                super().__init__()
                self.log_scale = nn.Parameter(torch.zeros(3))

            @functools.cached_property
            def scale(self):
                return self.log_scale.exp()

        prior = Prior()
        for step in range(3):
            prior.scale.log().sum().backward()
        """,
        "make `scale` a property: computed at each use",
        "    @property\n    def scale(self):\n",
    ),
    "cached block": (
        "GW101",
        """
        from torch.nn.utils import parametrize, parametrizations

        net = parametrizations.weight_norm(nn.Linear(2, 2))
        with parametrize.cached():
            for step in range(3):
                net(torch.ones(1, 2)).sum().backward()
        """,
        "open the cached block inside the loop",
        "for step in range(3):\n    with parametrize.cached():\n",
    ),
    "dataset of embedded rows": (
        "GW101",
        """
        embed = nn.Embedding(4, 2)

        class Rows(torch.utils.data.Dataset):
            def __init__(self, ids):
                self.rows = embed(ids)

            def __getitem__(self, index):
                return self.rows[index]

        rows = Rows(torch.arange(4))
        for step in range(3):
            rows[step].exp().sum().backward()
        """,
        "compute `rows.rows` at each use",
        "        self.ids = ids\n\n    @property\n    def rows(self):\n"
        "        return embed(self.ids)\n",
    ),
    "cache that is reset by a method": (
        "GW101",
        """
        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))
                self.kept = {}

            def forget(self):
                self.kept = {}

            def forward(self, key):
                try:
                    return self.kept[key]
                except KeyError:
                    self.kept[key] = self.weight.exp()
                return self.kept[key]

        table = Table()
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
        for step in range(3):
            table("a").log().sum().backward()
            optimizer.step()
        """,
        "reset `kept` after each step",
        "    optimizer.step()\n    table.forget()\n",
    ),
    "state in a list of modules": (
        "GW102",
        """
        class Neuron(nn.Module):
            def __init__(self):
                super().__init__()
                self.map, self.charge = nn.Linear(2, 2), torch.zeros(1, 2)

            def forward(self, x):
                self.charge = (self.map(x) + 0.9 * self.charge).tanh()
                return self.charge

        net = nn.Sequential(Neuron(), Neuron())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            loss = sum(net(torch.ones(1, 2)).sum() for time in range(3))
            loss.backward()
            optimizer.step()
        """,
        "detach `self.charge` after each step",
        '    for part in net.modules():\n        if hasattr(part, "charge"):\n'
        "            part.charge = part.charge.detach()\n",
    ),
    "state with a method that forgets": (
        "GW102",
        """
        class Neuron(nn.Module):
            def __init__(self):
                super().__init__()
                self.map, self.charge = nn.Linear(2, 2), None

            def reset(self):
                self.charge = None

            def forward(self, x):
                now = self.map(x)
                self.charge = now if self.charge is None else (now + self.charge).tanh()
                return self.charge

        neuron = Neuron()
        optimizer = torch.optim.SGD(neuron.parameters(), lr=0.1)
        for step in range(3):
            loss = sum(neuron(torch.ones(1, 2)).sum() for time in range(3))
            loss.backward()
            optimizer.step()
        """,
        "forget `self.charge` after each step",
        "    optimizer.step()\n    neuron.reset()\n",
    ),
    "state in a dict": (
        "GW102",
        """
        cell, memory = nn.RNNCell(2, 2), {"h": torch.zeros(1, 2)}

        def forward(x):
            memory["h"] = cell(x, memory["h"])
            return memory["h"].exp()

        for step in range(3):
            forward(torch.ones(1, 2)).sum().backward()
        """,
        "start each step from the value of `memory['h']` only",
        '    memory["h"] = cell(x, memory["h"].detach())\n',
    ),
    "state read on two lines": (
        "GW102",
        """
        class Cell(nn.Module):
            def __init__(self):
                super().__init__()
                self.map = nn.Linear(2, 2)
                self.register_buffer("state", torch.zeros(1, 2))

            def forward(self, x):
                fresh = self.map(x + self.state)
                self.state = self.state.add(fresh).tanh()
                return self.state

        cell = Cell()
        for step in range(3):
            cell(torch.ones(1, 2)).sum().backward()
        """,
        "start each step from the value of `self.state` only",
        "        self.state = self.state.detach()\n        fresh = self.map(x + self.state)\n",
    ),
    "pair of states": (
        "GW102",
        """
        def train(cell, steps):
            state = None
            for step in range(steps):
                state = cell(torch.ones(1, 2), state)
                (state[0] * state[1]).sum().backward()

        train(nn.LSTMCell(2, 3), 3)
        """,
        "start each step from the value of `state` only",
        "state = tuple(part.detach() for part in state) if state is not None else None\n",
    ),
    "detach whose result is dropped": (
        "GW102",
        """
        cell, state = nn.RNNCell(2, 2), torch.zeros(1, 2)
        for step in range(3):
            state.detach()
            state = cell(torch.ones(1, 2), state)
            state.exp().sum().backward()
        """,
        "keep the result of `state.detach()`",
        "    state = state.detach()\n",
    ),
    "helper": (
        "GW102",
        """
        def settle(state):
            return state

        cell, state = nn.RNNCell(2, 2), torch.zeros(1, 2)
        for step in range(3):
            state = cell(torch.ones(1, 2), state)
            state.exp().sum().backward()
            state = settle(state)
        """,
        "let the helper return the value only",
        "    return state.detach()\n",
    ),
    "running total": (
        "GW102",
        """
        weight, total = torch.ones(2, requires_grad=True), 0.0
        for step in range(3):
            loss = weight.square().sum()
            total = total + loss
            total.backward()
        """,
        "call backward on the new loss only",
        "    total = total + loss.detach()\n    loss.backward()\n",
    ),
    "bank of keys": (
        "GW102",
        """
        encode, bank = nn.Linear(2, 2), []
        for step in range(3):
            key = encode(torch.ones(1, 2)).tanh()
            past = torch.stack(bank).sum() if bank else 0.0
            (key.sum() + past).backward()
            bank.append(key)
        """,
        "put only the value into `bank`",
        "    bank.append(key.detach())\n",
    ),
    "list of losses": (
        "GW103",
        """
        shared = nn.Linear(2, 2)(torch.ones(1, 2)).exp()
        losses = [shared.sum(), shared.square().sum()]
        for loss in losses:
            loss.backward()
        """,
        "add the losses and call backward once",
        "sum(losses).backward()\n",
    ),
    "losses that are logged": (
        "GW103",
        """
        shared, log = nn.Linear(2, 2)(torch.ones(1, 2)).exp(), []
        for loss in (shared.sum(), shared.square().sum()):
            loss.backward()
            log.append(loss.item())
        """,
        "add the losses and call backward once",
        "sum(losses).backward()\nfor loss in losses:\n    log.append(loss.item())\n",
    ),
    "a loop that makes losses": (
        "GW103",
        """
        trunk, heads = nn.Linear(2, 3), nn.ModuleList(nn.Linear(3, 1) for _ in range(3))
        for step in range(2):
            shared = trunk(torch.ones(1, 2)).tanh()
            for head in heads:
                loss = head(shared).sum()
                loss.backward()
        """,
        "add the losses and call backward once",
        "        total = total + loss\n    total.backward()\n",
    ),
    "two statements": (
        "GW103",
        """
        for step in range(2):
            shared = nn.Linear(2, 2)(torch.ones(1, 2)).exp()
            one = shared.sum()
            one.backward()
            two = shared.square().sum()
            two.backward()
        """,
        "add the losses and call backward once",
        "    (one + two).backward()\n",
    ),
    "fake": (
        "GW103",
        """
        maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
        makers = torch.optim.SGD(maker.parameters(), lr=0.1)
        judges = torch.optim.SGD(judge.parameters(), lr=0.1)
        for step in range(3):
            fake = maker(torch.ones(1, 2))
            judged = judge(fake).sum()
            judged.backward()
            judges.step()
            judge(fake).square().sum().backward()
            makers.step()
        """,
        "give the first loss the value of `fake` only",
        "    judged = judge(fake.detach()).sum()\n",
    ),
    "slope": (
        "GW103",
        """
        net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        for step in range(2):
            x = torch.ones(1, 2, requires_grad=True)
            y = net(x).sum()
            slope, = torch.autograd.grad(y, x)
            loss = slope.sum() + y
            loss.backward()
        """,
        "make the gradient itself differentiable",
        "torch.autograd.grad(y, x, create_graph=True)\n",
    ),
    "lists in a loop": (
        "GW104",
        """
        policy, chances, rewards, history = nn.Linear(2, 1), [], [], []
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for episode in range(3):
            chances.append(policy(torch.ones(2)).exp())
            rewards.append(1.0)
            gains = torch.tensor(rewards)
            loss = (torch.stack(chances).sum(1) * gains).sum()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        assert len(history) == 3
        """,
        "empty `chances` and `rewards` when the step is over",
        "    optimizer.step()\n    chances.clear()\n    rewards.clear()\n",
    ),
    "lists of an object": (
        "GW104",
        """
        class Agent:
            def __init__(self):
                self.policy = nn.Linear(2, 1)
                self.chances, self.rewards = [], []

            def act(self):
                self.chances.append(self.policy(torch.ones(2)).exp())
                self.rewards.append(1.0)

            def learn(self):
                loss = sum(c.sum() * r for c, r in zip(self.chances, self.rewards))
                loss.backward()
                return loss.item()

        agent = Agent()
        for episode in range(3):
            agent.act()
            agent.learn()
        """,
        "empty `self.chances` and `self.rewards` when the step is over",
        "        self.chances.clear()\n        self.rewards.clear()\n        return result\n",
    ),
}


@pytest.mark.parametrize(("code", "text", "title", "lines"), CASES.values(), ids=CASES)
def test_first_fix_is_this_and_it_runs(
    programs: Programs, code: str, text: str, title: str, lines: str
) -> None:
    found = explained(programs, text)

    assert (found.code, found.fixes[0].title) == (code, title)
    assert lines in programs.repaired(found.fixes[0])


@pytest.mark.parametrize("name", ["list of losses", "two statements"])
def test_the_graph_may_be_kept_instead(programs: Programs, name: str) -> None:
    found = explained(programs, CASES[name][1])

    assert found.fixes[1].title == "keep the graph, if each gradient is needed by itself"
    assert "backward(retain_graph=True)" in programs.repaired(found.fixes[1])


FIXED_TABLE = """
    embed, head = nn.Embedding(4, 2), nn.Linear(2, 1)
    table = embed(torch.arange(4))
    for step in range(3):
        {}.sum().backward()
"""


def test_a_table_may_be_kept_fixed_where_something_else_trains(programs: Programs) -> None:
    found = explained(programs, FIXED_TABLE.format("head(table[step])"))

    assert found.fixes[1].title == "keep `table` fixed, if it is not meant to train"
    assert "table = embed(torch.arange(4)).detach()\n" in programs.repaired(found.fixes[1])


def test_a_table_is_not_fixed_where_nothing_would_train_then(programs: Programs) -> None:
    found = explained(programs, FIXED_TABLE.format("table[step].exp()"))

    assert len(found.fixes) == 1


def explained(programs: Programs, text: str) -> Diagnostic:
    failures: list[BaseException] = []
    found = diagnose(programs.crash(text), failures.append)
    assert (failures, len(found)) == ([], 1)
    return found[0]
