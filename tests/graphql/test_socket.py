"""The protocol graphql-transport-ws, and what a socket may cost, over real connections to our server."""

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.flows.process import read_answer
from tests.graphql.sockets import (
    KEY,
    OTHER_KEY,
    WAIT,
    Served,
    frame,
    hear,
    read_close,
    say,
    subscribe,
    upgrade,
)
from tradepost.problems import Unavailable

Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve(new_database: Callable[[str], str]) -> Iterator[Serve]:
    """Starts a server of its own; options as `Sockets` takes them."""
    running: list[Served] = []

    def new(**options: Any) -> Served:
        running.append(Served(new_database("sqlite"), **options))
        return running[-1]

    yield new
    for served in running:
        served.begin_to_stop()
    for served in running:
        served.stop()


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    """The server as it is in production, shared; a law that changes what there is takes its own."""
    return serve()


def closed(client: ClientConnection) -> tuple[int, str]:
    """Waits for the end of a socket; the server's code and reason."""
    with pytest.raises(ConnectionClosed) as caught:  # noqa: PT012 (whichever message is the last)
        while True:
            client.recv(timeout=WAIT)
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code, caught.value.rcvd.reason


def refused(served: Served, **options: Any) -> Any:
    """The answer to an upgrade that is refused."""
    with pytest.raises(InvalidStatus) as caught:
        served.open(**options)
    return caught.value.response


def wait_until_open(served: Served, count: int) -> None:
    """Waits until so many sockets are open: one that ends leaves a line, after it was counted."""
    while served.app.metrics.sockets != count:
        served.lines.get(timeout=WAIT)


def test_a_query_is_answered_and_completed(served: Served) -> None:
    """A query gets one `next` with its result and then `complete`, both with its id."""
    with served.talking() as client:
        subscribe(client, "a", "echo", n=1)
        assert hear(client) == {"id": "a", "type": "next", "payload": {"data": {"n": 1}}}
        assert hear(client) == {"id": "a", "type": "complete"}


@pytest.mark.parametrize("name", ["authorization", "Authorization"])
def test_the_key_may_come_in_connection_init(served: Served, name: str) -> None:
    """A client that cannot set headers, such as a browser, shows its key in `connection_init`."""
    with served.open(key=None) as client:
        say(client, type="connection_init", payload={name: KEY})
        assert hear(client) == {"type": "connection_ack"}
        subscribe(client, "a", "echo")
        assert hear(client)["type"] == "next"


@pytest.mark.parametrize("payload", [None, {}, {"authorization": "Bearer tp_bad"}, {"authorization": 1}])
def test_without_a_valid_key_nothing_is_acknowledged(served: Served, payload: Any) -> None:
    """No key, or one that is not valid, in `connection_init` ends the socket with 4403."""
    with served.open(key=None) as client:
        say(client, type="connection_init", payload=payload)
        assert closed(client) == (4403, "Forbidden")


def test_a_bad_key_in_the_header_refuses_the_upgrade(served: Served) -> None:
    """A key in the header that is not valid is answered 401 before there is a socket, as a problem."""
    answer = refused(served, key="Bearer tp_bad")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    problem = json.loads(answer.body)
    assert problem["status"] == 401
    assert problem["type"].startswith("http://")


@pytest.mark.parametrize("offered", [None, ["graphql-ws"]])
def test_another_subprotocol_is_not_spoken(served: Served, offered: Any) -> None:
    """A client that does not offer graphql-transport-ws is told so with 4406."""
    with served.open(subprotocols=offered) as client:
        assert closed(client) == (4406, "Subprotocol not acceptable")


def test_the_subprotocol_is_chosen_among_others(served: Served) -> None:
    """Of several subprotocols that are offered ours is taken."""
    with served.open(subprotocols=["graphql-ws", "graphql-transport-ws"]) as client:
        assert client.subprotocol == "graphql-transport-ws"


