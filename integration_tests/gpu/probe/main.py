"""The command line of scripts/gpu_probe."""
import argparse
import importlib
import pkgutil
import sys

import probe
from probe.answers import write_answers
from probe.machine import ensure_built, facts, no_gpu
from probe.question import OPEN, PROBES, QUESTIONS, ROOT, Answer, NotAnswered, questions
from probe.run import Probe

for module in pkgutil.iter_modules(probe.__path__):  # the questions register themselves
    importlib.import_module("probe." + module.name)


def main(description):
    """Exit code of the command; DESCRIPTION is what --help says."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=description)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="gpu-probe-out")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    texts = questions()
    if options.list:
        for number, text in sorted(texts.items()):
            print("%3d  %s%s" % (number, text, "" if number in PROBES else "  (no unattended probe)"))
        return 0
    try:
        only = {int(word) for word in options.only.split(",") if word}
    except ValueError:
        parser.error("--only takes numbers")
    unknown = only - set(texts)
    if unknown:
        parser.error("no question %s in %s" % (", ".join(map(str, sorted(unknown))), QUESTIONS.relative_to(ROOT)))
    p = Probe(options)
    why = no_gpu(p)
    if why:
        print("gpu_probe: %s. Nothing was answered; --simulated tries the script itself." % why, file=sys.stderr)
        return 3
    why = ensure_built(p)
    if why:
        print("gpu_probe: %s" % why, file=sys.stderr)
        return 3
    machine, rows = facts(p), []
    for number, question in sorted(texts.items()):
        if only and number not in only:
            continue
        p.commands = []
        try:
            if number not in PROBES:
                raise NotAnswered("no unattended probe: see the command in integration_tests/gpu/QUESTIONS.md")
            answer = PROBES[number](p)
        except NotAnswered as why:
            answer = Answer(OPEN, str(why))
        except Exception as error:  # a failing probe must not cost the answers of the others
            answer = Answer(OPEN, "the probe itself failed: %s: %s" % (type(error).__name__, error))
        print("%3d  %-12s  %s" % (number, answer.verdict, answer.seen), flush=True)
        rows.append({"number": number, "question": question, "verdict": answer.verdict, "seen": answer.seen,
                     "commands": list(dict.fromkeys(p.commands))})
        write_answers(p, machine, rows)  # after each, so that whoever ends us early has what there is
    print("%s" % (p.out / "answers.md"))
    return 0
