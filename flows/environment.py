"""Environment variables that configure third-party libraries. Set them before importing those libraries."""

import os

# These values stop libraries from reporting usage, and keep Prefect's messages from interrupting progress bars.
DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",  # if the hub is unreachable, log one error line, not one per retry
    "VLLM_NO_USAGE_STATS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",  # a call to a dead server fails in 14 s, not in four minutes
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",  # else a server may make a night wait for hours
    "PREFECT_CLIENT_MAX_RETRIES": "3",  # likewise for Prefect's server
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "nightschool,mlflow,datasets",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",  # those loggers also log outside flows
    "PREFECT_CLI_COLORS": "false",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",  # on Hopper, cuDNN attention re-plans for each new shape (0.5 s per pack)
}


def prepare() -> None:
    """Set each variable in `DEFAULTS` that the user has not set. Keep requests to this machine from a proxy."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    direct = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")).split(",")
    direct = dict.fromkeys(filter(None, (*direct, "127.0.0.1", "localhost")))
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(direct)