def test_initialisation_is_not_waited_for_long(serve: Serve) -> None:
    """Without `connection_init` in time the socket ends with 4408, whatever else is said on it."""
    served = serve(init_seconds=0.2)
    with served.open() as client:
        say(client, type="ping")
        assert hear(client) == {"type": "pong"}
        assert closed(client) == (4408, "Connection initialisation timeout")


def test_initialisation_happens_once(served: Served) -> None:
    """A second `connection_init` ends the socket with 4429."""
    with served.talking() as client:
        say(client, type="connection_init")
        assert closed(client) == (4429, "Too many initialisation requests")


def test_operations_wait_for_the_acknowledgement(served: Served) -> None:
    """`subscribe` before `connection_init` ends the socket with 4401, even where the header has a key."""
    with served.open() as client:
        subscribe(client, "a", "echo")
        assert closed(client) == (4401, "Unauthorized")


def test_an_id_is_in_use_once(served: Served) -> None:
    """A second operation under the id of a running one ends the socket with 4409, naming the id."""
    with served.talking() as client:
        subscribe(client, "ü" * 100, "wait")
        subscribe(client, "ü" * 100, "echo")
        code, reason = closed(client)
        assert code == 4409
        assert reason.startswith("Subscriber for üü")


MESSAGES: dict[str, str | bytes] = {
    "not JSON": "hello",
    "nothing": "",
    "an array": "[]",
    "no type": "{}",
    "an unknown type": '{"type":"start"}',
    "a long unknown type": json.dumps({"type": "ö" * 500}),
    "a type that is not a string": '{"type":1}',
    "a server's message": '{"type":"next","id":"1","payload":{}}',
    "no id": '{"type":"subscribe","payload":{"query":"echo"}}',
    "an empty id": '{"type":"subscribe","id":"","payload":{"query":"echo"}}',
    "a number as an id": '{"type":"subscribe","id":1,"payload":{"query":"echo"}}',
    "a very long id": json.dumps({"type": "subscribe", "id": "1" * 129, "payload": {"query": "echo"}}),
    "no payload": '{"type":"subscribe","id":"1"}',
    "an array as a payload": '{"type":"subscribe","id":"1","payload":[]}',
    "a query that is not a string": '{"type":"subscribe","id":"1","payload":{"query":1}}',
    "variables that are no object": '{"type":"subscribe","id":"1","payload":{"query":"echo","variables":[]}}',
    "a ping with an array": '{"type":"ping","payload":[]}',
    "complete without an id": '{"type":"complete"}',
    "half a surrogate pair": '{"type":"complete","id":"\\ud800"}',
    "much nesting": '{"type":"ping","payload":' + '{"a":' * 100_000 + "1" + "}" * 100_001,
    "a binary message": b'{"type":"ping"}',
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_of_another_form_ends_the_socket(served: Served, name: str) -> None:
    """Whatever is not a message of the protocol ends the socket with 4400 and a reason."""
    with served.talking() as client:
        client.send(MESSAGES[name])
        code, reason = closed(client)
        assert code == 4400
        assert reason


def test_a_ping_is_answered_with_its_payload(served: Served) -> None:
    """`ping` gets `pong` with the same payload, or without one; `pong` gets nothing."""
    with served.talking() as client:
        say(client, type="pong", payload={"a": 1})
        say(client, type="ping", payload={"b": [1, None]})
        assert hear(client) == {"type": "pong", "payload": {"b": [1, None]}}
        say(client, type="ping")
        assert hear(client) == {"type": "pong"}


def test_complete_cancels_the_operation_and_frees_the_id(serve: Serve) -> None:
    """`complete` cancels what runs under the id; nothing more comes for it, and it may be used again."""
    served = serve()
    with served.talking() as client:
        for query in ("wait", "stubborn"):
            subscribe(client, "a", query)
            assert served.told.begun.get(timeout=WAIT) == query
            say(client, type="complete", id="a")
            assert served.told.ended.get(timeout=WAIT).startswith(query)
        subscribe(client, "a", "echo", n=2)
        assert hear(client)["payload"] == {"data": {"n": 2}}
        assert hear(client) == {"id": "a", "type": "complete"}


def test_completing_what_has_ended_is_no_mistake(served: Served) -> None:
    """`complete` for an id that is not in use is ignored: it may have crossed the server's own."""
    with served.talking() as client:
        say(client, type="complete", id="never")
        subscribe(client, "a", "echo")
        assert hear(client)["type"] == "next"


def test_a_slow_operation_holds_up_nothing(served: Served) -> None:
    """While one operation runs, others of the same socket are begun and answered."""
    with served.talking() as client:
        subscribe(client, "slow", "wait")
        subscribe(client, "fast", "echo")
        assert hear(client)["id"] == "fast"


def test_a_refused_operation_gets_an_error_and_the_socket_stands(served: Served) -> None:
    """A request error is one `error` with its list, and no `complete`; the id is free again."""
    with served.talking() as client:
        subscribe(client, "a", "refused")
        error = hear(client)
        assert (error["type"], error["id"]) == ("error", "a")
        assert error["payload"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
        subscribe(client, "a", "echo")
        assert hear(client)["type"] == "next"


def test_a_failure_of_ours_tells_nothing_of_the_inside(served: Served) -> None:
    """An unexpected failure is an `error` INTERNAL without its cause; the socket stands."""
    with served.talking() as client:
        subscribe(client, "a", "broken")
        error = hear(client)
        assert error["payload"][0]["extensions"]["code"] == "INTERNAL"
        assert "secret" not in json.dumps(error)
        subscribe(client, "a", "echo")
        assert hear(client)["type"] == "next"


def test_what_is_wrong_in_a_payload_of_the_right_form_is_an_error(served: Served) -> None:
    """A NUL in a variable concerns one operation: it gets an `error`, and the socket stands."""
    with served.talking() as client:
        subscribe(client, "a", "echo", n="\0")
        error = hear(client)
        assert error["type"] == "error"
        assert error["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"


def test_a_socket_has_at_most_a_hundred_operations(served: Served) -> None:
    """The operation after the hundredth gets an `error` RATE_LIMITED; when one has ended there is room."""
    with served.talking() as client:
        for i in range(100):
            subscribe(client, str(i), "wait")
        subscribe(client, "more", "echo")
        error = hear(client)
        assert (error["type"], error["id"]) == ("error", "more")
        assert error["payload"][0]["extensions"]["code"] == "RATE_LIMITED"
        say(client, type="complete", id="0")
        while error["type"] == "error":
            subscribe(client, "more", "echo")
            error = hear(client)
        assert error["type"] == "next"


def test_everyone_who_watches_is_told(serve: Serve) -> None:
    """What is pushed arrives at each socket under its own id, in order."""
    served = serve()
    with served.talking() as one, served.talking(OTHER_KEY) as other:
        for client, id_ in ((one, "1"), (other, "2")):
            subscribe(client, id_, "watch")
            served.told.begun.get(timeout=WAIT)
        for n in (1, 2):
            served.announce(b'{"data":%d}' % n)
        for client, id_ in ((one, "1"), (other, "2")):
            assert [hear(client), hear(client)] == [
                {"id": id_, "type": "next", "payload": {"data": n}} for n in (1, 2)
            ]


@pytest.mark.parametrize("politely", [True, False])
def test_operations_end_with_their_socket(serve: Serve, politely: bool) -> None:
    """When the client goes, with a close or without, what it ran is cancelled and counted out."""
    served = serve()
    open_ = served.unread(b'{"type":"subscribe","id":"1","payload":{"query":"wait"}}')
    assert served.told.begun.get(timeout=WAIT) == "wait"
    if politely:
        open_.sendall(frame(b"\x03\xe8", 0x88))
    open_.close()
    assert served.told.ended.get(timeout=WAIT) == "wait cancelled"
    wait_until_open(served, 0)


def test_whoever_reads_nothing_is_dropped_and_hurts_nobody(serve: Serve) -> None:
    """A client that leaves what is pushed unread loses its socket; the others get all of it meanwhile."""
    served = serve(stuck_seconds=0.5)
    deaf = served.unread(b'{"type":"subscribe","id":"1","payload":{"query":"watch"}}')
    with deaf, served.talking() as client:
        subscribe(client, "1", "watch")
        for _ in range(2):
            served.told.begun.get(timeout=WAIT)
        news = b'{"data":"%b"}' % (b"x" * 100_000)
        for _ in range(100):  # more than the kernel holds for the deaf one
            served.announce(news)
        for _ in range(100):
            assert hear(client)["type"] == "next"
        assert served.told.ended.get(timeout=WAIT) == "watch cancelled"
        wait_until_open(served, 1)
        served.announce(b'{"data":"still here"}')
        assert hear(client)["payload"]["data"] == "still here"
        assert read_close(deaf) is None


def test_a_slow_reader_is_not_dropped(serve: Serve) -> None:
    """A client that takes what it gets slowly, but takes it, gets all of it."""
    served = serve(stuck_seconds=0.3)
    asks = b'{"type":"subscribe","id":"1","payload":{"query":"many","variables":{"bytes":300000,"times":3}}}'
    with served.unread(asks) as open_:
        received, ended = 0, ""
        while received < 900_000:
            chunk = open_.recv(4096)
            assert chunk
            received += len(chunk)
            with suppress(Empty):
                ended = ended or served.told.ended.get(timeout=0.005)  # that long it leaves the rest unread
        assert (ended or served.told.ended.get(timeout=WAIT)) == "many done"


def test_unread_results_are_bounded_in_bytes(serve: Serve) -> None:
    """A client that asks for much in many operations and reads nothing is dropped long before it is stuck."""
    served = serve(stuck_seconds=3600)
    asks = [
        b'{"type":"subscribe","id":"%d","payload":{"query":"many","variables":{"bytes":1000000,"times":1}}}'
        % i
        for i in range(50)
    ]
    with served.unread(*asks) as open_:
        wait_until_open(served, 0)
        assert read_close(open_) is None


def test_a_revoked_key_ends_its_sockets(serve: Serve) -> None:
    """When a key is no longer valid its sockets end with 4403, and no others."""
    served = serve(check_seconds=0.05)
    with served.talking() as client, served.talking(OTHER_KEY) as other:
        subscribe(client, "1", "wait")
        served.told.keys.discard(KEY.encode())
        assert closed(client) == (4403, "Forbidden")
        assert served.told.ended.get(timeout=WAIT) == "wait cancelled"
        subscribe(other, "1", "echo")
        assert hear(other)["type"] == "next"


def test_sockets_outlive_trouble_with_the_store(serve: Serve) -> None:
    """While keys cannot be looked up no open socket is ended, and new ones are asked to come again."""
    served = serve(check_seconds=0.05)
    with served.talking() as client:
        served.told.trouble = Unavailable("The database cannot be reached")
        assert refused(served).status_code == 503
        with served.open(key=None) as late:
            say(late, type="connection_init", payload={"authorization": KEY})
            assert closed(late)[0] == 1013
        subscribe(client, "1", "echo")
        assert hear(client)["type"] == "next"


def test_there_are_only_so_many_sockets(serve: Serve) -> None:
    """Beyond the limit upgrades are refused with 503; one key gets half of them, those without a tenth."""
    served = serve(maximum=4)
    with served.open(key=None), served.open():
        assert refused(served, key=None).status_code == 503
        with served.open():
            assert refused(served).status_code == 429
            with served.open(OTHER_KEY):
                answer = refused(served, key=OTHER_KEY)
                assert answer.status_code == 503
                assert answer.headers["retry-after"]
    wait_until_open(served, 0)
    with served.open():
        pass


def test_a_key_shown_late_has_the_same_share(serve: Serve) -> None:
    """A key in `connection_init` that has its share of sockets is asked to come again later, with 1013."""
    served = serve(maximum=2)
    with served.open(), served.open(key=None) as client:
        say(client, type="connection_init", payload={"authorization": KEY})
        assert closed(client)[0] == 1013


@pytest.mark.parametrize("path", ["/", "/v1/users", "/graphql/", "/GraphQL"])
def test_there_is_one_path_for_sockets(served: Served, path: str) -> None:
    """An upgrade at any other path is 404, as a problem."""
    answer = refused(served, path=path)
    assert answer.status_code == 404
    assert json.loads(answer.body)["instance"] == path
    assert answer.headers["x-request-id"]


HEADS = {
    "thousands of fields": (upgrade(*[f"X-{i}: 1" for i in range(5000)]), 431),
    "more fields than are taken": (upgrade(*[f"X-{i}: 1" for i in range(101)]), 431),
    "a long field": (upgrade("X-Long: " + "a" * 10_000), 431),
    "a field of megabytes": (upgrade("X-Long: " + "a" * 2_000_000), 431),
    "two hosts": (upgrade("Host: other.example"), 400),
    "no host": (upgrade().replace(b"Host: shop.example\r\n", b""), 400),
    "a POST": (upgrade().replace(b"GET", b"POST", 1), 405),
    "another version": (upgrade().replace(b"Version: 13", b"Version: 7"), 400),
    "no key": (upgrade().replace(b"Sec-WebSocket-Key", b"X-Key"), 400),
    "a bad key": (upgrade().replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"x"), 400),
}


@pytest.mark.parametrize("name", HEADS)
def test_the_head_of_an_upgrade_is_bounded_like_any_other(served: Served, name: str) -> None:
    """What is refused of a request's head is refused of an upgrade's; the connection is closed."""
    head, status = HEADS[name]
    with served.connect() as open_:
        try:
            open_.sendall(head)
        except (BrokenPipeError, ConnectionResetError):
            return
        answer = read_answer(open_)
        assert not answer or int(answer.split()[1]) == status
        with suppress(ConnectionResetError):
            assert open_.recv(1) == b""


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(b"x" * ((1 << 20) + 1)), 1009),
        (frame(b"a", 0x01) + frame(b"", 0x00) * 5000, 1009),
        (frame(b'{"type":"ping"}') * 20_000, 1008),
        (frame(b"\xff\xfe"), 1007),
        (frame(b"a", 0x83), 1002),
        (b"\x81\x01a", 1002),
    ],
    ids=["size", "fragments", "number", "not UTF-8", "an unknown opcode", "not masked"],
)
def test_what_comes_in_is_bounded(served: Served, sent: bytes, code: int) -> None:
    """Messages too large, in too many pieces, too many at once or not WebSocket's end the socket."""
    with served.unread() as open_:
        try:
            open_.sendall(sent)
        except (BrokenPipeError, ConnectionResetError):
            return
        assert read_close(open_) in (code, None)
    with served.talking() as client:
        subscribe(client, "1", "echo")
        assert hear(client)["type"] == "next"


