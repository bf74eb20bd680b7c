"""What a hub's headers say of a file, and what a client's header asks of it. Pure."""

import re
from collections.abc import Mapping, Sequence

from prill.gateway.blobs import Known


def facts_of(hops: Sequence[Mapping[str, str]]) -> Known:
    """What the hub said of a file, over the headers of all hops, in any case. `ValueError` where it says too little."""

    def said(name: str) -> str:
        return next((hop[name] for hop in hops if name in hop), "")

    linked = bool(said("X-Linked-Etag"))
    etag = (said("X-Linked-Etag") or hops[-1].get("ETag", "")).removeprefix("W/").strip('"')
    size = said("X-Linked-Size") if linked else hops[-1].get("Content-Length", "")
    if not etag or not re.fullmatch("[0-9]{1,18}", size):
        raise ValueError("a file without digest or size")
    kind = "application/octet-stream" if linked else hops[-1].get("Content-Type", "application/octet-stream")
    return Known(etag=etag, size=int(size), commit=said("X-Repo-Commit"), linked=linked, type=kind)


def span(wish: str | None, size: int) -> tuple[int, int]:
    """First and last byte of what a `Range` asks for; all where it asks for nothing that is understood.

    The first is after the last where nothing of it is there.
    """
    match = re.fullmatch(r"bytes=([0-9]{0,18})-([0-9]{0,18})", wish or "")
    if match is None or not (match[1] or match[2]):
        return 0, size - 1
    if not match[1]:
        return max(0, size - int(match[2])), size - 1
    start, stop = int(match[1]), min(int(match[2] or size), size - 1)
    return (start, stop) if start <= stop else (size, size - 1) if start >= size else (0, size - 1)
