"""Which URLs may be the targets of webhooks, and what is dialled for them."""

import asyncio
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis.strategies import DrawFn, composite, from_regex, integers, sampled_from, text

from tests.egress.receiving import WAIT
from tests.egress.zone import PUBLIC, Seconds, Zone
from tradepost.egress.addresses import refusal
from tradepost.egress.resolver import Lookup, NameResolver
from tradepost.egress.targets import Targets

Run = Callable[[Coroutine[Any, Any, Any]], Any]

PRODUCTION, DEVELOPMENT = Targets(allow_private=False), Targets(allow_private=True)


def wide(text: str) -> str:
    """The same in full-width characters."""
    return "".join(chr(ord(character) + 0xFEE0) for character in text)


SOUND = """
    https://shop.example.com/hook https://shop.example.com https://shop.example.com:8443/a?b=c
    HTTPS://SHOP.example.com/ https://shop.example.com./ https://bücher.example/ https://a_b.co/
    https://8.8.8.8/ https://[2606:4700::1111]:443/ https://xn--bcher-kva.example/x https://example.com:/
    https://example.com?x https://1.example.com/ https://0x7f.example.com/
"""
FLAWED = {
    "must be an https URL": """
        shop.example.com /hook //shop.example.com/ http://shop.example.com/ https:/a.com https:shop.example.com
        ftp://shop.example.com/ wss://a.com/ javascript:alert(1) ://a.com file:///etc/passwd gopher://a.com/
    """,
    "must not contain a user name or password": """
        https://ada@shop.example.com/ https://ada:secret@shop.example.com/ https://@shop.example.com/
        https://:@shop.example.com/ https://a.com@127.0.0.1/ https://a@b@c.com/
    """,
    "must not contain a fragment": "https://a.com/#part https://a.com# https://a.com/?x#y",
    "must name a host": "https:// https:///hook https://:443/ https://?x",
    "has a host that is neither a name nor an address, or a port that is no number": f"""
        https://a..com/ https://.a.com/ https://a.com../ https://%31%32%37.0.0.1/ https://a,b.com/ https://.
        https://[::1/ https://::1/ https://[1.2.3.4]/ https://[::1]x/ https://[v1.a]/ https://[]/ https://*.com/
        https://a.com:80:80/ https://a.com:x/ https://a.com:+80/ https://a;b.co/ https://a%2eb/ https://0x100.1/
        https://256.1.1.1/ https://1.2.3.4.5/ https://08.0.0.1/ https://4294967296/ https://a.0x/ https://a.1/
        https://{"a" * 64}.com/ https://{"a." * 127}com/ https://{"ä" * 64}.de https://a\u200b.com/
        https://127.0.0.\u00ad1/ https://a.com:{wide("80")}/
    """,
    "has a port out of range": f"https://a.com:0/ https://a.com:65536/ https://a.com:1{'0' * 30}/",
    "names a host that is not public": f"""
        https://localhost/ https://LOCALHOST./ https://a.localhost/ https://localhost.localdomain/ https://shop/
        https://printer.local/ https://db.internal/ https://metadata.google.internal/ https://router.home.arpa/
        https://abc.onion/ https://x.lan/ https://{wide("localhost")}/
    """,
    "must be at most 2048 characters long": f"https://a.com/{'a' * 2048}",
}
UNPRINTABLE = [
    *(
        " https://a.com/",
        "https://a.com/ ",
        "https://a.com/a b",
        "https://a.com/\r\nX: y",
        "https://a\t.com/",
    ),
    *("https://a.com\\@b.com/", "https://a.com/\x00", "https://a.com/\x7f", "https://a.com/\u00a0"),
    *("https://a.com/\u2028", "https://a\u3000.com/", "https://a.com/\ud800", "https://a.com/\x85"),
]
SPELLINGS = f"""
    127.0.0.1 2130706433 0x7f000001 0X7F000001 017700000001 0177.0.0.1 0x7f.1 127.1 127.0.1 127.0.0.1. 127.1.
    2130706433. 127。0。0。1 ①②⑦.⓪.⓪.① 0x7f.0x0.0x0.0x1 127.000.000.001 [::1] [::1%25lo] [::1%lo]
    [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::FFFF:7F00:1]
    {wide("127.0.0.1")} {wide("0177.1")} {wide("0x7f000001")}
"""


@pytest.mark.parametrize("url", SOUND.split())
def test_public_https_urls_are_targets(url: str) -> None:
    """An absolute https URL with a public name or address is a target, in development as well."""
    assert PRODUCTION.refusal(url) is None
    assert DEVELOPMENT.refusal(url) is None


