"""REINFORCE and actor-critic on a toy world, with distributions and saved log probabilities."""
# ruff: noqa

import argparse
from collections import deque, namedtuple
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
rng = np.random.default_rng(4)
parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.99)
args = parser.parse_args()


class World:
    def reset(self):
        self.state, self.t = rng.standard_normal(4), 0
        return self.state, {}

    def step(self, action):
        self.t += 1
        self.state = 0.9 * self.state + (action - 0.5) * 0.3 + rng.standard_normal(4) * 0.01
        return self.state, float(-np.abs(self.state).sum()), self.t >= 8, False, {}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
with torch.no_grad():
    for name, p in model.named_parameters():
        p.copy_(torch.tensor(rng.standard_normal(tuple(p.shape)), dtype=torch.float) * 0.3)
optimizer = optim.Adam(model.parameters(), lr=3e-2)
eps = np.finfo(np.float32).eps.item()
env, recent = World(), deque(maxlen=5)


def select_action(state):
    probs, value = model(torch.from_numpy(state).float())
    m = Categorical(probs)
    action = torch.tensor(int(rng.random() > probs[0].item()))
    model.saved_actions.append(SavedAction(m.log_prob(action), value))
    return action.item(), m.entropy()


for episode in count(1):
    state, _ = env.reset()
    done, entropy = False, 0
    while not done:
        action, e = select_action(state)
        entropy = entropy + e
        state, reward, done, _, _ = env.step(action)
        model.rewards.append(reward)
    R, returns = 0, []
    for r in model.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns):
        policy_losses.append(-log_prob * (R - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum() - 0.01 * entropy
    loss.backward()
    optimizer.step()
    recent.append(sum(model.rewards))
    print("Episode {} loss {:.4f} reward {:.4f}".format(episode, loss.item(), np.mean(recent)))
    del model.rewards[:]
    del model.saved_actions[:]
    if episode == 6:
        break
n = Normal(torch.tensor([0.5]), torch.tensor([2.0]))
print(n.log_prob(torch.tensor([1.0])), n.entropy(), torch.distributions.kl_divergence(n, Normal(0.0, 1.0)))
