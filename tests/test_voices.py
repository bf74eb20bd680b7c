"""Several judges and a person on one rule: evidence before models, a signed person before both, and never silently."""

import base64
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from prill.audit.signing import sign
from prill.dossier import said
from prill.record import Finding, Judgement, Run
from prill.score import board
from prill.scoring.voices import SUSPECT, Ruled, voices
from prill.signatures import good, key_of, statement
from prill.standings import Cell
from samples import DIGEST, SPEC, SUITE, judgement, run


def one(run: Run, **suite: Any) -> Cell:
    """The only cell of the only entrant."""
    [standing] = board(replace(SUITE, **suite), [SPEC], [run]).standings
    [cell] = standing.cells
    return cell


def models(rule: str, verdict: str) -> Judgement:
    """A panel's word."""
    return replace(judgement("panel", rule, verdict, "so the models say"), by="models")


def judged(*judgements: Judgement) -> Run:
    """A run of which the suite's own judges have spoken, and these."""
    return run(judgements=(judgement("overlap", "contamination"), judgement("lineage", "lineage"), *judgements))


# --- evidence and models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["kept", "unknown", "broken"])
def test_what_evidence_shows_to_be_broken_stays_broken(verdict: str) -> None:
    """No word of models lifts a verdict of evidence."""
    found = judgement("overlap", "contamination", "broken", "12 rows are test items")
    cell = one(run(judgements=(found, judgement("lineage", "lineage"), models("contamination", verdict))))
    assert (cell.state, cell.rule) == ("base", "contamination") and "12 rows" in cell.why


@pytest.mark.parametrize(
    ("why", "said", "state"),
    [
        ("suspect: a search was made", "kept", "measured"),
        ("suspect: a search was made", "broken", "held"),
        ("suspect: a search was made", "unknown", "held"),
        ("2 files could not be read", "kept", "held"),
    ],
)
def test_models_settle_a_suspicion_and_nothing_else(why: str, said: str, state: str) -> None:
    """A suspicion of evidence is theirs to decide; what evidence could not read they cannot have read."""
    cell = one(
        run(judgements=(judgement("overlap", "lineage", "unknown", why), judgement("lineage", "contamination"),
                        models("lineage", said)))
    )  # fmt: skip
    assert cell.state == state


def test_models_settle_no_doubt_of_models() -> None:
    """What one panel leaves unknown no other panel settles, whatever words its reason begins with."""
    doubt = replace(judgement("panel", "lineage", "unknown", "suspect: a search was made"), by="models")
    assert one(judged(doubt, models("lineage", "kept"))).state == "held"


def test_a_suspicion_is_spelt_as_the_judges_of_evidence_spell_it() -> None:
    """What these judges call suspect is what models may settle."""
    found = said("lookup", {}, {"a search was made": []}, "nothing")
    assert found.verdict == "unknown" and found.why.startswith(SUSPECT)


def test_models_alone_can_find_a_rule_broken() -> None:
    """What models find and evidence did not counts by the suite's policy."""
    assert one(judged(models("lineage", "broken"))).state == "held"


# --- a person ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A private key, and the middle line of its public one."""
    file = tmp_path_factory.mktemp("key") / "me.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", file], check=True, capture_output=True)
    public = subprocess.run(["openssl", "pkey", "-in", file, "-pubout"], check=True, capture_output=True, text=True)
    return file, public.stdout.splitlines()[1]


def ruled(key: Path, rule: str, verdict: Any, *, of: str = "r1", digest: str | None = DIGEST) -> Judgement:
    """A person's signed ruling."""
    found = (Finding(rule=rule, verdict=verdict, why="I looked"),)
    signed = sign(msgspec.json.encode(Ruled(run=of, submission=digest, findings=found)), key)
    return Judgement(judge="override", findings=found, isolated=True, wall_seconds=0, by="person", signed=signed)


