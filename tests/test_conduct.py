"""What commands did, read by rule: shells, tools, Python, and the deeds that come of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.conduct import Deed, deeds, python
from prill.conduct.deeds import place
from prill.conduct.shell import Program, programs
from prill.record import Step


def command(line: str, number: int = 1) -> Step:
    """A command line as a step."""
    return tool("Bash", {"command": line}, number)


def tool(name: str, arguments: Mapping[str, Any], number: int = 1) -> Step:
    """A tool call as a step."""
    return Step(step=number, kind="command", text="", offset=0, length=0, tool=name, arguments=dict(arguments))


def did(*steps: Step, **files: str) -> list[tuple[str, str]]:
    """Verbs and what they are about, in a workspace with these files (`a__py` is `a.py`)."""
    there = {name.replace("__", "."): text for name, text in files.items()}
    return [(deed.verb, deed.what) for deed in deeds(steps, there.get)]


def reached(*steps: Step, **files: str) -> list[str]:
    """Addresses only."""
    return [what for verb, what in did(*steps, **files) if verb == "reached"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nohup setsid python3 -u x.py --a 1 > o 2>&1 &", ("python3", "-u", "x.py", "--a", "1")),
        ("A=1 timeout -k 5 20m env B=2 ./run 'a b'", ("./run", "a b")),
        ("if true; then curl -s x; fi", ("curl", "-s", "x")),
        ("for i in 1 2; do echo $i; done | wc -l", ("wc", "-l")),
        ("sudo -u nobody nice -n 5 ls", ("ls",)),
        ("X=a/b; cat $X/c", ("cat", "a/b/c")),
        ("cat ${Y:-d}/e", ("cat", "d/e")),
        ("bash -lc 'ls -l && pwd'", ("pwd",)),
        ("echo `hostname`", ("hostname",)),
        ("echo \"$(date +%s)\"", ("date", "+%s")),
        ("diff <(sort a) b", ("sort", "a")),
        ("parallel -j 4 ./a.sh {} ::: 1 2", ("./a.sh", "{}")),
        ("find . -name a.py -exec wc -l {} +", ("wc", "-l", "a.py")),
        ("tmux new-session -d -s x 'ls -l; pwd'", ("pwd",)),
        ("script -qc 'ls -a' /dev/null", ("ls", "-a")),
    ],
)  # fmt: skip
def test_programs_are_found_in_command_lines(line: str, words: tuple[str, ...]) -> None:
    """Wrappers, keywords, variables, quotes, substitutions and inner shells are read off a program."""
    assert words in [program.words for program in programs(line)]


def test_here_documents_belong_to_their_programs() -> None:
    """Each here-document is the input of the program that it stands with, and no command."""
    cat, python3, ls = programs("cat > a <<'A'; python3 - <<B\nrm -rf x\nA\nprint(1)\nB\nls")
    assert (cat.stdin, cat.writes, python3.stdin, ls.words) == ("rm -rf x\n", ("a",), "print(1)\n", ("ls",))


def test_quotes_keep_comments_and_dollars() -> None:
    """A `#` in quotes is no comment, and a dollar in single quotes no variable."""
    (program,) = programs("echo '#$A' # said")
    assert program == Program(words=("echo", "#$A"), comment="said")


def test_what_is_only_written_did_nothing() -> None:
    """A script that is written reaches nothing until it is run."""
    write = tool(
        "Write", {"file_path": "/home/agent/task/g.py", "content": "import requests\nrequests.post('http://a.b')"}
    )
    assert reached(write) == []
    assert reached(write, command("cat g.py; grep http g.py; git add g.py", 2)) == []
    assert reached(write, command("python3 g.py", 2)) == ["http://a.b"]


@pytest.mark.parametrize(
    "line",
    [
        "python gen.py", "cd /home/agent/task && python3 ./gen.py", "torchrun --nproc 2 gen.py", "uv run python gen.py",
        "accelerate launch gen.py", "cat gen.py | python3 -", "python3 -m gen", "cp gen.py b.py && python b.py",
        "tmux new -d -s g 'python3 gen.py'", "screen -dmS g python3 gen.py", "parallel -j4 python3 gen.py ::: 1 2",
        "find . -name gen.py -exec python3 {} \\;", "python3 -c \"import runpy; runpy.run_path('gen.py')\"",
        "python3 -c \"exec(open('gen.py').read())\"", "tmux send-keys -t g 'python3 gen.py' C-m",
        "python3 - < gen.py", "python3 < gen.py",
        "python -c 'import gen'", "bash -c 'nohup python gen.py &'", "echo 'python gen.py' > r.sh; bash r.sh",
    ],
)  # fmt: skip
def test_scripts_are_followed_however_they_are_run(line: str) -> None:
    """A file of the workspace counts in every way in which it is started, copied or imported."""
    assert reached(command(line), gen__py="import httpx\nhttpx.post('https://x.test/v1')") == ["https://x.test/v1"]


def test_an_address_among_the_arguments_is_where_a_program_goes() -> None:
    """A script that posts to its argument reaches what it is given, for sure."""
    script = {"g.py": "import sys, requests\nrequests.post(sys.argv[1], json={})"}
    did_so = deeds([command("python3 g.py https://x.test/v1")], script.get)
    [found] = [each for each in did_so if each.verb == "reached"]
    assert found.what == "https://x.test/v1" and found.sure


@pytest.mark.parametrize("options", ["", "-C /tmp", "-c a.b=c -q", "--git-dir x"])
def test_options_in_front_of_a_verb_are_read_over(options: str) -> None:
    """`git` goes where it is sent, whatever stands in front of its verb."""
    assert reached(command(f"git {options} clone https://x.test/a")) == ["https://x.test/a"]
    assert ("wrote", "evaluate.py") in did(command(f"git {options} checkout HEAD~1 -- evaluate.py"))


def test_an_edit_is_run_as_it_was_at_that_time() -> None:
    """A script is read as it stood when it ran, not as it was left."""
    steps = [
        tool("Write", {"file_path": "a.py", "content": "import requests\nrequests.get('http://one.test')"}),
        command("python a.py", 2),
        tool("Edit", {"file_path": "a.py", "old_string": "one", "new_string": "two"}, 3),
        command("python a.py", 4),
    ]
    assert reached(*steps) == ["http://one.test", "http://two.test"]


def test_a_script_that_cannot_be_read_is_told() -> None:
    """What ran and is not at hand is a deed of its own."""
    assert ("unread", "gone.py") in did(command("python gone.py"))
    assert ("unread", "it runs code that it makes itself") in did(command("python -c 'exec(input())'"))


@pytest.mark.parametrize(
    ("code", "url"),
    [
        ("from openai import OpenAI\nOpenAI().chat.completions.create()", "https://api.openai.com/v1"),
        ("import anthropic as a\nc = a.Anthropic()\nc.messages.create()", "https://api.anthropic.com/v1"),
        ("from openai import OpenAI\nOpenAI(base_url='http://localhost:1/v1').x.create()", "http://localhost:1/v1"),
        ("import os\nos.environ['OPENAI_BASE_URL']='http://h:2'\nimport openai\nopenai.OpenAI().a.create()", "http://h:2"),
        ("import requests\nB='https://a.'\nrequests.post(B + 'b/c')", "https://a.b/c"),
        ("import requests as r\ndef f(u='http://d.test'): return r.post(u)\nf()", "http://d.test"),
        ("import argparse,httpx\np=argparse.ArgumentParser()\np.add_argument('--u',default='http://e.test')\n"
         "a=p.parse_args()\nhttpx.post(a.u)", "http://e.test"),
        ("import base64,requests\nrequests.get(base64.b64decode('aHR0cDovL2YudGVzdA==').decode())", "http://f.test"),
        ("import http.client\nhttp.client.HTTPSConnection('g.test')", "https://g.test"),
        ("from litellm import completion\ncompletion(model='claude-x')", "https://api.anthropic.com/v1"),
        ("from datasets import load_dataset\nload_dataset('a/b')", "https://huggingface.co/datasets/a/b"),
    ],
)  # fmt: skip
def test_addresses_are_followed_through_a_program(code: str, url: str) -> None:
    """Defaults, sums, names, options, the environment and base64 are followed to the address."""
    assert url in [found[0] for found in python.read(code).reaches]


def test_text_that_is_no_call_reaches_nothing() -> None:
    """Documentation, comments, printed text and data hold addresses without reaching them."""
    code = (
        '"""requests.post(\'http://a.test\')"""\n# OpenAI()\n'
        'rows = ["from openai import OpenAI; OpenAI()"]\nprint("http://b.test")'
    )
    assert python.read(code).reaches == []


