"""Which IP addresses may be dialled."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis.strategies import integers, ip_addresses, sampled_from

from tradepost.egress.addresses import refusal

PUBLIC = [
    *("93.184.215.14", "8.8.8.8", "1.1.1.1", "192.0.1.1", "172.15.255.255", "172.32.0.1", "100.63.0.1"),
    *("100.128.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001:81b::200e", "2001:200::1"),
    *("::ffff:8.8.8.8", "2606:4700::1111%eth0"),
]
AT_HOME = {
    "127.0.0.1": "a loopback address",
    "127.255.255.254": "a loopback address",
    "::1": "a loopback address",
    "::1%lo": "a loopback address",
    "::ffff:127.0.0.1": "a loopback address",
    "10.0.0.1": "a private address",
    "172.16.0.1": "a private address",
    "172.31.255.255": "a private address",
    "192.168.1.1": "a private address",
    "::ffff:192.168.1.1": "a private address",
    "fc00::1": "a unique-local address",
    "fd12:3456::1": "a unique-local address",
}
NOWHERE = {
    "0.0.0.0": "the unspecified address",
    "::": "the unspecified address",
    "0.1.2.3": "a reserved address",
    "169.254.1.1": "a link-local address",
    "::ffff:169.254.1.1": "a link-local address",
    "fe80::1": "a link-local address",
    "fe80::1%eth0": "a link-local address",
    "febf::1": "a link-local address",
    "fec0::1": "a site-local address",
    "169.254.169.254": "a cloud's metadata address",
    "::ffff:169.254.169.254": "a cloud's metadata address",
    "168.63.129.16": "a cloud's metadata address",
    "100.100.100.200": "a cloud's metadata address",
    "192.0.0.192": "a cloud's metadata address",
    "fd00:ec2::254": "a cloud's metadata address",
    "fd20:ce::254": "a cloud's metadata address",
    "100.64.0.1": "a shared address of a carrier",
    "192.0.0.1": "a reserved address",
    "192.0.2.1": "a documentation address",
    "198.51.100.1": "a documentation address",
    "203.0.113.1": "a documentation address",
    "2001:db8::1": "a documentation address",
    "3fff:fff::1": "a documentation address",
    "198.18.0.1": "a benchmarking address",
    "198.19.255.255": "a benchmarking address",
    "192.88.99.1": "a 6to4 relay's address",
    "224.0.0.1": "a multicast address",
    "239.255.255.255": "a multicast address",
    "ff02::1": "a multicast address",
    "ff0e::1": "a multicast address",
    "240.0.0.1": "a reserved address",
    "255.255.255.255": "the broadcast address",
    "64:ff9b::7f00:1": "an address that stands for an IPv4 address",
    "64:ff9b::808:808": "an address that stands for an IPv4 address",
    "64:ff9b:1::7f00:1": "an address that stands for an IPv4 address",
    "2002:7f00:1::": "an address that stands for an IPv4 address",
    "2002:808:808::1": "an address that stands for an IPv4 address",
    "2001::1": "an address that stands for an IPv4 address",
    "::127.0.0.1": "an address that stands for an IPv4 address",
    "::8.8.8.8": "an address that stands for an IPv4 address",
    "::ffff:0:127.0.0.1": "an address that stands for an IPv4 address",
    "2001:10::1": "a reserved address",
    "2001:1ff::1": "a reserved address",
    "100::1": "a reserved address",
    "5f00::1": "a reserved address",
    "4000::1": "a reserved address",
    "": "no IP address",
    "localhost": "no IP address",
    "127.1": "no IP address",
    "0177.0.0.1": "no IP address",
}


@pytest.mark.parametrize("allow_private", [False, True])
@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_dialled(address: str, allow_private: bool) -> None:
    """Public addresses may be dialled, also as they are mapped into IPv6."""
    assert refusal(address, allow_private=allow_private) is None


@pytest.mark.parametrize(("address", "words"), AT_HOME.items())
def test_addresses_of_this_network_may_be_dialled_in_development_alone(address: str, words: str) -> None:
    """Loopback, private and unique-local addresses are refused by what they are, and allowed on request."""
    assert refusal(address, allow_private=False) == words
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize("allow_private", [False, True])
@pytest.mark.parametrize(("address", "words"), NOWHERE.items())
def test_no_other_address_is_ever_dialled(address: str, words: str, allow_private: bool) -> None:
    """What is neither public nor of this network is refused in development, too."""
    assert refusal(address, allow_private=allow_private) == words


@given(ip_addresses())
def test_what_may_be_dialled_is_global_unicast(address: IPv4Address | IPv6Address) -> None:
    """Any address that may be dialled is global by the registries and no multicast."""
    if refusal(str(address), allow_private=False) is None:
        judged = getattr(address, "ipv4_mapped", None) or address
        assert judged.is_global
        assert not judged.is_multicast


@given(ip_addresses(v=4))
def test_a_mapped_address_is_as_good_as_the_one_it_maps(address: IPv4Address) -> None:
    """An IPv4 address and the same mapped into IPv6 are judged alike, in development as well."""
    for allow_private in (False, True):
        mapped = refusal(f"::ffff:{address}", allow_private=allow_private)
        assert mapped == refusal(str(address), allow_private=allow_private)


@given(
    ip_addresses(v=4),
    sampled_from(
        [("::", 0), ("::ffff:0:0:0", 0), ("64:ff9b::", 0), ("64:ff9b:1::", 0), ("2002::", 80), ("2001::", 0)]
    ),
    integers(0, 0xFFFF),
)
def test_no_ipv4_address_gets_through_embedded(
    address: IPv4Address, where: tuple[str, int], rest: int
) -> None:
    """No IPv4 address, public or not, is reached by way of IPv6: compatible, translated, NAT64, 6to4, Teredo."""
    prefix, shift = where
    inner = int(address) ^ (0xFFFFFFFF if prefix == "2001::" else 0)
    embedded = IPv6Address(int(IPv6Address(prefix)) | inner << shift | (rest if shift else 0))
    if int(embedded) != 1:  # ::1, which is loopback
        for allow_private in (False, True):
            assert refusal(str(embedded), allow_private=allow_private) is not None


@given(ip_addresses())
def test_a_scope_changes_nothing(address: IPv4Address | IPv6Address) -> None:
    """An address with a scope is judged as the one without."""
    plain = str(address)
    for allow_private in (False, True):
        assert refusal(f"{plain}%eth0", allow_private=allow_private) == refusal(
            plain, allow_private=allow_private
        )


@given(ip_addresses())
def test_what_development_may_dial_in_addition_is_of_this_network(address: IPv4Address | IPv6Address) -> None:
    """`allow_private` adds no address that is not loopback, RFC 1918 or unique-local."""
    if refusal(str(address), allow_private=True) != refusal(str(address), allow_private=False):
        judged = ip_address(getattr(address, "ipv4_mapped", None) or address)
        assert judged.is_loopback or judged.is_private
        assert not judged.is_link_local
        assert not judged.is_multicast