@pytest.mark.parametrize(
    ("flaw", "url"), [(flaw, url) for flaw, urls in FLAWED.items() for url in urls.split()]
)
def test_a_flaw_is_named(flaw: str, url: str) -> None:
    """Anything else is refused, with words for what is wrong."""
    assert PRODUCTION.refusal(url) == flaw


@pytest.mark.parametrize("url", UNPRINTABLE)
def test_nothing_unprintable_passes(url: str) -> None:
    """Spaces, line breaks, other controls and backslashes, on which parsers differ, are refused anywhere."""
    assert PRODUCTION.refusal(url) == "must not contain spaces, control characters or backslashes"


@pytest.mark.parametrize("spelling", SPELLINGS.split())
def test_loopback_is_refused_however_it_is_spelled(spelling: str) -> None:
    """Every spelling of a loopback address that `inet_aton` or a browser takes is that address."""
    assert PRODUCTION.refusal(f"https://{spelling}/hook") == "names a loopback address"
    assert PRODUCTION.refusal(f"https://{spelling}:8443") == "names a loopback address"


@pytest.mark.parametrize("spelling", SPELLINGS.split())
def test_what_is_dialled_is_the_address_that_was_judged(spelling: str) -> None:
    """Where loopback is allowed, an odd spelling goes out as the plain address."""
    url = DEVELOPMENT.target(f"http://{spelling}/hook").url
    assert url is not None
    assert url.raw_host in {"127.0.0.1", "::1", "::ffff:7f00:1"}
    assert refusal(url.raw_host, allow_private=False) == "a loopback address"


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://localhost:8787/",
            "https://localhost/",
            "http://shop.localhost/",
            "http://receiver:8080/hook",
            "http://host.docker.internal:8787/",
            "http://svc.default.svc.cluster.local/",
            "http://printer.local/",
        ),
        *("http://10.0.0.1/", "http://192.168.1.1/", "http://[fd12:3456::1]/", "http://shop.example.com/"),
    ],
)
def test_development_has_http_and_this_network(url: str) -> None:
    """`allow_private` lets pass http, this machine, this network, and any name; production does not."""
    assert DEVELOPMENT.refusal(url) is None
    assert PRODUCTION.refusal(url) is not None


@pytest.mark.parametrize(
    ("url", "flaw"),
    [
        ("http://169.254.169.254/latest/meta-data/", "names a cloud's metadata address"),
        ("http://[fe80::1%25eth0]/", "names a link-local address"),
        ("http://0/", "names the unspecified address"),
        ("http://[64:ff9b::7f00:1]/", "names an address that stands for an IPv4 address"),
        ("ftp://localhost/", "must be an https or http URL"),
        ("http://ada@localhost/", "must not contain a user name or password"),
    ],
)
def test_development_refuses_the_rest(url: str, flaw: str) -> None:
    """`allow_private` lets pass nothing else: no metadata, link-local or embedded address."""
    assert DEVELOPMENT.refusal(url) == flaw


