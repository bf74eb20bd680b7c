"""Three ways to one provider, from the same client: straight, through our gateway, through LiteLLM's proxy.

Provider, gateway and proxy are processes of their own. The gateway holds, settles and fsyncs each call. LiteLLM is
the `litellm` that `PRILL_BENCH_LITELLM` names or that is on the PATH; it keeps no budget in this set-up.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STREAMS = 32
TOKEN = "sk-bench-0123456789abcdef0123456789abcdef"
CONFIG = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{url}/v1", api_key: none}}
"""


def serve(place: Path, url: str) -> None:
    """A gateway until its standard input ends: what runs in the process of its own."""
    from prill.gateway.running import Gateway, Opening
    from prill.outside import Price, Prices, Provider, Tier

    price = Price(base=Tier(input="3", output="15"), max_output_tokens=1000, context_tokens=100_000)
    door = Opening(
        provider=Provider(name="x", title="x", url=url, wires=("chat",), key="X"),
        prices=Prices(name="x", title="x", dated="", source="", models={"m": price}),
        token=TOKEN,
        socket=place / "door",
        secrets=lambda: "key",
        upstream=url,
    )
    with Gateway(door, limit_usd=Decimal(100_000), ledger=place / "ledger"):
        print("ready", flush=True)
        sys.stdin.read()


@contextmanager
def provider() -> Iterator[str]:
    """The mock provider's address."""
    with subprocess.Popen([sys.executable, "-m", "bench.mock_provider"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def ours(url: str) -> Iterator[str]:
    """The socket of a gateway before that provider."""
    with TemporaryDirectory(prefix="prill-bench-") as place:
        command = [sys.executable, "-m", "bench.doors", place, url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdin is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("the gateway did not start")
            try:
                yield str(Path(place) / "door")
            finally:
                process.stdin.close()
                process.wait()


def litellm() -> str | None:
    """The program, where it is installed."""
    return os.environ.get("PRILL_BENCH_LITELLM") or shutil.which("litellm")


@contextmanager
def theirs(program: str, url: str, port: int = 41949) -> Iterator[str]:
    """The address of LiteLLM's proxy before that provider, once it answers."""
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": TOKEN}
    with TemporaryDirectory(prefix="prill-bench-") as place:
        config = Path(place, "config.yaml")
        config.write_text(CONFIG.format(url=url))
        command = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
        silent = subprocess.DEVNULL
        with subprocess.Popen(
            command, env=environment, stdout=silent, stderr=silent, start_new_session=True
        ) as process:
            try:
                address = f"http://127.0.0.1:{port}"
                for _ in range(240):
                    if process.poll() is not None:
                        raise RuntimeError("LiteLLM's proxy did not start")
                    try:
                        asyncio.run(calls(address, 1, 1, stream=False))
                        break
                    except Exception:
                        time.sleep(0.5)
                yield address
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)


def body(stream: bool) -> bytes:
    """A request of some kilobytes, as an agent's are."""
    words: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "word " * 800}]}
    extra = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    return json.dumps(words | extra).encode()


async def calls(where: str, workers: int, each: int, *, stream: bool) -> list[float]:
    """Seconds to the first byte of each call; so many workers at a time, each call on a connection that is kept."""
    import aiohttp

    to_socket = where.startswith("/")
    connector = aiohttp.UnixConnector(where, limit=0) if to_socket else aiohttp.TCPConnector(limit=0)
    url, data, found = ("http://door" if to_socket else where) + "/v1/chat/completions", body(stream), []
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work(number: int) -> None:
            await asyncio.sleep(number * 0.01 if stream else 0)  # agents do not speak in chorus
            for _ in range(each):
                began = time.perf_counter()
                async with session.post(url, data=data, headers=headers) as reply:
                    await reply.content.readany()
                    found.append(time.perf_counter() - began)
                    await reply.read()
                    if reply.status != 200:
                        raise RuntimeError(f"{where}: {reply.status}")

        await asyncio.gather(*map(work, range(workers)))
    return found


def rate(where: str, each: int) -> Callable[[], float]:
    """Calls a second with all workers busy."""

    def once() -> float:
        began = time.perf_counter()
        done = asyncio.run(calls(where, STREAMS, each, stream=False))
        return len(done) / (time.perf_counter() - began)

    return once


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