def test_pings_that_are_not_read_cost_nothing(served: Served) -> None:
    """A flood of WebSocket pings whose pongs nobody reads is taken without being kept."""
    with served.unread() as open_:
        transports = [each._connection.transport for each in served.sockets._open if each._connection]
        for _ in range(100):
            open_.sendall(frame(b"x" * 125, 0x89) * 1000)
        sizes = [each.get_write_buffer_size() for each in transports]
        assert sizes
        assert max(sizes) < 1 << 20


def test_frames_before_the_answer_do_no_harm(serve: Serve) -> None:
    """Bytes that come with the request for an upgrade, or right behind it, break nothing for others."""
    served = serve()
    for early in (b"\xff" * 100, frame(b'{"type":"connection_init"}'), frame(b"", 0x88)):
        with served.connect() as open_:
            open_.sendall(upgrade() + early)
            open_.sendall(early)
            open_.shutdown(socket.SHUT_WR)
            read_answer(open_)
    with served.talking():
        pass
    wait_until_open(served, 0)


async def converse(served: Served, scope: dict[str, Any], *texts: str) -> list[Any]:
    """What the application sends on any server that knows ASGI and no more."""
    events = [{"type": "websocket.connect"}, *[{"type": "websocket.receive", "text": text} for text in texts]]
    waiting, sent = iter(events), []

    async def receive() -> Any:
        await asyncio.sleep(0)
        return next(waiting, {"type": "websocket.disconnect", "code": 1001})

    async def send(event: Any) -> None:
        sent.append(event)

    usual = {"type": "websocket", "scheme": "wss", "path": "/graphql", "query_string": b"", "headers": []}
    async with asyncio.timeout(WAIT):
        await served.app({**usual, "subprotocols": ["graphql-transport-ws"], **scope}, receive, send)
    return sent