def test_a_person_overrules_evidence_and_it_is_shown(keys: tuple[Path, str]) -> None:
    """A signed ruling replaces what evidence and models said; who, why and instead of what stands beside the value."""
    key, line = keys
    bad = judgement("overlap", "contamination", "broken", "12 rows are test items")
    made = run(
        judgements=(bad, judgement("lineage", "lineage"), models("contamination", "broken"),
                    ruled(key, "contamination", "kept"))
    )  # fmt: skip
    cell = one(made, signers={"ada": line})
    assert cell.state == "measured"
    [alert] = cell.alerts
    assert "ruled by ada: I looked; instead of overlap: broken (12 rows" in alert and "panel: broken" in alert


def test_a_person_can_find_a_rule_broken(keys: tuple[Path, str]) -> None:
    """A ruling of broken counts by policy, and the last ruling on a rule decides."""
    key, line = keys
    broken, kept = ruled(key, "contamination", "broken"), ruled(key, "contamination", "kept")
    assert one(judged(broken), signers={"ada": line}).state == "base"
    assert one(judged(broken, kept), signers={"ada": line}).state == "measured"


def test_a_ruling_counts_only_as_it_was_signed(keys: tuple[Path, str], tmp_path: Path) -> None:
    """Another key, run, submission or finding, or no signature: it does not count, and that is shown."""
    key, line = keys
    stranger = tmp_path / "stranger.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", stranger], check=True, capture_output=True)
    good_one = ruled(key, "contamination", "kept")
    changed = replace(good_one, findings=(Finding(rule="lineage", verdict="kept", why="I looked"),))
    bad = judgement("overlap", "contamination", "broken", "12 rows")
    for forged in (
        ruled(stranger, "contamination", "kept"),
        ruled(key, "contamination", "kept", of="r2"),
        ruled(key, "contamination", "kept", digest="sha256:" + "1" * 64),
        changed,
        replace(good_one, signed=None),
        replace(good_one, signed={"payloadType": 5, "payload": "?", "signatures": [{"sig": "x"}]}),
    ):
        cell = one(run(judgements=(bad, judgement("lineage", "lineage"), forged)), signers={"ada": line})
        assert cell.state == "base" and "does not count" in cell.alerts[0]
    assert (
        one(run(judgements=(bad, judgement("lineage", "lineage"), good_one))).state == "base"
    )  # the suite lists nobody


def test_without_a_person_nothing_is_changed() -> None:
    """The findings of judges come through as they are."""
    made = run()
    assert voices(made, {}).findings == tuple(each for word in made.judgements for each in word.findings)


# --- signatures -------------------------------------------------------------------------------------------------------

VECTORS = (  # RFC 8032, section 7.1, tests 1 to 3: public key, message, signature
    ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
     "d25bf5f0595bbe24655141438e7a100b"),
    ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
     "387b2eaeb4302aeeb00d291612bb0c00"),
    ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
     "4a7c15e9716ed28dc027beceea1ec40a"),
)  # fmt: skip


@pytest.mark.parametrize(("public", "message", "signature"), VECTORS)
def test_the_published_signatures_are_good(public: str, message: str, signature: str) -> None:
    """Each vector is good, and not so with any one bit of message or signature changed."""
    key, said, made = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)
    assert good(key, said, made)
    assert not good(key, said + b"x", made)
    for at in (0, 31, 32, 63):
        assert not good(key, said, made[:at] + bytes([made[at] ^ 1]) + made[at + 1 :])


@given(st.binary(max_size=200))
@settings(max_examples=5, deadline=None)
def test_what_openssl_signs_is_good(keys: tuple[Path, str], payload: bytes) -> None:
    """An envelope made by openssl opens with its own key, and not once its payload is another."""
    key, line = keys
    public = key_of(line)
    assert public is not None
    envelope = sign(payload, key)
    assert statement(envelope, public) == payload
    assert statement({**envelope, "payload": base64.b64encode(payload + b"!").decode()}, public) is None


@given(st.binary(max_size=40), st.binary(max_size=80), st.text(max_size=80))
@settings(max_examples=60, deadline=None)
def test_checking_a_signature_is_total(public: bytes, signature: bytes, line: str) -> None:
    """Any bytes are a bad signature, any text is no key."""
    assert not good(public, b"message", signature)
    assert key_of(line) is None


def test_the_neutral_key_signs_nothing() -> None:
    """A public key of small order, for which anybody can make signatures, is no key."""
    assert not good(b"\x01" + bytes(31), b"any", b"\x01" + bytes(63))
