"""The command line of scripts/gpu_probe."""
import argparse
import pathlib
import sys

from probe.blocks import BLOCKS
from probe.machine import ensure_built, facts, no_gpu
from probe.run import ROOT, NotAnswered, Probe


def main(description):
    """Exit code of the command; DESCRIPTION is what --help says."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=description)
    parser.add_argument("--blocks", default=",".join(BLOCKS))
    parser.add_argument("--out", default="gpu-probe-out")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--gpu", default="H100-SXM5-80GB")
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    blocks = options.blocks.split(",")
    if set(blocks) - set(BLOCKS):
        parser.error("--blocks takes " + ",".join(BLOCKS))
    p = Probe(options)
    for why in (no_gpu(p), ensure_built(p)):
        if why:
            print("gpu_probe: %s. Nothing was answered; --simulated tries the script itself." % why, file=sys.stderr)
            return 3
    p.out.mkdir(parents=True, exist_ok=True)
    for block in blocks:
        try:
            BLOCKS[block](p)
        except NotAnswered as why:
            p.answer(block, "the rest of the block", str(why))
        except Exception as error:  # a block that fails must not cost the answers of the others
            p.answer(block, "the probe itself failed", "%s: %s" % (type(error).__name__, error))
    # Last, since nobody waits for it.
    p.machine = facts(p)
    p.answer("-", "machine", "in answers.md")
    print(p.out / "answers.md")
    return 0
