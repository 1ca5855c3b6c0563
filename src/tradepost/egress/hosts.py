"""Hosts of URLs, in the one spelling that is judged, looked up and dialled.

An IPv4 address has many spellings: decimal, octal, hexadecimal, with fewer parts, in full-width digits. They
are read as `inet_aton` and browsers read them (WHATWG URL, "IPv4 parser"), so that none hides an address.
"""

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from yarl import URL

_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
_NUMBER = re.compile(r"0x(?P<hex>[0-9a-f]*)|0(?P<octal>[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_LAST_PART_OF_ADDRESS = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PARTS = 4
_LONGEST_NAME = 253

# Top-level names of one machine or one network (RFC 6762 with its appendix G, 7686, 8375, 9476).
_NEVER_PUBLIC = {
    *("localhost", "localdomain"),
    *("local", "internal", "intranet", "private", "corp", "home", "lan", "arpa"),
    *("onion", "alt"),
}


class Host(NamedTuple):
    """A host: a name in lower case, encoded (IDNA), or an IP address without brackets."""

    text: str
    is_address: bool

    @property
    def bracketed(self) -> str:
        """The host as URLs have it."""
        return f"[{self.text}]" if ":" in self.text else self.text


def parse(text: str) -> Host:
    """The host that the text in a URL names, brackets included. Raises ValueError if it names none."""
    if text.startswith("["):
        return Host(str(IPv6Address(text[1:-1].partition("%")[0])), True)
    name = URL.build(scheme="https", host=text).raw_host or ""
    labels = name.rstrip(".").split(".")
    if _LAST_PART_OF_ADDRESS.fullmatch(labels[-1]):
        return Host(str(_ipv4(labels)), True)
    if name.endswith("..") or len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("neither a name nor an address")
    return Host(".".join(labels), False)


def is_public(name: str) -> bool:
    """Whether a name may be in the public DNS."""
    first, _, last = name.rpartition(".")
    return bool(first) and last not in _NEVER_PUBLIC


def _ipv4(parts: list[str]) -> IPv4Address:
    """`0x7f`, `1` → 127.0.0.1: the last part fills the remaining bytes. Raises ValueError if it cannot."""
    *leading, last = map(_number, parts)
    if len(parts) > _PARTS or any(number > 0xFF for number in leading):  # noqa: PLR2004 (a byte's greatest)
        raise ValueError("too many parts, or too great ones")
    rest = 8 * (_PARTS - len(leading))
    if last >> rest:
        raise ValueError("the last part is too great")
    high = int.from_bytes(bytes(leading), "big")
    return IPv4Address(high << rest | last)


def _number(part: str) -> int:
    found = _NUMBER.fullmatch(part)
    if not found:
        raise ValueError("not a number")
    base = {"hex": 16, "octal": 8, "decimal": 10}[found.lastgroup or "decimal"]
    return int(found[found.lastgroup or "decimal"] or "0", base)
