import torch
from torch import nn
from episodic_fixed import Dictionary

torch.manual_seed(30)


class Corridor:
    """Walk right to the reward; the observation is a noisy one-hot place."""

    def __init__(self, length=8):
        self.length, self.place = length, 0

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.place), self.length) + 0.05 * torch.randn(self.length)

    def move(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        done = self.place == self.length - 1
        return (1.0 if done else -0.02), done


class Agent(nn.Module):
    def __init__(self, length=8, dim=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(length, 16), nn.Tanh(), nn.Linear(16, dim))
        self.memory = [Dictionary() for _ in range(2)]

    def values(self, key):
        return torch.stack([m.lookup(key) for m in self.memory])


def episode(agent, optim, explore):
    world, losses = Corridor(), []
    for t in range(60):
        key = agent.encoder(world.observe())
        value = agent.values(key)
        action = int(torch.randint(2, ())) if torch.rand(()) < explore else int(value.argmax())
        reward, done = world.move(action)
        with torch.no_grad():
            future = 0.0 if done else agent.values(agent.encoder(world.observe())).max()
        goal = reward + 0.95 * future
        if len(agent.memory[action]) >= 5:
            loss = (value[action] - goal) ** 2
            optim.zero_grad()
            loss.backward()
            optim.step()
            losses.append(loss.item())
        agent.memory[action].write(key, goal)
        if done:
            break
    return sum(losses) / max(len(losses), 1), t + 1


agent = Agent()
optim = torch.optim.Adam(agent.parameters(), lr=1e-3)
for n in range(12):
    loss, steps = episode(agent, optim, explore=1.0 - n / 12)
    if n % 3 == 0:
        print(f"episode {n} loss {loss:.4f} steps {steps}")
