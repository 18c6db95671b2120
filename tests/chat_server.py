"""A small server that speaks the chat-completions protocol, as well or as badly as a test wants."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Answers with the scripted replies in turn, then with the last one for ever, or by a function of the request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[tuple[int, bytes, dict[str, str]]] = []
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        self.answer: Callable[[dict], tuple[int, bytes]] | None = None

    def script(self, *replies: tuple[int, bytes] | tuple[int, bytes, dict[str, str]]) -> None:
        self.replies = [(*reply, {})[:3] for reply in replies]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body | {"path": self.path})
        self.server.keys.append(self.headers["authorization"])
        replies = self.server.replies
        if self.server.answer:
            (status, content), headers = self.server.answer(body), {}
        else:
            status, content, headers = replies.pop(0) if len(replies) > 1 else replies[0]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


def completion(text: str, prompt: object = 10, reply: object = 5) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": 15}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


@contextmanager
def running() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
