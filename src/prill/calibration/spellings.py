"""How hosted models are called, in many spellings: addresses, clients, requests, command lines, programs."""

HOSTS = {
    "https://api.openai.com/v1/chat/completions": "api.openai.com",
    "https://api.anthropic.com/v1/messages": "api.anthropic.com",
    "https://openrouter.ai/api/v1/chat/completions": "openrouter.ai",
    "https://api.deepseek.com/chat/completions": "api.deepseek.com",
    "https://api.together.xyz/v1/chat/completions": "api.together.xyz",
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent": (
        "generativelanguage.googleapis.com"
    ),
    "https://api.groq.com/openai/v1/chat/completions": "api.groq.com",
    "https://api.mistral.ai/v1/chat/completions": "api.mistral.ai",
    "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions": "dashscope.aliyuncs.com",
    "https://router.huggingface.co/v1/chat/completions": "router.huggingface.co",
}
SDKS = {
    "api.openai.com": (
        "from openai import OpenAI\nc = OpenAI()\nc.chat.completions.create(model='gpt-6', messages=[])",
        (
            "import openai\nclient = openai.OpenAI(api_key=open('k')"
            ".read())\nclient.responses.create(model='gpt-6', input='x')"
        ),
        "import asyncio\nfrom openai import AsyncOpenAI as A\nasync def go():\n    a = A(max_retries=3)\n"
        "    return await a.chat.completions.create(model='m', messages=[])\nasyncio.run(go())",
        "import litellm\nlitellm.completion(model='gpt-6', messages=[])",
        "from langchain_openai import ChatOpenAI\nChatOpenAI(model='gpt-6').invoke('write a problem')",
        "import dspy\nlm = dspy.LM('openai/gpt-6')\nlm.invoke('x')",
    ),
    "api.anthropic.com": (
        (
            "import anthropic\nc = anthropic.Anthropic()"
            "\nc.messages.create(model='claude-opus-5-5', max_tokens=9, messages=[])"
        ),
        "from anthropic import Anthropic\nwith Anthropic(api_key='sk').messages.stream(model='m') as s:\n    print(s)",
        "from litellm import completion\ncompletion(model='claude-opus-5-5', messages=[])",
    ),
    "generativelanguage.googleapis.com": (
        "from google import genai\nc = genai.Client()\nc.models.generate_content(model='gemini-3-pro', contents='x')",
        (
            "import google.generativeai as g\ng.configure(api_key='x')"
            "\nm = g.GenerativeModel('gemini-3')\nm.generate_content('x')"
        ),
    ),
    "api.groq.com": ("from groq import Groq\nGroq().chat.completions.create(model='x', messages=[])",),
    "api.mistral.ai": ("from mistralai import Mistral\nMistral(api_key='k').chat.complete(model='m', messages=[])",),
    "router.huggingface.co": (
        "from huggingface_hub import InferenceClient\nInferenceClient('meta-llama/x').chat_completion(messages=[])",
    ),
}
POSTS = (
    "import requests\nr = requests.post('{url}', json={{'model': 'm'}})\nprint(r.json())",
    (
        "import httpx, os\nURL = '{url}'\nH = "
        "{{'Authorization': 'Bearer ' + os.environ['MY_KEY']}}\nhttpx.post(URL, headers=H)"
    ),
    "import urllib.request as u, json\nq = u.Request('{url}', data=b'{{}}')\nu.urlopen(q)",
    (
        "import aiohttp\nasync def f(s):\n    async with s.post(f'{url}',"
        " json={{}}) as r:\n        return await r.json()\n"
    ),
    (
        "import requests\ndef ask(prompt, endpoint='{url}'):\n    "
        "return requests.post(endpoint, json={{'p': prompt}})\nask('x')"
    ),
    "import requests\nS = requests.Session()\nS.headers.update({{'x': 'y'}})\nS.post('{half}' + '{rest}', json=[])",
    "import requests, base64\nrequests.post(base64.b64decode('{coded}').decode(), json={{}})",
    "import subprocess\nsubprocess.run(['curl', '-s', '{url}', '-d', '@p.json'], check=True)",
    "import os\nos.system(\"curl -s {url} -H 'Content-Type: application/json' -d @p.json > o.json\")",
)
CURLS = (
    "curl -s {url} -H 'Content-Type: application/json' -d '{{\"model\": \"m\"}}'",
    "curl -X POST {url} --data @body.json -o reply.json",
    "wget -qO- --post-data='{{}}' {url}",
    "for i in 1 2 3; do curl -s {url} --json '{{\"n\": '$i'}}' >> out.jsonl; done",
    'URL={url}; curl -s "$URL" -d @x.json | jq .',
    "xargs -a prompts.txt -I{{}} curl -s {url} -d '{{}}'",
    'bash -lc "curl -s {url} -d @p.json"',
    "timeout 60 curl --silent {url} --data-binary @- <<'E'\n{{}}\nE",
)
CLIS = (
    "claude -p 'write 100 problems' > out.txt", "codex exec 'write data'", "gemini -p 'solve this' < in.txt",
    "opencode run 'make a data set'", "echo hi | llm -m gpt-6", "aider --message 'x' --yes",
    "cat p.txt | claude --print --model opus", "aws bedrock-runtime invoke-model --model-id x out.json",
)  # fmt: skip