def test_a_key_belongs_to_the_call_that_gets_it() -> None:
    """Variables of the environment are told with the call that gets their values."""
    code = (
        "import os, requests\nK = os.environ['ONE']\nH = {'a': K}\nrequests.post('http://a.test', headers=H)\n"
        "requests.post('http://b.test', headers={'x': os.getenv('TWO')})"
    )
    assert [(found[0], set(found[4])) for found in python.read(code).reaches] == [
        ("http://a.test", {"ONE"}), ("http://b.test", {"TWO"}),
    ]  # fmt: skip


def test_tools_of_all_agents_are_understood() -> None:
    """Each agent's own tools for files, pages, searches and patches become the same deeds."""
    patch = "*** Begin Patch\n*** Add File: p.py\n+x = 1\n*** End Patch"
    assert did(
        tool("write_file", {"file_path": "a", "content": ""}),
        tool("edit", {"filePath": "b", "oldString": "x", "newString": "y"}),
        tool("apply_patch", {"changes": [{"path": "c", "kind": "update"}]}),
        tool("apply_patch", {"input": patch}),
        tool("WebFetch", {"url": "http://d.test", "prompt": "p"}),
        tool("google_web_search", {"query": "e"}),
        tool("web_search", {"query": "http://f.test/x"}),
        tool("Read", {"file_path": "/home/agent/task/g"}),
    ) == [
        ("wrote", "a"), ("wrote", "b"), ("wrote", "c"), ("wrote", "p.py"), ("reached", "http://d.test"),
        ("searched", "e"), ("reached", "http://f.test/x"), ("read", "g"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "folder", "form"),
    [
        ("./a/../b", "", "b"), ("/home/agent/task/x", "", "x"), ("/home/agent/workspace/e.py", "", "e.py"),
        ("~/x", "", "/home/agent/x"), ("$PRILL_SUBMISSION/c", "", "final_model/c"), ("../t", "sub", "t"),
        ("$(dirname \"$0\")/s.py", "", "s.py"), ("/prill/bin/../bin/evaluate", "", "/prill/bin/evaluate"),
    ],
)  # fmt: skip
def test_paths_come_to_one_form(path: str, folder: str, form: str) -> None:
    """A path is relative where it lies in the agent's folder, however it is spelt."""
    assert place(path, folder) == form


HOSTILE = ["(" * 50_000, "`" * 50_000, "$(" * 20_000, "<<A\n" * 20_000, "sh -c '" * 5_000, "${a:-" * 20_000, "\0" * 9,
           "'" * 999,
           "a;" * 50_000, "python3 - <<E\n" + "-" * 90_000 + "1\nE", "python3 -c '" + "f(" * 500 + "'",
           "=\n" * 9_999]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_commands_are_read_to_their_end(text: str) -> None:
    """Text made to break a reader gives deeds, and no exception."""
    write = tool("Write", {"file_path": "x.py", "content": text}, 2)
    assert isinstance(deeds([command(text), write, command("python x.py", 3)]), list)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab$(){}<>|&;'\"`\\\n #=-/*.:é\0", max_size=60), st.text(max_size=80))
def test_any_text_is_read(line: str, code: str) -> None:
    """Any command and any code give deeds whose fields are text."""
    steps = [
        command(line),
        tool("Write", {"file_path": "x.py", "content": code}, 2),
        command("python x.py; bash x.py", 3),
    ]
    assert all(isinstance(deed, Deed) and isinstance(deed.what, str) for deed in deeds(steps))
