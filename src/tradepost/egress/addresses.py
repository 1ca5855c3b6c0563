"""Which IP addresses may be dialled: those of the public internet, and in development this network's own.

The list is explicit and follows IANA's special-purpose registries (RFC 6890): `ipaddress.is_global` permits
multicast, NAT64, 6to4 and site-local addresses, and those at which clouds serve their metadata.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_Network = IPv4Network | IPv6Network

_LOOPBACK, _PRIVATE, _UNIQUE_LOCAL = "a loopback address", "a private address", "a unique-local address"
_ALLOWED_IN_DEVELOPMENT = {_LOOPBACK, _PRIVATE, _UNIQUE_LOCAL}
_RESERVED = "a reserved address"
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_METADATA = "a cloud's metadata address"
_DOCUMENTATION = "a documentation address"
_TRANSLATED = "an address that stands for an IPv4 address"

# The first entry that contains an address describes it.
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
    (ip_network(network), description) for description, networks in _REFUSED for network in networks
)


class Blocked(OSError):
    """An address may not be dialled: `description` says what it is. An `OSError`: no connection was made."""

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self.description = description


def refusal(address: str, *, allow_private: bool) -> str | None:
    """What kind of address an IP address is, such as `a loopback address`, or None if it may be dialled.

    An IPv6 scope (`%eth0`) is ignored. An address mapped from IPv4 is judged as that IPv4 address; all other
    ways to put an IPv4 address into an IPv6 address are refused. With `allow_private`, loopback, private
    (RFC 1918) and unique-local addresses may be dialled too, but never a cloud's metadata.
    """
    try:
        judged = ip_address(address.partition("%")[0])
    except ValueError:
        return "no IP address"
    if isinstance(judged, IPv6Address) and judged.ipv4_mapped:
        judged = judged.ipv4_mapped
    description = _description(judged)
    return None if allow_private and description in _ALLOWED_IN_DEVELOPMENT else description


def check(address: str, *, allow_private: bool) -> None:
    """Raises `Blocked` if an address may not be dialled."""
    description = refusal(address, allow_private=allow_private)
    if description is not None:
        raise Blocked(description)


def _description(address: IPv4Address | IPv6Address) -> str | None:
    for network, description in _NETWORKS:
        if address in network:
            return description
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return _RESERVED
    return None if address.is_global else _RESERVED