def test_any_asgi_server_will_do(served: Served) -> None:
    """Without our server's extensions sockets are served too, and refused with its bare 403."""
    known = {"headers": [(b"authorization", KEY.encode())]}
    init, ping = '{"type":"connection_init"}', '{"type":"ping"}'

    def sent(scope: dict[str, Any], *texts: str) -> list[Any]:
        return asyncio.run_coroutine_threadsafe(converse(served, scope, *texts), served.loop).result(WAIT)

    accepted, *messages = sent(known, init, ping)
    assert (accepted["type"], accepted["subprotocol"]) == ("websocket.accept", "graphql-transport-ws")
    assert [json.loads(each["text"])["type"] for each in messages] == ["connection_ack", "pong"]
    assert sent(known, init, init)[-1]["code"] == 4429
    for refused_ in ({"path": "/none"}, {"headers": [(b"authorization", b"Bearer tp_bad")]}):
        assert sent(refused_) == [{"type": "websocket.close"}]


def test_shutdown_makes_clients_reconnect(serve: Serve) -> None:
    """A server that stops ends its sockets with 1012, and waits for what they ran, though one never reads."""
    served = serve()
    flood = (
        b'{"type":"subscribe","id":"1","payload":{"query":"many","variables":{"bytes":1000000,"times":99}}}'
    )
    with served.talking() as client, served.unread(flood):
        subscribe(client, "1", "wait")
        for _ in range(2):
            served.told.begun.get(timeout=WAIT)
        served.begin_to_stop()
        assert closed(client)[0] == 1012
        began = time.monotonic()
        served.stop()
        assert time.monotonic() - began < 10
        assert {served.told.ended.get(timeout=WAIT) for _ in range(2)} == {"wait cancelled", "many cancelled"}


def test_a_socket_leaves_one_line_and_is_counted_while_it_is_open(serve: Serve) -> None:
    """The canonical line of a socket comes at its end, with its code and key; a gauge says how many are open."""
    served = serve()
    with served.open(key=None) as client:
        say(client, type="connection_init", payload={"authorization": KEY})
        hear(client)
        assert b"\ntradepost_sockets_open 1.0\n" in served.app.metrics.exposition()
    line = served.lines.get(timeout=WAIT).decode()
    assert line.count("\n") == 1
    assert "WEBSOCKET /graphql 1000 " in line
    assert f"key={KEY}" in line
    assert b"\ntradepost_sockets_open 0.0\n" in served.app.metrics.exposition()
    refused(served, path="/none")
    assert "WEBSOCKET /none 404 " in served.lines.get(timeout=WAIT).decode()
