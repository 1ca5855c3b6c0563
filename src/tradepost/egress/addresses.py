"""Which IP addresses may be dialled: those of the public internet, and in development this network's own.

The list is explicit, after the special-purpose registries of IANA (RFC 6890): `ipaddress.is_global` lets
multicast pass, NAT64, 6to4, site-local addresses, and those that clouds answer from.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_Network = IPv4Network | IPv6Network

_LOOPBACK, _PRIVATE, _UNIQUE_LOCAL = "a loopback address", "a private address", "a unique-local address"
_AT_HOME = {_LOOPBACK, _PRIVATE, _UNIQUE_LOCAL}  # what development may dial
_RESERVED = "a reserved address"
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_METADATA = "a cloud's metadata address"
_DOCUMENTATION = "a documentation address"
_TRANSLATED = "an address that stands for an IPv4 address"

# The first that holds an address names it.
_REFUSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_METADATA, ("169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")),
    (_METADATA, ("fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128")),
    ("the unspecified address", ("0.0.0.0/32", "::/128")),
    (_LOOPBACK, ("127.0.0.0/8", "::1/128")),
    (_PRIVATE, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    (_UNIQUE_LOCAL, ("fc00::/7",)),
    ("a link-local address", ("169.254.0.0/16", "fe80::/10")),
    ("a site-local address", ("fec0::/10",)),
    ("a shared address of a carrier", ("100.64.0.0/10",)),
    (_DOCUMENTATION, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")),
    ("a benchmarking address", ("198.18.0.0/15", "2001:2::/48")),
    ("a 6to4 relay's address", ("192.88.99.0/24",)),
    ("a multicast address", ("224.0.0.0/4", "ff00::/8")),
    ("the broadcast address", ("255.255.255.255/32",)),
    (_RESERVED, ("0.0.0.0/8", "192.0.0.0/24", "240.0.0.0/4")),
    (_TRANSLATED, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")),
    (_RESERVED, ("100::/64", "2001::/23", "5f00::/16")),
)
_NETWORKS: tuple[tuple[_Network, str], ...] = tuple(
    (ip_network(network), words) for words, networks in _REFUSED for network in networks
)


class Blocked(OSError):
    """An address may not be dialled; `words` say what it is. An `OSError`: the connection was not made."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def refusal(address: str, *, allow_private: bool) -> str | None:
    """What an IP address is that may not be dialled, as in `a loopback address`; None if it may be.

    An IPv6 scope (`%eth0`) is nothing to go by. An address mapped from IPv4 is as good as that one; all other
    ways to put an IPv4 address into an IPv6 address are refused. With `allow_private` loopback, private
    (RFC 1918) and unique-local addresses may be dialled too, a cloud's metadata never.
    """
    try:
        judged = ip_address(address.partition("%")[0])
    except ValueError:
        return "no IP address"
    if isinstance(judged, IPv6Address) and judged.ipv4_mapped:
        judged = judged.ipv4_mapped
    words = _words(judged)
    return None if allow_private and words in _AT_HOME else words


def check(address: str, *, allow_private: bool) -> None:
    """Raises `Blocked` if an address may not be dialled."""
    words = refusal(address, allow_private=allow_private)
    if words is not None:
        raise Blocked(words)


def _words(address: IPv4Address | IPv6Address) -> str | None:
    for network, words in _NETWORKS:
        if address in network:
            return words
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return _RESERVED
    return None if address.is_global else _RESERVED
