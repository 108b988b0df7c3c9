"""Tests scripts/wheel_headers against a package index of its own."""

import hashlib
import http.server
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "wheel_headers"
HEADERS = {"nvidia/thing/include/thing.h": b"int thing(void);\n", "nvidia/thing/include/a/b.h": b"// b\n",
           "thing-1.0.dist-info/License.txt": b"yours\n"}
LIBRARY = 8 << 20  # bytes beside them, which nobody needs


def wheel():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("nvidia/thing/lib/libthing.so", os.urandom(LIBRARY))
        for name, content in HEADERS.items():
            archive.writestr(name, content)
    return data.getvalue()


def digest(files):
    return hashlib.sha256(b"".join(b"%s\0%d\0%s" % (name.encode(), len(content), content)
                                   for name, content in sorted(files.items()))).hexdigest()


class Index(http.server.BaseHTTPRequestHandler):
    wheel, ranges, sent = wheel(), True, 0

    def do_GET(self):
        if self.path == "/simple/a-thing/":
            names = ("a_thing-1.0-py3-none-win_amd64.whl", "a_thing-1.0.1-py3-none-manylinux1_x86_64.whl",
                     "a_thing-1.0-py3-none-manylinux1_x86_64.whl")
            self.answer(200, "".join('<a href="../../files/%s#sha256=0">x</a>' % name for name in names).encode())
        elif self.path == "/files/a_thing-1.0-py3-none-manylinux1_x86_64.whl":
            begin, end = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
            part = self.wheel[begin:end + 1] if self.ranges else self.wheel
            type(self).sent += len(part)
            self.answer(206 if self.ranges else 200, part, "bytes %d-%d/%d" % (begin, end, len(self.wheel)))
        else:
            self.answer(404, b"")

    def answer(self, code, content, content_range=None):
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        if code == 206:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            pass  # who asked does not want all of it

    def log_message(self, *_):
        pass


class WheelHeaders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        self.addCleanup(self.server.server_close)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.shutdown)
        Index.ranges, Index.sent = True, 0

    def run_script(self, line):
        recipe = self.folder / "recipe.txt"
        recipe.write_text("# a comment\n" + line + "\n", encoding="utf-8")
        environment = dict(os.environ, PIP_INDEX_URL="http://127.0.0.1:%d/simple" % self.server.server_address[1],
                           no_proxy="127.0.0.1")
        return subprocess.run([sys.executable, "-B", str(SCRIPT), str(recipe), str(self.folder / "out")],
                              capture_output=True, text=True, env=environment)

    def test_only_the_headers_are_fetched(self):
        result = self.run_script("cu1 a-thing==1.0 " + digest(HEADERS))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        found = {str(path.relative_to(self.folder / "out" / "cu1")): path.read_bytes()
                 for path in (self.folder / "out").rglob("*") if path.is_file()}
        self.assertEqual(found, HEADERS)
        self.assertLess(Index.sent, LIBRARY / 2)

    def test_other_bytes_than_the_recipe_names(self):
        result = self.run_script("cu1 a-thing==1.0 -")
        self.assertEqual(result.returncode, 1)
        self.assertIn(digest(HEADERS), result.stderr)

    def test_what_cannot_be_had(self):
        result = self.run_script("cu1 a-thing==2.0 -")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^error: a-thing==2\.0: \S+ has no 2\.0 for x86-64\n$")
        Index.ranges = False
        result = self.run_script("cu1 a-thing==1.0 -")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not serve parts of files", result.stderr)


if __name__ == "__main__":
    unittest.main()
