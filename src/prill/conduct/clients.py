"""Which names in a program stand for what: clients of model providers, requests, shells, files. Tables only."""

import re


def listed(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


HUB = "https://huggingface.co/"
CLIENTS = {
    "openai": ("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "anthropic": ("https://api.anthropic.com/v1", ("ANTHROPIC_BASE_URL",)),
    "google.generativeai": ("https://generativelanguage.googleapis.com/v1beta", ()),
    "google.genai": ("https://generativelanguage.googleapis.com/v1beta", ("GOOGLE_GEMINI_BASE_URL",)),
    "vertexai": ("https://aiplatform.googleapis.com/v1", ()),
    "mistralai": ("https://api.mistral.ai/v1", ()),
    "cohere": ("https://api.cohere.com/v2", ()),
    "groq": ("https://api.groq.com/openai/v1", ("GROQ_BASE_URL",)),
    "together": ("https://api.together.xyz/v1", ()),
    "fireworks": ("https://api.fireworks.ai/inference/v1", ()),
    "replicate": ("https://api.replicate.com/v1", ()),
    "cerebras.cloud.sdk": ("https://api.cerebras.ai/v1", ()),
    "dashscope": ("https://dashscope.aliyuncs.com/api/v1", ()),
    "zhipuai": ("https://open.bigmodel.cn/api/paas/v4", ()),
    "xai_sdk": ("https://api.x.ai/v1", ()),
    "litellm": ("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "langchain_openai": ("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "langchain.chat_models": ("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "langchain_anthropic": ("https://api.anthropic.com/v1", ("ANTHROPIC_BASE_URL",)),
    "langchain_google_genai": ("https://generativelanguage.googleapis.com/v1beta", ()),
    "distilabel.llms": ("https://api.openai.com/v1", ("OPENAI_BASE_URL",)),
    "distilabel.models": ("https://api.openai.com/v1", ("OPENAI_BASE_URL",)),
    "dspy": ("https://api.openai.com/v1", ()),
}
"""Module of a model provider's client → where it goes by itself, and the variables that send it elsewhere."""
KEYS = {
    "openai": "OPENAI_API_KEY", "langchain_openai": "OPENAI_API_KEY", "litellm": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY", "langchain_anthropic": "ANTHROPIC_API_KEY", "google.genai": "GEMINI_API_KEY",
    "google.generativeai": "GEMINI_API_KEY", "groq": "GROQ_API_KEY", "mistralai": "MISTRAL_API_KEY",
}  # fmt: skip
"""Module → the variable that its client takes its key from where it is given none."""
MAKERS = re.compile(
    r"(Async)?(Azure)?(OpenAI\w*|Anthropic\w*|Client\w*|ClientV2|AsyncClient\w*|GenerativeModel|Mistral\w*|Groq|Together"
    r"|Fireworks|Replicate|Cerebras|ZhipuAI|Chat\w+|LM|LLM|AnthropicLLM|OpenAILLM|InferenceClient|AsyncInferenceClient)"
)
DIRECT = listed("create acreate run completion acompletion batch_completion text_completion call stream")
MODELS = {"anthropic": "anthropic", "claude": "anthropic", "gemini": "google.genai", "vertex_ai": "vertexai",
          "groq": "groq", "mistral": "mistralai", "together_ai": "together", "cohere": "cohere"}  # fmt: skip
LOCAL_MODELS = ("hosted_vllm/", "vllm/", "ollama/", "ollama_chat/", "lm_studio/", "llamafile/")
SERVERS = ("base_url", "api_base", "azure_endpoint", "endpoint", "server_url", "host", "openai_api_base",
           "anthropic_api_url", "endpoint_url", "http_options", "api_endpoint")  # fmt: skip
ASKING = listed(
    "create parse generate_content generate_content_async complete completion acompletion invoke ainvoke batch abatch "
    "chat text_generation chat_completion chat_complete run generate agenerate stream generate_text invoke_model "
    "converse send_message predict embed call complete_async"
)
NETWORK = listed(
    "get post put patch request urlopen Request urlretrieve stream fetch ClientSession Client AsyncClient ws_connect "
    "HTTPSConnection HTTPConnection download_file wget download"
)
WEB = ("requests", "httpx", "urllib", "aiohttp", "http.client", "urllib3", "websockets", "wget", "pycurl", "curl_cffi")
WRITERS = listed("write_text write_bytes unlink symlink_to rename replace touch")
MOVERS = {"shutil.copy": 1, "shutil.copyfile": 1, "shutil.copy2": 1, "shutil.move": 1, "os.rename": 1, "os.replace": 1,
          "os.remove": 0, "os.unlink": 0, "os.chmod": 0, "os.symlink": 1, "shutil.rmtree": 0, "os.link": 1}  # fmt: skip
TAKERS = {"load_dataset": "datasets/", "snapshot_download": "", "hf_hub_download": "", "from_pretrained": "",
          "dataset_info": "datasets/", "list_repo_files": "", "model_info": "", "pipeline": "", "LLM": "",
          "SentenceTransformer": ""}  # fmt: skip
SHELLS = ("os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.Popen", "subprocess.check_call",
          "subprocess.check_output", "subprocess.getoutput", "subprocess.getstatusoutput", "os.execvp")  # fmt: skip
