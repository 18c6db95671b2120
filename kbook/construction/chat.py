"""A client of any server that speaks the chat-completions protocol: cached, resumable, rate-limited, cost counted.

Every reply is stored under the digest of its request, so that a construction that was interrupted asks nothing twice.
What a server says is text from outside: it is parsed as JSON, cut to a length and never executed. The key of the
server is read from an environment variable when it is needed, and stored nowhere.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from kbook.digests import digest_of
from kbook.errors import KBookError
from kbook.files import set_aside, write_atomic
from kbook.keys import base_segment

MAX_BYTES = 1_000_000
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT_S = 120.0


@dataclass(frozen=True)
class Endpoint:
    """A server and one of its models.

    Args:
        url: up to and including ``/v1``.
        model: the name by which the server knows it.
        key_variable: environment variable that holds the key; "" for a server that wants none.
        requests_per_minute: never more than this.
        retries: how often a request is repeated after an error of the server or the network.
        timeout_s: of one request, in seconds.
        max_tokens: longest reply.
        prices: of a million prompt tokens and of a million reply tokens, in any one currency.
    """

    url: str
    model: str
    key_variable: str = "KBOOK_API_KEY"
    requests_per_minute: float = 60.0
    retries: int = 5
    timeout_s: float = 120.0
    max_tokens: int = 2000
    prices: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Usage:
    """What was asked of a server so far, without what came from the cache. *Unit*: ``cost`` as the prices."""

    requests: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float = 0.0


@dataclass
class ChatClient:
    """Ask one model, once for each request.

    Args:
        endpoint: whom to ask.
        cache: folder of the stored replies.
        clock, sleep: of the rate limit and the waits.
    """

    endpoint: Endpoint
    cache: Path
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    usage: Usage = field(default_factory=Usage)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _next: float = 0.0

    def ask(self, messages: Sequence[Mapping[str, str]], attempt: int = 1) -> str:
        """Return the text of the model's reply, from the cache where it was asked before.

        Args:
            messages: as the protocol has them: ``role`` and ``content``.
            attempt: makes another request of the same messages, for a second try.
        Raises:
            KBookError: no key; the server refuses the request, or keeps failing; its reply is not the protocol's.
        """
        request = {
            "model": self.endpoint.model,
            "messages": [dict(message) for message in messages],
            "temperature": 0.0 if attempt == 1 else 0.7,
            "max_tokens": self.endpoint.max_tokens,
            "response_format": {"type": "json_object"},
        }
        path = self._place({**request, "attempt": attempt})
        stored = _stored(path)
        if stored is None:
            stored = self._send(request)
            write_atomic(path, json.dumps({"request": request, **stored}, ensure_ascii=False).encode())
        return str(stored["text"])

    def _place(self, request: Mapping[str, Any]) -> Path:
        digest = digest_of(request)
        return self.cache / base_segment(self.endpoint.model).replace(":", "-") / digest[:2] / f"{digest}.json"

    def _send(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request until a reply of the protocol comes, or the retries are used up."""
        problem, wait = "", 0.0
        for number in range(self.endpoint.retries + 1):
            if number:
                self.sleep(max(wait, min(2.0**number, _LONGEST_WAIT_S)))
            self._wait_for_turn()
            try:
                reply = self._post(request)
            except httpx.TransportError as error:
                problem, wait = f"no connection ({type(error).__name__})", 0.0
                continue
            if reply.status_code in _RETRIED:
                problem, wait = f"status {reply.status_code}", _wished(reply)
                continue
            if reply.status_code != 200:
                what = f"refuses the request with status {reply.status_code}: {reply.text[:200]}"
                raise KBookError(what, self.endpoint.url, "Correct url, model or key of the endpoint")
            found = _read_reply(reply.content)
            if found is not None:
                return self._counted(found)
            problem, wait = "a reply that is not of the protocol", 0.0
        remedy = "Try again later: what was answered is stored, and is not asked again"
        raise KBookError(
            f"{self.endpoint.retries + 1} tries failed, the last with {problem}", self.endpoint.url, remedy
        )

    def _post(self, request: Mapping[str, Any]) -> httpx.Response:
        url = f"{self.endpoint.url.rstrip('/')}/chat/completions"
        return self._http.post(url, json=dict(request), headers=self._headers())

    @cached_property
    def _http(self) -> httpx.Client:
        """One connection pool for all requests, which several threads may share."""
        return httpx.Client(timeout=self.endpoint.timeout_s)

    def _headers(self) -> dict[str, str]:
        name = self.endpoint.key_variable
        if not name:
            return {}
        if not os.environ.get(name):
            raise KBookError("no key for the endpoint", name, f"Set the environment variable {name}")
        return {"Authorization": f"Bearer {os.environ[name]}"}

    def _wait_for_turn(self) -> None:
        with self._turn:
            now = self.clock()
            begin = max(now, self._next)
            self._next = begin + 60.0 / self.endpoint.requests_per_minute
        if begin > now:
            self.sleep(begin - now)

    def _counted(self, found: dict[str, Any]) -> dict[str, Any]:
        prompt, reply = found["prompt_tokens"], found["reply_tokens"]
        cost = sum(n * price for n, price in zip((prompt, reply), self.endpoint.prices, strict=True)) / 1e6
        with self._turn:
            old = self.usage
            self.usage = Usage(old.requests + 1, old.prompt_tokens + prompt, old.reply_tokens + reply, old.cost + cost)
        return found


def _read_reply(content: bytes) -> dict[str, Any] | None:
    """Take text and token counts out of a reply; None where it is not of the protocol."""
    try:
        reply = json.loads(content) if len(content) <= MAX_BYTES else None
        text = reply["choices"][0]["message"]["content"]  # type: ignore[index]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not isinstance(text, str):
        return None
    usage = reply.get("usage") if isinstance(reply, dict) else None
    return {
        "text": text,
        "prompt_tokens": _count(usage, "prompt_tokens"),
        "reply_tokens": _count(usage, "completion_tokens"),
    }


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _wished(reply: httpx.Response) -> float:
    """The seconds for which a server asks to be left alone; 0 where it does not say."""
    text = reply.headers.get("retry-after", "")
    return min(float(text), _LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 0.0


def _stored(path: Path) -> dict[str, Any] | None:
    """Read a stored reply; a damaged one is set aside, and asked for again."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("text"), str):
        return found
    set_aside(path, "a damaged reply")
    return None
