"""Perfetto's own UI in a headless Chromium, with a trace that is opened in it, and its trace_processor to ask by SQL.

    with PerfettoUi(folder_of_the_ui, "step.pftrace") as ui:
        ui.query("select name, dur from slice")   # a list of dicts
        ui.page                                   # cdp.Page, for pictures

The UI is served from this machine to this machine, and the browser finds no other host: nothing is fetched from the network,
and the trace goes nowhere.
"""
import functools
import http.server
import json
import pathlib
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "browser"))
import cdp  # noqa: E402

TRACE = "/trace.pftrace"
# A condition of the page, looked at whenever it is painted.
WAIT = "(async () => { while (!(%s)) await new Promise(done => requestAnimationFrame(done)); })()"
# What is no number in JSON comes as {"integer": "..."}: SQL's integers have 64 bits.
QUERY = """(async () => {
    const result = await app.trace.engine.query(%s), columns = result.columns(), rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(Object.fromEntries(columns.map(name => {
            const value = row.get(name);
            return [name, typeof value === 'bigint' ? {integer: String(value)} : value];
        })));
    }
    return rows;
})()"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments, trace, **options):
        self.trace = trace
        super().__init__(*arguments, **options)

    def translate_path(self, path):
        return str(self.trace) if path.split("?")[0] == TRACE else super().translate_path(path)

    def log_message(self, *_):
        pass


class PerfettoUi:
    def __init__(self, folder, trace, **size):
        handler = functools.partial(Handler, directory=str(folder), trace=pathlib.Path(trace).resolve())
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        try:
            self.browser = cdp.Browser(timeout=240, flags=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
            self.page = self.browser.new_tab(**size)
            address = "http://127.0.0.1:%d" % self.server.server_address[1]
            # `url` is Perfetto's own way to open a trace by an address.
            self.page.go(f"{address}/?testing=1#!/?url={address}{TRACE}")
            self.page.evaluate(WAIT % "window.app && (app.trace && !app.isLoadingTrace || document.querySelector('.pf-modal-dialog'))")
            said = self.page.evaluate("app.trace ? null : document.querySelector('.pf-modal-dialog').innerText")
            if said is not None:
                raise ValueError("Perfetto does not open the trace: " + said)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if hasattr(self, "browser"):
            self.browser.close()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def query(self, sql):
        """The rows that trace_processor answers with; an error of SQL is a cdp.ProtocolError."""
        rows = self.page.evaluate(QUERY % json.dumps(sql))
        return [{name: int(value["integer"]) if isinstance(value, dict) else value for name, value in row.items()}
                for row in rows]
