#!/usr/bin/env python3
"""The manual page and the completions, in man, bash, zsh and fish themselves.

    completion_test.py --rfinject BIN [unittest arguments]
"""
import argparse
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()


def rfinject(*arguments, **kwargs):
    return subprocess.run([OPTIONS.rfinject, *arguments], capture_output=True, text=True, timeout=60, **kwargs)


def verbs():
    text = rfinject("-h").stdout.partition("All verbs")[2]
    return re.findall(r"^  [a-z ]{8} ([a-z]+) ", text, re.MULTILINE)


def options_of(verb):
    """All spellings of the verb's options."""
    text = rfinject("help", verb).stdout.partition("\nOptions:\n")[2]
    lines = [line for line in text.splitlines() if re.match(r"  (-\w, |    )--", line)]
    return sorted({name for line in lines for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line[:line.find("  ", 8) % 200])})


class ManualPage(unittest.TestCase):
    def setUp(self):
        result = rfinject("help", "--format", "man")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.page = tempfile.NamedTemporaryFile("w", suffix=".1")
        self.page.write(result.stdout)
        self.page.flush()
        self.addCleanup(self.page.close)

    def show(self):
        if shutil.which("man") is None:
            self.skipTest("note: there is no man here")
        # Without this bold text would have overstruck letters.
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MAN_KEEP_FORMATTING": "", "MANPAGER": "cat"}
        result = subprocess.run(["man", "--warnings", "-l", self.page.name], capture_output=True, text=True,
                                env=environment, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_every_verb_and_option_is_there(self):
        text = self.show()
        for verb in verbs():
            section = re.search(rf"^   {verb}\n(.*?)(?=^   \S|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
            self.assertIsNotNone(section, f"{verb}: {text}")
            for option in options_of(verb):
                if option in ("-h", "--help"):
                    continue
                self.assertRegex(section.group(1), rf"(?m)^ +.*{re.escape(option)}\b", f"{verb} {option}")

    def test_text_is_shown_as_it_is(self):
        text = re.sub(r"\s+", " ", self.show())
        self.assertIn("--fail-if 'step_time>+5%' exits with 4", text)
        self.assertIn('eval "$(rfinject env)"', text)
        self.assertNotIn("\\", text)


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-completion-test-")
        (pathlib.Path(cls.folder.name) / "trace one.rfx").write_text("")
        (pathlib.Path(cls.folder.name) / "train.py").write_text("")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def bash(self, script):
        source = f"source <({OPTIONS.rfinject} completion bash)\n"
        result = subprocess.run(["bash", "--norc", "--noprofile", "-c", source + script], cwd=self.folder.name,
                                capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""), script)
        return result.stdout.splitlines()

    def offers(self, *words):
        """What is offered for the last of the words after `rfinject`."""
        quoted = " ".join("'" + word + "'" for word in ("rfinject", *words))
        return self.bash(f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _rfinject\n"
                         'printf "%s\\n" "${COMPREPLY[@]}"')

    def test_verbs(self):
        self.assertEqual(sorted(self.offers("")), sorted(verbs()))
        self.assertEqual([offer for offer in self.offers("doc") if offer == "doctor"], ["doctor"])
        self.assertEqual(sorted(self.offers("help", "")), sorted(verbs()))
        self.assertIn("--version", self.offers("--v"))

    def test_every_option(self):
        for verb in verbs():
            self.assertEqual(sorted(self.offers(verb, "-")), options_of(verb), verb)
        self.assertEqual(sorted(set(self.offers("-")) - {"--version"}), options_of("run"))

    def test_values(self):
        self.assertEqual(self.offers("report", "--step-by", "o"), ["optimizer"])
        self.assertEqual(self.offers("report", "--step-by", "=", "o"), ["optimizer"])
        self.assertEqual(self.offers("report", "--step-by", "="), ["iteration", "optimizer", "forward"])
        self.assertEqual(self.offers("--estimate", "A100-SXM4-4"), ["A100-SXM4-40GB"])
        self.assertEqual(self.offers("explain", "R00"), [f"R00{i}" for i in range(1, 10)])
        self.assertEqual(self.offers("report", "--rows", ""), [""])

    def test_what_is_offered_is_taken(self):
        for verb in verbs():
            for option in options_of(verb):
                values = self.bash(f"_rfinject_values {verb} {option}")
                for value in (values[0].split() if values else []):
                    if value.startswith("*") or verb == "help":
                        continue
                    words = ["/no/such/file"] if verb in ("report", "diff", "merge", "import", "runs", "run") else []
                    result = rfinject(verb, option, value, *words, cwd=self.folder.name,
                                      env={**os.environ, "RFINJECT_LIBRARY": "/no/library"})
                    self.assertNotRegex(result.stderr, rf"{option}|no such GPU", f"{verb} {option} {value}")

    def test_files(self):
        self.assertEqual(self.offers("report", "tra"), ["trace one.rfx", "train.py"])
        self.assertEqual(self.offers("report", "-o", "trac"), ["trace one.rfx"])

    def test_the_programs_own_words(self):
        self.assertIn("bash", self.offers("ba"))
        for words in (["python3", "tr"], ["--kill", "python3", "tr"], ["--estimate", "V100-SXM2-16GB", "python3", "tr"],
                      ["run", "--steps", "=", "5", "--", "python3", "tr"], ["python3", "report", "tr"]):
            self.assertEqual(self.offers(*words), ["trace one.rfx", "train.py"], words)
        self.assertEqual(self.offers("python3", "--step"), [""])
        # Where bash-completion is loaded, it is asked.
        self.assertEqual(self.bash("_command_offset() { COMPREPLY=(from $1); }\n"
                                   "COMP_WORDS=(rfinject --kill python3 -); COMP_CWORD=3; _rfinject\n"
                                   'printf "%s\\n" "${COMPREPLY[*]}"'), ["from 2"])


def typed(command, before, line, until):
    """What a shell on a terminal shows after `before` was run and `line` was typed, up to the text `until`."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", PS1="$ ", HISTFILE="", LC_ALL="C.UTF-8")
        os.execvp(command[0], command)
    shown = b""

    def read_until(text):
        nonlocal shown
        while text not in shown:
            if not select.select([terminal], [], [], 30)[0]:
                break
            try:
                shown += os.read(terminal, 65536).replace(b"\a", b"")
            except OSError:
                break

    try:
        # The shell puts the word together, so that the echo of what is typed is not taken for it.
        os.write(terminal, before.encode() + b"\nprintf '%s%s\\n' rea dy\n")
        read_until(b"ready\r\n")
        shown = b""
        os.write(terminal, line.encode())
        read_until(until.encode())
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return shown.decode(errors="replace")


class Terminals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rfinject-completion-test-")
        self.addCleanup(self.folder.cleanup)

    def test_bash(self):
        before = f"source <({OPTIONS.rfinject} completion bash)"
        self.assertIn("--step-by", typed(["bash", "--norc", "--noprofile", "-i"], before, "rfinject report --step\t", "--step-by"))

    def zsh(self, line, until):
        if shutil.which("zsh") is None:
            self.skipTest("note: there is no zsh here")
        before = (f"autoload -Uz compinit && compinit -u -d {self.folder.name}/dump && "
                  f"source <({OPTIONS.rfinject} completion zsh)")
        return typed(["zsh", "-f", "-i"], before, line, until)

    def test_zsh(self):
        self.assertIn("--step-by", self.zsh("rfinject report --step\t", "--step-by"))
        self.assertIn("optimizer", self.zsh("rfinject report --step-by=o\t", "optimizer"))
        self.assertIn("doctor", self.zsh("rfinject doct\t", "doctor"))
        self.assertIn("A100-SXM4-40GB", self.zsh("rfinject --kill --estimate A100-SXM4-4\t", "A100-SXM4-40GB"))

    def test_zsh_knows_every_option(self):
        if shutil.which("zsh") is None:
            self.skipTest("note: there is no zsh here")
        # The script is a file that zsh loads by itself. The specifications are read in the place of _arguments.
        path = pathlib.Path(self.folder.name) / "_rfinject"
        path.write_text(rfinject("completion", "zsh").stdout)
        script = ("compdef() { :; }\nsource %s\n_arguments() { print -l -- \"$@\"; }\n_rfinject_verb $1\n" % path)
        for verb in verbs():
            result = subprocess.run(["zsh", "-f", "-c", script, "zsh", verb], capture_output=True, text=True, timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            named = {name for line in result.stdout.splitlines() for name in re.findall(r"^(?:\(.*\))?(--?[a-z][a-z-]*)", line)
                     if line != "-s"}
            self.assertEqual({re.sub(r"-$", "", name) for name in named}, set(options_of(verb)), verb)

    def fish(self, line):
        if shutil.which("fish") is None:
            self.skipTest("note: there is no fish here")
        result = subprocess.run(["fish", "--no-config", "-c",
                                 f"{OPTIONS.rfinject} completion fish | source; complete -C \"$argv\"", line],
                                capture_output=True, text=True, timeout=60, cwd=self.folder.name,
                                env={**os.environ, "HOME": self.folder.name, "LC_ALL": "C.UTF-8"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [offer.split("\t")[0] for offer in result.stdout.splitlines()]

    def test_fish(self):
        self.assertEqual(self.fish("rfinject doct"), ["doctor"])
        self.assertEqual(self.fish("rfinject report --step-by o"), ["optimizer"])
        self.assertEqual(self.fish("rfinject --estimate A100-SXM4-4"), ["A100-SXM4-40GB"])
        for verb in verbs():
            wanted = {option for option in options_of(verb) if option.startswith("--")}
            offered = {offer.rstrip("=") for offer in self.fish(f"rfinject {verb} --")}
            self.assertEqual(offered, wanted, verb)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
