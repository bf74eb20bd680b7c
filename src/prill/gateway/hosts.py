"""A host as a box asks for it → what the policy says, and the line of it that decided. Pure: it looks nothing up.

Hostile spellings come to one form first: case, a trailing dot, full-width letters and other scripts, every way to
write an address as a number. What has no clear form is refused.

Not covered: what is behind a name. An allowed host that passes requests on (a proxy, a mirror, a web archive) is
allowed with all that it passes on; only its own name is seen.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network

from msgspec import Struct

from prill.outside import HostPolicy, Verdict

Address = IPv4Address | IPv6Address

LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
AUTHORITY = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]{2,64}\]|[^\x00-\x20\x7f\[\]@/\\?#%:]{1,255})(?::(?P<port>[0-9]{1,5}))?"
)
NAT64 = ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48")
COMPATIBLE = ip_network("::/96")
METADATA = frozenset({"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"})
"""Where clouds hand out credentials and settings of the machine."""


class Ruling(Struct, frozen=True, kw_only=True):
    """What is done with a host, and why."""

    host: str
    """In its one form; empty where it has none."""
    verdict: Verdict
    rule: str
    why: str
    line: str | None = None
    """The name in the policy that decided; `None`: none fitted, or it never came to that."""
    literal: bool = False
    """Whether the policy allows this very host by its whole name: then even an address of this machine is meant."""


def authority(text: str, port: int | None = None) -> tuple[str, int]:
    """`HOST` or `HOST:PORT` → the host in its one form, and the port; `port` is the one that need not be said.

    `ValueError` says what is wrong; a user name before the host is always wrong.
    """
    match = AUTHORITY.fullmatch(text) if len(text) <= 330 else None
    if match is None:
        raise ValueError("not of the form HOST:PORT")
    found = int(match["port"]) if match["port"] else port
    if found is None or not 0 < found < 65536:
        raise ValueError("a port from 1 to 65535 is needed")
    return normal(match["host"]), found


def normal(host: str) -> str:
    """The one form of a host: a name in lower-case ASCII without its last dot, or an address as `ipaddress` writes it.

    `ValueError` where it has none.
    """
    if host.count(":") > 1 and "%" not in host:
        return str(IPv6Address(host[1:-1] if host[0] == "[" and host[-1] == "]" else host))
    try:
        plain = host.encode("idna").decode().lower() if len(host) <= 255 else ""
    except UnicodeError:
        plain = ""
    plain = plain.removesuffix(".")
    labels = plain.split(".")
    if len(plain) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise ValueError("not the name of a host")
    if NUMBER.fullmatch(labels[-1]):  # such a name is an address, or nothing; systems read it in all these spellings
        return str(by_number(labels))
    return plain


def by_number(parts: list[str]) -> IPv4Address:
    """An address of one to four numbers, decimal, octal or hexadecimal; the last one fills what is left of 32 bits."""
    if len(parts) > 4 or not all(NUMBER.fullmatch(part) for part in parts):
        raise ValueError("an address of numbers that is none")
    try:
        numbers = [int(part, 16 if part[:2] == "0x" else 8 if part[0] == "0" else 10) for part in parts]
    except ValueError:
        raise ValueError("an address of numbers that is none") from None
    whole = 0
    for number in numbers[:-1]:
        if number > 255:
            raise ValueError("an address of numbers that is none")
        whole = whole << 8 | number
    bits = 8 * (5 - len(numbers))
    if numbers[-1] >= 1 << bits:
        raise ValueError("an address of numbers that is none")
    return IPv4Address(whole << bits | numbers[-1])


def address(host: str) -> Address | None:
    """The address that a host in its one form is; `None` for a name."""
    for kind in (IPv4Address, IPv6Address):
        try:
            return kind(host)
        except ValueError:
            continue
    return None


def not_public(found: Address) -> str | None:
    """Why nobody on the open network is at an address; `None` where somebody may be.

    Addresses that carry another one inside (mapped, translated, tunnelled) are judged by both.
    """
    if str(found) in METADATA:
        return "where a cloud keeps this machine's credentials"
    inner: list[Address | None] = []
    if isinstance(found, IPv6Address):
        inner = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if any(found in network for network in (*NAT64, COMPATIBLE)):
            inner.append(IPv4Address(int(found) & 0xFFFFFFFF))
    for each in inner:
        if each is not None and (why := not_public(each)):
            return why
    if found.is_loopback:
        return "this machine itself"
    if found.is_link_local:
        return "a link-local address"
    if found.is_multicast:
        return "a multicast address"
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return None
    return None if found.is_global else "a private or reserved address"


def fits(pattern: str, text: str) -> bool:
    """Whether a lower-case text is what a pattern says; `*` stands for any part of it, so `*.x` is all below `x`."""
    first, *rest = pattern.lower().split("*")
    if not rest:
        return text == first
    last = rest.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in rest:
        at = text.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return True


def judge(policy: HostPolicy, asked: str, path: str | None = None) -> Ruling:
    """What a policy says of a host, however it is spelt; total. The first line that fits decides.

    Lines such as `example.com/some/place` fit only where the path is seen, from that place on. An address given by
    number has no name to judge, and is refused unless the policy names it.
    """
    try:
        host = normal(asked)
    except ValueError as error:
        return Ruling(host="", verdict="deny", rule="malformed", why=f"{error}")
    for line in policy.hosts:
        name, slash, place = line.name.partition("/")
        if slash and (path is None or not below(path, place)):
            continue
        literal = "*" not in name and line.verdict == "allow" and not slash
        if fits(name, host) or ("*" not in name and same(name, host)):
            by = {"rule": line.rule, "why": line.why, "line": line.name}
            return Ruling(host=host, verdict=line.verdict, literal=literal, **by)
    if address(host) is not None:
        return Ruling(host=host, verdict="deny", rule="address", why="an address by number has no name to judge")
    why = f"no line of the policy {policy.name} names it"
    return Ruling(host=host, verdict=policy.otherwise, rule="otherwise", why=why)


def same(name: str, host: str) -> bool:
    """Whether a policy's name is a host in another spelling."""
    try:
        return normal(name) == host
    except ValueError:
        return False


def below(path: str, place: str) -> bool:
    """Whether a path is a place or lies below it, in whatever case."""
    path, place = path.partition("?")[0].strip("/").lower(), place.strip("/").lower()
    return path == place or path.startswith(place + "/")


def environment(doors: Mapping[str, str], host: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a box's programs must be told to find the doors that it has: `egress`, `hub` → the address inside the box.

    `host` is the environment of whoever starts the run: of it, where packages are is passed on, except what holds
    a password. Without a hub door the hub's clients are told that they are offline, so that they fail at once.
    """
    told: dict[str, str] = {}
    if "egress" in doors:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            told[name] = told[name.lower()] = doors["egress"]
        told["NO_PROXY"] = told["no_proxy"] = "127.0.0.1,localhost,::1"
        told["NODE_USE_ENV_PROXY"] = "1"
        told |= {name: text for name, text in (host or {}).items() if about_packages(name) and "@" not in text}
    told |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
    told |= {"HF_ENDPOINT": doors["hub"]} if "hub" in doors else {"HF_HUB_OFFLINE": "1"}
    return told


def about_packages(name: str) -> bool:
    """Whether a variable of the host says where packages are."""
    return (name.startswith(("PIP_", "UV_")) and "INDEX" in name) or name.lower() == "npm_config_registry"
