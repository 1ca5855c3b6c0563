"""Rate limits: a bucket for each key, for each address without one; in process, or shared through Redis."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from redis import Redis

from tests import shop
from tests.engines.redis import Server, redis_server
from tests.service import Reply, Service, _exchange
from tradepost import settings
from tradepost.access import rate_limits

FIELD = re.compile(r'"default";r=(\d+);t=(\d+)')


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that buckets refill by, held still; `now.at` moves it."""
    clock = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: clock.at))
    return clock


def _left(reply: Reply) -> tuple[int, int]:
    """What RateLimit says: what remains, and the seconds until it is full or enough again."""
    found = FIELD.fullmatch(reply.headers["ratelimit"])
    assert found is not None, reply.headers["ratelimit"]
    return int(found[1]), int(found[2])


def _from(service: Service, address: str, path: str = "/v1/users", authorization: str | None = None) -> Reply:
    """A GET from an address of the network, without a key unless one is given."""
    headers = [(b"host", b"shop.example")]
    if authorization:
        headers.append((b"authorization", authorization.encode()))
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "client": (address, 40000),
    }
    return service.run(_exchange(service.app, scope, b""))


def test_every_answer_says_what_is_left(new_service: Callable[..., Service], now: SimpleNamespace) -> None:
    """Each answer tells the policy and what remains of it (draft-ietf-httpapi-ratelimit-headers)."""
    service = new_service("sqlite", rate_limit="5/hour")
    replies = [
        service.get("/v1/users"),
        service.post("/v1/users", {}),
        service.get("/v1/users/nobody"),
        service.call("PUT", "/v1/users"),
        service.post("/v1/users", shop.user_body()),
    ]
    assert [reply.status for reply in replies] == [200, 422, 404, 405, 201]
    assert {reply.headers["ratelimit-policy"] for reply in replies} == {'"default";q=5;w=3600'}
    assert [_left(reply)[0] for reply in replies] == [4, 3, 2, 1, 0]
    assert [_left(reply)[1] for reply in replies] == [720, 1440, 2160, 2880, 3600]


def test_over_the_limit_is_429_until_retry_after(
    new_service: Callable[..., Service], now: SimpleNamespace
) -> None:
    """A 429 says when to come again; a moment before it is still 429, at that moment it is not."""
    service = new_service("sqlite", rate_limit="3/hour")
    for _ in range(3):
        assert service.get("/v1/users").status == 200
    refused = service.get("/v1/users")
    assert (refused.status, refused.headers["content-type"]) == (429, "application/problem+json")
    assert refused.json["type"].endswith("/problems/rate-limited")
    wait = int(refused.headers["retry-after"])
    assert wait == 1200
    assert _left(refused) == (0, wait)
    assert refused.headers["ratelimit-policy"] == '"default";q=3;w=3600'
    now.at += wait - 1
    again = service.get("/v1/users")
    assert (again.status, again.headers["retry-after"]) == (429, "1")
    now.at += 1
    assert service.get("/v1/users").status == 200
    assert service.get("/v1/users").status == 429


def test_a_refused_request_does_nothing(new_service: Callable[..., Service], now: SimpleNamespace) -> None:
    """A POST over the limit makes nothing, a DELETE removes nothing, and neither draws on the budget."""
    service = new_service("sqlite", rate_limit="2/hour")
    path = f"/v1/users/{shop.a_user(service)['id']}"
    service.get(path)
    for _ in range(50):
        assert service.post("/v1/users", shop.user_body()).status == 429
        assert service.call("DELETE", path).status == 429
    now.at += 3600
    assert len(shop.get(service, "/v1/users")["items"]) == 1


def test_a_bucket_fills_again_and_no_higher(
    new_service: Callable[..., Service], now: SimpleNamespace
) -> None:
    """After any long time the whole budget is there, once."""
    service = new_service("sqlite", rate_limit="3/hour")
    for hours in (0, 1, 1000):
        now.at += hours * 3600
        assert [service.get("/v1/users").status for _ in range(5)] == [200, 200, 200, 429, 429]
    now.at += 1200
    assert [service.get("/v1/users").status for _ in range(2)] == [200, 429]


