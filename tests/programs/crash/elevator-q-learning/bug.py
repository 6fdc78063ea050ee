import torch
from torch import nn
from replay import Replay

torch.manual_seed(31)
FLOORS = 6


def features(here, call):
    return torch.cat([nn.functional.one_hot(torch.tensor(f), FLOORS) for f in (here, call)]).float()


def ride(here, call, action):
    here = min(max(here + action - 1, 0), FLOORS - 1)
    return here, 1.0 if here == call else -0.1


def learn(net, target, memory, optim, size=32, discount=0.9):
    state, action, reward, after, done = memory.draw(size)
    with torch.no_grad():
        goal = reward + discount * (1 - done) * target(after).max(1).values
    guess = net(state).gather(1, action.unsqueeze(1)).squeeze(1)
    loss = nn.functional.huber_loss(guess, goal)
    optim.zero_grad()
    loss.backward()
    optim.step()
    return loss.item()


net = nn.Sequential(nn.Linear(2 * FLOORS, 32), nn.ReLU(), nn.Linear(32, 3))
target = nn.Sequential(nn.Linear(2 * FLOORS, 32), nn.ReLU(), nn.Linear(32, 3))
target.load_state_dict(net.state_dict())
memory, optim = Replay(500, seed=31), torch.optim.Adam(net.parameters(), lr=3e-3)
for trip in range(60):
    here, call = (int(v) for v in torch.randint(FLOORS, (2,)))
    length = 0
    for t in range(10):
        state = features(here, call)
        greedy = int(net(state).argmax())
        action = greedy if torch.rand(()) > 0.3 else int(torch.randint(3, ()))
        here, reward = ride(here, call, action)
        memory.add(state, action, reward, features(here, call), here == call)
        length += 1
        if here == call:
            break
    if len(memory) > 100:
        loss = learn(net, target, memory, optim)
        if trip % 10 == 0:
            print(f"trip {trip} loss {loss:.4f}")
            target.load_state_dict(net.state_dict())
    elif trip % 5 == 0:
        print(f"trip {trip} length {length}")