@pytest.mark.parametrize(
    ("url", "dialled"),
    [
        ("https://Shop.Example.COM/Hook", "https://shop.example.com/Hook"),
        ("https://shop.example.com./x", "https://shop.example.com/x"),
        ("https://shop.example.com?a=1", "https://shop.example.com/?a=1"),
        ("https://shop.example.com:08443/", "https://shop.example.com:8443/"),
        (
            "https://a.com/x/../y//z;p/%7e%2F?sig=a%2Fb+c%2B&x[]='1'",
            "https://a.com/x/../y//z;p/%7e%2F?sig=a%2Fb+c%2B&x[]='1'",
        ),
        ("https://a.com/ä?ö=<ü>", "https://a.com/%C3%A4?%C3%B6=%3C%C3%BC%3E"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ],
)
def test_path_and_query_go_out_as_they_were_registered(url: str, dialled: str) -> None:
    """The host is dialled in its plain form; of path and query only what no URL may hold is encoded."""
    target = PRODUCTION.target(url)
    assert str(target.url) == dialled


BASES = sampled_from([("", "d"), ("0", "o"), ("0x", "x"), ("0X", "X")])


@composite
def spellings(draw: DrawFn) -> tuple[IPv4Address, str]:
    """An IPv4 address, and one of the ways to write it."""
    address = IPv4Address(draw(integers(0, 2**32 - 1)))
    count = draw(integers(1, 4))
    octets = list(address.packed)
    parts = [*octets[: count - 1], int.from_bytes(bytes(octets[count - 1 :]), "big")]
    written = ".".join(f"{prefix}{part:{base}}" for part in parts for prefix, base in [draw(BASES)])
    return address, written + draw(sampled_from(["", "."]))


@given(spellings())
def test_any_spelling_is_judged_as_the_address_it_spells(spelled: tuple[IPv4Address, str]) -> None:
    """Decimal, octal, hexadecimal, one part to four: judged and dialled as the plain address, as inet_aton has it."""
    address, written = spelled
    assert socket.inet_aton(written.rstrip(".")) == address.packed
    words = refusal(str(address), allow_private=False)
    target = PRODUCTION.target(f"https://{written}/")
    assert target.flaw == (words and f"names {words}")
    assert words or (target.url and target.url.raw_host) == str(address)


@given(from_regex(r"[0-9a-fx.]{1,20}", fullmatch=True))
@example("0x7f.1")
@example("0x")
def test_no_name_is_an_address_in_disguise(host: str) -> None:
    """What is taken for a name is nothing that the system would read as an address."""
    for targets in (PRODUCTION, DEVELOPMENT):
        name = targets.target(f"https://{host}/").name
        if name is not None:
            with pytest.raises(OSError, match="illegal"):
                socket.inet_aton(name)


@given(text())
def test_no_text_raises(url: str) -> None:
    """Whatever is given for a URL, it is judged; what passes is printable ASCII with a host in it."""
    for prefix in ("", "https://", "https://a.com/", "https://a.com:"):
        target = DEVELOPMENT.target(prefix + url)
        assert (target.url is None) == (target.flaw is not None)
        if target.url is not None:
            assert re.fullmatch(r"https?://[!-~]+", str(target.url))
            assert target.url.raw_host
            assert target.url.raw_user is None


@asynccontextmanager
async def targets_in(lookup: Lookup, **options: Any) -> AsyncIterator[Targets]:
    names = NameResolver(allow_private=False, lookup=lookup, **options)
    targets = Targets(allow_private=False, resolver=names)
    try:
        async with asyncio.timeout(WAIT):
            yield targets
    finally:
        await targets.close()


def test_a_name_that_points_at_a_refused_address_is_refused_for_a_minute(run: Run) -> None:
    """What a look-up found about a host counts for all its URLs, until it is a minute old."""

    async def scene() -> None:
        now = Seconds()
        async with targets_in(Zone(**{"shop.example.com": [["10.0.0.1"]]}), monotonic=now) as targets:
            assert targets.refusal("https://shop.example.com/") is None
            await targets.look_up("https://shop.example.com/")
            for now.passed in (0.0, 59.9):
                assert targets.refusal("https://SHOP.example.com:8443/x") == "points at a private address"
            assert targets.refusal("https://other.example.com/") is None
            now.passed = 60.1
            assert targets.refusal("https://shop.example.com/") is None

    run(scene())


def test_a_name_that_points_elsewhere_by_now_is_refused_no_more(run: Run) -> None:
    """A later look-up that finds good addresses takes the refusal back."""

    async def scene() -> None:
        async with targets_in(Zone(**{"shop.example.com": [["10.0.0.1"], [PUBLIC]]})) as targets:
            await targets.look_up("https://shop.example.com/")
            assert targets.refusal("https://shop.example.com/") is not None
            await targets.look_up("https://shop.example.com/")
            assert targets.refusal("https://shop.example.com/") is None

    run(scene())


def test_a_name_that_is_not_found_is_no_flaw(run: Run) -> None:
    """Whatever a look-up fails with, it never raises, and refuses nothing."""

    def find(host: str) -> Sequence[str]:
        raise {"a": socket.gaierror(-2, "not known"), "b": ValueError("odd"), "c": OSError("down")}[host[0]]

    async def scene() -> None:
        async with targets_in(find) as targets:
            for url in ("https://a.example.com/", "https://b.example.com/", "https://c.example.com/"):
                await targets.look_up(url)
                assert targets.refusal(url) is None

    run(scene())


def test_only_names_of_sound_urls_are_looked_up(run: Run) -> None:
    """A URL that is refused anyway, or has an address for a host, is not looked up."""

    async def scene() -> None:
        zone = Zone()
        async with targets_in(zone) as targets:
            for url in (
                "https://8.8.8.8/",
                "https://[::1]/",
                "https://localhost/",
                "nonsense",
                "https://a b/",
            ):
                await targets.look_up(url)
            await targets.look_up("https://a.com/" + 2048 * "x")
            assert not zone.asked
            await targets.look_up("https://Bücher.example/")
            assert zone.asked == ["xn--bcher-kva.example"]

    run(scene())


def test_a_look_up_that_hangs_is_given_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`look_up` waits its two seconds (here less) for a silent name, and no longer."""
    monkeypatch.setattr("tradepost.egress.targets._LOOK_UP_SECONDS", 0.05)
    speak = threading.Event()

    def find(host: str) -> Sequence[str]:
        assert speak.wait(WAIT)
        return [PUBLIC]

    async def scene() -> None:
        async with targets_in(find) as targets:
            await targets.look_up("https://shop.example.com/")
            assert targets.refusal("https://shop.example.com/") is None
            speak.set()

    run(scene())
