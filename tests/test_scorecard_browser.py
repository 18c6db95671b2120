"""A real browser opens a report full of hostile text: nothing runs, nothing is asked of any host."""

import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from test_scorecard_html import HOSTILE, hostile_folder, page_of
from transcript_factory import VALUE, row, write_cell

from kbook.scoring.folder import score_folder

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")
HOST = "kbook.invalid"
PAYLOADS = [
    "<script>document.title='RAN'</script>",
    "<img src='http://kbook.invalid/a.png' onerror=\"document.title='RAN'\">",
    "</mark></td></table><svg onload=\"document.title='RAN'\"></svg>",
    "\"><link rel=stylesheet href='http://kbook.invalid/b.css'>",
    "</style><style>body{background:url(http://kbook.invalid/c.png)}</style>",
    "<iframe src='http://kbook.invalid/d'></iframe>",
    "</title><meta http-equiv=refresh content='0;url=http://kbook.invalid/e'>",
]

pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium here")


@pytest.fixture
def asked():
    """A proxy for everything that the browser asks of a host; nothing is passed on."""
    seen = []

    class Proxy(BaseHTTPRequestHandler):
        def answer(self):
            seen.append(self.path)
            self.send_response(404)
            self.end_headers()

        do_GET = do_POST = do_CONNECT = do_HEAD = answer

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield seen, server.server_port
    server.shutdown()


def opened(html, folder, asked):
    """Open a page; return what the browser made of it and the requests for the payloads' host."""
    seen, port = asked
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *quiet]
    command += [f"--user-data-dir={folder / 'profile'}", f"--proxy-server=127.0.0.1:{port}"]
    command += ["--virtual-time-budget=2000", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [address for address in seen if HOST in address]


def test_control_the_same_texts_run_and_fetch_where_nobody_escapes_them(tmp_path, asked):
    dom, requests = opened(f"<title>quiet</title><p>{' '.join(PAYLOADS[:2])}</p>", tmp_path, asked)
    assert "<title>RAN</title>" in dom and requests


@pytest.mark.parametrize("policy", [True, False], ids=["as written", "by escaping alone, without the policy"])
def test_report_of_hostile_transcripts_runs_nothing_and_asks_for_nothing(tmp_path, asked, policy):
    folder = tmp_path / "cells"
    folder.mkdir()
    hostile_folder(folder)
    entries = [row(f"{n} {p}", raw_Z_summary=f"{p} {VALUE} {p}") for n, p in enumerate(PAYLOADS)]
    for seed, entry in enumerate(entries):
        config = {"model": PAYLOADS[seed], "base_model": PAYLOADS[seed]}
        write_cell(folder, f"demo_C_m{seed}_forget_seed0", [entry], config)
    html = page_of(score_folder(folder))
    for mark in PAYLOADS:
        assert mark not in html
    if not policy:
        line = next(line for line in html.splitlines() if "Content-Security-Policy" in line)
        html = html.replace(line, "")
    dom, requests = opened(html, tmp_path, asked)
    assert "<title>Leak report of " in dom and "RAN</title>" not in dom
    assert requests == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom and HOSTILE not in dom
