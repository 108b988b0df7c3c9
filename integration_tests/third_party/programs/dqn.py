"""Deep Q-learning with a replay buffer and a target network, on made-up transitions of Atari's shape."""
import torch
from counted import counted
from torch import nn


def network():
    return nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
                         nn.Conv2d(64, 64, 3, stride=1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
                         nn.Linear(512, 6)).cuda()


policy, target = network(), network()
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
for i in range(6):
    now, after = (torch.randint(256, (32, 4, 84, 84), dtype=torch.uint8).cuda() for _ in range(2))
    action, reward = torch.randint(6, (32, 1)).cuda(), torch.randn(32).cuda()
    with counted(i):
        with torch.no_grad():
            best = target(after / 255.0).max(1).values
            wanted = reward + 0.99 * best
        loss = nn.functional.smooth_l1_loss(policy(now / 255.0).gather(1, action).squeeze(), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for old, new in zip(target.parameters(), policy.parameters()):
        old.data.copy_(0.005 * new.data + 0.995 * old.data)
print("loss finite", bool(torch.isfinite(loss)))
