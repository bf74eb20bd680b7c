"""Addresses that a Python program puts together: each way of writing a text is followed to what it says."""

import base64

import pytest

from prill.conduct import deeds
from prill.record import Step

URL = "https://api.x.com/v1"
CODED = base64.b64encode(URL.encode()).decode()


def reached(program: str) -> list[str]:
    """Addresses that a program in a here-document goes to."""
    line = f"python3 - <<'END'\nimport argparse, base64, os, requests\n{program}\nEND\n"
    step = Step(step=1, kind="command", text="", offset=0, length=0, tool="Bash", arguments={"command": line})
    return [deed.what for deed in deeds([step], {}.get) if deed.verb == "reached"]


@pytest.mark.parametrize(
    "program",
    [
        f"requests.get('{URL}')",
        "requests.get('https://api.' + 'x.com/v1')",
        "host = 'api.x.com'\nrequests.get(f'https://{host}/v1')",
        "scheme, host = 'https://', 'api.x.com'\nrequests.get(scheme + host + '/v1')",
        "def ask(*, url='https://api.x.com/v1'):\n    requests.get(url)",
        "def ask(n, url='https://api.x.com/v1'):\n    requests.get(url)",
        f"requests.get(base64.b64decode('{CODED}').decode())",
        f"requests.get(bytes.fromhex('{URL.encode().hex()}').decode())",
        "requests.get('/'.join(['https:', '', 'api.x.com', 'v1']))",
        "requests.get(os.path.join('https://api.x.com', 'v1'))",
        f"requests.get(os.environ.get('WHERE') or '{URL}')",
        f"requests.get(os.getenv('WHERE', '{URL}'))",
        f"os.environ['WHERE'] = '{URL}'\nrequests.get(os.environ['WHERE'])",
        f"os.environ['WHERE'] = '{URL}'\nrequests.get(os.getenv('WHERE'))",
        f"requests.get('{URL}' if fast else '{URL}')",
        f"requests.get(unknown() if fast else '{URL}')",
        f"requests.get(str('{URL}').strip())",
        f"asked = argparse.ArgumentParser()\nasked.add_argument('--where', default='{URL}')\n"
        "requests.get(asked.parse_args().where)",
        f"class Client:\n    where: str = '{URL}'\n    def ask(self):\n        requests.get(self.where)",
    ],
)
def test_an_address_is_followed_to_its_text(program: str) -> None:
    """Names, defaults, the environment, joined and decoded texts give the address that the program goes to."""
    assert reached(program) == [URL]


@pytest.mark.parametrize("text", ["not base64", "QQ==="])
def test_what_cannot_be_decoded_is_no_address(text: str) -> None:
    """A text that decodes to nothing readable gives no address and raises nothing."""
    assert URL not in reached(f"requests.get(base64.b64decode('{text}').decode())")
    assert URL not in reached(f"requests.get(bytes.fromhex('{text}').decode())")
