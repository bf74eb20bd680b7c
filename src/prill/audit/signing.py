"""A statement signed with an ed25519 key, as a DSSE envelope; made and checked by `openssl`, with a key of the user's.

The signature is over DSSE's pre-authentication encoding of type and payload, so that any reader of DSSE can check it.
prill holds no key and asks for none: the file is named on the command line and read by openssl alone.
Not covered: whose key it is, when it was used, and whether it was taken back.
"""

import base64
import binascii
import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from prill.audit.pointers import Unsound
from prill.errors import DefinitionError, InfraError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
ASK = "make one with `openssl genpkey -algorithm ed25519 -out key.pem`"


def encoding(payload: bytes, kind: str = PAYLOAD_TYPE) -> bytes:
    """What is signed: DSSE version 1's encoding of type and payload."""
    return b"DSSEv1 %d %s %d %s" % (len(kind.encode()), kind.encode(), len(payload), payload)


def sign(payload: bytes, key: Path) -> dict[str, Any]:
    """A DSSE envelope around a payload. Raises `DefinitionError` for a key that is not an ed25519 key."""
    if not key.is_file():
        raise DefinitionError(f"{key}: no such key; {ASK}")
    public = openssl(["pkey", "-in", str(key), "-pubout", "-outform", "DER"], f"{key}: not a private key in PEM; {ASK}")
    if not ed25519(public):
        raise DefinitionError(f"{key}: not an ed25519 key; {ASK}")
    with tempfile.TemporaryDirectory(prefix="prill-sign-") as place:
        signed = Path(place, "signed")
        signed.write_bytes(encoding(payload))
        made = openssl(
            ["pkeyutl", "-sign", "-rawin", "-inkey", str(key), "-in", str(signed)], f"{key}: openssl cannot sign"
        )
    signature = {"keyid": hashlib.sha256(public).hexdigest(), "sig": base64.b64encode(made).decode()}
    payload_text = base64.b64encode(payload).decode()
    return {"payload": payload_text, "payloadType": PAYLOAD_TYPE, "signatures": [signature]}


def ed25519(public: bytes) -> bool:
    """Whether a public key (DER) is an ed25519 key: RFC 8410's prefix and 32 bytes."""
    return len(public) == 44 and public.startswith(bytes.fromhex("302a300506032b6570032100"))


def key_ids(envelope: Any) -> list[str]:
    """The keys that an envelope says it is signed with."""
    try:
        return [str(entry["keyid"]) for entry in envelope["signatures"]]
    except (KeyError, TypeError):
        raise Unsound("SIGNATURE", "not a DSSE envelope") from None


def payload_of(envelope: Any) -> bytes:
    """What an envelope holds. Raises `Unsound`."""
    try:
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise Unsound("SIGNATURE", f"the payload is {str(envelope['payloadType'])[:80]!r}, not {PAYLOAD_TYPE!r}")
        return base64.b64decode(envelope["payload"], validate=True)
    except (KeyError, TypeError, binascii.Error):
        raise Unsound("SIGNATURE", "not a DSSE envelope") from None


def check(envelope: Any, public_key: Path) -> None:
    """Whether one of the signatures is of this key over this payload. Raises `Unsound` where none is."""
    payload = payload_of(envelope)
    if not public_key.is_file():
        raise DefinitionError(f"{public_key}: no such key; give the public key in PEM (openssl pkey -pubout)")
    wrong = f"{public_key}: not a public ed25519 key in PEM (openssl pkey -pubout -in key.pem)"
    public = openssl(["pkey", "-pubin", "-in", str(public_key), "-pubout", "-outform", "DER"], wrong)
    if not ed25519(public):
        raise DefinitionError(wrong)
    with tempfile.TemporaryDirectory(prefix="prill-sign-") as place:
        signed, made = Path(place, "signed"), Path(place, "signature")
        signed.write_bytes(encoding(payload))
        for entry in envelope.get("signatures", ()):
            try:
                made.write_bytes(base64.b64decode(entry["sig"], validate=True))
            except (KeyError, TypeError, binascii.Error):
                continue
            command = ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", str(public_key), "-in", str(signed)]
            if ran([*command, "-sigfile", str(made)]).returncode == 0:
                return
    raise Unsound("SIGNATURE", f"no signature of {public_key.name} over this statement")


def openssl(arguments: list[str], wrong: str) -> bytes:
    """What openssl gives, or the error that is told."""
    made = ran(arguments)
    if made.returncode:
        raise DefinitionError(wrong)
    return made.stdout


def ran(arguments: list[str]) -> "subprocess.CompletedProcess[bytes]":
    """One run of openssl, which may ask nobody anything."""
    try:
        return subprocess.run(["openssl", *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    except FileNotFoundError:
        raise InfraError("openssl is not installed; it is needed to sign and to check signatures") from None
    except subprocess.TimeoutExpired:
        raise InfraError(f"openssl {arguments[0]} took more than 30 s") from None
