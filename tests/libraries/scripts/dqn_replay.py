"""Q-learning with a replay memory, a slowly moving target network, masks of ends, and Huber loss."""
# ruff: noqa

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

random.seed(1)
rng = np.random.default_rng(17)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
BATCH_SIZE, GAMMA, TAU, LR = 12, 0.95, 0.1, 1e-2


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, n_actions)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


policy_net, target_net = DQN(4, 2), DQN(4, 2)
for p in policy_net.parameters():
    p.data = torch.from_numpy(rng.standard_normal(tuple(p.shape))).float() * 0.3
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
memory = ReplayMemory(60)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    non_final = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    values = policy_net(state_batch).gather(1, action_batch)
    next_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_values[non_final_mask] = target_net(non_final).max(1).values
    loss = nn.SmoothL1Loss()(values, ((next_values * GAMMA) + reward_batch).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss


for episode in range(4):
    state = torch.tensor(rng.standard_normal(4), dtype=torch.float32).unsqueeze(0)
    for t in range(10):
        if random.random() > 0.3:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randint(0, 1)]], dtype=torch.long)
        reward = torch.tensor([float(state[0, action.item()])])
        following = None if t == 9 else torch.tensor(rng.standard_normal((1, 4)), dtype=torch.float32)
        memory.push(state, action, following, reward)
        state = following
        loss = optimize_model()
        target, policy = target_net.state_dict(), policy_net.state_dict()
        for key in policy:
            target[key] = policy[key] * TAU + target[key] * (1 - TAU)
        target_net.load_state_dict(target)
    print(episode, None if loss is None else "%.5f" % loss.item(), "%.4f" % target_net.layer3.weight.norm().item())
