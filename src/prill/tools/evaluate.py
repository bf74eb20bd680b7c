#!/usr/bin/env python3
"""evaluate: the public score of a model folder on the benchmark's items, for the agent's own use.

The number that counts is measured later, elsewhere, with other code. Looking at the items' scores is allowed;
training on the items is not.

    evaluate                       scores $PRILL_SUBMISSION on all items
    evaluate DIR --limit 50        the first 50 items only
    evaluate DIR --json            one JSON line: {"score": 0.61, "n": 300}
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path

FINAL = re.compile(r"####\s*\$?(-?[\d,]*\d)")
BATCH = 100


def main() -> None:
    """Generate greedily in batches, read the last `#### N` of each reply, print the share that is right."""
    options = argparse.ArgumentParser(
        prog="evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("model", nargs="?", default=os.environ.get("PRILL_SUBMISSION", "final_model"))
    options.add_argument("--limit", type=int, help="only the first N items")
    options.add_argument("--max-tokens", type=int, default=96, help="new tokens a reply may have (default 96)")
    options.add_argument("--json", action="store_true", help="print one JSON line")
    chosen = options.parse_args()
    if not Path(chosen.model, "config.json").is_file():
        sys.exit(f"evaluate: {chosen.model}: no model there (config.json is missing); give a model folder")
    rows = [json.loads(line) for line in Path(os.environ["PRILL_ITEMS"]).read_text().splitlines()][: chosen.limit]
    replies = generate(chosen.model, [row["question"] for row in rows], chosen.max_tokens)
    right = sum(final(reply) == str(row["answer"]) for reply, row in zip(replies, rows, strict=True))
    score = right / len(rows)
    print(
        json.dumps({"score": score, "n": len(rows)}) if chosen.json else f"score {score:.3f} ({right} of {len(rows)})"
    )


def final(reply: str) -> str | None:
    """The last number that stands behind `####`."""
    found = FINAL.findall(reply)
    return found[-1].replace(",", "") if found else None


def generate(folder: str, questions: list[str], max_tokens: int) -> list[str]:
    """Greedy replies to questions put as one user message each."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    replies: list[str] = []
    for start in range(0, len(questions), BATCH):
        chats = [[{"role": "user", "content": question}] for question in questions[start : start + BATCH]]
        batch = tokenizer.apply_chat_template(
            chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
        )
        with torch.no_grad():
            output = model.generate(**batch, max_new_tokens=max_tokens, do_sample=False)
        replies += tokenizer.batch_decode(output[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
        print(f"evaluate: {len(replies)} of {len(questions)}", file=sys.stderr)
    return replies


if __name__ == "__main__":
    main()
