"""The client against a real server: replies are cached, errors of the server outlived, refusals and rubbish named."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import Server, completion, running

from kbook.construction.chat import MAX_BYTES, ChatClient, Endpoint
from kbook.errors import KBookError
from kbook.files import StoreWarning

MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBOOK_API_KEY", "sesame")


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def client(server: Server, cache: Path, clock: Clock | None = None, **settings: object) -> ChatClient:
    clock = clock or Clock()
    endpoint = Endpoint(server.url, "a/small-model:v1", **{"retries": 3, "requests_per_minute": 6e6, **settings})
    return ChatClient(endpoint, cache, clock, clock.sleep)


def test_a_request_speaks_the_protocol_and_the_key_is_sent_and_not_stored(server, tmp_path):
    server.script((200, completion('{"a": 1}')))
    assert client(server, tmp_path).ask(MESSAGES) == '{"a": 1}'
    (asked,) = server.asked
    assert asked["path"] == "/v1/chat/completions"
    assert (asked["model"], asked["messages"]) == ("a/small-model:v1", MESSAGES)
    assert server.keys == ["Bearer sesame"]
    stored = [path.read_text() for path in tmp_path.rglob("*.json")]
    assert len(stored) == 1 and "sesame" not in stored[0] and "hello" in stored[0]


def test_the_same_request_is_asked_once_also_by_another_client_and_another_attempt_again(server, tmp_path):
    server.script((200, completion("one")), (200, completion("two")), (200, completion("three")))
    first = client(server, tmp_path)
    assert [first.ask(MESSAGES), first.ask(MESSAGES), client(server, tmp_path).ask(MESSAGES)] == ["one"] * 3
    assert first.ask(MESSAGES, attempt=2) == "two"
    assert first.ask([{"role": "user", "content": "bye"}]) == "three"
    assert len(server.asked) == 3


def test_errors_of_the_server_are_outlived_with_growing_waits(server, tmp_path):
    server.script((500, b"oops"), (503, b""), (200, completion("late")))
    clock = Clock()
    assert client(server, tmp_path, clock).ask(MESSAGES) == "late"
    waits = [seconds for seconds in clock.slept if seconds > 1]
    assert waits == [2.0, 4.0] and len(server.asked) == 3


def test_a_server_that_says_when_to_come_back_is_believed_within_reason(server, tmp_path):
    server.script((429, b"", {"retry-after": "17"}), (429, b"", {"retry-after": "99999"}), (200, completion("x")))
    clock = Clock()
    client(server, tmp_path, clock).ask(MESSAGES)
    assert [seconds for seconds in clock.slept if seconds > 1] == [17.0, 120.0]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"choices": []}', b'{"choices": [{"message": {"content": 3}}]}', b"[" * 10**5,
     b"\xff\xfe", completion("x" * MAX_BYTES)],
    ids=["empty", "cut", "list", "null", "no choice", "no text", "deep", "binary", "huge"],
)  # fmt: skip
def test_rubbish_is_asked_again_and_named_when_it_goes_on(server, tmp_path, content):
    server.script((200, content), (200, completion("sense")))
    assert client(server, tmp_path).ask(MESSAGES) == "sense"
    server.script((200, content))
    with pytest.raises(KBookError, match="4 tries failed, the last with a reply that is not of the protocol"):
        client(server, tmp_path).ask(MESSAGES, attempt=2)
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_a_refusal_is_not_repeated(server, tmp_path):
    server.script((401, b'{"error": "who are \x1byou"}'))
    with pytest.raises(KBookError, match="refuses the request with status 401") as caught:
        client(server, tmp_path).ask(MESSAGES)
    assert len(server.asked) == 1 and "\x1b" not in str(caught.value)


def test_a_server_that_is_not_there_is_named_after_all_tries(tmp_path):
    clock = Clock()
    endpoint = Endpoint("http://127.0.0.1:9/v1", "m", retries=2, timeout_s=0.5)
    with pytest.raises(KBookError, match="3 tries failed, the last with no connection"):
        ChatClient(endpoint, tmp_path, clock, clock.sleep).ask(MESSAGES)


def test_requests_keep_their_distance(server, tmp_path):
    server.script((200, completion("x")))
    clock = Clock()
    asking = client(server, tmp_path, clock, requests_per_minute=30)
    for number in range(4):
        asking.ask([{"role": "user", "content": str(number)}])
    assert clock.now == pytest.approx(6.0)


def test_usage_and_cost_are_counted_without_what_came_from_the_cache(server, tmp_path):
    server.script((200, completion("x", 1_000, 500)), (200, completion("x", "many", -3)))
    asking = client(server, tmp_path, prices=(2.0, 10.0))
    for number in (0, 1, 0, 1):
        asking.ask([{"role": "user", "content": str(number)}])
    assert (asking.usage.requests, asking.usage.prompt_tokens, asking.usage.reply_tokens) == (2, 1_000, 500)
    assert asking.usage.cost == pytest.approx(0.007)


def test_a_damaged_reply_is_set_aside_and_asked_for_again(server, tmp_path):
    server.script((200, completion("one")), (200, completion("two")))
    client(server, tmp_path).ask(MESSAGES)
    (path,) = tmp_path.rglob("*.json")
    path.write_bytes(path.read_bytes()[:20])
    with pytest.warns(StoreWarning, match="a damaged reply"):
        assert client(server, tmp_path).ask(MESSAGES) == "two"


def test_without_a_key_nothing_is_sent_and_a_server_that_wants_none_gets_none(server, tmp_path, monkeypatch):
    monkeypatch.delenv("KBOOK_API_KEY")
    server.script((200, completion("x")))
    with pytest.raises(KBookError, match="Set the environment variable KBOOK_API_KEY"):
        client(server, tmp_path).ask(MESSAGES)
    assert server.asked == []
    client(server, tmp_path, key_variable="").ask(MESSAGES)
    assert server.keys == [None]
