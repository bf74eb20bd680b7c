"""Code out of replies: found wherever models put it, and a reason where there is none."""

import json
import subprocess
import sys

import pytest

from prill.graders import python_tests

ADD = "def add(a, b):\n    return a + b\n"
PROMPT = 'K = 3\n\ndef helper(x):\n    return x + 1\n\ndef add(a, b):\n    """Add."""\n'
CODE = {
    "glued closing fence": f"```python\n{ADD.rstrip()}```",
    "garbage behind": f"```python\n{ADD}```ซ้าย\nไม่มี",
    "prose before an opening fence": f"Here: ```python\n{ADD}```",
    "open fence and prose": f"```python\n{ADD}\nThis function adds two numbers.",
    "fences in a docstring": '```python\ndef add(a, b):\n    """\n    ```\n    x\n    ```"""\n    return a + b\n```',
    "later definition": f"```python\ndef add(a, b):\n    return 0\n```\nbetter:\n```python\n{ADD}```",
    "input at top level": f"```python\n{ADD}n = int(input())\nm = n + 1\nprint(add(n, m))\n```",
    "a loop that waits": f"```python\n{ADD}while True:\n    n = input()\n```",
    "a table is built": "```python\nT = []\nfor i in range(9):\n    T += [i]\ndef add(a, b): return T[a] + T[b]\n```",
    "future import": f"```python\n{ADD}```\n```python\nfrom __future__ import annotations\ndef g(x: Odd): ...\n```",
    "several on a line": f"```python\nimport math; print(1)\n{ADD}```",
    "no-break spaces": "```python\ndef add(a, b):\n\u00a0\u00a0\u00a0\u00a0return a + b\n```",
    "unfenced among prose": f"from the text we see:\n\n{ADD}\nclass of problems: easy.",
    "lone closing fence": f"{ADD}```\nExplanation: it adds",
    "the whole in a markdown block": f"````md\n```python\n{ADD}```\n````",
    "assigned": "```python\nadd = lambda a, b: a + b\n```",
    "body only": "    return a + b\n",
    "body only, stripped": "c = a + b\n    return c",
    "body in a fence": "```\nc = a\nreturn c + b\n```",
    "body, then more": "    return a + b\n\n\ndef other():\n    return 1\nprint(other())",
    "prompt repeated": f"```python\n{PROMPT}    return a + b\n```",
    "helper of the prompt": "```python\ndef add(a, b):\n    return helper(a) + b - 4 + K\n```",
}
RUNNER = (
    "import json, sys\nfor name, code in json.load(sys.stdin).items():\n    space = {'__name__': 'x'}\n"
    "    exec(code, space)\n    assert space['add'](2, 3) == 5, name\n"
)


def test_code_is_found_wherever_models_put_it() -> None:
    """Each way to write the same function down gives a module in which it works and nothing else runs."""
    found = {name: python_tests.extract_code(text, entry_point="add", prompt=PROMPT) for name, text in CODE.items()}
    assert [name for name, each in found.items() if each.code is None] == []
    programs = json.dumps({name: each.code for name, each in found.items()})
    done = subprocess.run([sys.executable, "-I", "-c", RUNNER], input=programs, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```python\ndef plus(a, b):\n    return a + b\n```", "entry_point_missing"),
        ("```python\ndef add(a, b)\n    return a + b\n```", "syntax_error"),
        (f"```python\n{ADD}>>> add(1, 2)\n3\n```", "syntax_error"),
        ("```javascript\nfunction add(a, b) { return a + b }\n```", "no_code"),
        ("Sure", "no_code"),
        ("", "no_code"),
        (f"<think>\n{ADD}", "no_reply"),
        ("```python\nx = " + "[" * 5000 + "\n```", "syntax_error"),
    ],
)
def test_no_usable_code_has_its_reason(text: str, reason: str) -> None:
    """A reply without the function asked for is a value with a reason, not a crash."""
    assert python_tests.extract_code(text, entry_point="add") == python_tests.Extracted(None, reason)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```\nprint(int(input()) * 2)\n```\n```\n8\n```", "print(int(input()) * 2)"),
        ("```python\na = 1\n```\n```python\nprint(2)\n```\n```text\n2\n```", "print(2)"),
        ("Here:\nimport sys\nprint(sys.argv)\nDone.", "import sys\nprint(sys.argv)"),
        ("n = 1\nprint(n)\n```\nExplanation: foo", "n = 1\nprint(n)"),
    ],
)
def test_a_program_is_taken_whole(text: str, program: str) -> None:
    """The last block that is a program, not sample output, is taken as it stands."""
    assert python_tests.extract_code(text, mode="program").code == program
