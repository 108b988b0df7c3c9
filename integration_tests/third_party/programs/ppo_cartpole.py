"""Proximal policy optimisation on CartPole in one file, as CleanRL writes it."""
import gymnasium
import numpy
import torch
from torch.distributions.categorical import Categorical

ENVIRONMENTS, LENGTH, EPOCHS, MINIBATCHES = 4, 32, 2, 4
torch.manual_seed(1)
environments = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * ENVIRONMENTS)


def layer(inputs, outputs, std=2 ** 0.5):
    made = torch.nn.Linear(inputs, outputs)
    torch.nn.init.orthogonal_(made.weight, std)
    torch.nn.init.constant_(made.bias, 0.0)
    return made


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = torch.nn.Sequential(layer(4, 64), torch.nn.Tanh(), layer(64, 64), torch.nn.Tanh(), layer(64, 1, 1.0))
        self.actor = torch.nn.Sequential(layer(4, 64), torch.nn.Tanh(), layer(64, 64), torch.nn.Tanh(), layer(64, 2, 0.01))

    def forward(self, seen, action=None):
        choice = Categorical(logits=self.actor(seen))
        action = choice.sample() if action is None else action
        return action, choice.log_prob(action), choice.entropy(), self.critic(seen)


agent = Agent().to("cuda")
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
shape = (LENGTH, ENVIRONMENTS)
seen = torch.zeros((*shape, 4)).cuda()
actions, logs, rewards, dones, values = (torch.zeros(shape).cuda() for _ in range(5))
now = torch.tensor(environments.reset(seed=1)[0]).cuda()
done = torch.zeros(ENVIRONMENTS).cuda()
for update in range(2):
    for t in range(LENGTH):
        seen[t], dones[t] = now, done
        with torch.no_grad():
            action, log, _, value = agent(now)
        values[t], actions[t], logs[t] = value.flatten(), action, log
        after, reward, ended, cut, _ = environments.step(action.cpu().numpy())
        rewards[t] = torch.tensor(reward, dtype=torch.float32).cuda()
        now, done = torch.tensor(after).cuda(), torch.tensor(numpy.logical_or(ended, cut), dtype=torch.float32).cuda()
    with torch.no_grad():
        following, advantages, last = agent(now)[3].reshape(-1), torch.zeros_like(rewards), 0
        for t in reversed(range(LENGTH)):
            alive = 1.0 - (done if t == LENGTH - 1 else dones[t + 1])
            delta = rewards[t] + 0.99 * (following if t == LENGTH - 1 else values[t + 1]) * alive - values[t]
            advantages[t] = last = delta + 0.99 * 0.95 * alive * last
        returns = advantages + values
    flat = [x.reshape(-1, *x.shape[2:]) for x in (seen, actions, logs, advantages, returns)]
    for _ in range(EPOCHS):
        for picked in torch.randperm(LENGTH * ENVIRONMENTS).cuda().chunk(MINIBATCHES):
            b_seen, b_action, b_log, b_advantage, b_return = (x[picked] for x in flat)
            _, log, entropy, value = agent(b_seen, b_action.long())
            ratio = (log - b_log).exp()
            kl = ((ratio - 1) - (log - b_log)).mean()
            b_advantage = (b_advantage - b_advantage.mean()) / (b_advantage.std() + 1e-8)
            policy = torch.max(-b_advantage * ratio, -b_advantage * ratio.clamp(0.8, 1.2)).mean()
            loss = policy - 0.01 * entropy.mean() + 0.5 * ((value.view(-1) - b_return) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print("update", update, "rewards", int(rewards.sum().item()), "kl finite", bool(torch.isfinite(kl)))
