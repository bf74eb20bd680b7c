"""Ways to reach, write and run that `test_conduct.py` has no room for: one line each, and what it is read as."""

import json

import pytest

from test_conduct import command, did, reached, tool

THERE = "https://x.test/v1"
ASKS = f"import requests\nrequests.get('{THERE}')"
BOOK = json.dumps({"cells": [{"cell_type": "markdown", "source": ["# it"]}, {"cell_type": "code", "source": [ASKS]}]})


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("openai api chat.completions.create -m x", "https://api.openai.com/v1"),
        ("aws bedrock-runtime invoke-model --model-id x out", "https://bedrock-runtime.amazonaws.com/"),
        ("nc x.test 443", "https://x.test"),
        ("openssl s_client -connect x.test:443", "https://x.test:443"),
        ("git clone git@x.test:a/b", "https://x.test/a/b"),
        ("curl -s x.test/v1", "https://x.test/v1"),
        ("python3 -c'import requests; requests.get(\"https://x.test/v1\")'", THERE),
    ],
)
def test_programs_that_go_somewhere_say_where(line: str, where: str) -> None:
    """A client of a provider, a raw connection and an address without its scheme are followed to an address."""
    assert reached(command(line)) == [where]


@pytest.mark.parametrize(
    "line",
    [
        "python3 -m torch.distributed.run --nproc-per-node 2 gen.py", "python3 -X dev -W ignore gen.py", "make",
        "jupyter nbconvert --execute book.ipynb",
    ],
)  # fmt: skip
def test_what_stands_in_files_of_other_forms_is_run(line: str) -> None:
    """A launcher's script, a rule of a Makefile and a cell of a notebook are read as what they run."""
    files = {"gen.py": ASKS, "Makefile": "all:\n\t@python3 gen.py\n", "book.ipynb": BOOK}
    assert reached(command(line), **{name.replace(".", "__"): text for name, text in files.items()}) == [THERE]


def test_a_question_for_the_version_runs_nothing() -> None:
    """Asked for its version or its help, an interpreter runs no script."""
    assert reached(command("python3 --version gen.py; python3 -h gen.py"), gen__py=ASKS) == []


@pytest.mark.parametrize("line", ["dd if=a of=evaluate.py", "patch evaluate.py a.diff", "git restore evaluate.py"])
def test_files_are_changed_in_other_ways(line: str) -> None:
    """A copy by blocks, a patch and a restored file are written files."""
    assert ("wrote", "evaluate.py") in did(command(line))


def python(program: str) -> list[tuple[str, str]]:
    """What a program in a here-document did."""
    return did(command(f"python3 - <<'END'\n{program}\nEND\n"))


@pytest.mark.parametrize(
    ("program", "deed"),
    [
        (f"import subprocess\nsubprocess.run(['curl', '{THERE}'])", ("reached", THERE)),
        (f"import os\nos.system('curl {THERE}')", ("reached", THERE)),
        ("import subprocess\nsubprocess.run(made())", ("unread", "it runs a command that is not written out")),
        ("from pathlib import Path\nPath('evaluate.py').write_text('x')", ("wrote", "evaluate.py")),
        (
            "import boto3\nboto3.client('bedrock-runtime').invoke_model(body=b'')",
            ("reached", "https://bedrock-runtime.amazonaws.com/model"),
        ),
        (
            "from huggingface_hub import InferenceClient\nInferenceClient().chat_completion([])",
            ("reached", "https://router.huggingface.co/v1/chat/completions"),
        ),
        (f"import requests\nthis is no Python\nrequests.get('{THERE}')", ("reached", THERE)),
    ],
)
def test_a_program_s_other_ways_are_read(program: str, deed: tuple[str, str]) -> None:
    """Commands that it starts, clouds that it asks, files that it writes, and what cannot be parsed."""
    assert deed in python(program)


def test_a_model_on_this_machine_is_reached_nowhere() -> None:
    """A client of many providers that is given a local model goes to nobody."""
    assert not [
        what for verb, what in python("import litellm\nlitellm.completion(model='ollama/x')") if verb == "reached"
    ]


def test_a_tool_s_list_of_words_is_a_command_line() -> None:
    """A tool that takes a command as words is read as a shell would read it; of `sh -lc` the line counts."""
    assert reached(tool("shell", {"command": ["curl", "-s", THERE]})) == [THERE]
    assert reached(tool("shell", {"command": ["bash", "-lc", f"cd /tmp && curl -s {THERE}"]})) == [THERE]
