"""The example programs work on the torch at hand, on the CPU, and say the same thing twice.

    examples_test.py [unittest arguments]
RFINJECT_PYTHON names the interpreter (default: the one that runs this file).
"""
import atexit
import os
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from prefork import Prefork  # noqa: E402

PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
EXAMPLES = HERE.parents[1] / "examples"

# With one thread, sums are in one order on any machine. Gloo would ask for the address of the host's name; the
# test must also pass on a machine that has none.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
FORKED = []  # the process in whose children programs run


def run(script, *arguments, expect=0):
    """stdout of a run; fails when the exit code is not `expect`."""
    if not FORKED:
        FORKED.append(Prefork([PYTHON], ENVIRONMENT, ("torchvision",)))
        atexit.register(FORKED[0].close)
    result = FORKED[0].run(str(EXAMPLES / script), *map(str, arguments))[1]
    if result.returncode != expect:
        raise AssertionError(f"{script} {arguments}: exit code {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def small(arch, *more, image_size=64, images=4):
    return ["-a", arch, "--dummy", "--dummy-images", images, "-b", 2, "--epochs", 1, "-p", 1, "-j", 0, "--seed", 3,
            "--image-size", image_size, "--num-classes", 10, "--lr", 0.001, *more]


class ImageNet(unittest.TestCase):
    def test_same_seed_same_text(self):
        first = run("imagenet/main.py", *small("resnet18", "-j", 2))
        second = run("imagenet/main.py", *small("resnet18", "-j", 2))
        self.assertEqual(first, second)
        self.assertEqual(len(re.findall(r"^Epoch \[0\]\[[01]/2\]  Loss \d\.\d{4}e[+-]\d\d ", first, flags=re.M)), 2,
                         first)
        self.assertRegex(first, r"(?m)^Test  Loss ")

    def test_other_seed_other_text(self):
        arguments = small("squeezenet1_1")
        other = [4 if value == 3 else value for value in arguments]
        self.assertNotEqual(run("imagenet/main.py", *arguments), run("imagenet/main.py", *other))

    def test_models_of_every_shape(self):
        # These have two outputs beside the main one, one output beside it, a patch embedding, no batch norm, and
        # grouped convolutions.
        for arch, size in [("googlenet", 64), ("inception_v3", 299), ("vit_b_32", 64), ("squeezenet1_0", 64),
                           ("mobilenet_v3_small", 64)]:
            with self.subTest(arch=arch):
                self.assertIn("Epoch [0][0/1]", run("imagenet/main.py", *small(arch, image_size=size, images=2)))

    def test_mixed_precision_runs(self):
        self.assertRegex(run("imagenet/main.py", *small("resnet18", "--amp", images=2)), r"Loss \d")

    def test_evaluate_only(self):
        text = run("imagenet/main.py", *small("resnet18", "--evaluate"))
        self.assertNotIn("Epoch", text)
        self.assertIn("Test  Loss", text)

    def test_two_processes(self):
        # As torchrun would start them, without its own and their imports of torch.
        text = run(HERE.parent / "forked_ranks.py", 2, EXAMPLES / "imagenet/main.py", *small("resnet18"))
        self.assertIn("2 processes", text)
        self.assertEqual(text.count("Test  Loss"), 1)  # only rank 0 speaks

    def test_checkpoint_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "checkpoint")
            run("imagenet/main.py", *small("squeezenet1_1", "--save", path, images=2))
            text = run("imagenet/main.py", *small("squeezenet1_1", "--resume", path, "--epochs", 2, images=2))
        self.assertIn("Epoch [1]", text)
        self.assertNotIn("Epoch [0]", text)

    def test_image_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "make.py")
            program.write_text("import os, sys, torch\nfrom torchvision.utils import save_image\n"
                               "for part in ('train', 'val'):\n for label in ('cat', 'dog'):\n"
                               "  path = os.path.join(sys.argv[1], part, label)\n  os.makedirs(path)\n"
                               "  save_image(torch.rand(3, 80, 80), os.path.join(path, '0.png'))\n")
            run(program, folder)
            text = run("imagenet/main.py", folder, "-a", "squeezenet1_1", "-b", 1, "-j", 0, "--epochs", 1,
                       "--image-size", 64, "--seed", 1)
        self.assertIn("Epoch [0][0/2]", text)

    def test_unknown_model_is_a_usage_error(self):
        run("imagenet/main.py", "-a", "resnet19", "--dummy", expect=2)


class Others(unittest.TestCase):
    def test_inference(self):
        text = run("inference.py", "-a", "squeezenet1_1", "-b", 1, "--batches", 2, "--image-size", 64)
        self.assertEqual(len(text.splitlines()), 2)

    def test_gan_and_tiny_layers_repeat(self):
        for script, arguments in [("gan.py", ["--steps", 2, "-b", 2, "--width", 8]),
                                  ("tiny_layers.py", ["--steps", 2, "--layers", 20])]:
            with self.subTest(script=script):
                text = run(script, *arguments)
                self.assertEqual(len(text.splitlines()), 2)
                self.assertEqual(text, run(script, *arguments))


if __name__ == "__main__":
    unittest.main()
