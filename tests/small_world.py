"""The smoke suite with few items, for whole runs whose truth hangs on neither their number nor on a language model."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

from prill.catalog import PACKAGE, Catalog
from prill.folder import list_files, tree_digest
from prill.items import item_line, items_digest

FEW = 24


def small_world(folder: Path, *, canned: bool = False) -> Path:
    """Definitions of the smoke suite whose benchmark has its first `FEW` items.

    `canned`: the base model also holds a script whose one answer is right for some of the items, and the suite's engine
    plays it back, so that a run takes seconds; its files are otherwise the real base's.
    """
    known = Catalog()
    items = known.items(known.benchmark("word-problems"))[:FEW]
    for name in ("benchmarks", "models", "suites", "smoke"):
        (folder / name).mkdir(parents=True)
    (folder / "smoke" / "items.jsonl").write_bytes(b"".join(map(item_line, items)))
    text = re.sub(r"(?m)^count = .*", f"count = {FEW}", known.file("benchmarks", "word-problems").read_text())
    text = re.sub(r"(?m)^digest = .*", f'digest = "{items_digest(items)}"', text)
    (folder / "benchmarks" / "word-problems.toml").write_text(text)
    if canned:
        base = Path(shutil.copytree(PACKAGE / "smoke" / "base", folder / "smoke" / "base"))
        often, _ = Counter(item.answer for item in items).most_common(1)[0]
        (base / "canned.json").write_text(json.dumps({"replies": [{"text": f"#### {often}"}]}))
        text, own = known.file("models", "smoke-base").read_text(), f'digest = "{tree_digest(list_files(base))}"'
        (folder / "models" / "smoke-base.toml").write_text(re.sub(r"(?m)^digest = .*", own, text, count=1))
        text = known.file("suites", "smoke").read_text()
        (folder / "suites" / "smoke.toml").write_text(re.sub(r"(?m)^engine = .*", 'engine = "canned"', text))
    return folder
