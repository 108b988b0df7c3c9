#!/usr/bin/env python3
"""Which module is the model where nobody calls it: its methods call its parts, as a LightningModule's training_step does.

    roots_test.py [unittest arguments]     see programs.py for the environment
"""
import unittest

import programs

BEGIN = """
import torch
from torch import nn

class Trainer:
    def fit(self, model, epochs=2, batches=3, validate=0):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(epochs):
            model.train()
            for i in range(batches):
                optimizer.zero_grad()
                model.training_step(torch.ones(8, 16)).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for i in range(validate):
                    model.validation_step(torch.ones(10, 16))
"""
AUTOENCODER = BEGIN + """
class Metric(nn.Module):
    def forward(self, a, b):
        return (a - b).abs().mean()

class LitAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 4), nn.ReLU())
        self.decoder = nn.Linear(4, 16)
        self.loss = nn.MSELoss()
        self.metric = Metric()

    def __getattr__(self, name):
        # What a program has for names that nobody has set must not be asked.
        try:
            return super().__getattr__(name)
        except AttributeError:
            print("asked for", name)
            raise

    def shared(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, x):
        return self.loss(self.shared(x), x)

    def validation_step(self, x):
        return self.metric(self.shared(x), x)

Trainer().fit(LitAutoencoder(), validate=%d)
"""


def layers_of(report):
    return {(row["model"], row["layer"]) for row in report["rows"] if row["layer"]}


class Roots(programs.ForkedTestCase):
    def test_parts_are_layers_of_their_owner(self):
        report = self.profile(AUTOENCODER % 0)
        self.assertEqual(layers_of(report), {("LitAutoencoder", name)
                                             for name in ("encoder.0", "encoder.1", "decoder", "loss")})
        self.assertEqual((report["steps"], report["batch_size"]), (6, 8))
        self.assertEqual(self.report("--step-by", "forward")["steps"], 6)

    def test_its_validation_is_no_part_of_a_step(self):
        alone = self.profile(AUTOENCODER % 0)
        train, validation = self.training_and_validation(AUTOENCODER % 4)
        self.assertEqual((train["steps"], validation["steps"]), (6, 8))
        self.assertEqual({phase["phase"] for phase in validation["phases"]}, {"eval"})
        # Batches are made outside of the model.
        forward, expected = ({phase["phase"]: phase["time_ns"] for phase in report["phases"]}["forward"]
                             for report in (train, alone))
        self.assertEqual(forward, expected)

    def test_the_program_is_asked_nothing(self):
        result = self.run_program(AUTOENCODER % 1)
        self.assertNotIn("asked for", result.stdout)

    def test_parts_without_an_optimizer(self):
        report = self.profile(BEGIN + """
class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(16, 4), nn.Linear(16, 4)

    def score(self, x):
        return self.query(x) @ self.key(x).T

search = Search().eval()
with torch.no_grad():
    for _ in range(5):
        search.score(torch.ones(8, 16))
""")
        self.assertEqual(layers_of(report), {("Search", "query"), ("Search", "key")})
        self.assertEqual(report["steps"], 5)

    def test_forward_called_by_its_name(self):
        report = self.profile(BEGIN + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(self.first(x))

    def training_step(self, x):
        closure = lambda: self.forward(x)
        return closure().sum()

Trainer().fit(Net())
""")
        self.assertEqual(layers_of(report), {("Net", "first"), ("Net", "second")})

    def test_a_teacher_in_the_same_owner(self):
        train, validation = self.training_and_validation(BEGIN + """
class Distillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = nn.Linear(16, 4), nn.Linear(16, 4)

    def training_step(self, x):
        self.teacher.eval()
        with torch.no_grad():
            target = self.teacher(x)
        return (self.student(x) - target).pow(2).mean()

    def validation_step(self, x):
        return self.student(x).argmax(1)

Trainer().fit(Distillation(), validate=2)
""")
        self.assertEqual((train["steps"], validation["steps"]), (6, 4))
        self.assertEqual(layers_of(train), {("Distillation", "teacher"), ("Distillation", "student")})
        self.assertNotIn("eval", {phase["phase"] for phase in train["phases"]})

    def test_a_model_that_tries_a_part_while_it_is_made(self):
        report, dry_run = self.training_and_validation(BEGIN + """
class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(16, 8)
        self.measure()

    def measure(self):
        self.width = self.body(torch.zeros(1, 16)).shape[1]

    def forward(self, x):
        return self.body(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(self.backbone.width, 4)

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, x):
        return self(x).sum()

Trainer().fit(Net())
""")
        self.assertLessEqual({("Net", "backbone.body"), ("Net", "head")}, layers_of(report))
        self.assertNotIn("Backbone", {model for model, _ in layers_of(report)})
        self.assertEqual((report["steps"], dry_run["steps"]), (6, 1))

    def test_roots_of_functions_stay_roots(self):
        report = self.profile(BEGIN + """
class Encoder(nn.Sequential): pass
class Decoder(nn.Sequential): pass
def train(models):
    optimizer = torch.optim.SGD(models.parameters(), lr=0.01)
    for _ in range(3):
        models["decoder"](models["encoder"](torch.ones(8, 16))).sum().backward()
        optimizer.step()
train(nn.ModuleDict({"encoder": Encoder(nn.Linear(16, 4)), "decoder": Decoder(nn.Linear(4, 16))}))
""")
        self.assertEqual(layers_of(report), {("Encoder", "0"), ("Decoder", "0")})


if __name__ == "__main__":
    unittest.main()
