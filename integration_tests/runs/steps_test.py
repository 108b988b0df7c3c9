#!/usr/bin/env python3
"""What a step is in training loops of every kind, and that validation is part of none.

    steps_test.py [unittest arguments]     see programs.py for the environment
"""
import json
import signal
import subprocess
import unittest

import programs

BEGIN = """
import torch
from torch import nn

def model(*sizes):
    return nn.Sequential(*[nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])

def optimizer(*models, kind=torch.optim.SGD):
    return kind([p for m in models for p in m.parameters()], lr=0.01)
"""
GAN = BEGIN + """
class Generator(nn.Sequential): pass
class Discriminator(nn.Sequential): pass
generator, discriminator = Generator(nn.Linear(4, 16)), Discriminator(nn.Linear(16, 1))
g, d = optimizer(generator, kind=torch.optim.Adam), optimizer(discriminator, kind=torch.optim.Adam)
for i in range(5):
    d.zero_grad()
    with torch.no_grad():
        fake = generator(torch.ones(8, 4))
    (discriminator(torch.ones(8, 16)).mean() - discriminator(fake).mean()).backward()
    d.step()
    g.zero_grad()
    discriminator(generator(torch.ones(8, 4))).mean().backward()
    g.step()
"""
VALIDATION = BEGIN + """
net = model(16, 64, 4)
sgd = optimizer(net)
for epoch in range(2):
    net.train()
    for _ in range(3):
        sgd.zero_grad()
        net(torch.ones(4, 16)).sum().backward()
        sgd.step()
    %s
    with torch.no_grad():
        for _ in range(5):
            net(torch.ones(10, 16)).argmax(1)
"""
TRAINING_ALONE = BEGIN + """
net = model(16, 64, 4)
sgd = optimizer(net)
for _ in range(6):
    sgd.zero_grad()
    net(torch.ones(4, 16)).sum().backward()
    sgd.step()
"""


class Steps(programs.ForkedTestCase):
    def test_an_iteration_of_two_optimizers_is_one_step(self):
        report = self.profile(GAN)
        self.assertEqual(report["steps"], 5)
        self.assertIn("5 iterations of 2 optimizer steps", " ".join(self.cli("report").stdout.split()))
        self.assertEqual(self.report("--step-by", "optimizer")["steps"], 10)
        self.assertEqual(self.report("--step-by", "forward")["steps"], 25)
        row = json.loads(self.cli("runs", "--format", "json").stdout)["runs"][0]
        self.assertEqual(row["steps"], 5)
        # Samples that a generator makes for its discriminator are training, not validation.
        self.assertEqual({phase["phase"] for phase in report["phases"]} & {"eval"}, set())
        # Merging keeps this.
        self.cli("merge", "-o", "all.rfx")
        self.assertEqual(self.report("all.rfx")["steps"], 5)

    def test_a_critic_that_steps_more_often(self):
        report = self.profile(BEGIN + """
class Critic(nn.Sequential): pass
critic, generator = Critic(nn.Linear(16, 1)), model(4, 16)
c, g = optimizer(critic), optimizer(generator)
for i in range(4):
    for _ in range(3):
        critic(generator(torch.ones(8, 4)).detach()).mean().backward()
        c.step()
    critic(generator(torch.ones(8, 4))).mean().backward()
    g.step()
""")
        # Both optimizers are of one class, and the calls before them are alike.
        self.assertEqual(report["steps"], 4)
        self.assertEqual(self.report("--step-by", "optimizer")["steps"], 16)

    def test_optimizers_of_one_class_in_turns(self):
        report = self.profile(BEGIN + """
net = model(16, 16, 4)
halves = [optimizer(net[0], kind=torch.optim.Adam), optimizer(net[1], kind=torch.optim.Adam)]
for i in range(10):
    net(torch.ones(8, 16)).sum().backward()
    halves[i % 2].step()
""")
        self.assertEqual(report["steps"], 5)
        self.cli("merge", "-o", "all.rfx")
        self.assertEqual(self.report("all.rfx")["steps"], 5)

    def test_an_optimizer_made_for_each_iteration(self):
        # While the next one is made the last one lives, so that two addresses take turns.
        report = self.profile(BEGIN + """
net = model(16, 4)
for _ in range(8):
    adam = optimizer(net, kind=torch.optim.Adam)
    net(torch.ones(8, 16)).sum().backward()
    adam.step()
""")
        self.assertEqual(report["steps"], 8)

    def test_an_optimizer_is_not_kept_alive(self):
        result = self.run_program(BEGIN + """
import gc, weakref
net = model(16, 4)
adam = optimizer(net, kind=torch.optim.Adam)
for _ in range(3):
    net(torch.ones(8, 16)).sum().backward()
    adam.step()
gone = weakref.ref(adam)
del adam
gc.collect()
print("gone", gone() is None)
""")
        self.assertIn("gone True", result.stdout)

    def test_a_step_that_a_loss_scaler_skips_is_a_step(self):
        loop = BEGIN + """
net = model(16, 64, 4)
sgd, scaler = optimizer(net), torch.amp.GradScaler("cpu")
for step in range(8):
    sgd.zero_grad()
    for _ in range(2):
        loss = net(torch.ones(4, 16)).sum()
        scaler.scale(loss * (float("inf") if step in %s else 1)).backward()
    scaler.step(sgd)
    scaler.update()
    if step == 4:
        with torch.no_grad():
            net.eval()(torch.ones(10, 16))
            net.train()
"""
        asked = [programs.PYTHON, "-c", "import torch; print(hasattr(torch.amp, 'GradScaler'))"]
        if "True" not in subprocess.run(asked, capture_output=True, text=True, check=True).stdout:
            self.skipTest("this torch has no loss scaler on the CPU")

        def facts(report):
            flop = {phase["phase"]: phase["flop"] for phase in report["phases"]}
            return report["steps"], report["batch_size"], flop["backward"]

        plain, _ = self.training_and_validation(loop % "()")
        self.assertEqual(plain["steps"], 8)
        for skipped in "(0, 1, 4)", "(3, 7)":
            with self.subTest(skipped):
                training, validation = self.training_and_validation(loop % skipped)
                self.assertEqual(facts(training), facts(plain))
                self.assertEqual(validation["steps"], 1)

    def test_accumulation_is_one_step(self):
        report = self.profile(BEGIN + """
net = model(16, 4)
sgd = optimizer(net)
for i in range(6):
    for _ in range(4 if i < 5 else 2):
        net(torch.ones(8, 16)).sum().backward()
    sgd.step()
    sgd.zero_grad()
""")
        self.assertEqual((report["steps"], self.report("--step-by", "forward")["steps"]), (6, 22))

    def test_a_closure_is_one_step(self):
        report = self.profile(BEGIN + """
net = model(16, 4)
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=3)
def closure():
    lbfgs.zero_grad()
    loss = (net(torch.ones(8, 16)) ** 2).sum()
    loss.backward()
    return loss
for _ in range(4):
    lbfgs.step(closure)
""")
        self.assertEqual(report["steps"], 4)

    def test_several_models_and_alternating_optimizers(self):
        report = self.profile(BEGIN + """
encoder, decoder = model(16, 4), model(4, 16)
a, b = optimizer(encoder), optimizer(decoder, kind=torch.optim.Adam)
for _ in range(4):
    decoder(encoder(torch.ones(8, 16))).sum().backward()
    a.step()
    b.step()
""")
        self.assertEqual(report["steps"], 4)
        self.assertEqual(self.report("--step-by", "optimizer")["steps"], 8)


