"""Environment variables of the libraries, which must be set before they are imported."""

import os

# Nothing phones home. Prefect's own messages go to its server, not between the progress bars.
DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",  # an unreachable hub is one error line, without a line for each retry
    "VLLM_NO_USAGE_STATS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",  # a call to a dead server takes 14 seconds, not four minutes
    "PREFECT_CLIENT_MAX_RETRIES": "3",  # the same
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "nightschool,mlflow,datasets",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",  # those loggers also log outside of a flow
    "PREFECT_CLI_COLORS": "false",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",  # on Hopper, cuDNN's attention plans anew for each shape: 0.5 s a pack
}


def prepare() -> None:
    """Set the variables that the user has not set."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
