"""A headless Chromium driven over its DevTools protocol, with Python's standard library alone.

    with Browser() as browser:
        page = browser.open(path)            # a file or an http:// address; waits until it has loaded
        page.move_mouse(100, 200)
        page.evaluate("document.title")
        page.console, page.requests          # what the page said and what it asked for

Commands travel as NUL-terminated JSON over two pipes (--remote-debugging-pipe), so there is no port to race for and no
websocket to speak.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser():
    """The browser's path, or None: $CHROMIUM or the first of CANDIDATES on the PATH."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    return next((path for path in map(shutil.which, CANDIDATES) if path), None)


class ProtocolError(RuntimeError):
    pass


class Browser:
    def __init__(self, timeout=60, flags=()):
        binary = find_browser()
        if binary is None:
            raise FileNotFoundError("no Chromium found; set $CHROMIUM to its path")
        self.timeout = timeout
        self.profile = tempfile.mkdtemp(prefix="rfinject-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def wire_pipes():  # Chromium reads from descriptor 3 and writes to 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            [binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
             "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile, *flags, "about:blank"],
            preexec_fn=wire_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.next_id = 0
        self.buffer = b""
        self.events = []
        self.pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (ProtocolError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)  # a session of our own: only our browser is in it
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise ProtocolError("the browser did not answer in time")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                with open(self.log.name, errors="replace") as log:
                    raise ProtocolError("the browser went away:\n" + log.read()[-2000:])
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _dispatch(self, message):
        page = self.pages.get(message.get("sessionId"))
        if page is not None:
            page._event(message["method"], message["params"])

    def call(self, method, params=None, session=None):
        self.next_id += 1
        wanted = self.next_id
        command = {"id": wanted, "method": method, "params": params or {}}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        deadline = time.monotonic() + self.timeout
        while True:
            message = self._receive(deadline)
            if message.get("id") == wanted:
                if "error" in message:
                    raise ProtocolError(f"{method}: {message['error']['message']}")
                return message["result"]
            if "method" in message:
                self._dispatch(message)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + self.timeout
        while not condition():
            try:
                message = self._receive(deadline)
            except ProtocolError as error:
                raise ProtocolError(f"waiting for {what}: {error}") from None
            if "method" in message:
                self._dispatch(message)

    def open(self, path, width=1400, height=1000, dark=False):
        page = self.new_tab(width, height, dark)
        page.go(path)
        return page

    def new_tab(self, width=1400, height=1000, dark=False):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(domain + ".enable")
        page.resize(width, height)
        page.call("Emulation.setEmulatedMedia",
                  {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.console = []  # texts of console calls, uncaught exceptions and the browser's own complaints
        self.requests = []  # URLs, the page itself included
        self.loaded = False

    def _event(self, method, params):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.consoleAPICalled":
            self.console.append(params["type"] + ": " + " ".join(str(a.get("value")) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details["text"] + " " + details.get("exception", {}).get("description", ""))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, params=None):
        return self.browser.call(method, params, self.session)

    def go(self, path):
        self.loaded = False
        address = str(path)
        if not address.startswith("http://"):
            address = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", {"url": address})
        self.browser.wait_for(lambda: self.loaded, "the page to load")

    def evaluate(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise ProtocolError(details["text"] + " " + details.get("exception", {}).get("description", ""))
        return result["result"].get("value")

    def settle(self):
        """Waits until what was asked for has been painted: two animation frames."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def wait_until(self, condition):
        """Waits until a JavaScript condition holds, asking once a frame."""
        self.evaluate("new Promise(done => { const look = () => " + condition +
                      " ? done(0) : requestAnimationFrame(look); look(); })")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def move_mouse(self, x, y):
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, x, y):
        self.move_mouse(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def click_on(self, selector):
        self.click(*self.center(selector))

    def center(self, selector):
        """Where an element is on the screen, scrolled into view if need be."""
        return self.evaluate(f"""(() => {{
            const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: 'nearest', inline: 'nearest'}});
            const r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2];
        }})()""")

    def key(self, name, code=0, text=None):
        params = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        if text is not None:
            params["text"] = text
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", **params})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": code})

    def type(self, text):
        self.call("Input.insertText", {"text": text})

    def screenshot(self, path, full=False):
        params = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = base64.b64decode(self.call("Page.captureScreenshot", params)["data"])
        with open(path, "wb") as out:
            out.write(image)
        return len(image)