class Validation(programs.ForkedTestCase):
    def check(self, mode):
        alone = self.profile(TRAINING_ALONE)
        train, validation = self.training_and_validation(VALIDATION % mode)
        self.assertEqual((train["steps"], validation["steps"]), (6, 10))
        self.assertEqual({phase["phase"] for phase in validation["phases"]}, {"eval"})
        self.assertNotIn("eval", {phase["phase"] for phase in train["phases"]})
        forward = {phase["phase"]: phase for phase in train["phases"]}["forward"]
        expected = {phase["phase"]: phase for phase in alone["phases"]}["forward"]
        self.assertEqual((forward["time_ns"], forward["model_flop"], forward["launches"]),
                         (expected["time_ns"], expected["model_flop"], expected["launches"]))
        sweep = json.loads(self.cli("report", "--by", "run", "--format", "json").stdout)["runs"]
        self.assertEqual({(row["mode"], row["steps"], row["samples"]) for row in sweep},
                         {("training", 6, 24), ("inference", 10, 100)})
        self.assertIn("Validation: 10 batches of 10", " ".join(self.cli("report").stdout.split()))
        self.assertIn("10 batches of validation", " ".join(self.cli("report", "--validation").stdout.split()))
        self.cli("report", "--validation", "--by", "wait", expect=2)
        self.assertEqual([a for report in (train, validation) for a in report["alarms"]], [])

    def test_is_part_of_no_step(self):
        self.check("net.eval()")

    def test_of_a_program_that_forgot_eval(self):
        self.check("pass")

    def test_survives_merging(self):
        whole = self.profile(VALIDATION % "net.eval()")["reports"]
        self.cli("merge", "-o", "all.rfx")
        self.cli("merge", "all.rfx", "-o", "again.rfx")
        for name in ("all.rfx", "again.rfx"):
            merged = self.report(name)["reports"]
            self.assertEqual([r["steps"] for r in merged], [r["steps"] for r in whole])
            self.assertEqual([r["summary"]["time_ns"] for r in merged], [r["summary"]["time_ns"] for r in whole])

    def test_a_program_that_only_infers_has_a_forward(self):
        report = self.profile(BEGIN + """
net = model(16, 4).eval()
unused = optimizer(net)
with torch.no_grad():
    for _ in range(3):
        net(torch.ones(8, 16))
""")
        self.assertIn("forward", {phase["phase"] for phase in report["phases"]})
        self.assertNotIn("eval", {phase["phase"] for phase in report["phases"]})
        self.assertEqual(report["steps"], 3)

    def test_a_teacher_is_part_of_the_step(self):
        report = self.profile(BEGIN + """
class Teacher(nn.Sequential): pass
teacher, student = Teacher(nn.Linear(16, 4)).eval(), model(16, 4)
sgd = optimizer(student)
for _ in range(4):
    with torch.no_grad():
        target = teacher(torch.ones(8, 16))
    (student(torch.ones(8, 16)) - target).pow(2).sum().backward()
    sgd.step()
""")
        self.assertEqual(report["steps"], 4)
        self.assertNotIn("eval", {phase["phase"] for phase in report["phases"]})


ENDS_BY_ABORT = TRAINING_ALONE + """
import atexit, os, threading
%s
atexit.register(os.abort)
"""


class End(programs.TestCase):
    def check(self, before):
        # What is written by the clock is written about once a second: these steps are over before the first time.
        program = self.write("train.py", ENDS_BY_ABORT % before)
        result = self.cli("--estimate", programs.GPU, programs.PYTHON, program, expect=None)
        self.assertEqual(result.returncode, -signal.SIGABRT, result.stderr)
        self.assertEqual(self.report()["steps"], 6)

    def test_by_a_signal_in_an_exit_handler(self):
        self.check("")

    def test_where_a_thread_writes(self):
        self.check("threading.Thread(target=threading.Event().wait, daemon=True).start()")


if __name__ == "__main__":
    unittest.main()
