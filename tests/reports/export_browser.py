#!/usr/bin/env python3
"""export_browser.py SPEEDSCOPE FILE: open FILE in speedscope's page (its folder SPEEDSCOPE), in a headless
Chromium, and print how many calls it loaded, and how many events it could not make sense of.

speedscope is asked to export what it has loaded: the calls are those that it writes. It leaves out calls that take
no time. Needs chromium and chromedriver; exit code 77 where they do not start.
"""
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

WATCH = """
window.lost = 0;
const warn = console.warn;
console.warn = text => { if (/Doing nothing|still open/.test(text)) window.lost++; };
const create = URL.createObjectURL;
URL.createObjectURL = blob => { window.exported = blob; return create(blob); };
HTMLAnchorElement.prototype.click = () => {};
"""
DROP = """
const [url, name] = arguments;
fetch(url).then(answer => answer.blob()).then(blob => {
    const data = new DataTransfer();
    data.items.add(new File([blob], name));
    document.querySelector("div").dispatchEvent(
        new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
});
"""
EXPORT = """
for (const element of document.querySelectorAll("div"))
    if (/Export/.test(element.innerText) && element.children.length < 3)
        element.click();
return Boolean(window.exported);
"""
COUNT = """
const done = arguments[0];
window.exported.text().then(text => {
    const calls = JSON.parse(text).profiles.map(profile => profile.events.filter(e => e.type === "O").length);
    done([calls.reduce((a, b) => a + b, 0), calls.length, window.lost]);
});
"""


class Browser:
    """A session of chromedriver's."""

    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
        self.session = ""
        for line in self.driver.stdout:
            if "successfully on port" in line:
                self.base = "http://127.0.0.1:%d" % int(line.rstrip(".\n").rsplit(" ", 1)[1])
                break
        else:
            raise OSError("chromedriver does not start")
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader",
                            "--user-data-dir=" + folder]}
        if shutil.which("chromium"):
            options["binary"] = shutil.which("chromium")
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.session = "/session/" + answer["sessionId"]
        self.call("POST", "/timeouts", {"script": 600000, "pageLoad": 600000})

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + self.session + path, method=method, data=data,
                                         headers={"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=600))["value"]

    def run(self, script, *arguments, how="sync"):
        return self.call("POST", "/execute/" + how, {"script": script, "args": list(arguments)})

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def serve(folder, file):
    """speedscope's page, and FILE as /file."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return file if path == "/file" else super().translate_path(path)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d" % server.server_address[1]


def wait_for_profile(browser):
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        text = browser.run("return document.body.innerText")
        if "Export" in text:
            return
        if "omething went wrong" in text:
            sys.exit("speedscope: something went wrong")
        time.sleep(0.2)
    sys.exit("speedscope does not load it")


def main():
    page, file = sys.argv[1:3]
    folder = tempfile.mkdtemp()
    browser = None
    try:
        try:
            browser = Browser(folder)
        except (OSError, urllib.error.URLError) as why:
            print("skipped: no headless Chromium: %s" % why)
            sys.exit(77)
        address = serve(page, os.path.abspath(file))
        browser.call("POST", "/url", {"url": address + "/index.html"})
        browser.run(WATCH)
        browser.run(DROP, address + "/file", os.path.basename(file))
        wait_for_profile(browser)
        if not browser.run(EXPORT):
            sys.exit("speedscope does not export")
        print("%d calls on %d lanes, %d events lost" % tuple(browser.run(COUNT, how="async")))
    finally:
        if browser is not None:
            browser.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