def test_each_key_has_its_own_bucket(new_service: Callable[..., Service], now: SimpleNamespace) -> None:
    """What one key spends is not another's, wherever they call from."""
    service = new_service("sqlite", rate_limit="2/hour")
    one, other = (service.new_key("users:read") for _ in range(2))
    assert [service.get("/v1/users", key=one).status for _ in range(3)] == [200, 200, 429]
    assert [service.get("/v1/users", key=other).status for _ in range(3)] == [200, 200, 429]
    assert _from(service, "198.51.100.7", authorization=f"Bearer {one}").status == 429


def test_without_a_key_each_address_has_its_own(
    new_service: Callable[..., Service], now: SimpleNamespace
) -> None:
    """Whoever shows no key, or a bad one, draws on their address: keys cannot be guessed without end."""
    service = new_service("sqlite", rate_limit="3/hour")
    guesses = [None, "Bearer tp_guess001_a", "Bearer tp_guess002_b", "Bearer tp_guess003_c", None, "Basic x"]
    found = [_from(service, "198.51.100.7", authorization=guess).status for guess in guesses]
    assert found == [401, 401, 401, 429, 429, 429]
    assert _from(service, "198.51.100.8").status == 401
    assert _from(service, "198.51.100.7", authorization=f"Bearer {service.key}").status == 200


def test_a_304_is_free(new_service: Callable[..., Service], now: SimpleNamespace) -> None:
    """A conditional GET that is answered 304 costs nothing, in the budget and in what is said of it."""
    service = new_service("sqlite", rate_limit="3/hour")
    tag = service.get("/v1/users").headers["etag"]
    for _ in range(20):
        reply = service.get("/v1/users", if_none_match=tag)
        assert (reply.status, _left(reply)[0]) == (304, 2)
    assert [service.get("/v1/users").status for _ in range(3)] == [200, 200, 429]


def test_what_explains_the_service_is_never_refused(
    new_service: Callable[..., Service], now: SimpleNamespace
) -> None:
    """Liveness and readiness are answered to an address that has spent its budget."""
    service = new_service("sqlite", rate_limit="1/hour")
    assert [_from(service, "198.51.100.7").status for _ in range(2)] == [401, 429]
    for path in ("/livez", "/readyz"):
        assert _from(service, "198.51.100.7", path).status == 200


def test_the_limit_is_a_thousand_a_second_unless_set() -> None:
    """The default is 1000/second."""
    assert settings.load({}).rate_limit == (1000, 1)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("1/second", (1, 1)),
        ("600/minute", (600, 60)),
        ("100/10 seconds", (100, 10)),
        (" 5 / 2 hours ", (5, 7200)),
    ],
)
def test_a_limit_is_so_many_in_a_time(text: str, limit: tuple[int, int]) -> None:
    """A limit is spelled as a number and a time."""
    assert settings.load({"TRADEPOST_RATE_LIMIT": text}).rate_limit == limit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0/second",
        "-1/second",
        "1000",
        "10/fortnight",
        "1/0 seconds",
        "1.5/second",
        "10/",
        "/second",
        "٣/second",
    ],
)
def test_a_bad_limit_stops_the_start_with_one_line(text: str) -> None:
    """A limit that cannot be used is refused where settings are read, by the name of the setting."""
    with pytest.raises(settings.BadSetting) as caught:
        settings.load({"TRADEPOST_RATE_LIMIT": text})
    assert "TRADEPOST_RATE_LIMIT" in str(caught.value)
    assert "\n" not in str(caught.value)


# --- shared through Redis ---


@pytest.fixture(scope="module")
def redis() -> Iterator[Server]:
    with redis_server() as server:
        if server.url is None:
            pytest.skip(server.source)
        yield server


def _pair(new_database: Callable[[str], str], **options: str) -> tuple[Service, Service]:
    url = new_database("sqlite")
    return Service(url, **options), Service(url, **options)


def test_two_services_draw_on_one_budget(redis: Server, new_database: Callable[[str], str]) -> None:
    """With Redis a key's budget is the same at every process; 304s are free there too."""
    one, other = _pair(new_database, rate_limit="4/hour", redis_url=redis.url or "")
    try:
        key = one.new_key("users:read")
        first = one.get("/v1/users", key=key)
        assert (first.status, _left(first)[0]) == (200, 3)
        second = other.get("/v1/users", key=key)
        assert (second.status, _left(second)[0]) == (200, 2)
        for service in (one, other) * 5:
            free = service.get("/v1/users", key=key, if_none_match=first.headers["etag"])
            assert (free.status, _left(free)[0]) == (304, 2)
        assert [service.get("/v1/users", key=key).status for service in (one, other, one, other)] == [
            200,
            200,
            429,
            429,
        ]
        refused = other.get("/v1/users", key=key)
        assert 1 <= int(refused.headers["retry-after"]) <= 900
        assert refused.headers["ratelimit-policy"] == '"default";q=4;w=3600'
        assert one.get("/v1/users").status == 200  # another key's budget is whole
    finally:
        other.stop()
        one.stop()


def test_requests_at_once_never_draw_more_than_there_is(
    redis: Server, new_database: Callable[[str], str]
) -> None:
    """Forty requests at once at two services, for a budget of ten: ten are let in."""
    one, other = _pair(new_database, rate_limit="10/hour", redis_url=redis.url or "")
    try:
        headers = {"authorization": f"Bearer {one.new_key('users:read')}"}
        running = [
            service.begin(service._call("GET", "/v1/users", None, None, headers))
            for service in (one, other) * 20
        ]
        found = sorted(each.result(60).status for each in running)
        assert found == [200] * 10 + [429] * 30
    finally:
        other.stop()
        one.stop()


def test_what_is_kept_in_redis_does_not_stay(redis: Server, new_database: Callable[[str], str]) -> None:
    """A bucket is forgotten once it is full again, and no key is written where others could read it."""
    one, other = _pair(new_database, rate_limit="10/minute", redis_url=redis.url or "")
    try:
        key = one.new_key("users:read")
        assert one.get("/v1/users", key=key).status == 200
        with Redis.from_url(redis.url or "", decode_responses=True) as client:
            names = [str(name) for name in client.scan_iter()]
            assert names
            assert all(client.ttl(name) > 0 for name in names)
            assert not any(key in name or key.rpartition("_")[2] in name for name in names)
    finally:
        other.stop()
        one.stop()


def test_when_redis_goes_away_requests_go_on(
    new_database: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """A Redis that dies is logged and costs no request; each process then limits by itself."""
    with redis_server() as server:
        if server.url is None:
            pytest.skip(server.source)
        if server.pid is None:
            pytest.skip("a Redis that was given to us is not ours to kill")
        one, other = _pair(new_database, rate_limit="3/hour", redis_url=server.url)
        try:
            key = one.new_key("users:read")
            assert [service.get("/v1/users", key=key).status for service in (one, other, one)] == [200] * 3
            assert other.get("/v1/users", key=key).status == 429
            os.kill(server.pid, signal.SIGKILL)
            for service in (one, other):
                assert [service.get("/v1/users", key=key).status for _ in range(4)] == [200, 200, 200, 429]
            assert "Redis" in caplog.text
        finally:
            other.stop()
            one.stop()


def test_a_redis_that_was_never_there_stops_nothing(new_database: Callable[[str], str]) -> None:
    """Without its Redis a service starts and answers, limited by its own count."""
    one, other = _pair(new_database, rate_limit="2/hour", redis_url="redis://127.0.0.1:1/0")
    try:
        for service in (one, other):
            key = service.new_key("users:read")
            assert [service.get("/v1/users", key=key).status for _ in range(3)] == [200, 200, 429]
    finally:
        other.stop()
        one.stop()
